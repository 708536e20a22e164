"""The whole loop, through both doors: the demo, and `inspect eval`."""

from __future__ import annotations

import json
import os
import signal
import time
import urllib.request
from pathlib import Path

import pytest

import mlagentbench
from mlagentbench.rundir.directory import find_runs
from mlagentbench.task.catalogue import find_task
from tests import commands
from tests.cli.test_cli import mlab, script
from tests.support import free_port, reply

pytestmark = pytest.mark.slow


def test_the_demo_makes_the_layer_much_faster(tmp_path: Path) -> None:
    # Its timings wait for those of other tests: one at a time has the machine.
    finished = mlab("demo", "--log-dir", tmp_path / "runs", timeout=600)
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


def test_the_rung_reached_is_shown_after_every_step(tmp_path: Path) -> None:
    proof = find_task("ladder-3").module("proof")
    assert proof is not None
    replies = []
    for files in (proof.ineffective(), proof.solution()):
        replies += [reply("Write File", json.dumps({"file_name": name, "content": content})) for name, content in files.items()]
        replies += [reply("Execute Script", '{"script_name": "train.py"}')]
    model = script(tmp_path / "replies.yaml", *replies, reply("Final Answer", '{"final_answer": "Done."}'))
    logs, options = tmp_path / "logs", ("--variant", "mini", "--baseline", "none")
    ran = mlab("run", "ladder-3", *options, "--model", model, "--log-dir", logs, environment={"MLAB_CACHE": str(tmp_path / "cache")})
    assert ran.returncode == 0, ran.stdout + ran.stderr
    frame = mlagentbench.load(logs)
    assert frame.frame()["rung", "best_rung"].row(0) == (3, 3)
    assert frame.steps_frame()["rung"].to_list() == [None, 2, 2, 3, 3]
    shown = mlab("show", logs).stdout
    assert shown.count("rung 2 of 3") == 1 and "lower is better; rung 3 of 3" in shown
    (run,) = find_runs(logs)
    assert "rung 2 of 3" in (logs / "pages" / f"{run.name}.html").read_text()


def test_inspect_runs_a_task_and_reads_its_log(tmp_path: Path) -> None:
    proof = find_task("ladder-2").module("proof")
    assert proof is not None
    files = proof.solution().items()
    replies = [reply("Write File", json.dumps({"file_name": name, "content": content})) for name, content in files]
    replies += [reply("Execute Script", '{"script_name": "train.py"}'), reply("Final Answer", '{"final_answer": "Done."}')]
    model = script(tmp_path / "replies.yaml", *replies)
    command = [*commands.INSPECT, "eval", "mlagentbench/ladder-2", "--model", model, "-T", "variant=mini"]
    logs = tmp_path / "logs"
    environment = {**os.environ, "INSPECT_LOG_DIR": str(logs), "INSPECT_DISPLAY": "none", "MLAB_CACHE": str(tmp_path / "cache")}
    finished = commands.run(command, capture_output=True, text=True, timeout=600, env=environment, cwd=tmp_path)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    (log,) = logs.glob("*.eval")
    dumped = commands.run([*commands.INSPECT, "log", "dump", str(log)], capture_output=True, text=True, check=True)
    (sample,) = json.loads(dumped.stdout)["samples"]
    assert sample["scores"]["mlagentbench"]["value"]["success"] == 1.0
    tools = [event for event in sample["events"] if event["event"] == "tool"]
    assert [event["function"] for event in tools][:2] == ["write_file", "execute_script"]
    (run,) = find_runs(logs)
    assert run.result is not None and run.result.success


def test_inspects_viewer_shows_the_runs(tmp_path: Path) -> None:
    logs = tmp_path / "runs"
    assert mlab("run", "ladder-2", "--variant", "mini", "--agent", "baseline", "--baseline", "none", "--log-dir", logs).returncode == 0
    port = free_port()
    viewer = commands.Popen([*commands.MLAB, "view", str(logs), "--port", str(port)], start_new_session=True)
    try:
        listed = _fetched(f"http://127.0.0.1:{port}/api/logs")
    finally:
        os.killpg(viewer.pid, signal.SIGTERM)
        viewer.wait(300)
    assert next(logs.glob("*.eval")).name in listed


def _fetched(url: str) -> str:
    deadline = time.monotonic() + 300
    while True:
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                return str(answer.read(), "utf-8")
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.2)
