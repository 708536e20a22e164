"""A sandbox of Linux namespaces, made by bubblewrap in milliseconds and without privileges.

A command sees its workspace at `/workspace`, the system's programs, one Python installation, its read-only data, and a /tmp and a /dev/shm
of its own; nothing else of the host is visible. It has no network unless its spec allows it, sees no other process, has no capability, and
cannot create a user namespace to gain one.

Run by root, bubblewrap alone does not isolate: a command would keep its capabilities, and as root it would own the kernel's settings in
/proc. `_privileges` and `_kernel` prevent both.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from mlagentbench.errors import SandboxUnavailable
from mlagentbench.sandbox.base import HOME, WORKSPACE, Isolation, Launch, SandboxSpec
from mlagentbench.sandbox.linux import seccomp
from mlagentbench.sandbox.linux.limits import set_tasks
from mlagentbench.sandbox.view.environment import SYSTEM_PATH, gpu_nodes, own_command, variables
from mlagentbench.sandbox.view.interpreter import check_workspace, describe
from mlagentbench.sandbox.view.layout import Bind, Link, MaskedFolder, Piece, installation, machine, programs, workspace

HOW_TO_GET = "install it: `apt install bubblewrap` (Debian, Ubuntu), `dnf install bubblewrap` (Fedora, RHEL), `pacman -S bubblewrap` (Arch)"
HOW_TO_ALLOW = (
    "it needs user namespaces: on Ubuntu 24.04 and later `sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0`, elsewhere "
    "`sudo sysctl user.max_user_namespaces=10000`; in a Docker container, start it with --security-opt seccomp=unconfined"
    " --security-opt systempaths=unconfined"
)
PYTHON_LINKS = "/run/python"
"""Where links `python` and `python3` are created for an interpreter whose folder lacks one of them."""

VAR_TMP_MB = 256
"""MB of /var/tmp at most. An agent's requests to models wait there, and are read into the harness's memory."""

_KERNEL_SETTINGS = ("sys", "irq", "bus", "fs", "scsi", "acpi", "pressure")
"""Folders of /proc with files that root, or everybody, may write without any capability."""


class BubblewrapSandbox:
    """Runs a command in namespaces of its own."""

    isolation: Isolation = "bubblewrap"

    def launch(self, command: tuple[str, ...], spec: SandboxSpec) -> Launch:
        """Return how to start a command in its own namespaces.

        Raises:
            SandboxUnavailable: bubblewrap is missing, the interpreter cannot be shown, or a GPU or a mount does not exist.
        """
        interpreter = describe(spec.python)
        check_workspace(spec, interpreter)
        gpus = gpu_nodes(spec.gpus)
        links = [Link(str(link), str(interpreter.executable.resolve())) for link in interpreter.links]
        if not interpreter.provides_python:
            links += [Link(f"{PYTHON_LINKS}/{name}", str(interpreter.executable)) for name in ("python", "python3")]
        arguments = [
            *_privileges(),
            *_mounts(programs(spec.network)),
            *_kernel(spec.limits.memory_mb),
            *_mounts([*installation(interpreter, spec.packages, spec.hidden), *links, *workspace(spec), *machine(spec)]),
            *(word for node in gpus.nodes for word in ("--dev-bind", str(node), str(node))),
            *(("--ro-bind", "/sys", "/sys") if gpus.nodes else ()),
            *(("--dir", "/var", *_memory_folder("/var/tmp", min(spec.limits.memory_mb, VAR_TMP_MB * 2))) if spec.home else ()),
            *("--remount-ro", "/dev", "--remount-ro", "/"),
            *("--chdir", WORKSPACE),
        ]
        python = str(interpreter.executable.parent) if interpreter.provides_python else PYTHON_LINKS
        path = ":".join((python, *spec.path, SYSTEM_PATH))
        home = HOME if spec.home else "/tmp"
        environment = {**variables(), "PATH": path, "HOME": home, "CUDA_VISIBLE_DEVICES": gpus.visible, **spec.environment}
        for name, value in environment.items():
            arguments += ["--setenv", name, value]
        if spec.network:
            arguments.append("--share-net")
        words = (_program(), *arguments, "--", *_tasks_limit(spec), *own_command(command, spec))
        return Launch(_with_filter(words), {"PATH": SYSTEM_PATH}, Path("/"), namespace=True)


def version() -> tuple[int, ...]:
    """Return the version of the installed bubblewrap.

    Raises:
        SandboxUnavailable: bubblewrap is not installed.
    """
    return _version(_program())


def trial() -> tuple[str, ...]:
    """Return a command that succeeds where a sandbox can be started, and takes as long as starting one.

    Raises:
        SandboxUnavailable: bubblewrap is not installed.
    """
    arguments = [*_privileges(), *_mounts(programs(False)), *_kernel(1024), "--remount-ro", "/"]
    return _with_filter((_program(), *arguments, "--", "/usr/bin/env", "true"))


def _privileges() -> list[str]:
    """Return the arguments that make the command user 1000 of a user namespace, without capabilities, whoever runs the harness.

    Outside the namespace the command still runs as the user of the harness. When that is root, the harness does not switch to a user with
    fewer rights first: it would have to give every file of the workspace to that user before each call, and interpreters and data below
    /root, where root usually has them, would be out of reach. Instead, what root owns and the command can see is mounted read-only.
    """
    words = ["--unshare-all", "--unshare-user", "--die-with-parent", "--new-session", "--clearenv", "--cap-drop", "ALL"]
    words += ["--uid", "1000", "--gid", "1000", "--hostname", "sandbox"]
    if version() >= (0, 8):
        words.append("--disable-userns")
    return words


def _kernel(memory_mb: int) -> list[str]:
    """Return the arguments for /proc, /dev and the file systems in memory.

    The kernel's settings belong to root, who could write them even without capabilities, so that they are mounted read-only.
    """
    words = ["--proc", "/proc"]
    for name in _KERNEL_SETTINGS:
        if Path("/proc", name).is_dir():
            words += ["--ro-bind", f"/proc/{name}", f"/proc/{name}"]
    return [*words, "--dev", "/dev", *_memory_folder("/dev/shm", memory_mb), *_memory_folder("/tmp", memory_mb)]


def _memory_folder(inside: str, memory_mb: int) -> list[str]:
    """Return the arguments for a writable folder in memory, of at most half of the memory limit."""
    size = ["--size", str(max(memory_mb // 2, 64) << 20)] if version() >= (0, 7) else []
    return [*size, "--tmpfs", inside]


def _mounts(pieces: Iterable[Piece]) -> list[str]:
    words: list[str] = []
    sealed: list[str] = []
    for piece in pieces:
        match piece:
            case Bind(host, inside, writable):
                words += ["--bind" if writable else "--ro-bind", str(host), inside]
            case Link(inside, target):
                words += ["--symlink", target, inside]
            case MaskedFolder(inside):
                words += ["--tmpfs", inside]
                sealed += ["--remount-ro", inside]
    return words + sealed


def _tasks_limit(spec: SandboxSpec) -> tuple[str, ...]:
    """Return the start of a command that limits its number of processes and threads; empty for root, to whom RLIMIT_NPROC does not apply.

    The limit is set inside the user namespace, where the kernel counts only that namespace's tasks and not all of the user's.
    """
    if os.getuid() == 0:
        return ()
    return ("/bin/sh", "-c", f'{set_tasks(spec.limits.processes)}; exec "$@"', "sh")


def _with_filter(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return bubblewrap's command with a system call filter on descriptor 9, where this machine has a filter."""
    filter_file = seccomp.filter_file()
    if filter_file is None:
        return words
    return ("/bin/sh", "-c", 'exec 9<"$0"; exec "$@"', filter_file, words[0], "--seccomp", "9", *words[1:])


def _program() -> str:
    program = shutil.which("bwrap")
    if program is None:
        raise SandboxUnavailable(f"bubblewrap is not installed; {HOW_TO_GET}, or run unprotected with --sandbox none")
    return program


@functools.cache
def _version(program: str) -> tuple[int, ...]:
    said = subprocess.run((program, "--version"), stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout
    return tuple(int(number) for number in re.findall(r"\d+", said)[:3])
