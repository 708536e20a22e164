"""Actions pass through Inspect as tool calls: they stand in its log, and its approvals hold."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import yaml

from mlagentbench.actions import ACTIONS
from mlagentbench.engine.agents.tools import tool_parameters
from mlagentbench.rundir.directory import find_runs
from tests import commands
from tests.support import HANGING, reply

APPROVAL = """
approvers:
  - name: auto
    tools: ["list_files", "final_answer"]
    decision: approve
  - name: auto
    tools: "*"
    decision: reject
"""


def test_an_actions_arguments_are_a_tools() -> None:
    parameters = tool_parameters(ACTIONS["Inspect Script Lines"])
    assert parameters.required == ["script_name", "start_line_number", "end_line_number"]
    assert parameters.properties["start_line_number"].type == "integer"
    names = [definition.tool_name for definition in ACTIONS.values()]
    assert len(set(names)) == len(names)
    assert {"edit_script_ai", "final_answer", "list_files"} <= set(names)


@pytest.mark.slow
def test_what_an_approval_rejects_is_not_done_and_the_agent_is_told(tmp_path: Path) -> None:
    replies = [
        reply("List Files", '{"dir_path": "."}'),
        reply("Write File", '{"file_name": "made.txt", "content": "x"}'),
        reply("Final Answer", '{"final_answer": "done"}'),
    ]
    (tmp_path / "script.yaml").write_text(yaml.safe_dump([{"reply": text} for text in replies]))
    (tmp_path / "approval.yaml").write_text(APPROVAL)
    command = [*commands.INSPECT, "eval", "mlagentbench/ladder-2", "--model", "scripted/script.yaml"]
    environment = {**os.environ, "INSPECT_LOG_DIR": str(tmp_path / "logs"), "INSPECT_DISPLAY": "none"}
    finished = commands.run(
        [*command, "-T", "variant=mini", "--approval", "approval.yaml"],
        capture_output=True,
        text=True,
        timeout=HANGING,
        env=environment,
        cwd=tmp_path,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    (run,) = find_runs(tmp_path / "logs")
    listed, written, ended = run.steps()
    assert listed.status == "ok"
    assert written.status == "error"
    assert "Write File was not allowed" in written.observation
    assert not (run.workspace / "made.txt").exists()
    assert ended.details["final_answer"] == "done"
    dumped = commands.run(
        [*commands.INSPECT, "log", "dump", str(next((tmp_path / "logs").glob("*.eval")))],
        capture_output=True,
        text=True,
        check=True,
    )
    events = json.loads(dumped.stdout)["samples"][0]["events"]
    assert [event["function"] for event in events if event["event"] == "tool"] == ["list_files", "write_file", "final_answer"]
