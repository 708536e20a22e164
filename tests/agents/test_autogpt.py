"""AutoGPT: how its replies are read, what it remembers, and that a run goes on with the same memory."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from mlagentbench import AgentError, FormatFailure, ResponseFormatError, ScriptedModel, ScriptedReply
from mlagentbench.actions import ACTIONS
from mlagentbench.agents.autogpt import parse_command
from mlagentbench.agents.base import make_agent
from mlagentbench.model import Models, Script
from mlagentbench.rundir.directory import RunDirectory, find_runs
from mlagentbench.task.catalogue import load_task
from tests.agents.runs import calls, fast, live
from tests.plans import make_plan, resumed
from tests.runner.lives import make_task
from tests.support import MakeEnvironment, finish


def command(name: str, arguments: dict[str, object], text: str = "Go on.") -> str:
    thoughts = {"text": text, "reasoning": "It helps.", "plan": ["look", "improve"], "criticism": "Be quicker."}
    return json.dumps({"thoughts": thoughts, "command": {"name": name, "args": arguments}}, indent=4)


LIST = command("List Files", {"dir_path": "."})
RUN = command("Execute Script", {"script_name": "train.py"})
END = command("Final Answer", {"final_answer": "done"})


def test_a_command_a_reply_is_done_and_its_thoughts_are_entries(make_environment: MakeEnvironment) -> None:
    environment = make_environment([LIST, RUN, END])
    live(environment, "autogpt")
    assert [step.action.name for step in environment.steps] == ["List Files", "Execute Script", "Final Answer"]
    entries = {"Thought": "Go on.", "Reasoning": "It helps.", "Plan": "- look\n- improve", "Criticism": "Be quicker."}
    assert environment.steps[0].entries == entries
    first, second, third = (call.prompt for call in calls(environment, "agent"))
    assert "Make train.py better." in first and "1. Inspect Script Lines" in first and "Read File:" not in first
    assert "The command List Files returned:\n```\ntrain.py\n```" in second
    assert "accuracy 0.5" in third and '"criticism": "Be quicker."' in third


@pytest.mark.parametrize(
    "text",
    [
        LIST,
        f"Sure, here {{it}} is:\n```json\n{LIST}\n```\nShall I go on?",
        f"<think>A {{brace}}: {{1}}</think>\n{LIST}",
        LIST.replace("List Files", "list_files"),
        '{"thoughts": "Look.", "command": {"name": "List Files", "args": {"dir_path": "."},},}',
        "{'command': {'name': 'List Files', 'args': {'dir_path': '.'}}}",
    ],
)
def test_replies_are_read_as_models_write_them(text: str) -> None:
    response = parse_command(text, ACTIONS)
    assert (response.action, response.arguments) == ("List Files", {"dir_path": "."})


@pytest.mark.parametrize(
    "text, words",
    [
        ("I would rather talk.", 'no JSON object with the key "command"'),
        ('{"thoughts": {"text": "x"}}', 'no JSON object with the key "command"'),
        ('{"command": "List Files"}', '"command" must be an object with "name"'),
        ('{"command": {"name": "List Files"}}', '"command" must be an object with "name"'),
        ('{"command": {"name": "Google", "args": {}}}', 'There is no command "Google". The commands are: Inspect Script Lines'),
        ('{"command": {"name": "List Files", "args": {"path": "."}}}', "The args of List Files do not fit"),
        ('{"thoughts": {"text": "cut off', "cannot be read"),
        ('{"command": [1, 2]}', '"command" must be an object'),
    ],
)
def test_a_reply_that_cannot_be_used_is_refused_with_what_to_mend(text: str, words: str) -> None:
    with pytest.raises(ResponseFormatError, match=re.escape(words)):
        parse_command(text, ACTIONS)


def test_malformed_replies_go_back_and_the_fifth_in_a_row_ends_the_run(make_environment: MakeEnvironment) -> None:
    environment = make_environment(["No.", LIST, *["Only words."] * 5])
    with pytest.raises(FormatFailure):
        live(environment, "autogpt")
    bad, good, *_ = calls(environment, "agent")
    assert bad.rejected and bad.rejected in good.prompt
    assert [step.malformed for step in environment.steps] == [1]
    assert len(calls(environment, "agent")) == 7


def test_what_does_not_fit_is_summarised_and_the_summary_stays(make_environment: MakeEnvironment) -> None:
    replies = [command("List Files", {"dir_path": "."}, text=f"This is thought {number}.") for number in range(1, 7)]
    summaries = [fast(f"Summary {number}.") for number in range(1, 4)]
    environment = make_environment([*replies, END, *summaries])
    live(environment, "autogpt", memory_characters=1500)
    last = calls(environment, "agent")[-1].prompt
    told = [number for number in range(1, 7) if f"This is thought {number}." in last]
    assert told and told == list(range(told[0], 7)) and told[0] > 1
    asked = calls(environment, "fast")
    assert f"Summary {len(asked)}." in last
    assert "This is thought 1." in asked[0].prompt
    assert all(f"Summary {number}." in later.prompt for number, later in enumerate(asked[1:], start=1)), "one builds on the other"
    memories = [step.memory for step in environment.steps if step.memory]
    assert len(memories) == len(asked) < len(environment.steps)


def test_what_does_not_fit_can_be_dropped(make_environment: MakeEnvironment) -> None:
    environment = make_environment([LIST] * 6 + [END])
    live(environment, "autogpt", memory_characters=1000, summarise=False)
    assert not calls(environment, "fast")
    assert all(call.prompt.count("You replied:") <= 3 for call in calls(environment, "agent"))


def test_a_huge_result_does_not_fill_the_memory(make_environment: MakeEnvironment) -> None:
    environment = make_environment([RUN, LIST, END], files={"train.py": 'print("x" * 40_000)\n'})
    live(environment, "autogpt", memory_characters=4000)
    assert max(len(call.prompt) for call in calls(environment, "agent")) < 20_000
    assert "characters are left out" in calls(environment, "agent")[1].prompt


def test_a_run_forked_from_any_step_asks_what_it_would_have_asked(tmp_path: Path) -> None:
    plan = make_plan(
        load_task(make_task(tmp_path / "guess")),
        tmp_path / "runs",
        agent="autogpt",
        agent_options={"memory_characters": 1200},
        sandbox="none",
    )
    script = [*(command("List Files", {"dir_path": "."}, text=f"Thought {number}.") for number in range(5)), END]
    summaries = [fast(f"Summary {number}.") for number in range(5)]

    def models(directory: RunDirectory | None = None) -> Models:
        counts = directory.replies() if directory else {}
        whole = Script([*(ScriptedReply(reply=text) for text in script), *summaries])
        agent, quick, editor = (ScriptedModel(whole, role, counts.get(role, 0)) for role in ("agent", "fast", "editor"))  # type: ignore[arg-type]
        return Models(agent, quick, editor)

    def prompts(directory: RunDirectory, numbers: Sequence[int]) -> list[str]:
        return [call.prompt for number in numbers for call in directory.calls(number)]

    finish(plan.conduct(models()))
    (run,) = find_runs(plan.log_directory)
    assert any(step.memory for step in run.steps())
    for step in range(6):
        with resumed(run.path, step) as fork:
            assert fork.continues is not None
            finish(fork.but(score_steps=False).conduct(models(fork.continues)))
            assert prompts(fork.continues, range(1, 7)) == prompts(run, range(1, 7))


def test_a_bad_option_is_one_clear_line() -> None:
    with pytest.raises(AgentError, match="memory_characters must be at least 1"):
        make_agent("autogpt", {"memory_characters": 0})
    with pytest.raises(AgentError, match="has no option 'colour'; it has: memory_characters, summarise"):
        make_agent("autogpt", {"colour": "red"})
