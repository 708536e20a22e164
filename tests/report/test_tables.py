"""Tables: what they say of runs, in every form, with numbers worked out by hand."""

from __future__ import annotations

import datetime
import io
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from rich.console import Console

from mlagentbench.errors import UsageError
from mlagentbench.records import Baseline
from mlagentbench.report.experiment import Experiment
from mlagentbench.report.page.comparison import _amounts
from mlagentbench.report.tables.build import tables
from mlagentbench.report.tables.curves import curves
from mlagentbench.report.tables.export import encoded, markdown, report_object, write_tables
from mlagentbench.report.tables.latex import latex
from mlagentbench.report.tables.model import Table, TextColumn, grid
from mlagentbench.report.tables.terminal import shown
from mlagentbench.results.load import load
from tests.example_cells import broken, column, lost, won
from tests.example_runs import ExampleStep, write_run
from tests.report.charts.drawn import experiment

GPT, OPUS = "openai/gpt-4o", "anthropic/claude-3-opus"
HALF = Baseline(value=0.5, values=(0.5,), source="measured")


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Two agents on two tasks. imdb, whose baseline is 0.5: research 0.6 twice, act 0.6 and nothing; cifar10: only research, 0.5 once."""
    accuracies: list[tuple[str, str, str, float | None]] = [
        ("imdb", "research", GPT, 0.6),
        ("imdb", "research", GPT, 0.6),
        ("imdb", "act", OPUS, 0.6),
        ("imdb", "act", OPUS, None),
        ("cifar10", "research", GPT, 0.5),
    ]
    for number, (task, agent, model, accuracy) in enumerate(accuracies):
        write(tmp_path / "logs", f"run-{number}", accuracy, task=task, agent=agent, model=model)
    write(
        tmp_path / "logs",
        "run-lost",
        None,
        ended="infrastructure",
        verdict="ungraded",
        reason="the provider was away",
        agent="act",
        model=OPUS,
    )
    return tmp_path / "logs"


def write(logs: Path, name: str, accuracy: float | None, *, model: str = GPT, **more: Any) -> None:
    verdict = "no_submission" if accuracy is None else "success" if accuracy > 0.55 else "no_improvement"
    given: dict[str, Any] = {
        "task": "imdb",
        "agent": "research",
        "verdict": verdict,
        "agent_options": {},
        "flags": (),
        "cost": 0.25,
        "baseline": HALF,
        **more,
    }
    step = ExampleStep("Final Answer", {"final_answer": "done"}, "The run is over.", score=accuracy, reason=None if accuracy else "none")
    write_run(
        logs,
        name,
        [step],
        snapshots=False,
        models={"agent": model},
        metric="accuracy",
        unit="",
        direction="maximize",
        **given,
    )


def made(logs: Path, cutoffs: Mapping[str, datetime.date | None] | None = None) -> dict[str, Table]:
    return {table.name: table for table in tables(Experiment.of(load(logs)), cutoffs or {})}


def test_success_and_improvement_by_task_and_column(logs: Path) -> None:
    found = made(logs)
    rates = {(row["task"], row["agent"]): (row["rate"], row["successes"], row["runs"]) for row in found["success"].rows}
    assert rates == {
        ("imdb", "research"): (1.0, 2, 2),
        ("imdb", "act"): (0.5, 1, 2),  # the run that was lost stands in no denominator
        ("cifar10", "research"): (0.0, 0, 1),
        (None, "research"): (0.5, None, 3),
        (None, "act"): (0.5, None, 2),
    }
    gains = {(row["task"], row["agent"]): (row["improvement"], row["valid"]) for row in found["improvement"].rows}
    assert gains["imdb", "research"] == (pytest.approx(0.2), 2)
    assert gains["imdb", "act"] == (pytest.approx(0.2), 1)
    assert gains[None, "research"] == (pytest.approx(0.1), 3)
    assert [note for note in found["success"].notes if "average" in note] == [
        "research, openai/gpt-4o: the average is over 2 of 2 tasks.",
        "act, anthropic/claude-3-opus: the average is over 1 of 2 tasks, without cifar10.",
    ]


def test_people_see_tasks_and_agents_by_success_and_programs_in_the_order_of_their_runs(tmp_path: Path) -> None:
    for number, (task, model, accuracy) in enumerate((("a", GPT, 0.5), ("a", OPUS, 0.6), ("b", GPT, 0.6), ("b", OPUS, 0.6))):
        write(tmp_path, f"run-{number}", accuracy, task=task, model=model)
    found = made(tmp_path)
    table = found["success"]

    assert [line[0] for line in grid(table).lines] == ["b", "a", "average over tasks"]
    assert grid(table).headings[1:] == [f"research, {OPUS}", f"research, {GPT}"]
    assert [line[0] for line in grid(found["cost"]).lines] == [f"research, {OPUS}", f"research, {GPT}"]
    order = [(row["task"], row["model"]) for row in table.rows]
    assert order == [("a", GPT), ("a", OPUS), ("b", GPT), ("b", OPUS), (None, GPT), (None, OPUS)]
    assert pl.read_csv(encoded(table, "csv"))["task"].to_list() == [task for task, _ in order]


def test_what_runs_took_how_they_ended_and_which_do_not_count(logs: Path) -> None:
    found = made(logs)
    research, act = found["cost"].rows
    # The agent's 1950 in and 220 out, and the editor's 1530 in and 910 out, each for a quarter.
    assert (research["runs"], research["cost"], research["tokens"], research["priced"]) == (3, 0.5, 4610, 3)
    assert {(row["agent"], row["ended"]): row["runs"] for row in found["endings"].rows} == {
        ("research", "final_answer"): 3,
        ("act", "final_answer"): 2,
        ("act", "infrastructure"): 1,
    }
    assert {(row["agent"], row["verdict"]): row["runs"] for row in found["verdicts"].rows}["research", "success"] == 2
    (lost,) = found["not-counted"].rows
    assert (lost["run"], lost["apart"], lost["reason"]) == ("run-lost", "infrastructure", "the provider was away")
    assert act["runs"] == 2


def test_pairs_are_compared_over_the_tasks_they_share(logs: Path) -> None:
    (pair,) = made(logs)["comparisons"].rows
    assert (pair["first"], pair["second"]) == (f"research, {GPT}", f"act, {OPUS}")
    assert (pair["difference"], pair["tasks"], pair["p"], pair["other_smallest_p"]) == (0.5, 1, 1.0, 1.0)
    assert "cifar10" in str(pair["left_out"])
    assert (pair["improvement_difference"], pair["improvement_tasks"]) == (pytest.approx(0.0), 1)


def test_success_before_and_after_what_a_model_knows(tmp_path: Path) -> None:
    day = datetime.date(2023, 10, 1)
    write(tmp_path, "old", 0.6, published=day)
    write(tmp_path, "new", 0.5, published=day + datetime.timedelta(1), task="cifar10")
    rows = made(tmp_path, {GPT: day})["cutoffs"].rows
    assert [(row["published"], row["rate"]) for row in rows] == [("published before the cutoff", 1.0), ("published after the cutoff", 0.0)]
    assert "cutoffs" not in made(tmp_path), "of an unknown cutoff nothing is said"


def test_without_a_run_that_counts_there_is_no_empty_table(tmp_path: Path) -> None:
    write(tmp_path, "lost", None, ended="infrastructure", verdict="ungraded")
    assert list(made(tmp_path)) == ["verdicts", "endings", "not-counted"]


def test_conditions_that_differ_are_said(tmp_path: Path) -> None:
    write(tmp_path, "here", 0.6)
    write(tmp_path, "there", 0.6, isolation="docker")
    experiment = Experiment.of(load(tmp_path))
    assert [told.title for told in experiment.notices()] == ["Different isolation"]
    assert len(experiment.columns) == 2


@pytest.mark.parametrize("width", [40, 80, 200])
def test_a_table_fits_any_terminal_and_loses_nothing(logs: Path, width: int) -> None:
    for table in made(logs).values():
        console = Console(width=width, record=True, file=io.StringIO())
        for part in shown(table, width):
            console.print(part)
        told = console.export_text()
        assert all(len(line) <= width for line in told.splitlines())
        if table.across == "column":
            assert told.count("imdb") == (2 if width == 40 else 1), "a table that is too wide is split"
            assert re.search(r"100 \[34, 100\] n=2|\+20 n=2", told)


def test_numbers_in_csv_parquet_and_json_are_raw(logs: Path, tmp_path: Path) -> None:
    table = made(logs)["success"]
    frames = [
        pl.read_csv(encoded(table, "csv")),
        pl.read_parquet(io.BytesIO(encoded(table, "parquet"))),
        pl.DataFrame(json.loads(encoded(table, "json"))["rows"]),
    ]
    for frame in frames:
        assert frame.columns == list(table.columns)
        assert frame["rate"].to_list() == [1.0, 0.5, 0.0, 0.5, 0.5]
    experiment = Experiment.of(load(logs))
    whole = json.loads(json.dumps(report_object(experiment, tables(experiment, {}), [])))
    assert whole["tables"]["success"]["rows"][1]["low"] == pytest.approx(0.0945, abs=1e-4)  # Wilson, 1 of 2
    assert [run["run"] for run in whole["runs"]] == ["run-0", "run-1", "run-2", "run-3", "run-4", "run-lost"]


def test_latex_and_markdown_hold_what_people_read(logs: Path) -> None:
    table = made(logs)["improvement"]
    tex = latex(table)
    assert r"\toprule" in tex and r"\begin{tabular}{@{}lrr@{}}" in tex
    assert r"imdb & +20 n=2 & +20 n=1 \\" in tex
    assert r"Improvement over the baseline, \% {[}95\% interval], n valid submissions" in tex
    told = markdown(table)
    assert "| task | research, openai/gpt-4o | act, anthropic/claude-3-opus |\n|---|---:|---:|\n| imdb | +20 n=2 | +20 n=1 |" in told
    assert "| cifar10 | 0 n=1 | \N{EN DASH} |" in told


def test_agents_that_are_equal_on_every_task_read_alike_everywhere() -> None:
    """However unequal their numbers of runs are: every average is over tasks."""
    good: dict[str, Any] = {"tokens": 1000, "seconds": 60.0, "steps": 3, "cost": 0.1, "category": "canonical"}
    bad: dict[str, Any] = {"tokens": 90_000, "seconds": 6000.0, "steps": 40, "cost": 5.0}
    columns = {}
    for name, often, seldom in (("one", 24, 3), ("two", 3, 24)):
        runs = {"a": [won(0.5, **_known(good))] * often, "b": [lost(-0.2, **_known(bad))] * seldom, "c": [won(0.3, **_known(good))] * often}
        shared = column(f"vendor/{name}", category="canonical", a=runs["a"], b=runs["b"])
        columns[f"research, vendor/{name}"] = shared | column(f"vendor/{name}", category="other", c=runs["c"])
    compared = experiment(columns)
    bounds_and_counts = re.compile(r"(low|high|^runs|^valid|^successes|^priced|column|model)$")
    for table in (*tables(compared, {}), *curves(compared)):
        if table.name in ("verdicts", "endings", "comparisons", "probability-of-improvement"):
            continue  # these two count runs, and these two compare
        said: dict[str, list[dict[str, Any]]] = {name: [] for name in columns}
        for row in table.rows:
            said[str(row["column"])].append({name: value for name, value in row.items() if not bounds_and_counts.search(name)})
        one, two = said.values()
        assert one and one == [pytest.approx(row) for row in two], table.name
    one_row, two_row = (
        [amount.value for amount in _amounts(row)][1:]  # the first is the number of runs
        for row in compared.leaderboard
    )
    assert one_row == two_row and "66.7 %" in one_row, "and the page says the same"
    (pair,) = next(table for table in tables(compared, {}) if table.name == "comparisons").rows
    assert pair["difference"] == 0 and pair["improvement_difference"] == pytest.approx(0)


def _known(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if name != "category"}


def test_a_rate_is_told_with_what_was_left_out_of_it() -> None:
    found = {table.name: table for table in tables(experiment({"one": column(a=[won(), lost(), broken(), broken()], b=[lost()])}), {})}
    cell, _, average = found["success"].rows
    assert (cell["rate"], cell["if_failed"], cell["if_succeeded"], cell["left_out"]) == (0.5, 0.25, 0.75, 2)
    assert (average["rate"], average["if_failed"], average["if_succeeded"]) == (0.25, 0.125, 0.375)
    told = markdown(found["success"])
    assert "50 [9, 91] n=2 (25 to 75)" in told and "In parentheses: the rate if all runs" in told
    assert "In parentheses" not in markdown({t.name: t for t in tables(experiment({"one": column(a=[won()])}), {})}["success"])


def test_over_a_baseline_of_0_a_gain_stands_in_its_unit_and_in_no_average(tmp_path: Path) -> None:
    nothing = Baseline(value=0.0, values=(0.0, 0.0), source="measured")
    for number in range(3):
        write(tmp_path, f"zero-{number}", 0.6, task="zero", baseline=nothing)
        write(tmp_path, f"half-{number}", 0.6)
    table = made(tmp_path)["improvement"]
    by_task = {row["task"]: row for row in table.rows}
    zero = by_task["zero"]
    assert (zero["improvement"], zero["gain"], zero["unit"], zero["valid"]) == (None, pytest.approx(0.6), "accuracy", 3)
    assert by_task[None]["improvement"] == pytest.approx(0.2)
    told = markdown(table)
    assert "| zero | +0.600 accuracy n=3 |" in told and "zero: the baseline is 0" in told


def test_a_diverged_run_is_clipped_and_said_and_median_and_interquartile_mean_stand_beside(tmp_path: Path) -> None:
    for number, accuracy in enumerate((0.6, 0.62, 0.64, 0.66, -2e8)):
        write(tmp_path, f"run-{number}", accuracy)
    found = made(tmp_path)
    (cell, average), (summary,) = found["improvement"].rows, found["improvement-summaries"].rows
    assert cell["improvement"] == average["improvement"] == summary["mean"] == pytest.approx((0.2 + 0.24 + 0.28 + 0.32 - 1) / 5)
    assert cell["median"] == average["median"] == summary["median"] == pytest.approx(0.24)
    # The middle half of five: three quarters of the second and the fourth, and the third.
    assert cell["iqm"] == summary["iqm"] == pytest.approx((0.75 * 0.2 + 0.24 + 0.75 * 0.28) / 2.5)
    assert "1 improvement clipped" in markdown(found["improvement"]) and "\N{MINUS SIGN}100% and +1,000%" in markdown(found["improvement"])


HOSTILE = "a|b\n\x1b[31m \\input{/etc/passwd} <script> 50% $x_1$ [go](javascript:1)"


def test_what_agents_wrote_is_escaped_in_every_form() -> None:
    table = Table("t", HOSTILE, {"name": "text"}, [{"name": HOSTILE}], TextColumn("name", lambda row: str(row["name"]), number=False), [])
    tex = latex(table)
    assert r"\input" not in tex and r"\textbackslash{}input\{/etc/passwd\}" in tex and r"50\% $\mathdollar$x\_1$\mathdollar$" in tex
    told = markdown(table)
    (line,) = [line for line in told.splitlines() if line.startswith("| a")]
    assert r"a\|b" in line and r"\<script\>" in line and r"[go\](javascript:1)" in line
    console = Console(width=200, record=True, file=io.StringIO())
    for part in shown(table, 200):
        console.print(part)
    for text in (tex, told, console.export_text()):
        assert "\x1b" not in text
    assert pl.read_csv(encoded(table, "csv"))["name"].to_list() == [HOSTILE]
    assert json.loads(encoded(table, "json"))["rows"] == [{"name": HOSTILE}]


def test_files_are_named_by_table_and_form(logs: Path, tmp_path: Path) -> None:
    experiment = Experiment.of(load(logs))
    frames = {"runs": pl.DataFrame({"flags": [["a", "b"], []]})}
    written = write_tables(tmp_path / "out", tables(experiment, {}), frames, ["csv", "latex"])
    names = {path.name for path in written}
    assert {"success.csv", "success.tex", "runs.csv", "not-counted.csv"} <= names
    assert "runs.tex" not in names
    assert (tmp_path / "out" / "runs.csv").read_text() == 'flags\na b\n""\n'
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="choose another folder with --tables"):
        write_tables(tmp_path / "file", tables(experiment, {}), {}, ["csv"])
