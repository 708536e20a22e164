"""The interface of every sandbox: `Sandbox`, its input `SandboxSpec` and its result `Launch`.

A `SandboxSpec` says what a command may see and use. A sandbox turns a command and a spec into a `Launch`, an argument list that any process
can start. `process.py` starts it, streams its output, enforces its limits and kills all its processes at the end. Scripts of agents go
through `process.run`; a grader that exchanges data with the agent's code over pipes uses `process.start`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from mlagentbench.limits import ScriptLimits

WORKSPACE = "/workspace"
"""Where the workspace is mounted, in sandboxes that have a file system of their own."""
HOME = "/home/agent"
"""Where `SandboxSpec.home` is mounted."""

Isolation = Literal["bubblewrap", "docker", "landlock", "none"]

OWN_FILES: frozenset[Isolation] = frozenset({"bubblewrap", "docker"})
"""The sandboxes with a file system of their own: the workspace is at `WORKSPACE`, and `SandboxSpec.read_only` is mounted. In the others the
workspace is at its path on the host, and data must be linked into it."""


class Mount(NamedTuple):
    """A file or folder of the host that a sandbox can read."""

    host: Path
    inside: str
    """An absolute path; below `/workspace` for read-only data."""


@dataclass(frozen=True)
class SandboxSpec:
    """Everything a command may see and use."""

    workspace: Path
    """Read-write, and the working directory."""
    read_only: tuple[Mount, ...] = ()
    workspace_writable: bool = True
    home: Path | None = None
    """A second folder that is read-write, mounted at `HOME`. A view with one also has the files of /etc and the /var/tmp that programs
    expect of a whole machine. Only bubblewrap can mount it."""
    path: tuple[str, ...] = ()
    """Folders in the sandbox to search for programs, after the interpreter's and before the system's."""
    python: Path = Path(sys.executable)
    """The interpreter whose installation is visible; the command's `python` is this one."""
    packages: tuple[str, ...] | None = None
    """Top-level packages of the interpreter's site-packages that are visible; None for all but `mlagentbench`."""
    hidden: tuple[str, ...] = ()
    """Globs of files to hide, relative to the interpreter's standard library and its folders of packages. A hidden file is empty, or
    cannot be opened."""
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
    """Whether the command runs in a pid namespace of its own."""
    control: Callable[[int], tuple[str, ...]] | None = None
    """For a command whose processes are not descendants of the first one: return the command that sends them a signal. The one for SIGKILL
    also removes what they ran in."""


EndReason = Literal["exit", "time", "memory", "output", "disk", "processes", "cancelled"]


@dataclass(frozen=True)
class Execution:
    """The result of a command."""

    output: str
    """Standard output and error as they came, decoded with replacement, terminal escapes made visible, head and tail kept."""
    exit_code: int
    """As in a shell: 128 + the signal for a killed process."""
    reason: EndReason
    """Why it ended: by itself (`exit`), at a limit, or because it was cancelled."""
    seconds: float
    """Wall time."""
    output_bytes: int
    """Bytes that the command wrote, those left out of `output` included."""


class Sandbox(Protocol):
    """A way to run a command that can harm nothing but its workspace."""

    @property
    def isolation(self) -> Isolation:
        """The sandbox's name in results."""
        ...

    def launch(self, command: tuple[str, ...], spec: SandboxSpec) -> Launch:
        """Return how to start a command in a sandbox. `python` as the command's first word is the interpreter `spec.python`.

        Raises:
            SandboxUnavailable: this machine cannot provide what `spec` asks for.
        """
        ...
