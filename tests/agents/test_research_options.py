"""Each part of the paper's agent can be left out or changed alone."""

from __future__ import annotations

from typing import Any

import pytest

from mlagentbench import ActionError, AgentError, GenerateOptions, Reply, ScriptedModel, ScriptedReply
from mlagentbench.actions import ACTIONS
from mlagentbench.agents.base import make_agent
from mlagentbench.agents.research import ResearchAgent
from mlagentbench.agents.research_options import ENTRY_NAMES, LONG_OBSERVATION
from mlagentbench.model import Models, Script
from mlagentbench.records import Role
from tests.agents.runs import END, LIST, RUN, calls, fast, live
from tests.support import MakeEnvironment, reply

HIGH_LEVEL = {
    "Understand File",
    "Inspect Script Lines",
    "Edit Script (AI)",
    "Edit Script Segment (AI)",
    "Reflection",
    "Append Summary to Research Log",
    "Retrieval from Research Log",
}
SEEN = "Observation:\n```\ntrain.py\n```"
BARE_END = 'Action: Final Answer\nAction Input: {"final_answer": "x"}'


class Noted(ScriptedModel):
    """A scripted model that keeps how it was sampled, or that can read nothing."""

    def __init__(self, script: Script, role: Role, *, unread: bool = False) -> None:
        super().__init__(script, role)
        self.options: list[GenerateOptions] = []
        self.unread = unread

    async def generate(self, prompt: str, options: GenerateOptions = GenerateOptions()) -> Reply:
        self.options.append(options)
        if self.unread:
            raise ActionError("the prompt is too long")
        return await super().generate(prompt, options)


def noted(*replies: str | ScriptedReply, unread: bool = False) -> Models:
    script = Script([item if isinstance(item, ScriptedReply) else ScriptedReply(reply=item) for item in replies])
    return Models(Noted(script, "agent"), Noted(script, "fast", unread=unread), Noted(script, "editor"))


def sampled(models: Models, role: str) -> list[GenerateOptions]:
    model = getattr(models, role)
    assert isinstance(model, Noted)
    return model.options


def offers(prompt: str) -> set[str]:
    return {name for name in ACTIONS if f"- {name}:\n" in prompt}


def thoughts(count: int) -> list[str]:
    return [reply("List Files", '{"dir_path": "."}', thought=f"This is thought {number}.") for number in range(1, count + 1)]


def shown(prompt: str, count: int) -> list[int]:
    """The steps that a prompt shows."""
    return [number for number in range(1, count + 1) if f"This is thought {number}." in prompt]


def test_the_papers_settings_are_the_defaults() -> None:
    agent = ResearchAgent()
    assert agent.reply_options == GenerateOptions(temperature=0.5, max_tokens=2000, stop=("Observation:",))
    assert (agent.fast_temperature, agent.editor_max_tokens, agent.context_steps) == (0.01, 4000, 3)
    assert not agent.research_log and agent.summarise and tuple(agent.entries) == ENTRY_NAMES


@pytest.mark.parametrize("steps, expected", [(0, []), (2, [5, 6]), ("all", [1, 2, 3, 4, 5, 6])])
def test_as_many_of_the_last_steps_stand_in_the_prompt_as_are_asked_for(
    make_environment: MakeEnvironment, steps: Any, expected: list[int]
) -> None:
    environment = make_environment([*thoughts(6), END])
    live(environment, context_steps=steps)
    assert shown(calls(environment)[-1].prompt, 6) == expected


def test_older_observations_can_be_dropped_from_the_steps_that_stand(make_environment: MakeEnvironment) -> None:
    environment = make_environment([*thoughts(6), END])
    live(environment, context_steps=4, context_observations=1)
    last = calls(environment)[-1].prompt
    assert shown(last, 6) == [3, 4, 5, 6]
    assert last.count(SEEN) == 1
    assert last.count("(It is no longer shown.)") == 3
    assert last.index("(It is no longer shown.)") < last.index(SEEN)


def test_what_is_not_shown_is_not_summarised(make_environment: MakeEnvironment) -> None:
    environment = make_environment([RUN, LIST, END], files={"train.py": f'print("x" * {2 * LONG_OBSERVATION})\n'})
    live(environment, context_observations=0)
    assert not calls(environment, "fast")


def test_summaries_can_be_switched_off(make_environment: MakeEnvironment) -> None:
    environment = make_environment([RUN, END], files={"train.py": f'print("x" * {2 * LONG_OBSERVATION})\n'})
    live(environment, summarise=False)
    assert "x" * 2 * LONG_OBSERVATION in calls(environment)[-1].prompt


def test_what_is_long_can_be_chosen(make_environment: MakeEnvironment) -> None:
    environment = make_environment([RUN, END, fast("It is short.")], files={"train.py": 'print("x" * 200)\n'})
    live(environment, summarise_over=100)
    assert "It is short." in calls(environment, "agent")[-1].prompt


def test_an_observation_that_cannot_be_summarised_is_cut(make_environment: MakeEnvironment) -> None:
    models = noted(RUN, LIST, END, unread=True)
    environment = make_environment(models=models, files={"train.py": f'print("a" * {LONG_OBSERVATION} + "z" * {LONG_OBSERVATION})\n'})
    live(environment)
    prompt = calls(environment, "agent")[1].prompt
    assert "characters are left out" in prompt and "a" * 1000 in prompt and "z" * 1000 in prompt
    assert "z" * LONG_OBSERVATION not in prompt
    assert len(sampled(models, "fast")) == 2, "its two parts, once"


@pytest.mark.parametrize("left_out", ENTRY_NAMES)
def test_each_entry_can_be_left_out_alone(make_environment: MakeEnvironment, left_out: str) -> None:
    kept = [name for name in ENTRY_NAMES if name != left_out]
    written = "".join(f"{name}: So it is.\n\n" for name in kept)
    environment = make_environment([f'{written}Action: List Files\nAction Input: {{"dir_path": "."}}', END])
    live(environment, entries=",".join(kept))
    first, second = (call.prompt for call in calls(environment))
    assert f"\n{left_out}: " not in first
    assert all(f"\n{name}: " in first for name in kept)
    assert all(f"\n{name}: So it is." in second for name in kept)
    assert list(environment.steps[0].entries) == kept


def test_entries_are_asked_for_in_the_papers_order_whatever_their_spelling() -> None:
    assert ResearchAgent(entries="thought, fact-check").entries == ("Fact Check", "Thought")  # type: ignore[arg-type]


def test_the_prompt_offers_what_is_added_and_not_what_is_removed(make_environment: MakeEnvironment) -> None:
    environment = make_environment([reply("Copy File", '{"source": "train.py", "destination": "b.py"}'), END])
    live(environment, actions_add=["Read File", "Python REPL"], actions_remove=["Copy File", "Understand File"])
    offered = offers(calls(environment)[0].prompt)
    assert {"Read File", "Python REPL"} <= offered
    assert not {"Copy File", "Understand File"} & offered
    assert environment.steps[0].status == "ok", "it stays callable"


def test_without_high_level_actions_there_are_the_primitive_ones_alone(make_environment: MakeEnvironment) -> None:
    assert {action.name for action in ACTIONS.values() if action.high_level} == HIGH_LEVEL
    understand = reply("Understand File", '{"file_name": "train.py", "things_to_look_for": "all"}')
    environment = make_environment([understand, reply("Read File", '{"file_name": "train.py"}'), END])
    live(environment, "primitive-only")
    first, _, _ = calls(environment)
    assert offers(first.prompt) == set(ACTIONS) - HIGH_LEVEL - {"Request Help"}
    assert "There is no action" in str(first.rejected)
    assert "Understand File" not in first.prompt
    assert environment.steps[0].action.name == "Read File"


def test_full_history_shows_all_steps(make_environment: MakeEnvironment) -> None:
    environment = make_environment([*thoughts(12), END])
    live(environment, "full-history")
    last = calls(environment)[-1].prompt
    assert shown(last, 12) == list(range(1, 13))
    assert last.count(SEEN) == 12


def test_an_adaptive_agent_chooses_its_entries(make_environment: MakeEnvironment) -> None:
    some = 'Fact Check: Nothing is known.\n\nAction: List Files\nAction Input: {"dir_path": "."}'
    environment = make_environment([some, 'Action: List Files\nAction Input: {"dir_path": "."}', LIST, END])
    live(environment, "adaptive-entries")
    assert [list(step.entries) for step in environment.steps[:3]] == [["Fact Check"], [], list(ENTRY_NAMES)]
    prompts = [call.prompt for call in calls(environment)]
    assert "choose those that help you" in prompts[0]
    assert "with every entry" not in prompts[0]
    assert not any(call.rejected for call in calls(environment))


def test_react_thinks_and_acts(make_environment: MakeEnvironment) -> None:
    environment = make_environment([LIST, END])
    live(environment, "react")
    first, second = (call.prompt for call in calls(environment))
    assert "\nThought: " in first
    assert not any(f"{name}:" in second for name in ENTRY_NAMES if name != "Thought")
    assert list(environment.steps[0].entries) == ["Thought"]


def test_act_only_acts(make_environment: MakeEnvironment) -> None:
    environment = make_environment(['Action: List Files\nAction Input: {"dir_path": "."}', BARE_END])
    live(environment, "act")
    first, second = (call.prompt for call in calls(environment))
    assert "with one action and nothing before it" in first
    assert not any(f"{name}:" in second for name in ENTRY_NAMES)
    assert environment.steps[0].entries == {}


def test_how_each_model_is_sampled_can_be_chosen(make_environment: MakeEnvironment) -> None:
    edit = reply("Edit Script (AI)", '{"script_name": "train.py", "edit_instruction": "x", "save_name": "train.py"}')
    understand = reply("Understand File", '{"file_name": "train.py", "things_to_look_for": "all"}')
    replies = (edit, understand, END, fast("It prints."), ScriptedReply(role="editor", reply="print(1)\n"))
    models = noted(*replies)
    live(make_environment(models=models))
    assert sampled(models, "editor") == [GenerateOptions(0.01, 4000)]
    assert sampled(models, "fast") == [GenerateOptions(0.01, 2000)]
    models = noted(*replies)
    options = {"temperature": None, "max_tokens": 99, "stop": "", "fast_temperature": 0.7, "editor_max_tokens": 16000}
    live(make_environment(models=models, run="another"), **options)
    assert set(sampled(models, "agent")) == {GenerateOptions(None, 99, ())}
    assert sampled(models, "editor") == [GenerateOptions(0.01, 16000)]
    assert sampled(models, "fast") == [GenerateOptions(0.7, 2000)]


@pytest.mark.parametrize(
    "options, words",
    [
        ({"context_steps": "many"}, "context_steps: Input should be a valid integer"),
        ({"context_steps": -1}, "greater than or equal to 0"),
        ({"entries": "Thoughts"}, "there is no entry 'Thoughts'; did you mean 'Thought'"),
        ({"actions_add": ["Read Files"]}, "there is no action 'Read Files'; did you mean 'Read File'"),
        ({"temperature": "hot"}, "temperature: Input should be a valid number"),
        ({"summarise": "perhaps"}, "summarise: Input should be a valid boolean"),
        ({"entries": 5}, "entries: Input should be"),
    ],
)
def test_a_bad_option_is_one_clear_line(options: dict[str, Any], words: str) -> None:
    with pytest.raises(AgentError) as refused:
        make_agent("research", options)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["react", "act", "full-history", "adaptive-entries", "primitive-only"])
def test_the_others_are_the_same_agent_and_take_its_options(name: str) -> None:
    agent = make_agent(name, {"context_steps": 7})
    assert type(agent) is ResearchAgent
    assert agent.context_steps == 7
    with pytest.raises(AgentError, match=f"the agent '{name}' has no option 'colour'; it has: context_steps, "):
        make_agent(name, {"colour": "red"})
