"""List what is mounted in a sandbox that has a file system of its own, in the order in which to mount it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from mlagentbench.sandbox.base import HOME, WORKSPACE, SandboxSpec
from mlagentbench.sandbox.standalone import absent_file, empty_file
from mlagentbench.sandbox.view.interpreter import Interpreter, library_files, package_files

SYSTEM_FOLDERS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
"""Folders beside /usr; on most systems they are links into it."""
ETC = ("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime")
ETC_NETWORK = ("ca-certificates", "hosts", "nsswitch.conf", "pki", "resolv.conf", "ssl")

OWN_ETC = Path(__file__).parent / "etc"
"""Files of /etc that name the sandbox's user and host, and nothing of this machine."""
OS_RELEASE = "/usr/lib/os-release"


class Bind(NamedTuple):
    """A bind mount of a file or folder of the host."""

    host: Path
    inside: str
    writable: bool = False


class MaskedFolder(NamedTuple):
    """An empty read-only folder, mounted over one of the host. It holds only what is mounted in it later."""

    inside: str


class Link(NamedTuple):
    """A symbolic link."""

    inside: str
    target: str


Piece = Bind | MaskedFolder | Link


def programs(network: bool) -> Iterator[Piece]:
    """Yield the system's programs, libraries, and the few files of /etc that these need."""
    yield Bind(Path("/usr"), "/usr")
    for name in SYSTEM_FOLDERS:
        folder = Path("/", name)
        if folder.is_symlink():
            yield Link(str(folder), os.readlink(folder))
        elif folder.is_dir():
            yield Bind(folder, str(folder))
    for name in (*ETC, *(ETC_NETWORK if network else ())):
        if (file := Path("/etc", name)).exists():
            yield Bind(file, str(file))


def installation(interpreter: Interpreter, packages: tuple[str, ...] | None, hidden: tuple[str, ...]) -> Iterator[Piece]:
    """Yield one Python installation, without this package.

    Args:
        interpreter: the installation.
        packages: the top-level packages to show; None for all.
        hidden: globs of files that are replaced by an empty one.
    """
    for root in interpreter.roots:
        yield Bind(root, str(root))
    shown: list[Path] = []
    if packages is not None:
        for site in interpreter.sites:
            yield MaskedFolder(str(site))
            for entry in package_files(site, packages):
                shown.append(entry)
                yield Bind(entry, str(entry))
    for place in interpreter.hidden:
        if packages is None or not any(place.is_relative_to(site) for site in interpreter.sites):
            yield MaskedFolder(str(place))
            yield Bind(absent_file(), str(place / "__init__.py"))
    for file in library_files(interpreter, hidden):
        in_site = any(file.is_relative_to(site) for site in interpreter.sites)
        if packages is None or not in_site or any(file.is_relative_to(entry) for entry in shown):
            yield Bind(empty_file(), str(file))


def workspace(spec: SandboxSpec) -> Iterator[Piece]:
    """Yield the workspace, and the read-only data in it."""
    yield Bind(spec.workspace, WORKSPACE, spec.workspace_writable)
    for mount in spec.read_only:
        yield Bind(mount.host, mount.inside)


def machine(spec: SandboxSpec) -> Iterator[Piece]:
    """Yield the home folder, and the files of /etc that programs expect of a whole machine; nothing for a spec without a home."""
    if spec.home is None:
        return
    yield Bind(spec.home, HOME, True)
    for name in ("hosts", "passwd", "group"):
        if name not in ETC_NETWORK or not spec.network:
            yield Bind(OWN_ETC / name, f"/etc/{name}")
    if Path(OS_RELEASE).exists():
        yield Link("/etc/os-release", f"..{OS_RELEASE}")
    elif Path("/etc/os-release").exists():
        yield Bind(Path("/etc/os-release"), "/etc/os-release")
