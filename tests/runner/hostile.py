"""What an agent may leave in the place of a file, each by the name of what it is."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping
from pathlib import Path

ROOT = os.geteuid() == 0
GB = 2**30


def _socket(path: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)  # the path of a socket is short
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path.name)
    finally:
        os.chdir(here)


def _hard_link(path: Path) -> None:
    """Of a file outside the workspace."""
    outside = path.parent.parent.parent / "secret.txt"
    outside.write_text("the answers")
    os.link(outside, path)


def sparse(size: int) -> Callable[[Path], None]:
    """A file that says it is so large, and takes no space."""

    def leave(path: Path) -> None:
        with path.open("wb") as file:
            file.truncate(size)

    return leave


def _device(path: Path) -> None:
    if not ROOT:
        os.mkfifo(path)  # only root can make one
        return
    os.mknod(path, 0o020666, os.makedev(1, 5))


def _swapped(path: Path) -> None:
    path.write_text("x")
    path.unlink()
    path.symlink_to("/etc/passwd")


SPECIAL: Mapping[str, tuple[Callable[[Path], None], str]] = {
    "a pipe": (os.mkfifo, "is a named pipe; leave a regular file"),
    "a link to a file beside it": (lambda path: path.symlink_to("train.py"), "is a link; leave a regular file"),
    "a link to the host's files": (lambda path: path.symlink_to("/etc/passwd"), "is a link; leave a regular file"),
    "a link to itself": (lambda path: path.symlink_to(path.name), "is a link; leave a regular file"),
    "a link to nothing": (lambda path: path.symlink_to("nowhere"), "is a link; leave a regular file"),
    "a file swapped for a link": (_swapped, "is a link; leave a regular file"),
    "a hard link": (_hard_link, "it has another name (a hard link) outside the workspace"),
    "a device": (_device, "is a device; leave a regular file" if ROOT else "is a named pipe"),
    "a socket": (_socket, "is a socket; leave a regular file"),
    "a folder": (lambda path: path.mkdir(), "is a folder; leave a regular file"),
    "10 GB of nothing": (sparse(10 * GB), "10,240 MB"),
}
"""What is no file that can be read, how to leave it, and what must be said of it."""


def remove(path: Path) -> None:
    """Remove what was left."""
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    else:
        path.unlink(missing_ok=True)
