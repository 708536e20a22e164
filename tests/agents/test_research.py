"""The research agent: what its prompts hold, and how it goes on."""

from __future__ import annotations

import pytest

from mlagentbench import AgentError, FormatFailure
from mlagentbench.agents.base import make_agent
from mlagentbench.agents.research import ResearchAgent
from mlagentbench.agents.research_options import LONG_OBSERVATION
from tests.agents.runs import END, LIST, RUN, calls, fast, live
from tests.support import MakeEnvironment, reply


def test_it_acts_until_the_final_answer(make_environment: MakeEnvironment) -> None:
    environment = make_environment([LIST, RUN, END])
    live(environment)
    assert [step.action.name for step in environment.steps] == ["List Files", "Execute Script", "Final Answer"]
    assert environment.steps[0].entries["Thought"] == "Go on."
    assert set(environment.steps[0].entries) == {"Reflection", "Research Plan and Status", "Fact Check", "Thought"}


def test_the_prompt_holds_the_task_the_actions_and_the_last_three_steps(make_environment: MakeEnvironment) -> None:
    replies = [reply("List Files", '{"dir_path": "."}', thought=f"This is thought {number}.") for number in range(1, 6)]
    environment = make_environment([*replies, END])
    live(environment)
    first, *_, last = (call.prompt for call in calls(environment))
    assert "Make train.py better." in first
    for name in ("List Files", "Inspect Script Lines", "Edit Script (AI)", "Undo Edit Script", "Execute Script", "Final Answer"):
        assert f"- {name}:" in first
    assert "- Read File:" not in first, "hidden actions are not in the prompt"
    assert [number for number in range(1, 6) if f"This is thought {number}." in last] == [3, 4, 5]
    assert "train.py" in last.split("Observation:")[-1]


def test_hidden_actions_stay_callable(make_environment: MakeEnvironment) -> None:
    environment = make_environment([reply("Read File", '{"file_name": "train.py"}'), END])
    live(environment)
    assert "accuracy" in environment.steps[0].observation


def test_a_reply_without_an_action_goes_back_with_what_to_mend(make_environment: MakeEnvironment) -> None:
    environment = make_environment(["I would rather talk.", LIST, END])
    live(environment)
    bad, good, _ = calls(environment)
    assert bad.rejected
    assert bad.rejected in good.prompt
    assert good.prompt.startswith(bad.prompt.rstrip()[:2000])
    assert environment.steps[0].malformed == 1


def test_five_replies_without_an_action_end_it(make_environment: MakeEnvironment) -> None:
    environment = make_environment(["Only words."] * 5)
    with pytest.raises(FormatFailure):
        live(environment)
    assert environment.steps == []
    assert len(calls(environment)) == 5


def test_a_long_observation_is_summarised_part_by_part(make_environment: MakeEnvironment) -> None:
    script = f'print("x" * {LONG_OBSERVATION + 8000})\n'
    summaries = [fast(f"summary {number}") for number in (1, 2)]
    environment = make_environment([RUN, LIST, END, *summaries], files={"train.py": script})
    live(environment)
    second = next(call for call in calls(environment) if call.role == "agent" and "This is step 2" in call.prompt)
    assert "summary 1\nsummary 2" in second.prompt
    assert "x" * 1000 not in second.prompt
    assert "x" * 1000 in environment.steps[0].observation, "the record keeps the whole"
    assert environment.steps[1].memory == {"summaries": {"1": "(A summary of a long observation.)\nsummary 1\nsummary 2"}}


def test_agents_are_found_by_name() -> None:
    assert isinstance(make_agent("research", {"context_steps": 5}), ResearchAgent)
    with pytest.raises(AgentError, match="did you mean 'research'"):
        make_agent("reserch")
    with pytest.raises(AgentError, match="no option 'colour'; it has: context_steps"):
        make_agent("research", {"colour": "red"})
