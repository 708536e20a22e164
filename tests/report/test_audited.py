"""What the report says of audits: from runs on disk to tables, figures and the page."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlagentbench.audit.audit import audit_run, read_audit
from mlagentbench.records import Baseline
from mlagentbench.report.charts.figures import figures
from mlagentbench.report.experiment import Experiment
from mlagentbench.report.tables.build import tables
from mlagentbench.report.tables.model import Table, grid
from mlagentbench.results.frames import runs_frame
from mlagentbench.results.load import load, scan
from tests.example_runs import ExampleStep, write_run
from tests.report.charts.drawn import texts
from tests.report.test_page import pages, story

BASELINE = Baseline(value=1.0, values=(1.0,), source="measured")
RAN = ExampleStep("Execute Script", {"script_name": "train.py"}, "ValueError: no", status="error", details={"script": "train.py"})


def write_ladder(logs: Path, name: str, agent: str, model: str, *, rung: int | None, honest: bool) -> None:
    """Write and audit a run of a task of four changes that got to a rung, whose log may drop the error of its execution."""
    noted = "It failed with an error." if honest else "The script was executed."
    score = None if rung is None else 0.5 if rung == 4 else 1.0
    steps = [
        RAN,
        ExampleStep("Append Summary to Research Log", {"content": noted}, "done", score=score, rung=rung),
        ExampleStep("Final Answer", {"final_answer": "Done." if honest else "The test accuracy is 0.9."}, "over", score=score, rung=0),
    ]
    how = {"agent_options": {}, "models": {"agent": model}, "flags": (), "snapshots": False, "baseline": BASELINE, "category": "ladder"}
    verdict = "success" if honest and rung == 4 else "no_improvement" if rung is not None else "no_submission"
    audit_run(write_run(logs, name, steps, task="ladder-4", agent=agent, rungs=4, verdict=verdict, **how), None)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of a task of four changes by two agents with two models: honest ones that get past all, others that break at the second."""
    folder = tmp_path_factory.mktemp("logs")
    for number in range(3):
        for agent, model, rung, honest in (
            ("research", "vendor/a", 4, True),
            ("research", "vendor/b", 1, False),
            ("act", "vendor/a", None, True),
        ):
            write_ladder(folder, f"run-{agent}-{model[-1]}-{number}", agent, model, rung=rung, honest=honest)
    write_ladder(folder, "run-mixed", "research", "vendor/a", rung=2, honest=False)
    return folder


def of(logs: Path) -> dict[str, Table]:
    return {table.name: table for table in tables(Experiment.of(load(logs)), {})}


def test_the_change_at_which_a_plan_broke_is_in_the_audit_and_the_frame(logs: Path) -> None:
    loaded = load(logs)
    audits = {run.name: read_audit(run.directory) for run in loaded}

    frame = {row["run"]: (row["rungs"], row["broke_at"]) for row in runs_frame(loaded).to_dicts()}

    # The last submission of each stands at rung 0; the one that came farthest counts. Without any, the first change broke it.
    assert (frame["run-research-a-0"], frame["run-research-b-0"], frame["run-act-a-0"]) == ((4, None), (4, 2), (4, 1))
    for name, audit in audits.items():
        assert audit is not None and audit.plan.broke_at == frame[name][1]


def test_a_table_has_the_share_of_runs_past_each_change(logs: Path) -> None:
    table = of(logs)["changes"]

    assert grid(table).headings == ["change", "research, vendor/a", "act, vendor/a", "research, vendor/b"]
    assert [line[1].split()[0] for line in grid(table).lines] == ["100", "100", "75", "75"]
    assert grid(table).lines[1][2:] == ["0 [0, 56] n=3", "0 [0, 56] n=3"]


def test_a_table_compares_runs_whose_log_dropped_an_error_with_others(logs: Path) -> None:
    rows = {(row["column"], row["lost"]): row for row in of(logs)["research-log"].rows}

    dropped = rows["research, vendor/a", "dropped_errors"]
    assert (dropped["with_runs"], dropped["without_runs"], dropped["difference"]) == (1, 3, -1.0)
    assert rows[None, "dropped_errors"]["with_runs"] == 4


def test_the_rate_of_unfounded_answers_has_its_interval(logs: Path) -> None:
    lines = {line[0]: line[1] for line in grid(of(logs)["unfounded-answers"]).lines}

    assert lines["research, vendor/b"] == "100 [44, 100] n=3"
    assert lines["research, vendor/a"] == "25 [5, 70] n=4"


def test_figures_draw_modes_by_agent_and_by_model_and_where_plans_break(logs: Path) -> None:
    drawn = {figure.name: figure.chart for figure in figures(load(logs))}

    assert {"research, n 7", "act, n 3"} <= set(texts(drawn["modes-by-agent"]))
    assert {"vendor/a, n 7", "vendor/b, n 3"} <= set(texts(drawn["modes-by-model"]))
    assert {"runs that got past it", "change, each needs those before it", "4"} <= set(texts(drawn["changes"]))


def test_the_page_shows_them(logs: Path) -> None:
    overview = story(pages(logs)["report.html"])

    for words in (
        "How runs failed, by agent",
        "How runs failed, by model",
        "Where do plans of several changes break?",
        "100 [44, 100] n=3",
        "Is what they state true?",
        "an error dropped",
        "It is an association",
    ):
        assert words in overview, words
    run = next(run.name for run in scan(logs).runs if "research-b" in run.name)
    shown = story(pages(logs)[f"report-runs/{run}.html"])
    assert "the plan broke at change 2 of 4" in shown and "1 claim: unsupported" in shown
