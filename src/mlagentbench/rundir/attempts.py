"""Number the attempts at a run, so that one whose process was thought dead stops where another has taken over.

    attempts/0001/           claimed by making it; the highest number is the attempt that goes on with the run
    attempts/0001/machine    which machine it is on, by the kernel's id of this boot
    attempts/0001/ended      it ended in order, or its process is dead

One machine's processes keep out of each other's way by the lock of the run, which the kernel frees when its holder dies. That lock may not
reach another node, and a node that was given up may come back with a process that still runs, a zombie. So an attempt looks for a newer one
before each action, and before it writes anything; and since a zombie may be stopped between looking and writing:

- A step is published with link(2) on the server of the shared storage: the first writer wins, and who loses stops. So each step was made
  by an attempt that knew all steps before it.
- An attempt that begins while an earlier one may be alive works in its own folder, in `attempts/`: its workspace, the home of its agent,
  and what grows beside a step. Once a step is published, its files move to the places that all readers know.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from mlagentbench.errors import Superseded
from mlagentbench.rundir.files import names_in
from mlagentbench.util.atomic import flush, publish
from mlagentbench.util.machine import boot


class Attempts:
    """The attempts at one run, and which of them this process is."""

    def __init__(self, run: Path) -> None:
        self._run = run
        self._folder = run / "attempts"
        self._number = 0
        """The number of this process's attempt; 0 while it has none."""
        self.place = run
        """The folder of `workspace`, and of what grows in `steps` and `snapshots`: the run's, or where an earlier attempt may be alive this
        attempt's."""

    def begin(self) -> None:
        """Claim the next attempt. Call it while the lock of the run is held.

        Raises:
            OSError: the disk is full or read-only.
        """
        self._folder.mkdir(exist_ok=True)
        self._number = 0
        while not self._number:
            with suppress(FileExistsError):
                number = max(self._numbers(), default=0) + 1
                self.folder(number).mkdir()
                self._number = number
        mine = self.folder(self._number)
        publish(mine / "machine", boot())
        for folder in (self._folder, self._run):
            flush(folder)
        # A process of this boot that still lived would hold the lock.
        if not all(self._is_over(self.folder(number)) for number in self._numbers() if number < self._number):
            self.place = mine
            for part in ("steps", "snapshots"):
                (mine / part).mkdir()

    def end(self) -> None:
        """Note that this attempt has ended in order, so that the next one need not fear it."""
        if self._number:
            with suppress(OSError):
                (self.folder(self._number) / "ended").touch()
            self._number = 0

    def check(self) -> None:
        """Raise Superseded if another process has begun a newer attempt."""
        if self._number and max(self._numbers(), default=0) > self._number:
            raise Superseded(f"another process goes on with {self._run}, since this one was thought dead; nothing more is written here")

    def save(self, write: Callable[[Path, bool], None], target: Path) -> None:
        """Write a snapshot's manifest into this attempt's folder. That of step 0, which all attempts share, goes to the run's folder.

        Args:
            write: a function that writes the manifest to a path; its flag says whether the file must be new.
            target: the manifest's path once the step is published.

        Raises:
            OSError: it cannot be written, or another process has written it.
            Superseded: as by `check`.
        """
        self.check()
        path, at_start = self.place / "snapshots" / target.name, target.name == "0000"
        write(path, not at_start)
        if at_start and path != target:
            with suppress(FileExistsError):
                os.link(path, target)
            path.unlink()

    def folder(self, number: int) -> Path:
        """Return the folder of an attempt."""
        return self._folder / f"{number:04d}"

    def folders(self) -> list[Path]:
        """Return the folders of all attempts, the oldest first."""
        return [self.folder(number) for number in sorted(self._numbers())]

    def newest(self, name: str) -> Path:
        """Return the path of a file of a step in progress: in the newest attempt that has one, or else in the run's folder."""
        own = [folder / name for folder in self.folders() if (folder / name).exists()]
        return own[-1] if own else self._run / name

    def _numbers(self) -> list[int]:
        # Listing the folder asks the server of a network file system; looking for one name may be answered from a stale cache.
        return [int(name) for name in names_in(self._folder) if name.isascii() and name.isdigit()]

    def _is_over(self, folder: Path) -> bool:
        """Return whether an attempt has ended. One that left a torn record may be alive."""
        if (folder / "ended").exists():
            return True
        with suppress(OSError):
            if (folder / "machine").read_text() == boot():
                (folder / "ended").touch()
                return True
        return False


def complete(own: Path, run: Path) -> None:
    """Move the files of the steps that an attempt has published from its own folder to the places that all readers know.

    It can be called again, also by another process: an attempt may be killed or stopped in the middle of it.

    Raises:
        OSError: the disk is full or read-only.
    """
    for name in names_in(own / "steps"):
        step, _, what = name.partition(".")
        if what != "json" or not _same(own / "steps" / name, run / "steps" / name):
            continue
        found = [Path(part, each) for part in ("snapshots", "steps") for each in names_in(own / part)]
        files = [file for file in found if file.name.partition(".")[0] == step and file != Path("steps", name)]
        for file in files:
            if (own / file).exists():
                _move_over(own / file, run / file)
        for folder in ("steps", "snapshots"):
            flush(run / folder)
        # The step's own link last: it says that there is something left to do.
        for file in (*files, Path("steps", name)):
            (own / file).unlink(missing_ok=True)


def set_aside(files: Sequence[Path]) -> list[Path]:
    """Rename the files of a step that was never published, such as `0007.calls.jsonl` to `0007.lost1.calls.jsonl`; return the new paths."""
    step = files[0].name.partition(".")[0] if files else ""
    count = 1 + len({name.split(".")[1] for name in names_in(files[0].parent) if name.startswith(f"{step}.lost")}) if files else 0
    renamed = [file.with_name(file.name.replace(".", f".lost{count}.", 1)) for file in files]
    for file, lost in zip(files, renamed, strict=True):
        with suppress(FileNotFoundError):
            file.rename(lost)
    return renamed


def clear_step(run: Path, step: int, growing: Sequence[Path]) -> None:
    """Remove what a killed process left of a step that it did not publish.

    If this process was stopped in here, and the step has been published meanwhile by one that took over, that one's files are put back.

    Args:
        run: the run's directory.
        step: the step's number.
        growing: the files that grow beside the step, which are set aside; its snapshot is removed.
    """
    folder = run / "snapshots"
    snapshots = [folder / name for name in names_in(folder) if name.partition(".")[0] == f"{step:04d}"]
    removed = [path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(3)}") for path in snapshots]
    for path, hidden in zip(snapshots, removed, strict=True):
        with suppress(FileNotFoundError):
            path.rename(hidden)
    names = zip((*growing, *snapshots), (*set_aside(growing), *removed), strict=True)
    if (run / "steps" / f"{step:04d}.json").exists():
        for name, now in names:
            with suppress(FileNotFoundError, FileExistsError):
                os.link(now, name)
                now.unlink()
    for hidden in removed:
        hidden.unlink(missing_ok=True)


def _move_over(source: Path, target: Path) -> None:
    """Give a file a second name. What an earlier attempt has left there is set aside; a manifest of its, which nothing names, is lost."""
    while source.exists() and not _same(source, target):
        if target.parent.name == "steps":
            set_aside([target] if target.exists() else [])
        temporary = source.with_name(f".{source.name}.{os.getpid()}.{secrets.token_hex(3)}")
        with suppress(FileNotFoundError):
            os.link(source, temporary)
            os.replace(temporary, target)


def _same(one: Path, other: Path) -> bool:
    """Return whether two names are of one file; False where either is missing."""
    try:
        return os.path.samefile(one, other)
    except FileNotFoundError:
        return False
