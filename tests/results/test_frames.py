"""Runs and steps as frames: a row each, with the same columns whatever the runs."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import polars as pl
import pytest

from mlagentbench.results.counts import Counts
from mlagentbench.results.frames import RUNS, STEPS, runs_frame, steps_frame
from mlagentbench.results.load import load
from tests.example_runs import ExampleStep, vectorization_steps, write_run


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return tmp_path / "logs"


def test_a_run_is_a_row_with_everything_that_is_counted(logs: Path) -> None:
    write_run(logs, category="code improvement", published=datetime.date(2023, 9, 1), cost=0.25, flags=("scripted_model", "paper_baseline"))

    frame = runs_frame(load(logs))

    assert frame.schema == pl.Schema(RUNS)
    row = frame.row(0, named=True)
    assert (row["run"], row["task"], row["variant"]) == ("20260131-101500-vectorization-research-3f9a", "vectorization", "mini")
    assert (row["category"], row["published"]) == ("code improvement", datetime.date(2023, 9, 1))
    assert (row["agent"], row["agent_with_options"], row["model"]) == ("research", "research (context_steps 3)", "scripted/demo.yaml")
    assert row["started"] == datetime.datetime(2026, 1, 31, 10, 15, tzinfo=datetime.UTC)
    assert (row["ended"], row["verdict"], row["counted"], row["flags"]) == (
        "final_answer",
        "success",
        True,
        "scripted_model paper_baseline",
    )
    assert (row["baseline"], row["baseline_source"], row["score"], row["success"]) == (1.1, "side_by_side", 0.00303, True)
    assert (row["best_step"], row["best_score"]) == (6, 0.00303)
    assert row["best_improvement"] == row["improvement"] == pytest.approx((1.1 - 0.00303) / 1.1)
    assert all(row[f"{which}_success_{percent}"] for which in ("last", "best") for percent in (5, 10, 15, 20, 30))
    assert (row["last_clears_noise"], row["best_clears_noise"], row["every_step"]) == (True, True, True)
    assert (row["steps"], row["edits"], row["executions"], row["failed_executions"], row["debugging_streak"]) == (8, 2, 3, 1, 1)
    assert row["seconds"] == pytest.approx(row["model_seconds"] + row["script_seconds"] + row["framework_seconds"]) == pytest.approx(27.5)
    assert (row["tokens"], row["tokens_agent"], row["tokens_fast"], row["tokens_editor"]) == (24_000, 21_560, None, 2440)
    assert row["cost"] == pytest.approx(2.25)
    assert row["path"] == str(logs / row["run"])


def test_every_count_has_a_column() -> None:
    flat = {
        "best": "best_step",
        "last_success": "last_success_10",
        "best_success": "best_success_10",
        "tokens_by_role": "tokens_agent",
        "log": "log_dropped",
    }

    for_intervals = {"baseline_values", "success_within_baseline", "move"}
    elsewhere = {"progress", "uncompared"}  # in `steps_frame`, and as `counted`
    assert {flat.get(name, name) for name in Counts._fields} - for_intervals - elsewhere <= set(RUNS)


def test_a_step_is_a_row(logs: Path) -> None:
    write_run(logs)

    frame = steps_frame(load(logs))

    assert frame.schema == pl.Schema(STEPS)
    assert frame["step"].to_list() == [1, 2, 3, 4, 5, 6, 7, 8]
    assert frame["executed"].to_list() == [False, False, True, False, True, False, True, False]
    assert frame["status"].to_list() == ["ok"] * 4 + ["error"] + ["ok"] * 3
    assert frame["score"].to_list() == [1.1, 1.1, 1.1, None, None, 0.00303, 0.00303, 0.00303]
    assert json.loads(frame["arguments"][0]) == {"dir_path": "."}
    assert frame["tokens"][0] == 1800 + 150 + 220 == frame["input_tokens"][0] + frame["output_tokens"][0]
    assert frame["exit_code"].to_list() == [None] * 8, "these steps do not say"


def test_runs_in_progress_killed_and_torn_are_rows_too(logs: Path) -> None:
    write_run(logs, "a-done", started=1.0)
    write_run(logs, "b-going", steps=vectorization_steps()[:3], finished=False, started=2.0)
    write_run(logs, "c-begun", steps=list[ExampleStep](), finished=False, started=3.0)
    torn = write_run(logs, "d-torn", started=4.0)
    (torn.path / "result.json").write_text("{")
    (torn.steps_folder / "0002.json").write_text("")

    frame = runs_frame(load(logs))

    assert frame.schema == pl.Schema(RUNS)
    assert frame["ended"].to_list() == ["final_answer", "unfinished", "unfinished", "damaged_result"]
    assert frame["counted"].to_list() == [True, False, False, False]
    assert frame["steps"].to_list() == [8, 3, 0, 7]
    assert frame["problems"].to_list() == [0, 0, 0, 2]
    assert frame["best_success_10"].to_list() == [True, None, None, None]
    assert frame["published"].to_list() == [None] * 4 and frame["category"].to_list() == [None] * 4
    assert steps_frame(load(logs)).group_by("run", maintain_order=True).len().rows() == [("a-done", 8), ("b-going", 3), ("d-torn", 7)]


def test_no_runs_make_empty_frames_of_the_same_columns() -> None:
    assert runs_frame([]).schema == pl.Schema(RUNS) and runs_frame([]).is_empty()
    assert steps_frame([]).schema == pl.Schema(STEPS) and steps_frame([]).is_empty()


def test_frames_are_written_and_read_back(logs: Path, tmp_path: Path) -> None:
    write_run(logs)
    frame = runs_frame(load(logs))

    frame.write_parquet(tmp_path / "runs.parquet")

    assert pl.read_parquet(tmp_path / "runs.parquet").equals(frame)
