"""What a run is to do: it goes through JSON and TOML unchanged, and a wrong field is one clear line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest

from mlagentbench import load
from mlagentbench.cli.run import run
from mlagentbench.errors import UsageError
from mlagentbench.limits import ScriptLimits
from mlagentbench.run_spec import ModelSpec, RunInfo, RunLimits, RunSpec, check_spec, read_spec
from mlagentbench.runner.preflight import make_spec
from mlagentbench.task.catalogue import find_task

STORED = Path(__file__).parent / "stored" / "version-1"
FULL = RunSpec(
    task="vectorization",
    task_folder=Path("/tasks/mine"),
    variant="mini",
    agent="search",
    agent_options={"drafts": 2, "temperature": 0.5, "names": ["a", "b"]},
    models={"agent": ModelSpec(name="openai/gpt-4o", options={"seed": 1}), "fast": ModelSpec(name="openai/gpt-4o-mini")},
    limits=RunLimits(steps=5, time=60.5, tokens=1000, cost=0.5),
    script_limits=ScriptLimits(seconds=10, memory_mb=100),
    sandbox="none",
    python=Path("/usr/bin/python3"),
    gpus=("0", "1"),
    score_steps=False,
    baseline="paper",
    experience=Path("/notes"),
)


@pytest.mark.parametrize("spec", [FULL, RunSpec(task="clrs")])
def test_a_spec_comes_back_from_json_and_toml_as_it_was(spec: RunSpec, tmp_path: Path) -> None:
    assert RunSpec.model_validate_json(spec.model_dump_json()) == spec
    (tmp_path / "spec.toml").write_text(spec.to_toml())
    assert check_spec(read_spec(tmp_path / "spec.toml"), "spec.toml") == spec


@pytest.mark.parametrize(
    "fields, words",
    [
        ({"agnet": "research"}, "agnet: there is no such field"),
        ({"limits": {"stepz": 3}}, "limits.stepz: there is no such field"),
        ({"limits": {"steps": "many"}}, "limits.steps: Input should be a valid integer"),
        ({"models": {"fast": "openai/gpt-4o"}}, "models: name the agent's model too"),
        ({"sandbox": "firejail"}, "sandbox: Input should be 'auto', 'bubblewrap', 'docker', 'landlock' or 'none'"),
    ],
)
def test_a_wrong_field_is_one_line_that_names_it(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as refused:
        make_spec(find_task("vectorization"), fields, "runs.toml")
    assert str(refused.value).startswith(f"runs.toml: {words}") and "\n" not in str(refused.value)


def test_what_a_spec_leaves_out_is_its_tasks_own() -> None:
    task = find_task("vectorization")
    spec = make_spec(task, {"limits": {"steps": 3}, "models": {"agent": "openai/gpt-4o"}})
    assert spec.limits == RunLimits(steps=3, time=task.spec.limits.time)
    assert spec.script_limits.memory_mb == task.spec.limits.memory_mb
    assert spec.model("editor") == ModelSpec(name="openai/gpt-4o")


def test_a_file_that_is_no_spec_is_one_line(tmp_path: Path) -> None:
    for name, text in (("a.toml", "task = "), ("b.json", "{}"), ("c.json", "nothing")):
        (tmp_path / name).write_text(text)
        with pytest.raises(UsageError, match=name):
            read_spec(tmp_path / name)
    with pytest.raises(UsageError, match="cannot be read"):
        read_spec(tmp_path / "gone.toml")


def test_the_defaults_of_the_command_are_those_of_a_spec() -> None:
    spec = RunSpec(task="a-task")
    options = {option.name: option.default for option in run.params if isinstance(option, click.Option)}
    for name in RunSpec.model_fields:
        if isinstance(options.get(name), str | bool):
            assert options[name] == getattr(spec, name), name


def test_every_option_of_a_spec_names_a_field() -> None:
    dump = FULL.model_dump()
    for option in run.params:
        group, _, field = (option.name or "").rpartition("__")
        if group and group not in ("models", "agent_options"):
            assert field in dump[group], option.name


def test_a_run_of_schema_version_1_is_read(tmp_path: Path) -> None:
    info = RunInfo.model_validate_json((STORED / "run.json").read_bytes())
    spec = info.spec
    assert (info.schema_version, spec.task, spec.agent, spec.variant, spec.baseline) == (2, "vectorization", "research", "mini", "auto")
    assert spec.model("fast") == ModelSpec(name="scripted/demo") and spec.task_folder is not None
    assert spec.limits == RunLimits(steps=50, time=18000.0) and spec.script_limits.memory_mb == 4096
    assert RunInfo.model_validate_json(info.model_dump_json()) == info
    (loaded,) = load(STORED).runs
    assert (len(loaded.steps), loaded.result is not None and loaded.result.success) == (8, True)
    (tmp_path / "run.json").write_text(info.model_dump_json())
    assert check_spec(read_spec(tmp_path / "run.json"), "run.json") == spec, "a run can be done again from its run.json"


def test_a_run_that_names_versions_to_keep_is_read() -> None:
    info = RunInfo.model_validate_json((STORED / "run.json").read_bytes())
    stored = json.loads(info.model_dump_json())
    stored["spec"]["retention"] = {"versions": 2, "over_mb": 100}
    assert RunInfo.model_validate_json(json.dumps(stored)) == info
    with pytest.raises(UsageError, match="retention: there is no such field"):
        check_spec(stored["spec"], "run.json")


def test_a_schema_version_that_is_not_known_is_named() -> None:
    later = json.loads((STORED / "run.json").read_bytes()) | {"schema_version": 3}
    with pytest.raises(ValueError, match="its schema version is 3, and this mlagentbench knows 1 and 2"):
        RunInfo.model_validate(later)
