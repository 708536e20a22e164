"""What a sandbox is asked and what it answers, whichever mechanism stands behind it.

A sandbox turns a command and a `Box` into a `Launch`: an argument list that any process can start. `process.py` starts one, streams
its output, holds its limits and leaves nothing alive. Scripts of agents go through `process.run`; a grader that talks with the agent's
code over pipes uses `process.start`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from mlagentbench.run_spec import ScriptLimits

WORKSPACE = "/workspace"
"""Where a box's workspace is mounted, in sandboxes that have a file system of their own."""

Isolation = Literal["bubblewrap", "docker", "landlock", "none"]

OWN_FILES: frozenset[Isolation] = frozenset({"bubblewrap", "docker"})
"""The sandboxes with a file system of their own: a workspace is at `WORKSPACE`, and `Box.read_only` is mounted. In the others a workspace
is where the host has it, and data must be linked into it."""


class Mount(NamedTuple):
    """A file or folder of the host that a box can read."""

    host: Path
    inside: str
    """An absolute path; below `/workspace` for read-only data."""


@dataclass(frozen=True)
class Box:
    """Everything a command may see and use."""

    workspace: Path
    """Read-write, and the working directory."""
    read_only: tuple[Mount, ...] = ()
    workspace_writable: bool = True
    python: Path = Path(sys.executable)
    """The interpreter whose installation is visible; the command's `python` is this one."""
    packages: tuple[str, ...] | None = None
    """Top-level packages of the interpreter's site-packages that are visible; None for all but `mlagentbench`."""
    hidden: tuple[str, ...] = ()
    """Globs, relative to the interpreter's standard library and its folders of packages, of files that are empty, or cannot be opened."""
    network: bool = False
    gpus: tuple[str, ...] = ()
    """Indices as in CUDA_VISIBLE_DEVICES."""
    environment: Mapping[str, str] = field(default_factory=dict)
    limits: ScriptLimits = field(default_factory=ScriptLimits)


class Launch(NamedTuple):
    """How to start a command inside a sandbox."""

    command: tuple[str, ...]
    environment: Mapping[str, str]
    directory: Path
    namespace: bool
    """True when the kernel ends all descendants with the first process, as a pid namespace does. Otherwise the command gets a supervisor,
    and a folder as HOME and TMPDIR that lives as long as the call."""
    control: Callable[[int], tuple[str, ...]] | None = None
    """For a command whose processes are not descendants of the first one: the command that sends them a signal, with SIGKILL for good."""


EndReason = Literal["exit", "time", "memory", "output", "disk", "processes", "cancelled"]


@dataclass(frozen=True)
class Execution:
    """What came of a command."""

    output: str
    """Standard output and error as they came, decoded with replacement, terminal escapes made visible, head and tail kept."""
    exit_code: int
    """As a shell gives it: 128 + the signal for a killed process."""
    reason: EndReason
    """Why it ended: by itself (`exit`) or at a limit."""
    seconds: float
    output_bytes: int
    """Before anything was left out."""


class Sandbox(Protocol):
    """A way to run a command that can harm nothing but its workspace."""

    @property
    def isolation(self) -> Isolation:
        """What the sandbox is called in results."""
        ...

    def launch(self, command: tuple[str, ...], box: Box) -> Launch:
        """How to start a command in a box. `python` as the command's first word is the box's interpreter.

        Raises:
            SandboxUnavailable: this machine cannot do what the box asks.
        """
        ...
