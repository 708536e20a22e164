"""A sandbox made by Landlock, which is part of the Linux kernel and needs no installation and no privilege.

It is for machines without bubblewrap. A command runs in its workspace at the workspace's path on the host. It can read the system's
programs, one Python installation and its read-only data, and write its workspace, its temporary folder and shared memory of its own. It
cannot change a file's mode, and has no capability, and no network unless its spec allows it. `LIMITATIONS` lists what Landlock cannot do.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from mlagentbench.errors import SandboxUnavailable
from mlagentbench.sandbox.base import Isolation, Launch, SandboxSpec
from mlagentbench.sandbox.linux import seccomp
from mlagentbench.sandbox.standalone import landlock_exec
from mlagentbench.sandbox.view.environment import SYSTEM_PATH, gpu_nodes, own_command, variables
from mlagentbench.sandbox.view.interpreter import SYSTEM, Interpreter, check_workspace, describe, library_files, package_files
from mlagentbench.sandbox.view.layout import ETC, ETC_NETWORK

LIMITATIONS = (
    "data lies where the host has it, not at a fixed path, and the workspace too",
    "a file outside cannot be opened or listed, but a command can ask whether a path exists and how large it is",
    "modes, owners and times of files cannot be changed, in the workspace neither: chmod does nothing, and says it worked",
    "/dev/shm is shared with the user's other programs where neither root nor a user namespace can mount a private one",
    "local sockets with a path, such as Docker's or a desktop's, can be connected to where the user may",
    "other processes can be listed with their command lines, though not read, traced or (from Linux 6.12) signalled",
    "a command that keeps its supervisor from its work is ended by other means, which can miss a process without a control group",
    "no TCP at all, not even to itself, unless the sandbox has the network",
)
"""What a user of this sandbox should know, one line each."""

NEEDED = 3
"""The first version of Landlock that can deny truncating files (Linux 6.2)."""
HOW_TO_GET = "it needs Linux 6.2 or later with `landlock` in /sys/kernel/security/lsm; bubblewrap runs on older ones"

_KERNEL = ("/proc", "/sys/devices/system")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")


class LandlockSandbox:
    """Runs a command confined by Landlock and a system call filter. See `LIMITATIONS`."""

    isolation: Isolation = "landlock"

    def launch(self, command: tuple[str, ...], spec: SandboxSpec) -> Launch:
        """Return how to start a command confined by Landlock.

        Raises:
            SandboxUnavailable: the kernel cannot enforce the rules, the interpreter cannot be shown, or a GPU or a mount does not exist.
        """
        version = landlock_exec.abi()
        if version < NEEDED:
            raise SandboxUnavailable(f"this kernel speaks version {version} of Landlock and {NEEDED} is needed; {HOW_TO_GET}")
        interpreter = describe(spec.python)
        check_workspace(spec, interpreter)
        call_filter = seccomp.build(sockets=spec.network, own_files=False)
        if call_filter is None:
            raise SandboxUnavailable("there is no filter of system calls for this kind of machine; use --sandbox bubblewrap or docker")
        gpus = gpu_nodes(spec.gpus)
        paths = [
            *(("read", f"/etc/{name}") for name in (*ETC, *(ETC_NETWORK if spec.network else ()))),
            *(("read", path) for path in (*_KERNEL, *(("/sys",) if gpus.nodes else ()))),
            *_installation(interpreter, spec),
            *(("device", path) for path in (*_DEVICES, *map(str, gpus.nodes))),
            *(("read", str(mount.host)) for mount in spec.read_only),
            ("write" if spec.workspace_writable else "read", str(spec.workspace)),
        ]
        rules = json.dumps(
            {"paths": paths, "tcp": spec.network, "filter": call_filter.hex(), "shared_mb": max(spec.limits.memory_mb // 2, 64)}
        )
        words = (sys.executable, "-I", "-S", landlock_exec.__file__, rules, *own_command(command, spec))
        path = f"{interpreter.executable.parent}:{SYSTEM_PATH}"
        environment = {**variables(), "PATH": path, "CUDA_VISIBLE_DEVICES": gpus.visible, **spec.environment}
        return Launch(words, environment, spec.workspace, namespace=False)


def _installation(interpreter: Interpreter, spec: SandboxSpec) -> Iterator[tuple[str, str]]:
    """Yield the rules for the programs and one Python installation, without this package and with no packages but those in `spec.packages`.

    Landlock allows whole folders and cannot exclude a part of one. A folder with something hidden in it is thus allowed entry by entry.
    """
    files = {file.resolve() for file in library_files(interpreter, spec.hidden)}
    hidden = {place.resolve() for place in interpreter.hidden} | files
    if spec.packages is not None:
        hidden |= {site.resolve() for site in interpreter.sites}
        for site in interpreter.sites:
            yield "list", str(site)
            shown = (part for entry in package_files(site, spec.packages) for part in _around(entry.resolve(), files))
            yield from (("read", str(path)) for path in shown)
    roots = {root.resolve() for root in (*SYSTEM, *interpreter.roots) if root.exists()}
    for root in sorted(roots):
        yield "list", str(root)
        yield from (("read", str(path)) for path in _around(root, hidden))


def _around(folder: Path, hidden: Iterable[Path]) -> Iterator[Path]:
    """Yield the fewest paths that cover everything below a folder except what is hidden."""
    below = [place for place in hidden if place.is_relative_to(folder)]
    if not below:
        yield folder
    elif folder not in below:
        for entry in folder.iterdir():
            if not entry.is_symlink():  # Landlock's rules apply to a link's target, which has its own
                yield from _around(entry, below)
