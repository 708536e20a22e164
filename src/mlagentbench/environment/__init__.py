"""The environment an agent lives in: the only place where an action runs."""

from mlagentbench.environment.environment import Environment
from mlagentbench.environment.limits import RunLimits
from mlagentbench.environment.listener import Listener, Perform, Silent, Through, directly

__all__ = ["Environment", "Listener", "Perform", "RunLimits", "Silent", "Through", "directly"]
