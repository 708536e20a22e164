"""What a script of an agent may use, and what it runs in: plain values, which the sandbox and a run's spec share.

This imports nothing but the standard library, as the sandbox does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SandboxChoice = Literal["auto", "bubblewrap", "docker", "landlock", "none"]
"""The sandbox that is asked for; `auto` takes the strongest that this machine supports."""


@dataclass(frozen=True)
class ScriptLimits:
    """The limits of one script of the agent. Sizes are in megabytes (2^20), times in seconds."""

    __pydantic_config__ = {"extra": "forbid"}  # for pydantic, where a spec holds it: a misspelt limit is an error

    seconds: float = 3600
    memory_mb: int = 8192
    processes: int = 4096
    """Processes and threads at once, including the few that start the command."""
    file_mb: int = 4096
    workspace_mb: int = 16384
    workspace_files: int = 100_000
    """Files, folders and links in the workspace."""
    output_kb: int = 256
    """Kilobytes of the output that are kept: half from its head and half from its tail."""
