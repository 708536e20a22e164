"""Read and write a run's directory, which is the authoritative record of a run. Only this package knows its file names.

    <log directory>/
      objects/                 the contents of snapshots, shared by all runs
      gradings/                the cached gradings of submissions, shared too
      <run>/
        run.json               the spec, and what is known before the first step (`RunInfo`)
        workspace/             the folder that the agent works in
        steps/0007.json        a step (`Step`), numbered from 1, published after its snapshot
        steps/0007.calls.jsonl every model call since the step before (`ModelCall`), appended as it happens
        steps/0007.output.txt  what the step's scripts print, appended as it comes; a flood of it is thinned
        snapshots/0007         the manifest of the workspace after that step; 0000 is the start
        snapshots/0007.home    the manifest of the agent's home folder, if it has one
        home/                  the home folder of an agent that runs in a sandbox itself, if it does
        experience/            the earlier work that the run was given, if any; read-only in the workspace
        documents/             the texts that the run can search, if any
        steps/0007.lost1.*     calls and output of a step whose process was killed, before the run was resumed: its usage still counts
        result.json            the outcome and score (`Result`), written last; publishing a further step removes it
        lock                   held by the process that works on the run
        attempts/0001/         an attempt at the run (`Attempts`), and what it works with if an earlier one may be alive on another node

A step is published with link(2): whole or not at all, and the first writer wins. If the machine dies, what is being written is lost, and
what was published is not: each file is flushed to disk before it gets its name, and its folder before anything relies on the name.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mlagentbench.errors import RunNotFound, UsageError
from mlagentbench.records import ModelCall, Result, Role, Step, Termination, Usage
from mlagentbench.run_spec import RunInfo
from mlagentbench.rundir.attempts import Attempts, clear_step, complete
from mlagentbench.rundir.files import LARGEST_FILE, PUT_BACK, grade_again, names_in, numbers_of, read, read_calls, storage, text_of
from mlagentbench.rundir.names import sample_mark
from mlagentbench.util.atomic import flush, publish, replace, sweep
from mlagentbench.util.lock import held, own
from mlagentbench.workspace.files import bytes_of
from mlagentbench.workspace.snapshots.manifest import Manifest

OBJECTS = "objects"
CALLS = "calls.jsonl"
OUTPUT = "output.txt"
HOME = ".home"


def prepare_log_directory(path: Path) -> Path:
    """Create a log directory, and check that it can be written.

    Raises:
        UsageError: it cannot be created or written.
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
    """Return the runs at a path: the run itself, or those of a log directory by name, which is oldest first, to the second.

    Raises:
        RunNotFound: there are no runs.
    """
    if path.is_dir() and _is_run(path):
        return [RunDirectory(path)]
    runs = [RunDirectory(path / name) for name in names_in(path) if _is_run(path / name)]
    if not runs:
        raise RunNotFound(f"there are no runs in {path}; name a log directory or a run's directory")
    return runs


def _is_run(folder: Path) -> bool:
    """Return whether a folder holds a run, even what is left of one, but none that is being created; also one that cannot be read."""
    try:
        found = os.listdir(folder)
    except NotADirectoryError:
        return False
    except OSError:
        return True
    inside = any(name[:1].isdecimal() for part in ("steps", "snapshots") for name in names_in(folder / part))
    return inside or bool(names_in(folder / "workspace")) or not {"run.json", "result.json", "lock"}.isdisjoint(found)


def find_sample(path: Path, sample: str) -> RunDirectory | None:
    """Return the run that a sample of an evaluation has begun (`RunInfo.sample`), or None.

    Raises:
        RunNotFound: the `run.json` of a candidate is damaged.
    """
    runs = (RunDirectory(file.parent) for file in sorted(path.glob(f"*-{sample_mark(sample)}/run.json")))
    return next((run for run in runs if run.info.sample == sample), None)


def find_named(path: Path, name: str) -> RunDirectory | None:
    """Return the run of a name, or None if there is none, or none that has begun."""
    return RunDirectory(path / name) if (path / name / "run.json").exists() else None


class RunDirectory:
    """The directory of one run, which need not exist until `create`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.name
        """The run's name."""
        self.workspace = path / "workspace"
        """The folder that the agent works in."""
        self.home = path / "home"
        """The home folder of an agent that runs in a sandbox itself; absent for any other."""
        self.experience = path / "experience"
        """The folder of the earlier work that the run was given; absent if it was given none."""
        self.documents = path / "documents"
        """The folder of the texts that the run can search; absent if it was given none of its own."""
        self.steps_folder = path / "steps"
        """The folder of the steps."""
        self.snapshots_folder = path / "snapshots"
        """The folder of the snapshots' manifests."""
        self.objects = path.parent / OBJECTS
        """The folder of the snapshots' contents, shared with the other runs of the log directory."""
        self.gradings = path.parent / "gradings"
        """The folder of cached gradings, shared with the other runs of the log directory."""
        self.patch = path / "changes.patch"
        """The changes that an interactive session made to a person's files, as a patch for `git apply`."""
        self._info = path / "run.json"
        self._result = path / "result.json"
        self._held = False
        self._stale_result = True  # there may be a result that a further step makes wrong
        self.attempts = Attempts(path)
        """The processes that have worked on the run, one after the other."""

    @classmethod
    def create(cls, log_directory: Path, info: RunInfo) -> RunDirectory:
        """Create the directory of a new run.

        Raises:
            StorageFailed: the disk is full or read-only.
        """
        directory = cls(log_directory / info.run)
        with storage(directory.path):
            directory.make_folders()
            directory.appear(info)
        return directory

    def make_folders(self) -> None:
        """Create the directory and the folders in it."""
        # They are there if a process was killed that made a run of the same name. Of two that make it at once, one publishes `run.json`.
        for folder in (self.path, self.workspace, self.steps_folder, self.snapshots_folder):
            folder.mkdir(exist_ok=True)

    def appear(self, info: RunInfo) -> None:
        """Publish `run.json`, which makes the directory a run that others find."""
        publish(self._info, text_of(info))
        flush(self.path.parent)

    def manifest(self, step: int) -> Path:
        """Return the path of the snapshot's manifest after a step; 0 is the start."""
        return self.snapshots_folder / f"{step:04d}"

    def home_manifest(self, step: int) -> Path:
        """Return the path of the manifest of the agent's home after a step. Without a file there, the home is empty."""
        return self.snapshots_folder / f"{step:04d}{HOME}"

    @property
    def info(self) -> RunInfo:
        """The spec, and what is known before the first step."""
        return read(self._info, RunInfo)

    def write_info(self, info: RunInfo) -> None:
        """Replace `run.json`, for a run that is resumed.

        Raises:
            StorageFailed: the disk is full or read-only.
        """
        with storage(self.path):
            replace(self._info, text_of(info))

    @property
    def result(self) -> Result | None:
        """The result; None until there is one."""
        return read(self._result, Result, remedy=grade_again(self.path)) if self.has_result else None

    @property
    def has_result(self) -> bool:
        """Whether there is a result, even a damaged one."""
        return os.path.lexists(self._result)

    def write_result(self, result: Result) -> None:
        """Write the result, replacing an earlier one atomically.

        Raises:
            StorageFailed: the disk is full or read-only.
        """
        self.attempts.check()
        with storage(self.path):
            replace(self._result, text_of(result))

    def discard_result(self, ended: Termination) -> None:
        """Remove the result if the run ended in the given way, so that the run can be continued."""
        if self.result is not None and self.result.outcome.ended == ended:
            self._result.unlink()

    def steps(self) -> list[Step]:
        """Return the published steps, in order.

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
        """Return the numbers of the published steps, and of those missing between them."""
        found = numbers_of(self.steps_folder, r"\.json")
        return sorted({*found, *range(1, len(found) + 1)})

    def step(self, number: int) -> Step | None:
        """Return a step, or None if it is not published yet.

        Raises:
            RunNotFound: it is damaged.
        """
        path = self._file(number, "json")
        if not os.path.lexists(path):
            return None
        step = read(path, Step)
        if step.number != number:
            raise RunNotFound(f"{path} is damaged: it holds step {step.number}; {PUT_BACK}")
        return step

    def publish_step(self, step: Step) -> None:
        """Publish a step, after flushing its calls and output to disk. This removes an earlier result.

        Raises:
            StorageFailed: the disk is full or read-only, or the step has been published before.
        """
        name = f"{step.number:04d}.json"
        with storage(self.path):
            for path in self._beside(step.number):
                flush(path)
            self.attempts.check()
            if self._stale_result:
                self._result.unlink(missing_ok=True)
                self._stale_result = False
            publish(self.attempts.place / "steps" / name, text_of(step))
            if self.attempts.place != self.path:
                os.link(self.attempts.place / "steps" / name, self.steps_folder / name)
                complete(self.attempts.place, self.path)

    def reopen(self) -> None:
        """Begin an attempt at the run, and clean up after a killed process. Call it while the lock is held.

        Raises:
            StorageFailed: the disk is full or read-only.
            RunNotFound: a step is missing or damaged.
        """
        with storage(self.path):
            self.attempts.begin()
        last = len(self.steps())  # only now: an earlier attempt may have published one more before it noticed this one
        self._stale_result = self.has_result
        with storage(self.path):
            if self.attempts.place != self.path:
                self.workspace, self.home = self.attempts.place / "workspace", self.attempts.place / "home"
                return
            for folder in (self.path, self.steps_folder, self.snapshots_folder):
                sweep(folder)
            # While a step is being published, the model is already asked for the next one.
            for step in (last + 1, last + 2):
                clear_step(self.path, step, self._beside(step))

    def _beside(self, step: int) -> list[Path]:
        """Return the files that exist of those that grow while a step is in flight: its calls and its output."""
        return [path for what in (CALLS, OUTPUT) if (path := self._growing(step, what)).exists()]

    def _growing(self, step: int, what: str) -> Path:
        return self.attempts.place / "steps" / f"{step:04d}.{what}"

    def save_manifest(self, manifest: Manifest, target: Path) -> None:
        """Save what `manifest` or `home_manifest` names for a step that is about to be published, or raise OSError."""
        self.attempts.save(lambda path, new: manifest.save(path, new=new), target)

    def _file(self, step: int, what: str) -> Path:
        return self.steps_folder / f"{step:04d}.{what}"

    def append_call(self, step: int, call: ModelCall) -> None:
        """Append a model call to the file of the step that it was made for.

        Raises:
            StorageFailed: the disk is full or read-only.
        """
        self._append(step, CALLS, text_of(call, indent=None))

    def append_output(self, step: int, text: str) -> None:
        """Append a piece of a script's output to the step's file.

        Raises:
            StorageFailed: the disk is full or read-only.
        """
        self._append(step, OUTPUT, text)

    def _append(self, step: int, what: str, text: str) -> None:
        with storage(self.path), self._growing(step, what).open("a", encoding="utf-8") as file:
            # Only after opening it: whoever takes over from here on sets this file aside.
            self.attempts.check()
            file.write(text)

    def output_end(self, step: int) -> str:
        """Return the last 1000 bytes of what a step's scripts have printed so far."""
        with suppress(OSError):
            return bytes_of(self.attempts.newest(f"steps/{step:04d}.{OUTPUT}"), LARGEST_FILE)[-1000:].decode(errors="replace")
        return ""

    def calls(self, step: int) -> list[ModelCall]:
        """Return the model calls of a step. An incomplete last line, left by a killed process, is dropped.

        Raises:
            RunNotFound: the file of calls is damaged.
        """
        path = self._file(step, CALLS)
        return read_calls(path) if os.path.lexists(path) else []

    def records_bytes(self) -> int:
        """Return the bytes of the steps and the snapshots' manifests, without the contents of snapshots."""
        return sum(
            entry.stat().st_size for folder in (self.steps_folder, self.snapshots_folder) for entry in os.scandir(folder) if entry.is_file()
        )

    def usage(self) -> dict[Role, Usage]:
        """Return the usage so far by role, including that of steps that were never published.

        Raises:
            RunNotFound: a file of calls is damaged.
        """
        usage: dict[Role, Usage] = {}
        for path in sorted([*self.path.glob(f"steps/*.{CALLS}"), *self.path.glob(f"attempts/*/steps/*.{CALLS}")]):
            for call in read_calls(path):
                usage[call.role] = Usage.total((usage.get(call.role, Usage()), call.usage))
        return usage

    def replies(self) -> dict[Role, int]:
        """Return how many replies each role has given for the published steps."""
        counts: Counter[Role] = Counter()
        for step in self.steps():
            counts.update(call.role for call in self.calls(step.number))
        return dict(counts)

    @property
    def held(self) -> bool:
        """Whether a process is working on the run now."""
        return held(self.path / "lock")

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the run, so that no other process works on it. Entering it again through the same object does nothing.

        Raises:
            UsageError: another process holds the lock.
            StorageFailed: the disk is full or read-only.
        """
        if self._held:
            yield
            return
        with storage(self.path):
            # O_NONBLOCK, since opening a named pipe could wait for the other end.
            descriptor = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
        with open(descriptor, "rb") as file:
            if not own(file):
                raise UsageError(f"another process is working on {self.path}; wait for it, or stop it")
            self._held = True
            try:
                with storage(self.path):
                    for folder in self.attempts.folders():
                        complete(folder, self.path)
                yield
            finally:
                self.attempts.end()
                self._held = False
