"""The specification of a run, `RunSpec`, and what is known before its first step, `RunInfo`.

The command line builds a `RunSpec`, `run.json` stores it whole, and the engine, resume, fork and regrading read it back. A new option of a
run is a field here and an option of `mlab run`.
"""

from __future__ import annotations

import datetime
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self, get_args

from pydantic import ConfigDict, Field, JsonValue, ValidationError, field_validator, model_validator

from mlagentbench.errors import LimitReached, UsageError
from mlagentbench.limits import SandboxChoice, ScriptLimits
from mlagentbench.records import (
    BaselineChoice,
    Direction,
    Moment,
    Price,
    Record,
    Result,
    Role,
    Usage,
    Variant,
    Word,
    unknown_version,
)
from mlagentbench.util.text import first_fault

SCHEMA_VERSION: Literal[2] = 2
"""The version of `run.json`. Version 1 held the spec's fields beside the others; it can still be read."""

NO_MODEL = "none/none"
"""The model's name for an agent that asks none."""

ROLES: tuple[Role, ...] = get_args(Role)

WORKSPACE_SHARE = 5
"""A workspace may take one part in this many of its run's share of the disk."""


@dataclass(frozen=True)
class RunLimits:
    """The limits of a whole run. None is no limit."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    steps: int = 50
    time: float = 5 * 3600
    """Seconds in all, waiting included."""
    working_time: float | None = None
    """Seconds without the waiting for rate limits and before retries."""
    tokens: int | None = None
    cost: float | None = None
    """US dollars; the price of each model must be known."""
    storage_mb: int = 65536
    """Megabytes (2^20) on disk of its snapshots and records, each content counted once."""
    files: int = 200_000
    """Files, folders and links in its workspace after any step."""

    def within(self, disk_share_mb: int | None) -> RunLimits:
        """Return these limits for a run with a share of the disk: its snapshots take at most three fifths of the share.

        Its workspace takes at most a fifth (`WORKSPACE_SHARE`), so that there is always room for a last snapshot.
        """
        return self if disk_share_mb is None else replace(self, storage_mb=min(self.storage_mb, max(1, disk_share_mb * 3 // 5)))

    def check(self, steps: int, seconds: float, waited: float, used: Usage, stored: int = 0) -> None:
        """Raise LimitReached if a limit is used up.

        Args:
            steps: counted steps.
            seconds: seconds in all.
            waited: the part of them that was spent waiting.
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
        if self.tokens is not None and used.tokens is not None and used.tokens >= self.tokens:
            raise LimitReached("limit_tokens", f"the run's {self.tokens} tokens are used up")
        if self.cost is not None and used.cost is not None and used.cost >= self.cost:
            raise LimitReached("limit_cost", f"the run's {self.cost:g} dollars are used up")


class ModelSpec(Record):
    """A model by Inspect's name, such as `openai/gpt-4o`, and the options for its provider."""

    name: Word
    options: Mapping[str, JsonValue] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value


class RateLimit(Record):
    """The limits of a model. None is no limit, or one that is not known."""

    requests: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Requests a minute."""
    tokens: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Tokens a minute, of prompts and replies."""


class RunSpec(Record):
    """The specification of a run.

    It can be written and read as JSON (`model_dump_json`) and TOML (`to_toml`, `read_spec`).
    """

    task: Word
    """The task's id."""
    task_folder: Path | None = None
    """The task's folder; None for a task of the catalogue."""
    variant: Variant = "full"
    mini_seed: int | None = Field(default=None, ge=0, le=2**63 - 1)
    """A number from which the mini data is drawn anew; None for the usual mini data."""
    agent: Word = "research"
    agent_options: Mapping[str, JsonValue] = Field(default_factory=dict)
    models: Mapping[Role, ModelSpec] = Field(default_factory=dict)
    """The models by role. A missing role uses the agent's model; the mapping is empty for an agent that asks none."""
    prices: Mapping[str, Price] = Field(default_factory=dict)
    """Prices by the models' names; they override the list prices of this package."""
    rate_limits: Mapping[str, RateLimit] = Field(default_factory=dict)
    """The rate limits by the models' names, shared by all runs of the log directory. Without one, it is learnt from the provider."""
    limits: RunLimits = RunLimits()
    script_limits: ScriptLimits = ScriptLimits()
    sandbox: SandboxChoice = "auto"
    python: Path | None = None
    """The Python interpreter of the agent's scripts; None for the one that runs the benchmark."""
    gpus: tuple[str, ...] = ()
    """Indices as in CUDA_VISIBLE_DEVICES. Each run has one of them to itself."""
    score_steps: bool = True
    """Whether the submission after each step is scored too; equal ones are scored once."""
    baseline: BaselineChoice = "auto"
    """The baseline that its score is compared with."""
    experience: Path | None = None
    """A folder of earlier work, which the agent can read but not write."""
    examples: tuple[Path, ...] = ()
    """Texts, or directories of runs, that stand in the prompt as solved examples."""
    documents: Word | None = None
    """A folder of texts that the agent can search, or `task:NAME` for the folder NAME of the task's own data."""
    audit: bool = True
    """Audit the run at its end."""
    note: str | None = None
    """What its user wants to remember of the run; nothing depends on it."""

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
        """The names of the models by role, `none/none` for an agent that asks none."""
        return {role: self.model(role).name for role in ROLES}

    @property
    def data_name(self) -> str:
        """The variant, with its mini seed: `mini`, or `mini (seed 7)`."""
        return self.variant if self.mini_seed is None else f"{self.variant} (seed {self.mini_seed})"

    def replace(self, **changes: object) -> Self:
        """Return a copy with some fields changed. The new values are not validated."""
        return self.model_copy(update=changes)

    def to_toml(self) -> str:
        """Return the spec as TOML, which `read_spec` reads back."""
        import tomli_w  # only who writes one needs it

        return tomli_w.dumps(self.model_dump(mode="json", exclude_none=True))


def read_spec(path: Path) -> dict[str, Any]:
    """Return the fields of a spec that a file sets, not yet validated.

    Args:
        path: a TOML file with fields of `RunSpec`, or the `run.json` of a run to repeat.

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
    """Validate the fields of a spec and return it.

    Raises:
        UsageError: a field is unknown or wrong.
    """
    try:
        return RunSpec.model_validate(fields)
    except ValidationError as error:
        raise UsageError(f"{source}: {first_fault(error, 'there is no such field')}") from None


class GivenFolder(Record):
    """A folder that a run was given (`--experience`, `--documents`), as it was when the run was made."""

    folder: str
    """The path that it was copied from."""
    files: int
    bytes: int
    digest: str
    """SHA-256 over the files' paths and contents."""
    tasks: tuple[str, ...] = ()
    """The tasks of the runs in it, sorted."""
    domains: tuple[str, ...] = ()
    """The domains of these tasks, sorted."""


class Example(Record):
    """A solved example that stands in a run's prompt (`--examples`), as it was when the run was made."""

    path: str
    digest: str
    """SHA-256 of its text, as the agent was given it."""


class AgentPackage(Record):
    """The package of an agent that is installed from a registry (`mlab agents install`)."""

    registry: Literal["npm", "pypi"]
    name: str
    version: str
    checksum: str
    """SHA-256 of the lines `<name> <version> <checksum>` of it and all that was installed with it, with the registry's checksums."""


class Imported(Record):
    """The source of a run that another program carried out and whose logs were imported."""

    folder: str
    """The path of the logs."""
    digest: str
    """SHA-256 over the logs' paths and contents."""
    problems: tuple[str, ...] = ()
    """Parts of the logs that are missing, damaged or of another run, a line for each."""
    beginning: str = ""
    """SHA-256 of the run's first step, which stays the same if the log grows, moves or is repaired; empty if there is no step yet."""
    not_graded: str | None = None
    """Why no grader here accepts its submission; None if one does."""


class RunInfo(Record):
    """Everything known of a run before its first step: `run.json`."""

    schema_version: Literal[2] = SCHEMA_VERSION
    run: Word
    """The run's name, unique in its log directory."""
    spec: RunSpec
    """The run's specification, with the models that were actually used, and their prices if they were known."""
    category: Word = ""
    """The task's category; empty if it is unknown."""
    published: datetime.date | None = None
    """The date on which the task was published: a model trained later may have seen it. None if it is unknown."""
    rungs: int | None = None
    """How many dependent changes the task consists of (`TaskSpec.rungs`); None for another kind of task, or if it is unknown."""
    description: str
    """The task's description, as the agent was given it."""
    metric: Word
    unit: Word
    direction: Direction
    isolation: Word
    """The sandbox that the agent's scripts run in; `spec.sandbox` is the one that was asked for."""
    started: Moment
    """Seconds since the epoch; 0 if an imported log does not say."""
    versions: Mapping[str, str]
    hardware: Mapping[str, JsonValue]
    disk_share_mb: int | None = None
    """The run's share of the disk in megabytes (2^20), which its snapshots and its workspace stay within; None for all of it."""
    data: str | None = None
    """The key of the prepared data (`PreparedRecord.key`); None for a task without data."""
    data_digest: str | None = None
    """The digest of the prepared data (`PreparedRecord.digest`): data of one key differs where answers were drawn from a secret seed or
    looked up in a database. None for a task without data, and in an earlier version's run."""
    parent: str | None = None
    """For a run that was forked: the run and the step it was forked from, as `<run>/<step>`."""
    sample: str | None = None
    """The sample of the Inspect evaluation that started it, as `<task id>/<epoch>`; a retry has the same and continues the run."""
    domain: Word = ""
    """The task's domain (`TaskSpec.domain`); empty if it has none."""
    experience: GivenFolder | None = None
    """The earlier work that the run was given."""
    examples: tuple[Example, ...] = ()
    """The solved examples that stand in `description`."""
    documents: GivenFolder | None = None
    """The folder that the run can search; None also if it is the task's own data."""
    agent_package: AgentPackage | None = None
    """The package of the agent, if it was installed from a registry."""
    scheduled: Moment | None = None
    """When its experiment was first run, the same for all runs of it, so that their order is that of their names. None outside one."""
    imported: Imported | None = None
    """For a run that another program carried out: its logs; else None."""

    def broke_at(self, result: Result) -> int | None:
        """Return the number (from 1) of the first dependent change that the run did not make; None if it made all, or the task has none."""
        return None if self.rungs is None or result.rung >= self.rungs else result.rung + 1

    @model_validator(mode="before")
    @classmethod
    def _from_version_1(cls, value: Any) -> Any:
        version = value.get("schema_version", SCHEMA_VERSION) if isinstance(value, Mapping) else SCHEMA_VERSION
        if type(version) is not int or version not in (1, SCHEMA_VERSION):
            raise unknown_version(version, 1, SCHEMA_VERSION)
        if version == 1:
            return _version_2(value)
        if isinstance(value, Mapping) and isinstance(value.get("spec"), Mapping):
            # `retention` named the versions of large files to keep; no snapshot loses any now.
            return {**value, "spec": {name: field for name, field in value["spec"].items() if name != "retention"}}
        return value


def _version_2(old: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the fields of a `run.json` of version 1 to version 2."""
    spec = {
        name: old[name]
        for name in ("task", "variant", "agent", "agent_options", "sandbox", "gpus", "score_steps", "baseline", "prices")
        if name in old
    }
    names = old.get("models") or {}
    # In version 1 the options were those of the agent's model, and so of each role that used the same one.
    spec["models"] = {
        role: {"name": name, "options": old.get("model_options", {}) if name == names.get("agent") else {}}
        for role, name in names.items()
        if names.get("agent") != NO_MODEL
    }
    spec |= {"limits": old.get("limits", {}), "script_limits": old.get("script_limits", {})}
    spec |= {"task_folder": old.get("task_folder") or None, "python": old.get("python") or None}
    if old.get("experience"):
        spec["experience"] = old["experience"]["folder"]
    gone = {"model_options", "keep", "limits", "script_limits", "task_folder", "python", "models", *spec}
    kept = {name: value for name, value in old.items() if name not in gone or name == "experience"}
    return {**kept, "schema_version": SCHEMA_VERSION, "spec": spec}
