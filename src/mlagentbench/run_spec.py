"""What a run is to do, said once.

The command line builds a `RunSpec`, `run.json` holds it whole, and the engine, resume, fork and regrading read it back. A new option of a
run is a field here and an option of `mlab run`.
"""

from __future__ import annotations

import datetime
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

import tomli_w
from pydantic import ConfigDict, Field, JsonValue, ValidationError, field_validator, model_validator

from mlagentbench.errors import LimitReached, UsageError
from mlagentbench.records import BaselineChoice, Direction, Experience, Imported, Moment, Price, Record, Role, Usage, Variant

SCHEMA_VERSION: Literal[2] = 2
"""Of `run.json`. Version 1 spelled the spec's fields out beside the others; it is still read."""

NO_MODEL = "none/none"
"""The name of the model of an agent that asks none."""

ROLES: tuple[Role, ...] = get_args(Role)

WORKSPACE_SHARE = 5
"""The part of a run's share of the disk that its workspace may take is one of so many."""

SandboxChoice = Literal["auto", "bubblewrap", "docker", "landlock", "none"]
"""What is asked for; `auto` takes the strongest sandbox that this machine gives."""


@dataclass(frozen=True)
class RunLimits:
    """What a run may use in all. None is no limit."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    steps: int = 50
    time: float = 5 * 3600
    """Seconds in all."""
    working_time: float | None = None
    """Seconds that do not count waiting for rate limits and before retries."""
    tokens: int | None = None
    cost: float | None = None
    """US dollars; the price of each model must be known."""
    storage_mb: int = 65536
    """What its snapshots and records take on disk, each content counted once."""
    files: int = 200_000
    """Files, folders and links in its workspace after any step."""

    def within(self, disk_share_mb: int | None) -> RunLimits:
        """Return the limits of a run that has a share of a disk to itself: its snapshots take at most three fifths of it.

        Its workspace takes at most a fifth (`WORKSPACE_SHARE`), so that a last snapshot always has room.
        """
        return self if disk_share_mb is None else replace(self, storage_mb=min(self.storage_mb, max(1, disk_share_mb * 3 // 5)))

    def check(self, steps: int, seconds: float, waited: float, used: Usage, stored: int = 0) -> None:
        """Raise if something is used up.

        Args:
            steps: counted steps.
            seconds: in all.
            waited: the part of them that went by waiting.
            used: tokens and cost.
            stored: bytes on disk.

        Raises:
            LimitReached: a limit is reached.
        """
        if stored > self.storage_mb << 20:
            raise LimitReached("limit_storage", f"the run has stored {stored >> 20:,} MB, and may store {self.storage_mb:,} MB")
        if steps >= self.steps:
            raise LimitReached("limit_steps", f"the run's {self.steps} steps are used up")
        if seconds >= self.time:
            raise LimitReached("limit_time", f"the run's {self.time:g} seconds are used up")
        if self.working_time is not None and seconds - waited >= self.working_time:
            raise LimitReached("limit_time", f"the run's {self.working_time:g} seconds of working time are used up")
        if self.tokens is not None and used.tokens >= self.tokens:
            raise LimitReached("limit_tokens", f"the run's {self.tokens} tokens are used up")
        if self.cost is not None and used.cost is not None and used.cost >= self.cost:
            raise LimitReached("limit_cost", f"the run's {self.cost:g} dollars are used up")


@dataclass(frozen=True)
class ScriptLimits:
    """What one script of the agent may use."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    seconds: float = 3600
    memory_mb: int = 8192
    processes: int = 4096
    """Processes and threads at once, the few that start a command among them."""
    file_mb: int = 4096
    workspace_mb: int = 16384
    workspace_files: int = 100_000
    """Files, folders and links in it."""
    output_kb: int = 256
    """How much of the output is kept: its head and its tail, half each."""


@dataclass(frozen=True)
class SnapshotRetention:
    """How many versions of a large file a run's snapshots keep."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    versions: int
    over_mb: Annotated[float, Field(ge=16)] = 100
    """Megabytes (2^20) above which a file is large. Smaller files than 16 cost little, and are always kept."""


class ModelSpec(Record):
    """A model by Inspect's name, such as `openai/gpt-4o`, and what its provider is given beside it."""

    name: str
    options: Mapping[str, JsonValue] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value


class RunSpec(Record):
    """Everything that a run is to do.

    It reads and writes as JSON (`model_dump_json`) and TOML (`to_toml`, `read_spec`).
    """

    task: str
    """The task's id."""
    task_folder: Path | None = None
    """Where the task lies; None for a task of the catalogue."""
    variant: Variant = "full"
    agent: str = "research"
    agent_options: Mapping[str, JsonValue] = Field(default_factory=dict)
    models: Mapping[Role, ModelSpec] = Field(default_factory=dict)
    """By role. A role that is missing has the agent's model; an agent that asks none has none."""
    prices: Mapping[str, Price] = Field(default_factory=dict)
    """What models cost, by their names, before the list prices that are kept here."""
    limits: RunLimits = RunLimits()
    script_limits: ScriptLimits = ScriptLimits()
    sandbox: SandboxChoice = "auto"
    python: Path | None = None
    """The interpreter of the agent's scripts; None for the one that runs the benchmark."""
    gpus: tuple[str, ...] = ()
    """Indices as in CUDA_VISIBLE_DEVICES. Each run has one of them to itself."""
    score_steps: bool = True
    """Whether each step's submission is scored too, once each distinct one."""
    baseline: BaselineChoice = "auto"
    """What its score is compared with."""
    retention: SnapshotRetention | None = None
    """None keeps every version of every file."""
    experience: Path | None = None
    """A folder with what is known from earlier work, which the agent is given read-only."""

    @field_validator("models")
    @classmethod
    def _has_an_agent(cls, models: Mapping[Role, ModelSpec]) -> Mapping[Role, ModelSpec]:
        if models and "agent" not in models:
            raise ValueError("name the agent's model too")
        return models

    def model(self, role: Role) -> ModelSpec:
        """Return the model of a role: its own, or else the agent's."""
        none = ModelSpec(name=NO_MODEL)
        return self.models.get(role) or self.models.get("agent", none)

    @property
    def model_names(self) -> dict[Role, str]:
        """The names of the models by role, `none/none` where none is asked."""
        return {role: self.model(role).name for role in ROLES}

    def replace(self, **changes: object) -> Self:
        """Return a copy with some fields changed. The values are not checked."""
        return self.model_copy(update=changes)

    def to_toml(self) -> str:
        """Return the spec as TOML, which `read_spec` reads back."""
        return tomli_w.dumps(self.model_dump(mode="json", exclude_none=True))


def read_spec(path: Path) -> dict[str, Any]:
    """Return the fields of a spec that a file names, not yet checked.

    Args:
        path: a TOML file with fields of `RunSpec`, or the `run.json` of a run that is to be done again.

    Raises:
        UsageError: the file cannot be read, or is neither.
    """
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".json":
            return RunInfo.model_validate_json(text).spec.model_dump(mode="json", exclude_unset=True)
        return tomllib.loads(text)
    except OSError as error:
        raise UsageError(f"the spec {path} cannot be read: {error.strerror}") from None
    except (ValueError, ValidationError) as error:
        kind = "run.json" if path.suffix == ".json" else "TOML"
        raise UsageError(f"the spec {path} is no {kind}: {str(error).splitlines()[0]}") from None


def check_spec(fields: Mapping[str, Any], source: str) -> RunSpec:
    """Return the spec of some fields.

    Args:
        fields: as `RunSpec` has them.
        source: where they come from, for the message.

    Raises:
        UsageError: a field is unknown or wrong.
    """
    try:
        return RunSpec.model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        raise UsageError(f"{source}: {'.'.join(map(str, first['loc']))}: {first['msg'].removeprefix('Value error, ')}") from None


class RunInfo(Record):
    """What is known of a run before its first step: `run.json`."""

    schema_version: Literal[2] = SCHEMA_VERSION
    run: str
    """The run's name, unique in its log directory."""
    spec: RunSpec
    """What it is to do. Its models are those that were really asked, and its prices what they cost, where that was known."""
    category: str = ""
    """The task's; empty where it is not known, as for `published`."""
    published: datetime.date | None = None
    """When the task appeared: a model that was trained later may have read of it."""
    description: str
    """What the agent was told."""
    metric: str
    unit: str
    direction: Direction
    isolation: str
    """What the agent's scripts run in; `spec.sandbox` is what was asked for."""
    started: Moment
    """Seconds since the epoch; 0 where an imported log does not tell."""
    versions: Mapping[str, str]
    hardware: Mapping[str, JsonValue]
    disk_share_mb: int | None = None
    """What of the disk is the run's own, in megabytes (2^20): its snapshots and its workspace stay within it; None for all of it."""
    data: str | None = None
    """The key of the prepared data (`PreparedRecord.key`); None for a task without."""
    parent: str | None = None
    """For a run that was forked: the run and the step it was forked from, as `<run>/<step>`."""
    sample: str | None = None
    """The sample of an Inspect evaluation that began it, as `<task id>/<epoch>`; a retry keeps both, and goes on with the run."""
    experience: Experience | None = None
    """What it was given of earlier work. Which files of it were opened stands in the steps (`Step.inside`)."""
    imported: Imported | None = None
    """For a run that another program carried out: where its logs come from."""

    @model_validator(mode="before")
    @classmethod
    def _from_version_1(cls, value: Any) -> Any:
        version = value.get("schema_version", SCHEMA_VERSION) if isinstance(value, Mapping) else SCHEMA_VERSION
        if version not in (1, SCHEMA_VERSION):
            raise ValueError(f"schema version {version} is not known here, only 1 and {SCHEMA_VERSION}; read it with a newer mlagentbench")
        return _version_2(value) if version == 1 else value


def _version_2(old: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a `run.json` of version 1 as version 2 has them."""
    spec = {
        name: old[name]
        for name in ("task", "variant", "agent", "agent_options", "sandbox", "gpus", "score_steps", "baseline", "prices")
        if name in old
    }
    names = old.get("models") or {}
    # The options were those of the agent's model, and so of each role that had the same one.
    spec["models"] = {
        role: {"name": name, "options": old.get("model_options", {}) if name == names.get("agent") else {}}
        for role, name in names.items()
        if names.get("agent") != NO_MODEL
    }
    spec |= {"limits": old.get("limits", {}), "script_limits": old.get("script_limits", {}), "retention": old.get("keep")}
    spec |= {"task_folder": old.get("task_folder") or None, "python": old.get("python") or None}
    if old.get("experience"):
        spec["experience"] = old["experience"]["folder"]
    gone = {"model_options", "keep", "limits", "script_limits", "task_folder", "python", "models", *spec}
    kept = {name: value for name, value in old.items() if name not in gone or name == "experience"}
    return {**kept, "schema_version": SCHEMA_VERSION, "spec": spec}
