"""The whole loop, through both doors: the demo, the baseline, and `inspect eval`."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
import urllib.request
from pathlib import Path

import pytest

from mlagentbench.rundir.directory import find_runs
from tests import commands
from tests.cli.test_cli import mlab

pytestmark = pytest.mark.slow


def test_the_demo_makes_the_layer_much_faster(tmp_path: Path) -> None:
    finished = mlab("demo", "--log-dir", tmp_path / "runs")
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert "scripted" in finished.stdout
    assert "--model openai/" in finished.stdout
    (run,) = find_runs(tmp_path / "runs")
    names = [step.action.name for step in run.steps()]
    assert names == [
        "List Files",
        "Inspect Script Lines",
        "Execute Script",
        "Edit Script (AI)",
        "Execute Script",
        "Edit Script (AI)",
        "Execute Script",
        "Final Answer",
    ]
    assert [step.status for step in run.steps()].count("error") == 1
    result = run.result
    assert result is not None
    assert result.success
    assert result.improvement is not None and result.improvement > 0.9
    page = (tmp_path / "runs" / "pages" / f"{run.name}.html").read_text()
    assert "vectorization" in page
    scores = {score.step: score for score in result.step_scores}
    assert scores[4].value is None and scores[4].reason, "the broken edit has no score"
    assert scores[8].value is not None and scores[3].value is not None
    assert scores[8].value < scores[3].value / 5


def test_the_baseline_improves_nothing(tmp_path: Path) -> None:
    finished = mlab(
        "run", "vectorization", "--variant", "mini", "--agent", "baseline", "--runs", "2", "--json", "--log-dir", tmp_path / "runs"
    )
    assert finished.returncode == 0, finished.stderr
    told = [json.loads(line) for line in finished.stdout.splitlines()]
    assert len(told) == 2
    # As fast as itself, but for what a virtual machine with busy neighbours adds to the one or the other.
    assert all(abs(run["improvement"]) < 0.25 for run in told), [run["improvement"] for run in told]
    assert not any(run["success"] for run in told)
    assert all(run["tokens"] == 0 and run["ended"] == "final_answer" for run in told)


def test_inspect_runs_the_same_task_and_reads_the_same_log(tmp_path: Path) -> None:
    command = [*commands.INSPECT, "eval", "mlagentbench/vectorization", "--model", "scripted/demo", "-T", "variant=mini"]
    environment = {**os.environ, "INSPECT_LOG_DIR": str(tmp_path / "logs"), "INSPECT_DISPLAY": "none"}
    finished = commands.run(command, capture_output=True, text=True, timeout=180, env=environment, cwd=tmp_path)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    (log,) = (tmp_path / "logs").glob("*.eval")
    dumped = commands.run([*commands.INSPECT, "log", "dump", str(log)], capture_output=True, text=True, check=True)
    (sample,) = json.loads(dumped.stdout)["samples"]
    assert sample["scores"]["mlagentbench"]["value"]["success"] == 1.0
    tools = [event for event in sample["events"] if event["event"] == "tool"]
    assert [event["function"] for event in tools][:3] == ["list_files", "inspect_script_lines", "execute_script"]
    (run,) = find_runs(tmp_path / "logs")
    assert run.result is not None and run.result.success


def test_inspects_viewer_shows_the_runs(tmp_path: Path) -> None:
    logs = tmp_path / "runs"
    assert mlab("run", "ladder-2", "--variant", "mini", "--agent", "baseline", "--baseline", "none", "--log-dir", logs).returncode == 0
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    viewer = commands.Popen([*commands.MLAB, "view", str(logs), "--port", str(port)], start_new_session=True)
    try:
        listed = _fetched(f"http://127.0.0.1:{port}/api/logs")
    finally:
        os.killpg(viewer.pid, signal.SIGTERM)
        viewer.wait(30)
    assert next(logs.glob("*.eval")).name in listed


def _fetched(url: str) -> str:
    deadline = time.monotonic() + 60
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                return str(answer.read(), "utf-8")
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.2)
