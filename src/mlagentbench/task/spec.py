"""Read and check `task.toml`: a task's facts, apart from its code.

Unknown keys are errors that name the key and the file, so that a misspelt limit is never silently the default.
"""

from __future__ import annotations

import datetime
import functools
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, StringConstraints, ValidationError

from mlagentbench.errors import TaskError
from mlagentbench.records import LARGEST, Direction, Record
from mlagentbench.util.text import first_fault

PAPER = Path(__file__).with_name("paper.toml")
RecordType = TypeVar("RecordType", bound=Record)
UNGRADED = "not graded"
"""The metric's name of a task whose submissions are not graded, as in a session with a person."""
Glob = Annotated[str, StringConstraints(min_length=1)]
LibraryGlob = Annotated[str, StringConstraints(pattern=r"^[^/.][^/]*(/[^/.][^/]*)*$")]
"""Without a leading `/`, and without a part such as `..`."""


class Metric(Record):
    """What a score measures."""

    name: str
    direction: Direction
    unit: str = ""

    def gain(self, value: float, baseline: float) -> float:
        """Return how much better a score is than the baseline's, in the metric's unit; negative for worse."""
        return value - baseline if self.direction == "maximize" else baseline - value

    def improvement(self, value: float, baseline: float) -> float | None:
        """Return the relative improvement of a score over the baseline's, positive for better; None where the baseline is as good as 0.

        The paper's measure (arXiv 2310.03302, section 3): the change in the metric's direction over the baseline's size.
        """
        gain = self.gain(value, baseline)
        return gain / abs(baseline) if abs(baseline) > abs(gain) / LARGEST else None


class SubmissionSpec(Record):
    """The files of a run that are graded."""

    mode: Literal["file", "checkpoint", "code"]
    files: tuple[Glob, ...]
    """Globs, relative to the workspace, of what the grader is given. Nothing else reaches it."""
    required: tuple[str, ...]
    """Paths without which there is no submission at all."""


class Limits(Record):
    """A run's default limits, which its user may change."""

    steps: int = Field(default=50, gt=0)
    time: float = Field(default=5 * 3600, gt=0)
    """Seconds of the whole run."""
    script_time: float = Field(default=3600, gt=0)
    """Seconds of one script."""
    memory_mb: int = Field(default=8192, gt=0)
    processes: int = Field(default=4096, gt=0)
    """Processes and threads of one script at once."""
    file_mb: int = Field(default=4096, gt=0)
    workspace_mb: int = Field(default=16384, gt=0)
    workspace_files: int = Field(default=100_000, gt=0)
    grading_time: float = Field(default=600, gt=0)
    """Seconds of one grading, in a process of its own."""
    grading_memory_mb: int = Field(default=8192, gt=0)


class PaperFacts(Record):
    """What the paper reports of the task (arXiv 2310.03302)."""

    baseline: float | None = None
    success: Mapping[str, float] = Field(default_factory=dict)
    """Percent of runs by model, its Table 3."""
    improvement: Mapping[str, float] = Field(default_factory=dict)
    """Average percent by model, its Table 4."""


class Starter(Record):
    """How the starter is run to measure the baseline."""

    script: str = "train.py"
    """The script that is run in the workspace and writes the submission."""
    state: Literal["runs", "stub", "broken", "none"] = "runs"
    """Whether it runs as the agent finds it, has a part to fill in, or fails and must be mended. With `none`, there is nothing to compare
    with, since the grader itself says what a success is (`Score.success`)."""
    predictor: str | None = None
    """For a starter that does not run: the `naive` submission in `proof.py` that stands in for it, such as the mean or the majority."""
    unlike_paper: str | None = None
    """For a task of the paper: how the starter, and what it is scored by, compare with the paper's. It says why the paper's baseline is not
    this starter's."""


class DataSource(Record):
    """Where the full variant's data comes from."""

    url: str
    """The page that describes it."""
    licence: str
    download_mb: int
    disk_mb: int
    """Disk space of the prepared data and the download together, in MB."""
    caveat: str = ""
    """What else to know before fetching it."""
    consent: str | None = None
    """The page on which a person must first accept its terms."""
    checksums: Mapping[str, str] = Field(default_factory=dict)
    """Published SHA-256 or MD5 by file name, as `sha256:...`; a file without one is recorded at its first download."""


class TaskSpec(Record):
    """A task's frozen facts."""

    id: Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
    title: str
    category: str
    modality: str
    published: datetime.date
    domain: str = ""
    """What an agent that has done another task of this domain may have learned for this one, such as `small pictures`; empty for none."""
    metric: Metric
    submission: SubmissionSpec
    starter: Starter = Starter()
    rungs: int | None = Field(default=None, gt=0)
    """How many changes, each of which needs those before it, the task consists of (`Score.rung`); None for other tasks. Of the tasks
    of a folder, it is the parameter of that name."""
    read_only: tuple[Glob, ...] = ()
    """Top-level names of data that neither the agent nor its scripts may change."""
    network: bool = False
    gpu: bool = True
    """False where scripts have no use for a GPU: the runs are given none, and wait for none."""
    extras: tuple[str, ...] = ()
    """Extras of this package that the task needs, as in `pip install mlagentbench[vision]`."""
    limits: Limits = Limits()
    data: DataSource | None = None
    paper: PaperFacts | None = None
    """For a task of the paper, its numbers in `paper.toml`."""
    answers_public: bool = False
    """Whether the answers to the real data are publicly available: with a package, in the published data set, or as a part of it."""
    answers_visible: bool = False
    """Whether the answers lie in the workspace, where scripts can read them. Results are flagged."""
    hidden: tuple[LibraryGlob, ...] = ()
    """Globs, relative to the installed packages or the standard library, of files that are empty to the agent's scripts: answers that come
    with a package. Preparing and grading see them. A sandbox of its own image, and none at all, hide nothing."""


def read_toml(path: Path) -> dict[str, Any]:
    """Read a `task.toml` without checking its keys.

    Raises:
        TaskError: it is missing, or is no TOML; the message has its line.
    """
    try:
        content = path.read_bytes()
        return tomllib.loads(content.decode())
    except FileNotFoundError:
        raise TaskError(f"{path.parent} is no task: it has no {path.name}") from None
    except OSError as error:
        raise TaskError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise TaskError(f"{path}, line {line}: it is not written in UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise TaskError(f"{path} is no TOML: {error}") from None


@functools.cache
def _paper() -> Mapping[str, Any]:
    """Return the paper's numbers by task."""
    return tomllib.loads(PAPER.read_text(encoding="utf-8"))


class Instance(Record):
    """One of several tasks of a folder."""

    id: str
    title: str
    parameters: Mapping[str, int] = Field(min_length=1)


def instance_ids(table: Mapping[str, Any]) -> list[str]:
    """Return the ids of the tasks of a folder with several, as its `task.toml` has them; empty for a folder with one."""
    instances = table.get("instances", [])
    return [str(each.get("id")) for each in instances if isinstance(each, dict)] if isinstance(instances, list) else []


def read_instance(path: Path, instance: str | None) -> tuple[TaskSpec, Mapping[str, int]]:
    """Read one of the tasks of a `task.toml`, and the arguments for its functions; for None the only one, which has no arguments.

    Raises:
        TaskError: as for `read_spec`, or there is no such instance.
    """
    if instance is None:
        return read_spec(path), {}
    table = read_toml(path)
    for each in table.pop("instances", []):
        if each.get("id") == instance:
            found = _valid(path, Instance, each)
            own = {"id": found.id, "title": found.title, "rungs": found.parameters.get("rungs")}
            return _valid(path, TaskSpec, {**table, **own}), found.parameters
    raise TaskError(f"{path} has no instance {instance!r}")


def read_spec(path: Path) -> TaskSpec:
    """Read a `task.toml`.

    Raises:
        TaskError: it is missing, is no TOML, lacks a key, or has an unknown key or an invalid value.
    """
    table = read_toml(path)
    if ids := instance_ids(table):
        raise TaskError(f"{path} describes several tasks: name one, such as {path.parent / ids[0]}")
    return _valid(path, TaskSpec, {"paper": _paper().get(str(table.get("id"))), **table})


def _valid(path: Path, kind: type[RecordType], table: Mapping[str, Any]) -> RecordType:
    try:
        return kind.model_validate(table)
    except ValidationError as error:
        raise invalid(path, error) from None


def invalid(path: Path, error: ValidationError) -> TaskError:
    """Return the error that says which value of a task's file or folder is not allowed."""
    return TaskError(f"{path}: {first_fault(error, 'there is no such key; remove it, or see the keys in docs/architecture.md')}")
