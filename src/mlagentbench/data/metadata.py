"""Make the metadata of files uniform, so that it does not leak answers.

Answers leak through more than contents: a `prepare.py` that writes the images of one class after those of another leaves that order in
the times and inodes of the files, whatever their names are. Both are visible in every sandbox, since the data is mounted, not copied.

Hard links to downloads stay links: their inodes show the order in which the originals were written. If that order gives answers away,
a task must copy the files.
"""

from __future__ import annotations

import itertools
import os
import shutil
import stat
from collections.abc import Sequence
from pathlib import Path

from mlagentbench.errors import TaskError

MOMENT = 946_684_800
"""The time that every file gets: 2000-01-01, UTC. Some archivers reject zero."""
FOLDER_MODE, FILE_MODE = 0o755, 0o644


def level(folder: Path) -> None:
    """Give a folder and everything in it the same modes and times, and make the order of inodes follow that of names.

    Args:
        folder: a tree of plain files and folders that no process is working in.

    Raises:
        TaskError: it holds a symbolic link, or something else that is neither file nor folder.
        OSError: the disk is full.
    """
    for path, _, _ in os.walk(folder):
        entries = sorted(os.scandir(path), key=lambda entry: entry.name)
        for entry in entries:
            mode = entry.stat(follow_symlinks=False).st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                raise TaskError(f"{entry.path} is neither file nor folder; prepared data holds nothing else")
        files = [entry for entry in entries if entry.is_file() and entry.stat().st_nlink == 1]
        for some in (files, [entry for entry in entries if entry.is_dir()]):
            if not _in_order([entry.inode() for entry in some]):
                _remake([entry.name for entry in some], Path(path))
    # Done last and in the order of names, since it sets the time of change (ctime), which cannot be chosen.
    paths = (Path(path, name) for path, folders, files in os.walk(folder) for name in (*folders, *files))
    for each in sorted((*paths, folder)):
        each.chmod(FOLDER_MODE if each.is_dir() else FILE_MODE)
        os.utime(each, (MOMENT, MOMENT))


def _remake(names: Sequence[str], folder: Path) -> None:
    """Recreate files or folders in the order given, so that their inodes follow it."""
    aside = folder / ".aside"
    aside.mkdir()
    for name in names:
        old, new = folder / name, aside / name
        if old.is_dir():
            new.mkdir()
            for child in old.iterdir():
                child.rename(new / child.name)
            old.rmdir()
        else:
            shutil.copyfile(old, new)
    for name in names:
        os.replace(aside / name, folder / name)
    aside.rmdir()


def _in_order(numbers: Sequence[int]) -> bool:
    return all(before < after for before, after in itertools.pairwise(numbers))
