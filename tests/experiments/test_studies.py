"""The ready-made experiments: each is carried out whole, on mini data, once a cell, with replies that were written beforehand."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
from click.testing import CliRunner

from mlagentbench import ScriptedModel, ScriptedReply
from mlagentbench.cli.main import mlab
from mlagentbench.experiments.file import read_experiment, ready_made
from mlagentbench.experiments.given import experience_folder, give
from mlagentbench.experiments.matrix import Matrix, MatrixCell, expand
from mlagentbench.experiments.state import ExperimentState
from mlagentbench.model import Models, Script
from mlagentbench.records import Role
from mlagentbench.report.experiment import Experiment
from mlagentbench.report.tables.build import tables
from mlagentbench.results.load import Run, load
from mlagentbench.runner.preflight import ready_run
from mlagentbench.runner.run_once import run_once
from tests.support import reply

END = {"final_answer": "Nothing was changed."}
REPLIES = (
    reply("Search Documents", '{"query": "the rule at this station"}'),  # refused where there are no documents
    reply("List Files", '{"dir_path": "."}'),
    reply("Final Answer", json.dumps(END)),
    json.dumps({"thoughts": {"text": "Done."}, "command": {"name": "Final Answer", "args": END}}),  # AutoGPT's form
)
FEWER: Mapping[str, list[str]] = {
    "table-3": ["house-price", "imdb"],
    "components": ["house-price", "imdb"],
    "knowledge": ["fresh-tabular"],
    "planning": ["ladder-2", "climb-4"],
}
"""The tasks that are left of an experiment with many; what they differ in is for their own tests."""


def carried_out(folder: Path, name: str) -> tuple[Matrix, list[Run]]:
    """Carry out an experiment in this process and without an engine, and return what it is and its runs."""
    overrides: dict[str, Any] = {"variant": "mini", "runs": 1, "baseline": "none", "score_steps": False, "audit": False, "sandbox": "none"}
    overrides |= {"models": ["scripted/script"], **({"tasks": FEWER[name]} if name in FEWER else {})}
    file = read_experiment(ready_made()[name], overrides)
    matrix, state = expand(file), ExperimentState(folder / name, file.name)
    # The starters of real tasks take their time, and each has been run by the tests of its own task.
    matrix = matrix.model_copy(update={"cells": tuple(cell for cell in matrix.cells if cell.agent != "baseline")})
    state.create()
    for stage in matrix.stages():
        asyncio.run(_carry_out(state, matrix, stage))
    return matrix, load(folder / name)


async def _carry_out(state: ExperimentState, matrix: Matrix, cells: Sequence[MatrixCell]) -> None:
    ready = []
    for cell in cells:
        spec = cell.spec
        if cell.sources:
            give(state, cell)
            spec = spec.replace(experience=experience_folder(state, cell))
        ready.append(replace(await ready_run(spec, state.log_directory), names=cell.names))
    await asyncio.gather(*(run_once(run, _models()) for run in ready))


def _models() -> Models:
    script = Script([ScriptedReply(reply=text) for text in REPLIES] + [ScriptedReply(reply="The folder was listed.", role="fast")] * 3)
    return Models(**{role: ScriptedModel(script, role) for role in get_args(Role)})


def rows(runs: list[Run], name: str) -> list[Mapping[str, Any]]:
    return next((list(table.rows) for table in tables(Experiment.of(runs), {}) if table.name == name), [])


@pytest.mark.slow
def test_every_experiment_is_carried_out_and_reported(tmp_path: Path) -> None:
    found = {}
    for name in ready_made():
        matrix, runs = carried_out(tmp_path, name)
        assert {run.name for run in runs} == set(matrix.names), name
        ended = {run.name: run.result.outcome for run in runs if run.result}
        assert all(outcome.ended == "final_answer" for outcome in ended.values()), (name, ended)
        found[name] = runs

    components = {row["component"] for row in rows(found["components"], "components")}
    assert components == {
        *("Reflection", "Research Plan and Status", "Fact Check", "Thought"),
        *("Research log", "High-level actions", "Summaries"),
    }
    assert {row["category"] for row in rows(found["components"], "components")} == {None, "canonical", "classic Kaggle"}
    assert {row["component"] for row in rows(found["research-log"], "components")} == {"Research log"}
    for name in ("house-price", "clrs"):  # ReAct is act only with a thought
        assert {row["component"] for row in rows(found[name], "components")} == {"Research log", "Thought"}, name
    assert {row["component"] for row in rows(found["planning"], "components")} == {"Research Plan and Status", "Thought"}

    transferred = {(row["task"], row["related"], row["unrelated"]) for row in rows(found["transfer"], "transfer")}
    assert transferred == {("cifar100", "cifar10", "imdb"), ("ladder-4", "ladder-2", "house-price"), (None, None, None)}
    assert all(row["over_unrelated_difference"] == 0.0 for row in rows(found["transfer"], "transfer"))

    nothing, example, documents = (
        next(run for run in found["knowledge"] if (bool(run.info.examples), bool(run.info.spec.documents)) == given)
        for given in ((False, False), (True, False), (False, True))
    )
    assert [run.steps[0].action.name for run in (nothing, example, documents)] == ["List Files", "List Files", "Search Documents"]
    retrieved = documents.steps[0].details["retrieved"]
    assert isinstance(retrieved, list) and len(retrieved) == 5
    assert "validation accuracy: 0.961" in example.calls(1)[0].prompt and "Here is an example" not in nothing.info.description
    assert len(rows(found["knowledge"], "comparisons")) == 3


@pytest.mark.parametrize(
    ("name", "runs", "tasks"),
    [("table-3", 208, 13), ("components", 832, 13), ("transfer", 80, 6), ("knowledge", 72, 3), ("planning", 320, 10)],
)
def test_each_is_as_large_as_it_says(name: str, runs: int, tasks: int) -> None:
    file = read_experiment(ready_made()[name])
    assert (file.runs, len({task for group in file.groups for task in group.tasks})) == (runs, tasks)
    assert file.about.endswith("?") or file.about.endswith(".")


def test_they_are_listed_and_found_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    listed = json.loads(CliRunner().invoke(mlab, ["experiment", "list", "--json"]).output)
    assert [each["name"] for each in listed] == sorted(ready_made()) and all(each["about"] for each in listed)
    dry = ["experiment", "run", "research-log", "--dry-run", "--model", "openai/gpt-4o", "--model", "openai/o3", "--runs", "2"]
    assert "8 runs to do" in CliRunner().invoke(mlab, dry).output
    refused = CliRunner().invoke(mlab, ["experiment", "run", "research-lag", "--dry-run"])
    assert refused.exit_code != 0


def test_the_page_names_each() -> None:
    page = (Path(__file__).parents[2] / "docs" / "studies.md").read_text()
    assert set(re.findall(r"^\| `([\w-]+)` \|", page, re.MULTILINE)) == set(ready_made())
