"""A run's directory: the truth of a run, and the only place that knows its file names.

    <log directory>/
      objects/                 what snapshots are made of, shared by all runs
      gradings/                what submissions were worth that were graded before, shared too
      <run>/
        run.json               what was asked (`RunInfo`)
        workspace/             what the agent works in
        steps/0007.json        a step (`Step`), numbered from 1, published once its snapshot stands
        steps/0007.calls.jsonl every question to a model since the step before, and its reply (`ModelCall`), as they happen
        steps/0007.output.txt  what scripts of that step print, as it comes; a flood of it is thinned
        snapshots/0007         the workspace after that step (a manifest); 0000 is the start
        experience/            what the run was given of earlier work, where it was; read-only data of its workspace
        steps/0007.lost1.*     the same of a step that was lost with its process, before the run went on: what it cost still counts
        result.json            how it came out (`Result`), written last; a step that is published after it takes it away
        lock                   held by the process that works on the run

A step is published with link(2): whole or not at all, and the first writer wins. What is being written when a machine dies is lost; what
was published before is not: each file is flushed to disk before it gets its name, and its folder before anything relies on the name.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mlagentbench.errors import RunNotFound, UsageError
from mlagentbench.records import Ended, ModelCall, Result, Role, Step, Usage
from mlagentbench.run_spec import RunInfo
from mlagentbench.store import lock
from mlagentbench.store.durable import flush, publish, replace, sweep
from mlagentbench.store.files import PUT_BACK, read, read_calls, storage, text_of
from mlagentbench.workspace.files import bytes_of

OBJECTS = "objects"
CALLS = "calls.jsonl"
OUTPUT = "output.txt"


def new_name(task: str, agent: str, sample: str | None = None) -> str:
    """A name for a run, unique in practice and sorted by time: `20260131-101500-vectorization-research-3f9a41c0`.

    Of an agent that is named by its file, as `path/to/file.py:Name`, the name counts. A sample's run can be found by its name's end.
    """
    short = re.sub(r"[^A-Za-z0-9_]+", "-", agent.rpartition(":")[2])
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{task}-{short}-{_mark(sample) if sample else secrets.token_hex(4)}"


def _mark(sample: str) -> str:
    return hashlib.sha256(sample.encode()).hexdigest()[:8]


def prepare_log_directory(path: Path) -> Path:
    """Make a log directory and prove that it can be written.

    Raises:
        UsageError: it cannot.
    """
    try:
        (path / OBJECTS).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path) as probe:
            probe.write(b"x")
        for folder in (path, path.resolve().parent):
            flush(folder)
    except OSError as error:
        raise UsageError(f"cannot write to the log directory {path}: {error.strerror}; choose another with --log-dir") from None
    return path.resolve()


def find_runs(path: Path) -> list[RunDirectory]:
    """The runs at a path: the run itself, or those of a log directory, oldest first.

    Raises:
        RunNotFound: there are none.
    """
    if _is_run(path):
        return [RunDirectory(path)]
    runs = [RunDirectory(folder) for folder in sorted(path.iterdir()) if _is_run(folder)] if path.is_dir() else []
    if not runs:
        raise RunNotFound(f"there are no runs in {path}; name a log directory or a run's directory")
    return runs


def _is_run(folder: Path) -> bool:
    """Return whether a folder holds a run, be it one that has lost its `run.json`; not one that is being made."""
    return os.path.lexists(folder / "run.json") or any(folder.glob("steps/[0-9]*.json"))


def find_sample(path: Path, sample: str) -> RunDirectory | None:
    """The run of a log directory that a sample of an evaluation has begun (`RunInfo.sample`); None where there is none.

    Raises:
        RunNotFound: what may be it cannot be read.
    """
    runs = (RunDirectory(file.parent) for file in sorted(path.glob(f"*-{_mark(sample)}/run.json")))
    return next((run for run in runs if run.info.sample == sample), None)


class RunDirectory:
    """One run's directory.

    Args:
        path: the directory. It need not exist until `create`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._held = False

    @classmethod
    def create(cls, log_directory: Path, info: RunInfo) -> RunDirectory:
        """Make the directory of a new run.

        Raises:
            StorageFailed: the disk is full or read-only.
        """
        directory = cls(log_directory / info.run)
        with storage(directory.path):
            directory._make_folders()
            directory._appear(info)
        return directory

    def fork(self, info: RunInfo, step: int) -> RunDirectory:
        """Make the directory of a new run that has this one's steps up to one, and goes on from there.

        Args:
            info: of the new run.
            step: the last step to take over; 0 for none.

        Raises:
            StorageFailed: the disk is full or read-only.
            RunNotFound: this run lacks a part of it.
        """
        files = [self.manifest(number) for number in range(step + 1)]
        files += [path for number in range(1, step + 1) for path in sorted(self.steps_folder.glob(f"{number:04d}.*"))]
        for file in files:
            if not file.is_file():
                raise RunNotFound(f"{self.path} is damaged: it has no {file.relative_to(self.path)}; fork it from an earlier step")
        new = RunDirectory(self.path.parent / info.run)
        with storage(new.path):
            new._make_folders()
            try:
                for file in files:
                    copy = new.path / file.relative_to(self.path)
                    shutil.copyfile(file, copy)
                    flush(copy)
                if self.experience.exists():
                    shutil.copytree(self.experience, new.experience)
                for folder in (new.steps_folder, new.path / "snapshots"):
                    flush(folder)
                new._appear(info)
            except OSError:
                shutil.rmtree(new.path, ignore_errors=True)
                raise
        return new

    def _make_folders(self) -> None:
        self.path.mkdir()
        for folder in (self.workspace, self.steps_folder, self.path / "snapshots"):
            folder.mkdir()

    def _appear(self, info: RunInfo) -> None:
        """Become a run: from here on it is found."""
        publish(self.path / "run.json", text_of(info))
        flush(self.path.parent)

    @property
    def name(self) -> str:
        """The run's name."""
        return self.path.name

    @property
    def workspace(self) -> Path:
        """What the agent works in."""
        return self.path / "workspace"

    @property
    def experience(self) -> Path:
        """What the run was given of earlier work; absent where that was nothing."""
        return self.path / "experience"

    @property
    def objects(self) -> Path:
        """What snapshots are made of, shared with the other runs of the log directory."""
        return self.path.parent / OBJECTS

    @property
    def gradings(self) -> Path:
        """What submissions were worth, shared with the other runs of the log directory."""
        return self.path.parent / "gradings"

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
        return read(self.path / "run.json", RunInfo)

    def write_info(self, info: RunInfo) -> None:
        """Change what is asked, of a run that goes on.

        Raises:
            StorageFailed: the disk is full or read-only.
        """
        with storage(self.path):
            replace(self.path / "run.json", text_of(info))

    @property
    def result(self) -> Result | None:
        """How it came out; None while it has not."""
        path = self.path / "result.json"
        remedy = f"remove it, and have the run graded again: mlab resume {self.path}"
        return read(path, Result, remedy=remedy) if os.path.lexists(path) else None

    @property
    def has_result(self) -> bool:
        """Whether there is one, be it damaged."""
        return os.path.lexists(self.path / "result.json")

    def write_result(self, result: Result) -> None:
        """Write the result; a later one replaces it whole.

        Raises:
            StorageFailed: the disk is full or read-only.
        """
        with storage(self.path):
            replace(self.path / "result.json", text_of(result))

    def discard_result(self, ended: Ended) -> None:
        """Remove the result of a run that ended in some way, since it is to go on."""
        if self.result is not None and self.result.outcome.ended == ended:
            (self.path / "result.json").unlink()

    def steps(self) -> list[Step]:
        """The published steps, in order.

        Raises:
            RunNotFound: one of them is missing or damaged.
        """
        steps = []
        for number in self.step_numbers():
            if (step := self.step(number)) is None:
                raise RunNotFound(f"{self.path} is damaged: it has no step {number}, and has later ones; {PUT_BACK}")
            steps.append(step)
        return steps

    def step_numbers(self) -> list[int]:
        """Return the numbers of the published steps, and those that are missing between them."""
        found = [int(path.stem) for path in self.steps_folder.glob("[0-9]*.json") if path.stem.isdecimal()]
        return sorted({*found, *range(1, len(found) + 1)})

    def step(self, number: int) -> Step | None:
        """A published step; None where it is not yet.

        Raises:
            RunNotFound: it is damaged.
        """
        path = self.steps_folder / f"{number:04d}.json"
        if not os.path.lexists(path):
            return None
        step = read(path, Step)
        if step.number != number:
            raise RunNotFound(f"{path} is damaged: it holds step {step.number}; {PUT_BACK}")
        return step

    def publish_step(self, step: Step) -> None:
        """Publish a step, whole, with what was asked and printed for it.

        Raises:
            StorageFailed: the disk is full or read-only, or the step has been published before.
        """
        with storage(self.path):
            for path in self._beside(step.number):
                flush(path)
            (self.path / "result.json").unlink(missing_ok=True)
            publish(self.steps_folder / f"{step.number:04d}.json", text_of(step))

    def reopen(self) -> None:
        """Put in order what a process that was killed left, before another goes on. Call it while the lock is held.

        Raises:
            StorageFailed: the disk is full or read-only.
            RunNotFound: a step is missing or damaged.
        """
        last = len(self.steps())
        with storage(self.path):
            for folder in (self.path, self.steps_folder, self.path / "snapshots"):
                sweep(folder)
            self.manifest(last + 1).unlink(missing_ok=True)
            # While a step is being published, its successor's questions are asked already.
            for step in (last + 1, last + 2):
                count = 1 + len({path.name.split(".")[1] for path in self.steps_folder.glob(f"{step:04d}.lost*")})
                for path in self._beside(step):
                    path.rename(path.with_name(path.name.replace(".", f".lost{count}.", 1)))

    def _beside(self, step: int) -> list[Path]:
        """The files that grow while a step is in flight."""
        paths = (self.steps_folder / f"{step:04d}.{what}" for what in (CALLS, OUTPUT))
        return [path for path in paths if path.exists()]

    def append_call(self, step: int, call: ModelCall) -> None:
        """Keep a question to a model beside the step it was made for.

        Raises:
            StorageFailed: the disk is full or read-only.
        """
        with storage(self.path), (self.steps_folder / f"{step:04d}.{CALLS}").open("a", encoding="utf-8") as file:
            file.write(text_of(call, indent=None))

    def append_output(self, step: int, text: str) -> None:
        """Keep a piece of a script's output, as it comes.

        Raises:
            StorageFailed: the disk is full or read-only.
        """
        with storage(self.path), (self.steps_folder / f"{step:04d}.{OUTPUT}").open("a", encoding="utf-8") as file:
            file.write(text)

    def output_end(self, step: int, size: int = 1000) -> str:
        """The end of what scripts of a step have printed so far, at most so many bytes of it."""
        with suppress(OSError):
            return bytes_of(self.steps_folder / f"{step:04d}.{OUTPUT}")[-size:].decode(errors="replace")
        return ""

    def calls(self, step: int) -> list[ModelCall]:
        """Return what models were asked for a step. A torn last line, of a process that was killed, is left out.

        Raises:
            RunNotFound: the file of calls is damaged.
        """
        path = self.steps_folder / f"{step:04d}.{CALLS}"
        return read_calls(path) if os.path.lexists(path) else []

    def records_bytes(self) -> int:
        """What the steps and the snapshots' lists of names take, the contents of snapshots not counted."""
        folders = (self.steps_folder, self.path / "snapshots")
        return sum(entry.stat().st_size for folder in folders for entry in os.scandir(folder) if entry.is_file())

    def usage(self) -> dict[Role, Usage]:
        """Return what models have used so far, by role, for steps that were never published too.

        Raises:
            RunNotFound: a file of calls is damaged.
        """
        usage: dict[Role, Usage] = {}
        for path in sorted(self.steps_folder.glob(f"*.{CALLS}")):
            for call in read_calls(path):
                usage[call.role] = Usage.total((usage.get(call.role, Usage()), call.usage))
        return usage

    def replies(self) -> dict[Role, int]:
        """How many replies each role has given for the published steps."""
        counts: Counter[Role] = Counter()
        for step in self.steps():
            counts.update(call.role for call in self.calls(step.number))
        return dict(counts)

    @property
    def held(self) -> bool:
        """Whether a process works on the run now."""
        return lock.held(self.path / "lock")

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the run, so that no other process works on it. Who holds it already goes on holding it.

        Raises:
            UsageError: another process does.
            StorageFailed: the disk is full or read-only.
        """
        if self._held:
            yield
            return
        with storage(self.path):
            # Without waiting for whoever may read a pipe.
            descriptor = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
        with open(descriptor, "rb") as file:
            if not lock.take(file):
                raise UsageError(f"another process is working on {self.path}; wait for it, or stop it")
            self._held = True
            try:
                yield
            finally:
                self._held = False
