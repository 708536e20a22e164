"""A run's directory: the truth of a run, and the only place that knows its file names.

    <log directory>/
      objects/                 what snapshots are made of, shared by all runs
      <run>/
        run.json               what was asked (`RunInfo`)
        workspace/             what the agent works in
        steps/0007.json        a step (`Step`), numbered from 1, published once its snapshot stands
        steps/0007.calls.jsonl every question to a model since the step before, and its reply (`ModelCall`), as they happen
        steps/0007.output.txt  what scripts of that step print, as it comes; a flood of it is thinned
        snapshots/0007         the workspace after that step (a manifest); 0000 is the start
        result.json            how it came out (`Result`), written last
        lock                   held by the process that works on the run

A step is published with link(2): whole or not at all, and the first writer wins. What is being written when a machine dies is lost; what
was published before is not, since each file is flushed to disk before it gets its name.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from mlagentbench.errors import RunNotFound, StorageFailed, UsageError
from mlagentbench.records import ModelCall, Record, Result, Role, RunInfo, Step, Usage

OBJECTS = "objects"
R = TypeVar("R", bound=Record)


def new_name(task: str, agent: str) -> str:
    """A name for a run, unique in practice and sorted by time: `20260131-101500-vectorization-research-3f9a`.

    Of an agent that is named by its file, as `path/to/file.py:Name`, the name counts.
    """
    short = re.sub(r"[^A-Za-z0-9_]+", "-", agent.rpartition(":")[2])
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{task}-{short}-{secrets.token_hex(2)}"


def prepare_log_directory(path: Path) -> Path:
    """Make a log directory and prove that it can be written.

    Raises:
        UsageError: it cannot.
    """
    try:
        (path / OBJECTS).mkdir(parents=True, exist_ok=True)
        probe = path / f".write-probe-{os.getpid()}"
        probe.write_bytes(b"x")
        probe.unlink()
    except OSError as error:
        raise UsageError(f"cannot write to the log directory {path}: {error.strerror}; choose another with --log-dir") from None
    return path.resolve()


def find_runs(path: Path) -> list[RunDirectory]:
    """The runs at a path: the run itself, or those of a log directory, oldest first.

    Raises:
        RunNotFound: there are none.
    """
    if (path / "run.json").is_file():
        return [RunDirectory(path)]
    runs = [RunDirectory(file.parent) for file in sorted(path.glob("*/run.json"))]
    if not runs:
        raise RunNotFound(f"there are no runs in {path}; name a log directory or a run's directory")
    return runs


class RunDirectory:
    """One run's directory.

    Args:
        path: the directory. It need not exist until `create`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, log_directory: Path, info: RunInfo) -> RunDirectory:
        """Make the directory of a new run.

        Raises:
            StorageFailed: the disk is full or read-only.
        """
        directory = cls(log_directory / info.run)
        with storage(directory.path):
            directory.path.mkdir()
            for folder in (directory.workspace, directory.steps_folder, directory.path / "snapshots"):
                folder.mkdir()
            _publish(directory.path / "run.json", _text(info))
        return directory

    def fork(self, info: RunInfo, step: int) -> RunDirectory:
        """Make the directory of a new run that has this one's steps up to one, and goes on from there.

        Args:
            info: of the new run.
            step: the last step to take over; 0 for none.

        Raises:
            StorageFailed: the disk is full or read-only.
        """
        new = RunDirectory.create(self.path.parent, info)
        with storage(new.path):
            for number in range(step + 1):
                for path in (self.manifest(number), *self.steps_folder.glob(f"{number:04d}.*")):
                    shutil.copyfile(path, new.path / path.relative_to(self.path))
        return new

    @property
    def name(self) -> str:
        """The run's name."""
        return self.path.name

    @property
    def workspace(self) -> Path:
        """What the agent works in."""
        return self.path / "workspace"

    @property
    def objects(self) -> Path:
        """What snapshots are made of, shared with the other runs of the log directory."""
        return self.path.parent / OBJECTS

    @property
    def steps_folder(self) -> Path:
        """Where the steps lie."""
        return self.path / "steps"

    def manifest(self, step: int) -> Path:
        """The file of the snapshot after a step; of the start for 0."""
        return self.path / "snapshots" / f"{step:04d}"

    @property
    def info(self) -> RunInfo:
        """What was asked."""
        return _read(self.path / "run.json", RunInfo)

    @property
    def result(self) -> Result | None:
        """How it came out; None while it has not."""
        path = self.path / "result.json"
        return _read(path, Result) if path.exists() else None

    def write_result(self, result: Result) -> None:
        """Write the result; a later one replaces it whole.

        Raises:
            StorageFailed: the disk is full or read-only.
        """
        with storage(self.path):
            _replace(self.path / "result.json", _text(result))

    def steps(self) -> list[Step]:
        """The published steps, in order."""
        return [_read(path, Step) for path in sorted(self.steps_folder.glob("[0-9]*.json"))]

    def publish_step(self, step: Step) -> None:
        """Publish a step, whole.

        Raises:
            StorageFailed: the disk is full or read-only, or the step has been published before.
        """
        with storage(self.path):
            _publish(self.steps_folder / f"{step.number:04d}.json", _text(step))

    def append_call(self, step: int, call: ModelCall) -> None:
        """Keep a question to a model beside the step it was made for.

        Raises:
            StorageFailed: the disk is full or read-only.
        """
        with storage(self.path), (self.steps_folder / f"{step:04d}.calls.jsonl").open("a", encoding="utf-8") as file:
            file.write(call.model_dump_json() + "\n")

    def append_output(self, step: int, text: str) -> None:
        """Keep a piece of a script's output, as it comes.

        Raises:
            StorageFailed: the disk is full or read-only.
        """
        with storage(self.path), (self.steps_folder / f"{step:04d}.output.txt").open("a", encoding="utf-8") as file:
            file.write(text)

    def calls(self, step: int) -> list[ModelCall]:
        """What models were asked for a step. A torn last line, of a process that was killed, is left out."""
        path = self.steps_folder / f"{step:04d}.calls.jsonl"
        if not path.exists():
            return []
        lines = path.read_text(encoding="utf-8").split("\n")
        return [ModelCall.model_validate_json(line) for line in lines[:-1]]

    def usage(self) -> dict[Role, Usage]:
        """What models have used so far, by role, for steps that were never published too."""
        usage: dict[Role, Usage] = {}
        for path in sorted(self.steps_folder.glob("*.calls.jsonl")):
            for call in self.calls(int(path.name[:4])):
                usage[call.role] = Usage.total((usage.get(call.role, Usage()), call.usage))
        return usage

    def replies(self) -> dict[Role, int]:
        """How many replies each role has given for the published steps."""
        counts: Counter[Role] = Counter()
        for step in self.steps():
            counts.update(call.role for call in self.calls(step.number))
        return dict(counts)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the run, so that no other process works on it.

        Raises:
            UsageError: another process does.
        """
        with storage(self.path), (self.path / "lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UsageError(f"another process is working on {self.path}; wait for it, or stop it") from None
            yield


@contextmanager
def storage(path: Path) -> Iterator[None]:
    """Turn the errors of a disk that cannot take more into one line.

    Raises:
        StorageFailed: the disk is full, read-only or broken.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EACCES, errno.EPERM, errno.EEXIST, errno.EFBIG):
            raise
        what = error.strerror or str(error)
        raise StorageFailed(f"cannot write to {path}: {what}; make room, then continue the run with: mlab resume {path}") from error


def _text(record: Record) -> str:
    return record.model_dump_json(indent=1) + "\n"


def _read(path: Path, kind: type[R]) -> R:
    try:
        return kind.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise RunNotFound(f"{path.parent} holds no run: it has no {path.name}") from None
    except ValidationError as error:
        first = error.errors()[0]
        raise RunNotFound(f"{path} cannot be read: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def _written(path: Path, text: str) -> Path:
    """Write a file beside its place and flush it to disk."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(3)}")
    try:
        with temporary.open("x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fdatasync(file.fileno())
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


def _publish(path: Path, text: str) -> None:
    temporary = _written(path, text)
    try:
        os.link(temporary, path)
    finally:
        temporary.unlink()
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _replace(path: Path, text: str) -> None:
    os.replace(_written(path, text), path)
