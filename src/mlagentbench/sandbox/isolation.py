"""Find out by trial which sandboxes work on this machine, and choose one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import NamedTuple, get_args

from mlagentbench.errors import SandboxUnavailable
from mlagentbench.limits import SandboxChoice
from mlagentbench.sandbox import bubblewrap, docker, landlock
from mlagentbench.sandbox.base import Isolation, Sandbox
from mlagentbench.sandbox.bubblewrap import BubblewrapSandbox
from mlagentbench.sandbox.docker import DockerSandbox
from mlagentbench.sandbox.landlock import LandlockSandbox
from mlagentbench.sandbox.plain import PlainSandbox
from mlagentbench.sandbox.standalone import landlock_exec

CHOICES: tuple[SandboxChoice, ...] = get_args(SandboxChoice)

TRIAL_SECONDS = 60.0
"""A sandbox that takes longer to start counts as unavailable."""


class Capability(NamedTuple):
    """A kind of sandbox, and whether it works on this machine."""

    name: Isolation
    available: bool
    detail: str
    """The version, or the reason why it does not work, in one line."""
    how_to_get: str
    """How to make it available; empty where it is."""


def probe() -> tuple[Capability, ...]:
    """Try each sandbox but `none`, and return the results, best sandbox first. Takes a few hundredths of a second in all."""
    return tuple(trial() for trial in _TRIALS.values())


def choose(name: SandboxChoice = "auto") -> Sandbox:
    """Return the sandbox of a name; for `auto` the best that works here, which is never `none`.

    Raises:
        SandboxUnavailable: it does not work on this machine; the message says how to make it available.
    """
    if name == "none":
        return PlainSandbox()
    if name != "auto":
        if name not in _TRIALS:
            raise SandboxUnavailable(f"there is no sandbox {name!r}; choose one of {', '.join(CHOICES)}")
        found = _TRIALS[name]()
        if not found.available:
            raise SandboxUnavailable(f"--sandbox {name} does not work here: {found.detail}; {found.how_to_get}")
        return _SANDBOXES[name]()
    missing = []
    for trial in _TRIALS.values():
        found = trial()
        if found.available:
            return _SANDBOXES[found.name]()
        missing.append(f"{found.name}: {found.detail}; {found.how_to_get}")
    raise SandboxUnavailable(f"this machine gives no sandbox. {'. '.join(missing)}. Or run unprotected with --sandbox none")


def _bubblewrap() -> Capability:
    try:
        version = ".".join(map(str, bubblewrap.version()))
    except SandboxUnavailable:
        return Capability("bubblewrap", False, "bwrap is not installed", bubblewrap.HOW_TO_GET)
    failure = _failure(bubblewrap.trial())
    if failure is None:
        return Capability("bubblewrap", True, f"bubblewrap {version}", "")
    return Capability("bubblewrap", False, f"bubblewrap {version} cannot start: {failure}", bubblewrap.HOW_TO_ALLOW)


def _docker() -> Capability:
    try:
        return Capability("docker", True, f"Docker {docker.server_version()}", "")
    except SandboxUnavailable as error:
        return Capability("docker", False, str(error).partition(";")[0], docker.HOW_TO_GET)


def _landlock() -> Capability:
    version = landlock_exec.abi() if sys.platform == "linux" else 0
    if version < landlock.NEEDED:
        return Capability(
            "landlock", False, f"this kernel speaks version {version} of Landlock, {landlock.NEEDED} is needed", landlock.HOW_TO_GET
        )
    return Capability("landlock", True, f"Landlock version {version}", "")


def _failure(command: tuple[str, ...]) -> str | None:
    """Run a command and return why it fails, in one line; None where it succeeds."""
    try:
        tried = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TRIAL_SECONDS)
    except subprocess.TimeoutExpired:
        return f"no answer in {TRIAL_SECONDS:.0f} s"
    except OSError as error:
        return str(error)
    lines = (tried.stderr or tried.stdout).strip().splitlines() or [f"exit status {tried.returncode}"]
    return lines[-1] if tried.returncode else None


_TRIALS: dict[Isolation, Callable[[], Capability]] = {"bubblewrap": _bubblewrap, "docker": _docker, "landlock": _landlock}
_SANDBOXES: dict[Isolation, Callable[[], Sandbox]] = {"bubblewrap": BubblewrapSandbox, "docker": DockerSandbox, "landlock": LandlockSandbox}
