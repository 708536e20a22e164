"""The environment of an agent: the only place where actions are performed."""

from mlagentbench.environment.environment import Environment
from mlagentbench.environment.listener import ActionMiddleware, Listener, Perform, SilentListener, directly
from mlagentbench.environment.scripts import BoxSetup, ScriptRunner

__all__ = ["ActionMiddleware", "BoxSetup", "Environment", "Listener", "Perform", "ScriptRunner", "SilentListener", "directly"]
