"""Read the file of an experiment: which tasks, agents and models, how often, under which conditions, and in which groups.

    name = "log-on-cifar10"            # by default the file's name without `.toml`
    about = "Does the log help?"       # what `mlab experiment list` says of it
    tasks = ["cifar10"]
    runs = 8                           # of each task, agent and model; 1 by default
    variant = "full"                   # every field of a run's spec may stand here: limits, sandbox, baseline, mini_seed, ...
    limits = { steps = 50, time = 18000 }

    [[agents]]
    agent = "research"                 # as `mlab run --agent`
    label = "with log"                 # by default the agent's name
    options = { research_log = true }  # as `mlab run -A`

    [[models]]
    model = "openai/gpt-4o"            # as `mlab run --model`
    label = "gpt-4o"                   # by default the model's name
    fast_model = "openai/gpt-4o-mini"  # by default the model itself
    editor_model = "openai/gpt-4o-mini"
    options = { temperature = 0.5 }    # as `mlab run -M`

    [budget]                           # of the whole experiment: no further run begins once it is used up
    cost = 200.0                       # US dollars
    tokens = 50_000_000

Without options, an agent or a model can be written as its name: `agents = ["research", "react"]`.

An experiment whose runs are not all done alike has groups. The keys above a group hold for each, and a group may set any of them anew
(`limits`, `script_limits`, `prices` and `rate_limits` key by key). A group's runs can be given those of another group as experience; they
wait for them:

    models = ["openai/gpt-4o"]
    agents = ["research"]
    runs = 8

    [[groups]]
    name = "source"
    tasks = ["cifar10"]

    [[groups]]
    name = "none"                      # no experience: the key is left out
    tasks = ["cifar100"]

    [[groups]]
    name = "related"
    tasks = ["cifar100"]
    experience_from = "source"         # all its runs of the same agent and model

    [[groups]]
    name = "notes"
    tasks = ["cifar100"]
    experience = "notes"               # or a folder of the user's own, as `mlab run --experience`

Paths are relative to the file, a scripted model's too (`scripted/replies.jsonl`).
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ConfigDict, Field, JsonValue, ValidationError, ValidationInfo, field_validator, model_validator

from mlagentbench.errors import UsageError
from mlagentbench.records import Record, Word
from mlagentbench.run_spec import ModelSpec, RunSpec
from mlagentbench.util.text import first_fault

T = TypeVar("T")
OWN_FIELDS = frozenset({"task", "task_folder", "agent", "agent_options", "models", "gpus"})
"""The fields of `RunSpec` that a file sets in another way, or not at all."""
SPEC_FIELDS = frozenset(RunSpec.model_fields) - OWN_FIELDS
"""The fields of `RunSpec` that can be keys of a file."""
MERGED = ("limits", "script_limits", "prices", "rate_limits")
"""The fields that a group sets key by key."""
SCRIPTED = "scripted/"
WHOLE = ("name", "about", "budget", "task_paths")
"""The keys that are of the whole experiment, and of no group."""
STUDIES = Path(__file__).with_name("studies")
"""The folder of the ready-made files."""
NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"
"""Matches a name that can be a folder's."""


class ExperimentAgent(Record):
    """An agent of an experiment, with its options."""

    agent: Word
    label: Word = ""
    """What it is called in the experiment; the agent's name if the file gives none."""
    options: Mapping[str, JsonValue] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, value: Any) -> Any:
        value = {"agent": value} if isinstance(value, str) else value
        return {"label": value.get("agent", ""), **value} if isinstance(value, Mapping) else value


class ExperimentModel(Record):
    """A model of an experiment, with those of the other roles."""

    model: Word
    label: Word = ""
    """What it is called in the experiment; the model's name if the file gives none."""
    fast_model: Word | None = None
    editor_model: Word | None = None
    options: Mapping[str, JsonValue] = Field(default_factory=dict)
    """Its provider's options, also in other roles in which it is named."""

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, value: Any) -> Any:
        value = {"model": value} if isinstance(value, str) else value
        return {"label": value.get("model", ""), **value} if isinstance(value, Mapping) else value

    def by_role(self) -> dict[str, ModelSpec]:
        """Return the models as `RunSpec.models` has them."""
        named = {"agent": self.model, "fast": self.fast_model, "editor": self.editor_model}
        return {
            role: ModelSpec(name=name, options=self.options if name == self.model else {})
            for role, name in named.items()
            if name is not None
        }


class ExperimentBudget(Record):
    """What a whole experiment may use before no further run begins. None is no limit."""

    cost: float | None = Field(default=None, gt=0)
    """US dollars."""
    tokens: int | None = Field(default=None, gt=0)


class Group(Record):
    """A part of an experiment: every task with every agent and every model, the same number of times, under the same conditions.

    Any other key than these is a field of `RunSpec`.
    """

    model_config = ConfigDict(extra="allow")

    name: Word = Field(default="", pattern=rf"^$|{NAME}")
    """The group's name; empty in an experiment without groups."""
    tasks: tuple[Word, ...] = Field(min_length=1)
    agents: tuple[ExperimentAgent, ...] = (ExperimentAgent(agent="research", label="research"),)
    models: tuple[ExperimentModel, ...] = ()
    """Empty for agents that ask none."""
    runs: int = Field(default=1, ge=1)
    """How often each task is done by each agent with each model."""
    experience_from: Word | None = None
    """The group whose runs, of the same agent and model, these runs are given as experience."""

    @field_validator("tasks", "agents", "models")
    @classmethod
    def _once(cls, entries: tuple[T, ...], info: ValidationInfo) -> tuple[T, ...]:
        names = Counter(getattr(entry, "label", entry) for entry in entries)
        if (twice := next((name for name, count in names.items() if count > 1), None)) is not None:
            what = {"tasks": "task", "agents": "agent's label", "models": "model's label"}[str(info.field_name)]
            raise ValueError(f"the {what} {twice!r} is there twice")
        return entries

    @model_validator(mode="after")
    def _one_experience(self) -> Group:
        if self.experience_from is not None and self.fields.get("experience") is not None:
            raise ValueError("a group has either experience or experience_from")
        return self

    @property
    def fields(self) -> Mapping[str, Any]:
        """The fields of `RunSpec` that the file sets, not yet validated."""
        return self.model_extra or {}


class ExperimentFile(Record):
    """An experiment as its file describes it."""

    path: Path
    """The file."""
    name: Word = Field(pattern=NAME)
    """The experiment's name, which is a folder's, too."""
    groups: tuple[Group, ...]
    """In such an order that a group comes after the one that it has its experience from."""
    about: Word = ""
    """The question that it answers; empty if the file does not say."""
    budget: ExperimentBudget = ExperimentBudget()
    task_paths: tuple[Path, ...] = ()
    """Folders with further tasks, as `mlab run --task-path`."""

    @property
    def runs(self) -> int:
        """How many runs the experiment has in all."""
        return sum(group.runs * len(group.tasks) * len(group.agents) * max(1, len(group.models)) for group in self.groups)


def read_experiment(path: Path, overrides: Mapping[str, Any] = {}) -> ExperimentFile:
    """Read the file of an experiment.

    Args:
        path: the TOML file.
        overrides: keys with values that hold for all groups, whatever the file says, such as `{"variant": "mini", "runs": 1}`.

    Raises:
        UsageError: the file cannot be read, or has an unknown key or a wrong value; the message names the file and the key.
    """
    try:
        keys = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"the experiment {path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise UsageError(f"the experiment {path} is no TOML: {str(error).splitlines()[0]}") from None
    entries = keys.pop("groups", [{}])
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise UsageError(f"{path}: groups: write each as a table under [[groups]]")
    whole = {name: keys.pop(name) for name in WHOLE if name in keys}
    whole |= {name: overrides[name] for name in WHOLE if name in overrides}
    common = {name: value for name, value in overrides.items() if name not in whole}
    named = entries != [{}]
    groups = [_group(_merged(_merged(keys, entry), common), path, number, named) for number, entry in enumerate(entries, start=1)]
    try:
        file = ExperimentFile.model_validate({"name": path.stem, **whole, "path": path, "groups": _ordered(groups, path)})
    except ValidationError as error:
        raise UsageError(f"{path}: {first_fault(error)}") from None
    return file.model_copy(update={"task_paths": tuple(path.parent / folder for folder in file.task_paths)})


def ready_made() -> dict[str, Path]:
    """Return the files that come with the package, by name."""
    return {path.stem: path for path in sorted(STUDIES.glob("*.toml"))}


def _group(keys: Mapping[str, Any], path: Path, number: int, named: bool) -> Group:
    where = f"{path}: group {keys.get('name', number)}" if named else str(path)
    for name in keys:
        if name not in SPEC_FIELDS and name not in Group.model_fields:
            raise UsageError(f"{where}: {name}: there is no such key")
    if named and not keys.get("name"):
        raise UsageError(f"{where}: name: give the group a name")
    try:
        group = Group.model_validate({name: _absolute(name, value, path.parent) for name, value in keys.items()})
    except ValidationError as error:
        raise UsageError(f"{where}: {first_fault(error)}") from None
    return group.model_copy(update={"models": tuple(_with_located_scripts(entry, path.parent) for entry in group.models)})


def _merged(keys: Mapping[str, Any], entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return a group's keys, with those above the groups for what it does not set."""
    both = {name for name in MERGED if isinstance(keys.get(name), dict) and isinstance(entry.get(name), dict)}
    merged = {**keys, **entry, **{name: {**keys[name], **entry[name]} for name in both}}
    if "experience_from" in entry and "experience" not in entry:
        merged.pop("experience", None)
    return merged


def _absolute(key: str, value: Any, folder: Path) -> Any:
    """Return a key's value with its paths relative to a folder made absolute. Documents that are not a folder there are named otherwise."""
    if key == "examples" and isinstance(value, list):
        return [_absolute("example", each, folder) for each in value]
    if key in ("prices", "rate_limits") and isinstance(value, Mapping):
        return {_located(name, folder): each for name, each in value.items()}
    is_path = key in ("experience", "python", "example") or (key == "documents" and isinstance(value, str) and (folder / value).exists())
    return str((folder / value).absolute()) if is_path and isinstance(value, str) else value


def _with_located_scripts(entry: ExperimentModel, folder: Path) -> ExperimentModel:
    names = {role: getattr(entry, role) for role in ("model", "fast_model", "editor_model")}
    return entry.model_copy(update={role: _located(name, folder) for role, name in names.items() if name is not None})


def _located(model: str, folder: Path) -> str:
    """Return a model's name, with the file of a scripted model as an absolute path, since a run may start in another folder."""
    script = folder / model.removeprefix(SCRIPTED)
    return SCRIPTED + str(script.resolve()) if model.startswith(SCRIPTED) and script.is_file() else model


def _ordered(groups: Sequence[Group], path: Path) -> list[Group]:
    """Return the groups, each after the one that it has its experience from.

    Raises:
        UsageError: a name is given twice, or a group's experience is of no other group.
    """
    for name, count in Counter(group.name for group in groups).items():
        if count > 1:
            raise UsageError(f"{path}: two groups have the name {name}; give each its own")
    by_name = {group.name: group for group in groups}
    ordered: dict[str, Group] = {}
    for group in groups:
        chain: list[str] = []
        step: Group | None = group
        while step is not None and step.name not in ordered:
            if step.name in chain:
                raise UsageError(f"{path}: group {group.name}: experience_from: it leads back to the group itself")
            chain.append(step.name)
            if step.experience_from is None:
                break
            if step.experience_from not in by_name:
                raise UsageError(f"{path}: group {step.name}: experience_from: there is no group {step.experience_from!r}")
            step = by_name[step.experience_from]
        for name in reversed(chain):
            ordered[name] = by_name[name]
    return list(ordered.values())
