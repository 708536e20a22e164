"""The tables of studies: a planted effect is found, and none where there is none."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from mlagentbench.records import Action, Baseline, Outcome, Result, Score, Step, StepScore, Usage
from mlagentbench.report.components import Components
from mlagentbench.report.experiment import Experiment
from mlagentbench.report.page import report_pages
from mlagentbench.report.tables.build import tables
from mlagentbench.report.tables.export import encoded
from mlagentbench.report.tables.model import Table, grid
from mlagentbench.report.tables.studies import studies
from mlagentbench.results.effort import effort
from mlagentbench.results.load import Run, load, scan
from mlagentbench.run_spec import GivenFolder
from mlagentbench.rundir.directory import RunDirectory
from tests.example_runs import ExampleStep, run_info, write_run

HALF = Baseline(value=0.5, values=(0.5,), source="measured")
MODEL = {"agent": "vendor/model"}
CATEGORIES = {"canonical": ("a", "b", "c", "d", "e", "f", "g"), "new": ("p", "q", "r", "s", "t", "u", "v")}
LENGTHS = {task: 4 + 2 * number for number, task in enumerate(task for tasks in CATEGORIES.values() for task in tasks)}
"""How many steps a run of each task takes."""


def a_run(number: int, task: str, wins: bool, steps: int = 1, *, experience: GivenFolder | None = None, **info: Any) -> Run:
    """A run of some steps that nothing on disk holds, of which the last step has the score that counts."""
    score, gain = (0.9, 0.8) if wins else (0.5, 0.0)
    facts = {"task": task, "metric": "accuracy", "unit": "", "direction": "maximize", "models": MODEL, **info}
    known = run_info(f"{number:04d}-{task}", **facts).model_copy(update={"experience": experience})
    look = Action(name="List Files", arguments={})
    done = [
        Step(number=each, action=look, observation="", status="ok", started=0.0, seconds=1.0, model_seconds=1.0, usage=Usage())
        for each in range(1, steps + 1)
    ]
    scores = [StepScore(step=each, value=0.5, improvement=0.0) for each in range(1, steps)]
    result = Result(
        run=known.run,
        outcome=Outcome(ended="final_answer", verdict="success" if wins else "no_improvement"),
        score=Score(value=score),
        baseline=HALF,
        improvement=gain,
        success=wins,
        step_scores=(*scores, StepScore(step=steps, value=score, improvement=gain)),
        steps=steps,
        seconds=float(steps),
        model_seconds=float(steps),
        script_seconds=0.0,
        grading_seconds=0.0,
        usage={},
    )
    return Run(RunDirectory(Path("nowhere") / known.run), known, tuple(done), result)


def study(options: Mapping[str, dict[str, Any]], chance: Callable[[str, str], float], runs: int = 8) -> list[Run]:
    """The runs of a study: all tasks of `CATEGORIES` by agents with options, each with a chance of success by name and task."""
    draw = random.Random(3)
    plan = [(category, task, name) for category, tasks in CATEGORIES.items() for task in tasks for name in options for _ in range(runs)]
    return [
        a_run(number, task, draw.random() < chance(name, task), LENGTHS[task], category=category, agent_options=options[name])
        for number, (category, task, name) in enumerate(plan)
    ]


def tables_of(runs: list[Run]) -> list[Table]:
    return [table for table in studies(Experiment.of(runs)) if table.rows]


def rows(found: list[Table], name: str, **values: Any) -> list[Mapping[str, Any]]:
    table = next(table for table in found if table.name == name)
    return [row for row in table.rows if all(row[key] == value for key, value in values.items())]


def test_a_component_that_matters_in_one_category_is_found_there_and_no_other() -> None:
    """The plan is worth 60 points on the new tasks and nothing elsewhere; the fact check is worth nothing."""
    options = {
        "full": {"research_log": True},
        "no plan": {"research_log": True, "entries": "reflection,fact-check,thought"},
        "no check": {"research_log": True, "entries": ["Reflection", "Research Plan and Status", "Thought"]},
        "other temperature": {"research_log": False, "temperature": 0.0},
    }
    runs = study(options, lambda name, task: 0.1 if name == "no plan" and task in CATEGORIES["new"] else 0.7)
    found = tables_of(runs)
    table = next(table for table in found if table.name == "components")
    assert {row["component"] for row in table.rows} == {"Research Plan and Status", "Fact Check"}
    (planted,) = rows(found, "components", component="Research Plan and Status", category="new")
    assert planted["low"] < 0.6 < planted["high"] and planted["low"] > 0.3 and planted["p_adjusted"] < 0.001
    assert (planted["tasks"], planted["full_runs"], planted["without_runs"]) == (7, 56, 56)
    others = [*rows(found, "components", category="canonical"), *rows(found, "components", component="Fact Check")]
    assert len(others) == 5 and all(row["low"] < 0 < row["high"] and row["p_adjusted"] > 0.05 for row in others)
    (improved,) = rows(found, "components-improvement", component="Research Plan and Status", category="new")
    assert improved["improvement_low"] < 0.48 < improved["improvement_high"] and improved["improvement_low"] > 0
    shown = grid(table)
    assert shown.headings == ["component", "all categories", "canonical", "new"]
    assert [line[0] for line in shown.lines] == ["Research Plan and Status", "Fact Check"]
    assert shown.lines[0][3].endswith("*") and not shown.lines[1][3].endswith("*")
    assert "Runs needed of each task, to see such a difference: Research Plan and Status" in " ".join(table.notes)
    assert b"Research Plan and Status,new" in encoded(table, "csv") and rb"\begin{tabular}" in encoded(table, "latex")


@pytest.mark.parametrize("planted", [True, False])
def test_the_log_helps_in_long_runs_where_that_was_planted(planted: bool) -> None:
    """With it, the chance of success rises from 20% in the shortest runs to 100% in the longest; or it is 60% in all."""

    def chance(name: str, task: str) -> float:
        return 0.2 + 0.8 * list(LENGTHS).index(task) / (len(LENGTHS) - 1) if planted and name == "log" else 0.2 if planted else 0.6

    found = tables_of(study({"log": {"research_log": True}, "none": {}}, chance))
    (steps,) = rows(found, "research-log", amount="steps", measure="success")
    assert steps["tasks"] == 14
    if planted:
        assert steps["low"] > 0 and steps["p_adjusted"] < 0.01 and steps["above"] - steps["below"] > 0.2
    else:
        assert all(row["p_adjusted"] > 0.05 for row in rows(found, "research-log"))
    by_step = {row["steps"]: row for row in rows(found, "research-log-by-step")}
    assert by_step[3]["difference"] == 0.0
    assert (by_step[30]["low"] > 0) is planted
    assert not rows(found, "research-log", amount="complexity"), "without snapshots nothing is known of it"


def test_a_related_experience_is_compared_with_an_unrelated_one_and_with_none() -> None:
    """On cifar100 runs of cifar10 help and those of imdb do not; on ladder-4 nothing does."""
    draw, runs = random.Random(5), [a_run(0, "cifar10", True, domain="small pictures", agent_options={})]
    sources = {
        "cifar100": ("small pictures", {"": 0.3, "cifar10": 0.9, "imdb": 0.3}),
        "ladder-4": ("ladder", {"": 0.5, "ladder-2": 0.5, "house-price": 0.5}),
    }
    domains = {"cifar10": "small pictures", "imdb": "texts", "ladder-2": "ladder", "house-price": "tables"}
    for task, (domain, chances) in sources.items():
        for source, chance in chances.items():
            given = GivenFolder(folder=source, files=1, bytes=1, digest=source * 8, tasks=(source,), domains=(domains.get(source, ""),))
            facts: dict[str, Any] = {"domain": domain, "agent_options": {}, "experience": given if source else None}
            runs += [a_run(len(runs) + each, task, draw.random() < chance, **facts) for each in range(24)]
    found = tables_of(runs)
    (helped,) = rows(found, "transfer", task="cifar100")
    assert (helped["related"], helped["unrelated"]) == ("cifar10", "imdb")
    assert helped["none_runs"] == helped["related_runs"] == helped["unrelated_runs"] == 24
    assert helped["over_none_low"] > 0 and helped["over_unrelated_low"] > 0 and helped["over_none_p"] < 0.01
    (not_helped,) = rows(found, "transfer", task="ladder-4")
    assert not_helped["over_none_low"] < 0 < not_helped["over_none_high"]
    assert not_helped["over_unrelated_low"] < 0 < not_helped["over_unrelated_high"]
    (average,) = rows(found, "transfer", task=None)
    assert average["related_rate"] == pytest.approx((helped["related_rate"] + not_helped["related_rate"]) / 2)
    assert average["over_none_difference"] == pytest.approx((helped["over_none_difference"] + not_helped["over_none_difference"]) / 2)
    assert {row["task"] for row in rows(found, "transfer")} == {"cifar100", "ladder-4", None}
    assert "transfer" in {table.name for table in tables(Experiment.of(runs), {})}


def test_what_a_run_did_is_counted_by_hand(tmp_path: Path) -> None:
    run = {"script_name": "train.py"}
    steps = [
        ExampleStep("Execute Script", run, details={"exit_code": 0}),
        ExampleStep("Execute Script", run, details={"exit_code": 0}),
        ExampleStep("Write File", {}, files={"train.py": "one\ntwo\n"}, details={"changed": "train.py"}),
        ExampleStep("Write File", {}, files={"other.py": "three\n"}, details={"changed": "other.py"}),
        ExampleStep("Execute Script", run, files={"submission.csv": "1\n2\n"}, details={"exit_code": 0}),
        ExampleStep("Undo Edit Script", run, files={"train.py": "one\n"}, details={"undone": "train.py"}),
        ExampleStep("Copy File", {}, files={"other.py": "one\n"}, details={"changed": "other.py"}),
        ExampleStep("Copy File", {}, files={"saved.py": "one\n"}, details={"changed": "saved.py"}),
        ExampleStep("Execute Script", run, details={"exit_code": 1}, status="error"),
    ]
    directory = write_run(tmp_path, steps=steps)
    (one,) = load(tmp_path)
    did = effort(one)
    before = len((directory.workspace / "train.py").read_text().splitlines())
    assert (did.steps, did.experiments, did.restarts) == (9, 3, 2)
    assert did.changed_lines is not None and did.changed_lines > before
    write_run(tmp_path / "bare", steps=steps, snapshots=False)
    assert effort(load(tmp_path / "bare")[0]).changed_lines is None


def test_columns_that_differ_in_two_components_or_in_anything_else_are_no_ablation() -> None:
    given: list[dict[str, Any]] = [
        {"agent": "research", "agent_options": {"research_log": True}},
        {"agent": "research", "agent_options": {"research_log": True, "summarise": False}},
        {"agent": "react", "agent_options": {}},
        {"agent": "primitive-only", "agent_options": {"research_log": True}},
        {"agent": "research", "agent_options": {"research_log": True, "no_such_option": 1}},
        {"agent": "research", "agent_options": {}, "models": {"agent": "vendor/other"}},
        {"agent": "autogpt", "agent_options": {}},
    ]
    pairs = Components(Experiment.of(a_run(number, "a", True, **info) for number, info in enumerate(given))).pairs
    assert {component for component, *_ in pairs} == {"Summaries", "High-level actions"}


def test_the_page_shows_the_tables(tmp_path: Path) -> None:
    for number, options in enumerate([{"research_log": True}, {}] * 2):
        write_run(tmp_path, f"run-{number}", agent_options=options, snapshots=False)
    (*_, page) = report_pages(scan(tmp_path), "report.html")
    assert "Which component of the agent matters?" in page.html and '<th scope="row">Research log</th>' in page.html
    assert "What the research log is worth after some steps" in page.html and "Does experience of another task help?" not in page.html
