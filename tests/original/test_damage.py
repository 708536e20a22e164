"""Logs that are torn, lack files, or hold those of another run: what is wrong is named, and the rest is kept."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path

import pytest
from inspect_ai.log import read_eval_log

from mlagentbench.engine.export import log_path
from mlagentbench.report.run_view import run_view
from mlagentbench.results.frames import runs_frame, steps_frame
from mlagentbench.results.load import Run
from mlagentbench.run_spec import RunLimits
from tests.original.logs import OriginalLog, example, imported


def steps_and_runs_are_undated(run: Run) -> bool:
    """Whether no frame, page or viewer shows a date for a run."""
    assert run_view(run, 100).started == ""
    assert runs_frame([run])["started"].to_list() == [None]
    assert steps_frame([run])["started"].null_count() == len(run.steps)
    return read_eval_log(str(log_path(run)), header_only=True).stats.started_at == ""


def test_a_run_without_its_agents_log_keeps_its_steps(tmp_path: Path) -> None:
    log = example(tmp_path / "gpt-4" / "cifar10" / "0")
    log.end(files={"train.py": "epochs = 9\n"})
    for path in [*log.agent.iterdir(), log.root / "log"]:
        path.unlink()
    log.agent.rmdir()
    run = imported(log.root)

    assert [step.action.name for step in run.steps] == ["Understand File", "Edit Script (AI)", "Final Answer"]
    assert [dict(step.entries) for step in run.steps] == [{}, {}, {}]
    # What the actions' own models were asked lies elsewhere, and so is known; the folders tell the task and the model.
    assert [call.purpose for number in (1, 2, 3) for call in run.calls(number)] == ["Understand File", "Edit Script (AI)"]
    assert (run.info.spec.task, run.info.spec.model_names["agent"], run.info.spec.agent) == ("cifar10", "gpt-4", "unknown")


def test_lost_logs_of_calls_are_counted(tmp_path: Path) -> None:
    log = OriginalLog(tmp_path / "log", research_log=True)
    for number in range(6):
        log.turn("Understand File", {"file_name": "a", "things_to_look_for": str(number)}, "Seen.", tool="Seen.", files={"a": str(number)})
    log.end(files={"a": "5"})
    for name in ("step_1_log.log", "step_2_log.log", "step_4_log.log", "step_0_summary_log.log"):
        (log.agent / name).unlink()
    for index in (0, 8, 9):
        (log.env / "tool_logs" / f"step_{index}_tool_log.log").unlink()
    run = imported(log.root)

    assert run.problems == (
        "agent_log: the calls of turns 1-2, 4 are missing",
        "agent_log: the calls for the research log of turn 0 are missing",
        "env_log/tool_logs: the calls of steps 0, 8-9 are missing",
        "env_log/traces: the files after steps 8, 11 are missing",
    )
    assert run.steps[2].entries["Thought"] == " Go on.\n", "the agent remembered it"


def test_a_torn_trace_gives_the_steps_that_are_whole_and_the_agent_remembers_the_others(tmp_path: Path) -> None:
    log = example(tmp_path / "log")
    log.end()
    trace = log.env / "trace.json"
    text = trace.read_text()
    trace.write_text(text[: text.index('"name": "Edit Script (AI)"') + 40])
    run = imported(log.root)

    assert [step.action.name for step in run.steps] == ["Understand File", "Edit Script (AI)", "Final Answer"]
    assert run.steps[1].action.arguments["edit_instruction"] == "Train for longer."
    assert run.steps[1].observation == "The edited file is saved to train.py."
    assert [step.seconds > 0 for step in run.steps] == [True, False, False], "the times of the others are lost"
    assert run.calls(2)[-1].reply == "```python\nepochs = 9\n```"
    assert run.problems[:2] == (
        "env_log/trace.json: is torn: 1 of its steps can be read",
        "env_log/trace.json: lacks steps; 2 are kept as the agent remembered them, without their times",
    )


@pytest.mark.parametrize(("text", "problem"), [("", "is empty"), ("{}", "holds no steps"), ("[1]", "holds no steps"), (None, "is missing")])
def test_a_run_whose_trace_is_gone_is_what_its_agent_remembered(tmp_path: Path, text: str | None, problem: str) -> None:
    log = example(tmp_path / "log")
    log.end()
    trace = log.env / "trace.json"
    trace.unlink() if text is None else trace.write_text(text)
    run = imported(log.root)

    assert [step.action.name for step in run.steps] == ["Understand File", "Edit Script (AI)", "Final Answer"]
    assert run.usage.calls == 6
    assert f"env_log/trace.json: {problem}" in run.problems
    assert run.info.started == 0.0
    assert steps_and_runs_are_undated(run)


def test_a_run_of_nothing_but_an_empty_trace_is_a_run_without_steps(tmp_path: Path) -> None:
    (tmp_path / "log" / "env_log").mkdir(parents=True)
    (tmp_path / "log" / "env_log" / "trace.json").touch()
    run = imported(tmp_path / "log")

    assert run.steps == ()
    assert run.result is not None
    assert (run.result.outcome.ended, run.result.outcome.verdict) == ("cancelled", "ungraded")
    assert run.problems[0] == "env_log/trace.json: is empty"
    assert "env_log/overall_time.txt: is missing" in run.problems


def test_a_step_that_is_none_ends_the_trace(tmp_path: Path) -> None:
    log = example(tmp_path / "log")
    log.steps[1] = {"action": "Edit"}
    log.end()
    for path in log.agent.glob("agent_*"):
        path.unlink()
    run = imported(log.root)
    assert len(run.steps) == 1
    assert "env_log/trace.json: step 1 is no step, and was left out with those after it" in run.problems


def test_values_that_mean_nothing_are_not_believed(tmp_path: Path) -> None:
    log = example(tmp_path / "log", research_log=True)
    log.arguments |= {"max_retries": float("inf"), "max_time": -1, "max_steps": "many", "llm_name": None, "agent_max_steps": True}
    log.steps[0] |= {"observation": ["a", {"list": 1}], "timestamp": 1e308}
    log.steps[2] |= {"timestamp": "noon"}
    log.history[0]["observation"] = '["a", {"list": 1}]'
    log.turn("List Files", {"dir_path": "."}, "train.py")
    run = imported(log.end())

    assert run.steps[0].observation == '["a", {"list": 1}]'
    assert (run.steps[0].seconds, run.steps[2].seconds) == (0.0, 0.0)
    assert run.info.spec.limits == RunLimits(steps=50, time=18000.0)
    assert run.info.spec.model_names["agent"] == "gpt-4", "as the logs of its calls have it"
    assert run.usage.calls == 11


def test_a_command_line_that_holds_more_than_json_is_read(tmp_path: Path) -> None:
    log = example(tmp_path / "log")
    log.end()
    for path in log.agent.glob("agent_*.json"):
        path.unlink()
    (log.root / "log").write_text("Namespace(task='cifar10', agent_type='ResearchAgent', resume={1, 2}, resume_step=0, llm_name=(b'x',))\n")
    run = imported(log.root)
    assert (run.info.spec.task, run.info.spec.model_names["agent"], len(run.steps)) == ("cifar10", "gpt-4", 3)


def test_a_turn_before_the_first_step_is_none(tmp_path: Path) -> None:
    log = example(tmp_path / "log")
    log.end(files={"train.py": ""})
    for path in log.agent.glob("agent_*.json"):
        path.write_text(path.read_text().replace('"step_idx": 1', '"step_idx": -1').replace('"step_idx": 2', '"step_idx": 0'))
    run = imported(log.root)
    assert [step.action.name for step in run.steps] == ["Understand File", "Edit Script (AI)", "Final Answer"]
    assert run.steps[0].entries["Thought"] == " Go on.\n", "as the log of its call has it"


def test_torn_logs_of_calls_keep_what_they_have(tmp_path: Path) -> None:
    log = example(tmp_path / "log")
    log.end()
    for name, last in (("agent_log/step_1_log.log", "Action Input"), ("env_log/tool_logs/step_0_tool_log.log", "Number of prompt")):
        path = log.root / name
        path.write_text(path.read_text()[: path.read_text().index(last) + len(last)])
    torn = log.agent / "agent_2_2.json"
    torn.write_text(torn.read_text()[:500])
    run = imported(log.root)

    assert [step.action.name for step in run.steps] == ["Understand File", "Edit Script (AI)", "Final Answer"]
    # The second turn stands in what the agent remembered; its reply breaks off, and so is nobody's.
    assert run.steps[1].entries["Thought"] == " It trains too shortly.\n"
    assert run.calls(1)[-1].reply == "A small CNN."
    assert run.calls(1)[-1].usage.tokens == 0
    assert set(run.problems) >= {
        "agent_log/agent_2_2.json: is torn, and was left out",
        "agent_log/step_1_log.log: breaks off in its call 1",
        "env_log/tool_logs/step_0_tool_log.log: breaks off",
    }


def test_what_a_folder_holds_of_another_run_is_named_and_left_out(tmp_path: Path) -> None:
    log = OriginalLog(tmp_path / "log")
    # An earlier run used the same folder: its calls come first in files that were appended to, its last turns are beyond this one's.
    log.call(
        log.agent / "step_0_log.log",
        "An older prompt.",
        "Reflection: .Research Plan and Status: .Fact Check: .Thought: .Action: Final Answer\nAction Input: {}",
    )
    log.call(log.agent / "step_7_log.log", "An older prompt.", "An older reply.")
    log.call(log.env / "tool_logs" / "step_0_tool_log.log", "An older prompt.", "An older reply.")
    log.call(log.env / "tool_logs" / "step_9_tool_log.log", "An older prompt.", "An older reply.")
    older = {"step_idx": 9, "action": {"Action": "List Files", "Action Input": "{}"}, "observation": "old"}
    (log.agent / "agent_8_7.json").write_text(json.dumps({"args": log.arguments, "history_steps": [older]}))
    log.turn("Understand File", {"file_name": "a", "things_to_look_for": "b"}, "Seen.", tool="Seen.")
    log.turn("Final Answer", {"final_answer": "Done."}, "end")
    run = imported(log.end())

    assert [step.action.name for step in run.steps] == ["Understand File", "Final Answer"]
    assert [call.reply for call in run.calls(1)][1:] == ["Seen."]
    assert not any("older" in call.prompt for number in (1, 2, 3) for call in run.calls(number))
    assert run.usage.calls == 3
    assert set(run.problems) >= {
        "agent_log/step_0_log.log: 1 of its replies are of another run, and were left out",
        "agent_log/step_7_log.log: holds 1 calls that led to no step: they are of another run, and were left out",
        "agent_log: turn 7 is beyond the trace's last step: it is of another run, and was left out",
        "env_log/tool_logs/step_0_tool_log.log: holds 2 calls where one was made: the last was kept, the others are of another run",
        "env_log/tool_logs/step_9_tool_log.log: is of a step that the trace has not, and was left out",
    }


def test_a_run_that_was_killed_in_an_action_keeps_the_question_that_led_to_it(tmp_path: Path) -> None:
    log = example(tmp_path / "log")
    log.call(
        log.agent / "step_3_log.log",
        "And now?",
        "Reflection: a\nResearch Plan and Status: b\nFact Check: c\nThought: d\nAction: Execute Script\nAction Input: {}",
    )
    log.steps.pop()
    log.history.pop()
    log.end()
    (log.agent / "agent_2_2.json").unlink()
    (log.agent / "step_2_log.log").rename(log.agent / "step_2_log.log.kept")
    (log.agent / "step_3_log.log").rename(log.agent / "step_2_log.log")
    (log.env / "overall_time.txt").unlink()
    run = imported(log.root)

    assert [call.prompt.split("Human: ")[1][:8] for call in run.calls(3)] == ["And now?"]
    assert run.result is not None
    assert run.result.outcome.ended == "cancelled"
    assert "its log breaks off" in (run.result.outcome.reason or "")


def test_hostile_logs_are_read_as_data(tmp_path: Path) -> None:
    log, ran = example(tmp_path / "log"), tmp_path / "was-run"
    log.workspace("step_final_files", {"train.py": f"open({str(ran)!r}, 'w')", "submission.csv": "id\n"})
    final = log.env / "traces" / "step_final_files"
    (final / "model.pkl").write_bytes(pickle.dumps(_Bomb(ran)))
    (final / "link").symlink_to("/etc/passwd")
    (log.agent / "step_1_summary_log.log").symlink_to("/etc/passwd")
    (log.env / "error.txt").symlink_to("/etc/passwd")
    os.mkfifo(log.agent / "step_2_summary_log.log")
    log.steps[1]["observation"] = "half a pair \ud83d, \x1b[2J and <script>"
    log.steps[1]["action"]["args"]["edit_instruction"] = ["not", {"a": float("nan")}]
    log.end()
    (log.env / "overall_time.txt").write_text("nan")
    (log.root / "log").write_text(f"Namespace(task=__import__('os').system('touch {ran}'))\n")
    run = imported(log.root)

    assert not ran.exists()
    entries = run.files(3) or {}
    assert entries["link"].kind == "link"
    assert "root:" not in run.directory.path.joinpath("result.json").read_text()
    assert r"half a pair \ud83d" in run.steps[1].observation
    assert {problem.partition(":")[0] for problem in run.problems} >= {
        "agent_log/step_1_summary_log.log",
        "agent_log/step_2_summary_log.log",
        "env_log/error.txt",
        "env_log/overall_time.txt",
    }


class _Bomb:
    """What leaves a file when it is unpickled."""

    def __init__(self, ran: Path) -> None:
        self._ran = ran

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (os.system, (f"touch {self._ran}",))


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_byte_order_mark_is_read(tmp_path: Path, encoding: str) -> None:
    log = example(tmp_path / "log")
    for path in log.end(files={"train.py": ""}).rglob("*"):
        if path.is_file() and path.suffix != ".py":
            path.write_text(path.read_text(), encoding=encoding)
    run = imported(log.root)
    assert (run.problems, run.usage.calls, run.info.spec.agent) == ((), 6, "research")


def test_what_is_nested_deep_is_kept_as_text(tmp_path: Path) -> None:
    log = example(tmp_path / "log")
    deep: object = "the core"
    for _ in range(300):
        deep = [deep]
    log.steps[1]["action"]["args"]["edit_instruction"] = deep
    run = imported(log.end(files={"train.py": ""}))
    assert json.dumps(run.steps[1].action.arguments).count("the core") == 1
    assert len(run.steps) == 3


@pytest.mark.parametrize("name", ["env_log", "env_log/traces", "env_log/trace.json", "agent_log", "env_log/tool_logs", "log"])
def test_no_link_is_followed_out_of_a_log(tmp_path: Path, name: str) -> None:
    log = example(tmp_path / "log").end(files={"train.py": ""})
    (log / name).rename(tmp_path / "outside")
    (log / name).symlink_to(tmp_path / "outside")
    run = imported(log)
    assert f"{name}: is a link, and was not followed" in run.problems
    if name == "env_log/traces":
        assert not any(run.directory.manifest(step).exists() for step in range(4))


def test_logs_of_windows_are_read(tmp_path: Path) -> None:
    log = example(tmp_path / "log")
    log.end()
    for path in log.root.rglob("*"):
        if path.is_file() and path.suffix != ".py":
            path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    tool = log.env / "tool_logs" / "step_0_tool_log.log"
    tool.write_bytes(tool.read_bytes().replace(b"A small CNN.", b"A small \x93CNN\x94."))
    run = imported(log.root)

    assert run.usage.calls == 6
    assert run.calls(1)[-1].reply == "A small “CNN”."
    assert run.problems == (
        "env_log/tool_logs/step_0_tool_log.log: is no UTF-8, and was read as Windows-1252",
        "env_log/traces/step_final_files: is missing; the last step's files stand for it",
    )


def test_a_file_that_ends_in_the_middle_of_a_letter_keeps_its_other_letters(tmp_path: Path) -> None:
    log = OriginalLog(tmp_path / "log")
    log.turn("Understand File", {"file_name": "a", "things_to_look_for": "b"}, "Gesehen: größer.", tool="Größer: äöü, 90 µs")
    log.end(files={"a": ""})
    path = log.env / "tool_logs" / "step_0_tool_log.log"
    path.write_bytes(path.read_bytes().partition("µ".encode())[0] + "µ".encode()[:1])
    run = imported(log.root)

    assert run.calls(1)[-1].reply == "Größer: äöü, 90 \N{REPLACEMENT CHARACTER}"
    assert "env_log/tool_logs/step_0_tool_log.log: has bytes that are no UTF-8, which were replaced" in run.problems
