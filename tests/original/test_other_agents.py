"""Logs of the original's other agents: those that think less, the baseline, and those that other people made."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mlagentbench.original.trace import TraceStep
from tests.original.logs import OriginalLog, imported


def test_the_baseline_runs_the_starter_and_asks_no_model(tmp_path: Path) -> None:
    log = OriginalLog(tmp_path / "log", agent="Agent")
    log.step(
        "Execute Script",
        {"script_name": "train.py"},
        "The script has been executed. Here is the output:\nTraceback (most recent call last):\n  x\n",
    )
    log.step("Final Answer", "Done!", "end")
    (log.agent / "main_log").unlink()
    run = imported(log.end(files={"train.py": ""}))

    assert (run.info.spec.agent, run.info.spec.model_names["agent"]) == ("baseline", "none/none")
    assert run.usage.calls == 0
    assert [step.status for step in run.steps] == ["error", "ok"]
    assert run.steps[1].action.arguments == {"final_answer": "Done!"}
    assert run.result is not None
    assert run.result.final_answer == "Done!"
    assert run.problems == ("env_log/traces: the files after step 0 are missing",)


def test_an_agent_that_only_thinks_and_acts_hands_on_what_it_cannot_read(tmp_path: Path) -> None:
    log = OriginalLog(tmp_path / "log", agent="ReasoningActionAgent")
    for number, (reply, arguments, observation) in enumerate(
        [
            ("Thought: Look.\nAction: List Files\nAction Input: here", " here", "The action input for List Files needs to be a valid json"),
            ('Thought: Again.\nAction: List Files\nAction Input: {"dir_path": "."}', {"dir_path": "."}, "train.py"),
        ]
    ):
        log.call(log.agent / f"step_{number}_log.log", "Act.", "Hm.")
        log.call(log.agent / f"step_{number}_log.log", "Act.", reply)
        log.step("List Files", arguments, observation)
    log.arguments["max_steps"] = 2
    log.root.joinpath("log").write_text("Namespace(task='cifar10', agent_type='ReasoningActionAgent', llm_name='gpt-4', max_steps=2)\n")
    run = imported(log.end(files={}))

    assert run.info.spec.agent == "react"
    assert [step.entries["Thought"] for step in run.steps] == [" Look.\n", " Again.\n"]
    assert run.steps[0].action.arguments == {"Action Input": " here"}
    assert [step.status for step in run.steps] == ["error", "ok"]
    # This agent is asked the same again, and told nothing.
    assert run.calls(1)[0].rejected == "nothing: the same was asked again"
    assert run.result is not None
    assert run.result.outcome.ended == "limit_steps"


def test_what_langchains_agent_thought_is_read_off_what_it_printed(tmp_path: Path) -> None:
    log = OriginalLog(tmp_path / "log", agent="LangChainAgent", model="claude-v1")
    log.step("List Files", {"dir_path": "."}, "train.py")
    log.step("Execute Script", {"script_name": "train.py"}, "The script has been executed. Here is the output:\n0.5")
    (log.agent / "main_log").write_text(
        "Enabled Tools in Prompt:[]\nAction: the action to take\nAction Input: the input\n\n\n"
        "\x1b[1m> Entering new AgentExecutor chain...\x1b[0m\n\x1b[32;1m I should look first.\nAction: List Files\n"
        'Action Input: {"dir_path": "."}\x1b[0m\nObservation: train.py\nThought: Now I run it.\nAction: Execute Script\n'
        'Action Input: {"script_name": "train.py"}\nObservation: 0.5\nThought: I am done.\n'
        "Final Answer: It scores 0.5.\n\n> Finished chain.\n"
    )
    run = imported(log.end(files={"train.py": ""}))

    assert (run.info.spec.agent, run.info.spec.model_names["agent"]) == ("langchain", "claude-v1")
    assert [step.entries["Thought"] for step in run.steps] == ["I should look first.", "Now I run it."]
    assert run.usage.calls == 0, "it logs no call"
    assert run.result is not None
    assert run.result.outcome.ended == "final_answer"
    assert run.result.final_answer == "It scores 0.5."


def test_autogpts_steps_are_read_off_its_calls(tmp_path: Path) -> None:
    log = OriginalLog(tmp_path / "log", agent="AutoGPTAgent", model="claude-v1")
    ask = "Determine exactly one command to use, and respond using the JSON schema"

    def reply(command: str, arguments: dict[str, str]) -> str:
        return json.dumps({"thoughts": {"text": "I act.", "plan": "- run it"}, "command": {"name": command, "args": arguments}})

    calls = [
        ("20230801-100000", f"Goals. {ask}", reply("execute_python_file", {"filename": "train.py"})),
        ("20230801-100130", "Summarise your memory.", "You ran train.py."),
        ("20230801-100140", f"Command execute_python_file returned: accuracy 0.5\n{ask}", 'I think {"command": {'),
        ("20230801-100150", f"Command execute_python_file returned: accuracy 0.5\n{ask}", reply("task_complete", {"reason": "It runs."})),
    ]
    for stamp, prompt, text in calls:
        log.call(log.agent / f"claude-v1_{stamp}.log", prompt, text)
    run = imported(log.end(files={"train.py": "", "submission.csv": "id\n"}, seconds=115.0))

    assert [step.action.name for step in run.steps] == ["execute_python_file", "task_complete"]
    assert run.steps[0].observation == "accuracy 0.5"
    assert run.steps[0].entries == {"Thought": "I act.", "Plan": "- run it"}
    assert [(call.role, call.rejected is not None) for call in run.calls(2)] == [("fast", False), ("agent", True), ("agent", False)]
    assert run.steps[1].malformed == 1
    assert run.usage.calls == 4
    assert run.seconds == 115.0
    assert run.result is not None
    assert (run.result.outcome.ended, run.result.final_answer) == ("final_answer", "It runs.")
    assert set(run.files(2) or {}) == {"train.py", "submission.csv"}
    assert any("read from the agent's own calls" in problem for problem in run.problems)


@pytest.mark.parametrize(
    ("output", "status"),
    [
        ('  File "train.py", line 27\n    x = "\n        ^\nSyntaxError: unterminated string literal (detected at line 27)\n', "error"),
        ("Traceback (most recent call last):\n  x\nKeyError: 1\n", "error"),
        ("ignored a SyntaxError: see the log\nTest Accuracy: 57.17%\n", "ok"),
    ],
)
def test_a_script_failed_if_python_says_so(output: str, status: str) -> None:
    observation = f"The script has been executed. Here is the output:\n{output}"

    assert TraceStep("Execute Script", {"script_name": "train.py"}, observation, None).status == status
