"""The environment an agent lives in: the only place where an action runs."""

from mlagentbench.environment.environment import Environment
from mlagentbench.environment.listener import ActionMiddleware, Listener, Perform, Silent, directly

__all__ = ["ActionMiddleware", "Environment", "Listener", "Perform", "Silent", "directly"]
