"""The research log: written after each step, asked before a step, and never counted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import pytest

from mlagentbench import LimitReached, RunLimits, ScriptedModel, ScriptedReply
from mlagentbench.actions.research_log import research_log
from mlagentbench.agents.research_options import LONG_OBSERVATION
from mlagentbench.model import Models, Script
from mlagentbench.records import Role
from mlagentbench.rundir.directory import RunDirectory
from mlagentbench.task.catalogue import load_task
from tests.agents.runs import END, LIST, RUN, calls, fast, live
from tests.agents.test_research_options import noted, offers
from tests.plans import Plan, make_plan, resumed
from tests.runner.lives import content_of, make_task, write_file
from tests.support import MakeEnvironment, finish, reply

APPEND, RETRIEVE = "Append Summary to Research Log", "Retrieval from Research Log"
SUMMARIES = [fast(f"Summary {number}.") for number in range(1, 5)]
"""Before the first retrieval the fast model is asked for nothing else."""


def test_it_is_off_by_default(make_environment: MakeEnvironment) -> None:
    environment = make_environment([*[LIST] * 6, END])
    live(environment)
    assert {step.action.name for step in environment.steps} == {"List Files", "Final Answer"}
    assert "Reflection" not in offers(calls(environment)[0].prompt)


def test_each_step_is_written_down_and_what_matters_is_asked_for_from_the_fifth_step_on(make_environment: MakeEnvironment) -> None:
    replies = [*[LIST] * 5, END, *SUMMARIES, fast("The first two matter."), fast("Summary 5."), fast("Now all matter.")]
    environment = make_environment(replies)
    live(environment, research_log=True)
    names = [step.action.name for step in environment.steps]
    assert names == [*["List Files", APPEND] * 4, RETRIEVE, "List Files", APPEND, RETRIEVE, "Final Answer"]
    assert [step.action.name for step in environment.steps if not step.counted] == [APPEND] * 4 + [RETRIEVE, APPEND, RETRIEVE]
    assert research_log(environment.steps).split("\n\n")[:5] == [f"Step {number}: Summary {number}." for number in range(1, 6)]
    prompts = [call.prompt for call in calls(environment, "agent")]
    assert [f"This is step {number}." in prompt for number, prompt in enumerate(prompts, start=1)] == [True] * 6
    assert not any("research log says" in prompt for prompt in prompts[:4])
    assert "The first two matter." in prompts[4] and "Now all matter." in prompts[5]
    retrieval = environment.steps[8]
    assert retrieval.action.arguments == {"current_plan": "1. Look. 2. Improve."}
    assert "Reflection" in offers(prompts[0])
    assert all(APPEND not in prompt.split("Reply now")[0].split("This is step")[0] for prompt in prompts), "it is not the agent's to do"


def test_its_steps_do_not_count(make_environment: MakeEnvironment) -> None:
    environment = make_environment([*[LIST] * 6, *[fast("It matters.")] * 20], limits=RunLimits(steps=6))
    with pytest.raises(LimitReached, match="6 steps"):
        live(environment, research_log=True)
    assert sum(step.counted for step in environment.steps) == 6
    assert [step.action.name for step in environment.steps].count(RETRIEVE) == 2


def test_the_first_retrieval_can_be_earlier(make_environment: MakeEnvironment) -> None:
    environment = make_environment([LIST, END, *[fast("It matters.")] * 2])
    live(environment, research_log=True, retrieve_from=2)
    assert [step.action.name for step in environment.steps] == ["List Files", APPEND, RETRIEVE, "Final Answer"]


def test_without_a_plan_the_thought_is_what_it_is_asked_for(make_environment: MakeEnvironment) -> None:
    environment = make_environment([LIST, END, *[fast("It matters.")] * 2])
    live(environment, "react", research_log=True, retrieve_from=2)
    assert environment.steps[2].action.arguments == {"current_plan": "Go on."}


def test_what_the_agent_writes_itself_counts_and_is_in_the_log(make_environment: MakeEnvironment) -> None:
    environment = make_environment([reply(APPEND, '{"content": "Mine."}'), END, fast("It wrote.")])
    live(environment, research_log=True)
    assert [step.counted for step in environment.steps] == [True, False, True]
    assert research_log(environment.steps) == "Mine.\n\nStep 1: It wrote.\n\n"


def test_a_long_observation_is_summarised_once_for_the_prompt_and_the_log(make_environment: MakeEnvironment) -> None:
    script = f'print("x" * {LONG_OBSERVATION + 1})\n'
    environment = make_environment([RUN, END, fast("Many x."), fast("It printed many x.", expect=("Many x.",))], files={"train.py": script})
    live(environment, research_log=True)
    assert [call.purpose for call in calls(environment, "fast")] == ["summary", "research log"]
    assert environment.steps[1].memory == {"summaries": {"1": "(A summary of a long observation.)\nMany x."}}


def test_a_step_whose_summary_cannot_be_had_is_written_down_as_it_is(make_environment: MakeEnvironment) -> None:
    environment = make_environment(models=noted(LIST, END, unread=True))
    live(environment, research_log=True, retrieve_from=2)
    assert research_log(environment.steps).startswith('Step 1: List Files {"dir_path": "."}\ntrain.py')
    failed = environment.steps[2]
    assert (failed.action.name, failed.status) == (RETRIEVE, "error")
    assert "research log says" not in calls(environment, "agent")[1].prompt


LONG = write_file("train.py", f'print("x" * {LONG_OBSERVATION + 1})\n')
REPLIES = (LONG, RUN, LIST, RUN, write_file("submission.txt", "12"), LIST, END)


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    """A run with the log, without a sandbox."""
    task = load_task(make_task(tmp_path / "guess"))
    options = {"research_log": True, "retrieve_from": 3, "context_steps": 2}
    return make_plan(task, tmp_path / "runs", agent_options=options, sandbox="none")


def carry_out(plan: Plan, replies: Sequence[str], fast_replies: int) -> RunDirectory:
    """Go on with a plan until one of its models has no more replies."""
    script = Script([*(ScriptedReply(reply=text) for text in replies), *[fast(f"Fast {number}.") for number in range(fast_replies)]])
    had = plan.continues.replies() if plan.continues else {}
    roles: tuple[Role, ...] = get_args(Role)
    models = Models(**{role: ScriptedModel(script, role, had.get(role, 0)) for role in roles})
    return RunDirectory(plan.log_directory / finish(plan.conduct(models)).run)


@pytest.mark.slow
def test_a_run_that_was_ended_anywhere_in_its_bookkeeping_goes_on_the_same(plan: Plan) -> None:
    whole = carry_out(plan, REPLIES, 100)
    assert whole.result is not None and whole.result.outcome.ended == "final_answer"
    asked = sum(call.role == "fast" for step in whole.steps() for call in whole.calls(step.number))
    assert asked > 10
    for count in range(asked):
        run = carry_out(plan, REPLIES, count)
        assert run.result is not None and run.result.outcome.ended == "infrastructure"
        with resumed(run.path) as again:
            carry_out(again, REPLIES, 100)
        assert content_of(run) == content_of(whole), f"after {count} replies of the fast model"


@pytest.mark.slow
def test_a_fork_from_between_the_log_and_the_step_goes_on_the_same(plan: Plan) -> None:
    whole = carry_out(plan, REPLIES, 100)
    for step in range(len(whole.steps())):
        with resumed(whole.path, step) as again:
            fork = carry_out(again, REPLIES, 100)
        assert content_of(fork) == content_of(whole), f"from step {step}"
