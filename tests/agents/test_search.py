"""The search agent: the tree it grows, what it asks, what it submits, and that it goes on with the same tree."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import pytest

from mlagentbench import Action, AgentError, Environment, FormatFailure, ResponseFormatError, RunLimits, Step
from mlagentbench.agents.base import make_agent
from mlagentbench.agents.reply.whole_script import read_script
from mlagentbench.agents.search import SearchAgent
from mlagentbench.agents.search_tree import Policy, SearchTree, validation_score
from mlagentbench.rundir.directory import RunDirectory
from mlagentbench.task.catalogue import load_task
from tests.agents import runs
from tests.agents.runs import calls
from tests.plans import Plan, make_plan, resumed
from tests.runner.lives import content_of, make_task, models, scripted
from tests.support import MakeEnvironment, finish

LOOKS = 2


def node(score: float | str, *, plan: str = "A plan.", also: str = "") -> str:
    """A reply with a script that leaves a submission and prints a score."""
    code = f'{also}\nopen("submission.txt", "w").write("{score}")\nprint("validation score: {score}")'
    return f"{plan}\n\n```python\n{code}\n```\n"


BROKEN = "Risky.\n```python\nraise RuntimeError('no such layer')\n```"
SILENT = "Quiet.\n```python\nprint('trained')\n```"


def live(environment: Environment, agent: SearchAgent) -> SearchTree:
    runs.live(environment, agent)
    return SearchTree(environment.steps, environment.direction)


def shape(tree: SearchTree) -> list[tuple[str, int | None, float | None]]:
    return [(each.kind, each.parent, each.metric) for each in tree.nodes]


def submission(environment: Environment) -> str:
    return environment.workspace.read_text("submission.txt")


def test_it_drafts_then_improves_the_best_and_submits_it(make_environment: MakeEnvironment) -> None:
    environment = make_environment([node(0.5), node(0.7), node(0.6), node(0.65)])
    tree = live(environment, SearchAgent(drafts=2, max_nodes=4))
    assert shape(tree) == [("draft", None, 0.5), ("draft", None, 0.7), ("improve", 2, 0.6), ("improve", 2, 0.65)]
    names = [step.action.name for step in environment.steps]
    assert names == ["List Files", "Read File", *["Write File", "Execute Script"] * 5, "Final Answer"], "the best is run again"
    assert submission(environment) == "0.7"
    assert "Submitted is script 2, whose own validation score is 0.7" in str(environment.steps[-1].details["final_answer"])


def test_what_ran_last_is_not_run_again_when_it_is_the_best(make_environment: MakeEnvironment) -> None:
    environment = make_environment([node(0.5), node(0.9)])
    live(environment, SearchAgent(drafts=1, max_nodes=2))
    assert len(environment.steps) == LOOKS + 2 * 2 + 1
    assert submission(environment) == "0.9"


def test_less_is_better_where_the_task_says_so(make_environment: MakeEnvironment) -> None:
    environment = make_environment([node(3), node(2), node(2.5)])
    environment.direction = "minimize"
    tree = live(environment, SearchAgent(drafts=2, max_nodes=3))
    assert [each.number for each in tree.ranking] == [2, 3, 1]
    assert tree.nodes[2].parent == 2
    assert submission(environment) == "2"
    assert "of which less is better" in calls(environment)[0].prompt


def test_a_script_that_fails_is_debugged_with_its_traceback_and_only_so_often(make_environment: MakeEnvironment) -> None:
    environment = make_environment([BROKEN, BROKEN, SILENT, node(0.4)])
    tree = live(environment, SearchAgent(drafts=1, debug_depth=2, max_nodes=4))
    assert shape(tree) == [("draft", None, None), ("debug", 1, None), ("debug", 2, None), ("draft", None, 0.4)]
    second, third, fourth = (call.prompt for call in calls(environment)[1:])
    assert "Script 1 does not work. It failed." in second
    assert "RuntimeError: no such layer" in second
    assert "Script 2 does not work" in third
    assert "another first solution" in fourth, "nothing is left to debug or to improve"
    assert submission(environment) == "0.4"


def test_a_script_without_a_score_is_told_that_it_has_none(make_environment: MakeEnvironment) -> None:
    environment = make_environment([SILENT, node(0.4)])
    live(environment, SearchAgent(drafts=1, max_nodes=2))
    assert "printed no line `validation score: NUMBER`" in calls(environment)[1].prompt


def test_chance_decides_between_debugging_and_improving(make_environment: MakeEnvironment) -> None:
    kinds = {}
    for probability in (0.0, 1.0):
        environment = make_environment([BROKEN, node(0.5), node(0.6)], run=f"run-{probability:g}")
        tree = live(environment, SearchAgent(drafts=2, max_nodes=3, debug_probability=probability))
        kinds[probability] = tree.nodes[2].kind
    assert kinds == {0.0: "improve", 1.0: "debug"}
    environment = make_environment([BROKEN, node(0.5)], run="seeds")
    tree = live(environment, SearchAgent(drafts=2, max_nodes=2))
    chosen = [tree.next(Policy(2, 3, 0.5, seed)).kind for seed in range(100)]
    assert 25 < chosen.count("debug") < 75
    assert chosen == [tree.next(Policy(2, 3, 0.5, seed)).kind for seed in range(100)]


def test_the_prompt_holds_the_task_the_files_the_starter_and_what_was_tried(make_environment: MakeEnvironment) -> None:
    environment = make_environment([node(0.5, plan="Use a forest."), node(0.6)], files={"train.py": "print('mine')\n", "notes.md": "x"})
    live(environment, SearchAgent(drafts=1, max_nodes=2))
    first, second = (call.prompt for call in calls(environment))
    for text in ("Make train.py better.", "notes.md", "print('mine')", "accuracy, of which more is better", "Write a first solution"):
        assert text in first
    assert "- Script 1 (draft), validation score 0.5: Use a forest." in second
    assert "Script 1 is the best so far" in second


def test_a_task_without_the_script_is_drafted_from_nothing(make_environment: MakeEnvironment) -> None:
    environment = make_environment([node(0.5)], files={"data.csv": "a,b\n"})
    live(environment, SearchAgent(max_nodes=1))
    assert "as it was found" not in calls(environment)[0].prompt
    assert submission(environment) == "0.5"


def test_a_reply_without_a_script_goes_back_with_what_to_mend(make_environment: MakeEnvironment) -> None:
    environment = make_environment(["I would use a forest.", "```python\nprint(1)", node(0.5)])
    live(environment, SearchAgent(max_nodes=1))
    first, second, third = calls(environment)
    assert first.rejected is not None and "no script" in first.rejected
    assert "no script" in second.prompt and second.rejected is not None and "no end" in second.rejected
    assert "no end" in third.prompt and third.rejected is None
    assert environment.steps[LOOKS].malformed == 2
    with pytest.raises(FormatFailure):
        live(make_environment(["Hm."] * 5, run="never"), SearchAgent())


@pytest.mark.parametrize("steps", range(1, 12))
def test_it_keeps_the_steps_that_its_answer_needs(make_environment: MakeEnvironment, steps: int) -> None:
    environment = make_environment([node(0.9), *[node(0.1)] * 9], limits=RunLimits(steps=steps))
    if steps <= LOOKS:
        with pytest.raises(Exception, match="steps are used up"):
            live(environment, SearchAgent(drafts=1))
        return
    live(environment, SearchAgent(drafts=1))
    assert environment.ended
    if steps >= LOOKS + 3:
        assert submission(environment) == "0.9", "the best is submitted, whatever came after it"


def test_the_second_best_is_submitted_when_the_best_fails_on_being_run_again(make_environment: MakeEnvironment) -> None:
    once = 'import os\nassert not os.path.exists("ran")\nopen("ran", "w").close()'
    environment = make_environment([node(0.9, also=once), node(0.5), node(0.6)])
    tree = live(environment, SearchAgent(drafts=3, max_nodes=3))
    assert tree.standing == 3
    assert submission(environment) == "0.6"


def test_nothing_that_works_is_said_so(make_environment: MakeEnvironment) -> None:
    environment = make_environment([BROKEN, BROKEN])
    live(environment, SearchAgent(max_nodes=2))
    assert str(environment.steps[-1].details["final_answer"]) == "Of 2 scripts 0 worked. None of them is submitted."


def test_a_script_that_cannot_be_written_is_a_node_that_failed_and_the_one_before_is_not_run_for_it(
    make_environment: MakeEnvironment,
) -> None:
    folder = "import os\nos.remove('train.py')\nos.mkdir('train.py')"
    environment = make_environment([node(0.9, also=folder), node(0.5)])
    tree = live(environment, SearchAgent(drafts=2, max_nodes=2))
    assert shape(tree) == [("draft", None, 0.9), ("draft", None, None)]
    assert "is a folder" in tree.nodes[1].output
    assert submission(environment) == "0.9"


def test_each_step_holds_the_tree_that_it_was_chosen_from(make_environment: MakeEnvironment) -> None:
    environment = make_environment([BROKEN, node(0.5), node(0.6)])
    live(environment, SearchAgent(drafts=2, max_nodes=3, debug_probability=0))
    third = environment.steps[LOOKS + 4]
    assert third.memory["tree"] == [
        {"node": 1, "kind": "draft", "parent": None, "metric": None, "buggy": True},
        {"node": 2, "kind": "draft", "parent": None, "metric": 0.5, "buggy": False},
    ]
    assert third.entries == {"Node": "3: improve of 2", "Plan": "A plan."}
    assert len(environment.steps[-1].memory["tree"]) == 3  # type: ignore[arg-type]


def step_that_printed(output: str) -> Step:
    return Step(number=1, action=Action(name="Execute Script"), observation=f"train.py ran.\n{output}", started=0.0, seconds=0.0)


@pytest.mark.parametrize(
    ("output", "score"),
    [
        ("validation score: 0.83", 0.83),
        ("Validation Score = -1.5e-3\n", -0.0015),
        ("**validation score:** 7", 7.0),
        ("validation_score: .5 (5 folds)", 0.5),
        ("validation score: 0.1\nepoch 2\nvalidation score: 0.2\nbye", 0.2),
        ("validation score: 83%", None),
        ("validation score: nan", None),
        ("validation score: 1e999", None),
        ("the validation score: 0.5", None),
        ("validation score: 1.2.3", None),
        ("validation score:", None),
        ("", None),
    ],
)
def test_a_score_is_read_from_its_own_line(output: str, score: float | None) -> None:
    found = validation_score(step_that_printed(output))
    assert found is None if score is None else found is not None and math.isclose(found, score)


@pytest.mark.parametrize(
    ("reply", "script"),
    [
        ("```python\nprint(1)\n```", "print(1)\n"),
        ("Plan.\r\n```py\r\nprint(1)\r\n```\r\nThat is all.", "print(1)\n"),
        ("```\nprint(1)\n```", "print(1)\n"),
        ("```bash\npip install x\n```\nThen:\n```python\nprint(1)\n```", "print(1)\n"),
        ('```python\ntext = """\n```\ncode\n```\n"""\nprint(text)\n```', 'text = """\n```\ncode\n```\n"""\nprint(text)\n'),
        ("<think>\n```python\nprint(0)\n```\n</think>\n```python\nprint(1)\n```", "print(1)\n"),
        ("```python\nprint(\n```\nIt has a fault.", "print(\n"),
    ],
)
def test_a_script_is_read_as_models_write_it(reply: str, script: str) -> None:
    assert read_script(reply).script == script


@pytest.mark.parametrize(
    ("reply", "fault"),
    [
        ("", "no script"),
        ("print(1)", "no script"),
        ("```bash\nls\n```", "no script"),
        ("```python\nprint(1)\n", "no end"),
        ("```python\n\n```", "empty"),
        ("```python\nprint(1)\n```\nand\n```python\nprint(2)\n```", "more than one"),
    ],
)
def test_a_reply_that_holds_no_one_script_is_refused(reply: str, fault: str) -> None:
    with pytest.raises(ResponseFormatError, match=fault):
        read_script(reply)


@pytest.mark.parametrize(
    ("option", "value"),
    [("drafts", 0), ("debug_probability", 1.5), ("max_nodes", 0), ("debug_depth", -1), ("drafts", "many"), ("nodes", 3)],
)
def test_a_bad_option_is_one_clear_line(option: str, value: object) -> None:
    with pytest.raises(AgentError) as refused:
        make_agent("search", {option: value})
    assert option in str(refused.value) and "\n" not in str(refused.value)


# A run that is ended and gone on with.


UNTRACED = "Risky.\n```python\nraise SystemExit('no such layer')\n```"
REPLIES = (node(3), UNTRACED, node(5), node(4), node(4.5))
OPTIONS = {"drafts": 2, "max_nodes": 5, "debug_probability": 0.5, "seed": 3}


def plan_of(tmp_path: Path) -> Plan:
    return make_plan(load_task(make_task(tmp_path / "guess")), tmp_path / "runs", agent="search", agent_options=OPTIONS, sandbox="none")


def begin(plan: Plan, replies: Sequence[str]) -> RunDirectory:
    result = finish(plan.conduct(models(scripted(replies), {})))
    return RunDirectory(plan.log_directory / result.run)


def go_on(directory: RunDirectory, step: int | None = None) -> RunDirectory:
    with resumed(directory.path, step) as plan:
        assert plan.continues is not None
        finish(plan.conduct(models(scripted(REPLIES), plan.continues.replies())))
        return plan.continues


@pytest.mark.slow
def test_a_run_that_is_gone_on_with_or_forked_grows_the_same_tree(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    whole = begin(plan, REPLIES)
    expected = content_of(whole)
    assert whole.result is not None and whole.result.score is not None and whole.result.score.value == 5
    for had in range(len(REPLIES)):
        run = begin(plan, REPLIES[:had])
        assert run.result is not None and run.result.outcome.ended == "infrastructure", "its model had no more replies"
        assert content_of(go_on(run)) == expected, f"after {had} replies"
    for step in range(len(whole.steps())):
        assert content_of(go_on(whole, step)) == expected, f"forked at step {step}"
