"""A grader that fails on what an agent left: the agent's fault, unless it fails on the task's own submission too."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from mlagentbench import Action, Environment, Result
from mlagentbench.model import Models, Script
from mlagentbench.rundir.directory import find_runs
from mlagentbench.runner.regrade import Regraded, regrade_all
from mlagentbench.task.catalogue import load_task
from tests.plans import Plan, make_plan
from tests.runner.hostile import ROOT
from tests.tiny_task import tiny_task

LIMITS = "{ grading_time = 300, grading_memory_mb = 512 }"
GRADE = """
import os
import time
from pathlib import Path
from mlagentbench import Score

HERE = Path(__file__).parent.parent  # what lies in the task's own folder is part of the task

def grade(context):
    text = context.submission.read_text("guess.txt")
    with (HERE / "asked.txt").open("a") as asked:
        asked.write(text[:9] + "\\n")
    context.submission.copy_to(context.scratch / "copy")
    if (HERE / "broken").exists():
        raise KeyError("a bug of the task's author")
    match text:
        case "crash":
            {}["no such key"]
        case "kill":
            os.kill(os.getpid(), 9)
        case "memory":
            bytearray(2**30)
        case "time":
            time.sleep(600)
        case "nan":
            return Score(value=float("nan"))
        case "once" if not (HERE / "failed").exists():
            (HERE / "failed").touch()
            os._exit(1)
    return Score(value=float(len(text)))
"""
PROOF = """
def oracle(data):
    return {"the best": {"guess.txt": "oracle"}}
"""
AGENT = """
from tests.grading.test_control import act

class Hostile:
    needs_model = False

    async def __call__(self, environment):
        await act(environment)
"""
Leave = Callable[[Path], object]
_leaves: list[Leave] = []
"""What the agent leaves in its workspace, one thing a step."""


async def act(environment: Environment) -> None:
    for leave in _leaves:
        await environment.settle()  # the snapshot of the step before is taken
        leave(environment.workspace.root)
        await environment.execute(Action(name="List Files", arguments={"dir_path": "."}))
    await environment.execute(Action(name="Final Answer", arguments={"final_answer": "done"}))


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    """A run of a task that has a oracle submission, and whose starter leaves none."""
    folder = tmp_path / "guess"
    tiny_task(folder, file="guess.txt", submitted=["**/*.py"], keys={"limits": LIMITS}, grade=GRADE, proof=PROOF)
    (tmp_path / "agent.py").write_text(AGENT)
    agent = f"{tmp_path / 'agent.py'}:Hostile"
    return make_plan(load_task(folder), tmp_path / "runs", agent=agent, sandbox="none", score_steps=True)


def guess(text: str) -> Leave:
    return lambda root: (root / "guess.txt").write_text(text)


def leaving(plan: Plan, *leaves: Leave) -> Result:
    """A run whose agent leaves one thing after another."""
    _leaves[:] = leaves
    return asyncio.run(plan.conduct(Models.scripted(Script([]))))


def regraded(plan: Plan) -> Regraded:
    (found,) = asyncio.run(regrade_all(find_runs(plan.log_directory), every_step=True))
    return found


def asked(plan: Plan) -> Sequence[str]:
    """What the grader was given, in order."""
    return (plan.log_directory.parent / "asked.txt").read_text().splitlines()


FAILING = {
    "crash": r"the grader of guess failed at guess/grade\.py, line \d+: KeyError: 'no such key'",
    "kill": "the grader of guess was ended by signal 9",
    "memory": r"the grader of guess failed at guess/grade\.py, line \d+: MemoryError",
    "time": "the grader of guess took longer than",
    "nan": "the grader of guess gave nan as a score",
}


def test_what_brings_the_grader_down_is_an_invalid_submission_in_the_graders_words(plan: Plan) -> None:
    leaving(plan.but(score_steps=False), *map(guess, FAILING), guess("fine"))
    spec, before = plan.task.folder / "task.toml", asked(plan)
    text = spec.read_text()
    for seconds in (5, 30, 120):  # until only one takes longer, as on a busy machine another may
        spec.write_text(text.replace("grading_time = 300", f"grading_time = {seconds}"))
        (plan.log_directory.parent / "asked.txt").unlink()
        after = regraded(plan).after
        assert after is not None
        if sum("took longer than" in (step.reason or "") for step in after.step_scores) == 1:
            break
    for step, words in zip(after.step_scores, FAILING.values(), strict=False):
        assert re.match(f"the grader fails on this submission and not on the task's own: {words}", step.reason or ""), step
    assert after.step_scores[-1].value == 4
    # What failed is graded once more. The task's own submission is graded at most once a minute.
    assert [*before, *asked(plan)[:4]] == ["fine", "fine", "crash", "oracle", "crash"] and asked(plan).count("oracle") < len(FAILING)


def test_grading_again_goes_by_the_same_rule(plan: Plan) -> None:
    result = leaving(plan, guess("fine"), guess("crash"))
    assert (result.outcome.ended, result.outcome.verdict) == ("final_answer", "invalid_submission")
    after = regraded(plan).after
    assert after is not None and after.step_scores == result.step_scores and after.outcome == result.outcome


def test_a_run_that_is_graded_well_is_charged_no_control(plan: Plan) -> None:
    assert leaving(plan, guess("fine"), guess("a longer guess")).outcome.verdict == "success"
    assert asked(plan) == ["a longer ", "fine"]


def test_a_grader_that_fails_on_the_tasks_own_submission_leaves_the_run_ungraded(plan: Plan) -> None:
    (plan.log_directory.parent / "broken").touch()
    result = leaving(plan, guess("crash"))
    assert result.outcome.verdict == "ungraded" and 'KeyError: "a bug of the task\'s author"' in (result.outcome.reason or "")
    (plan.log_directory.parent / "broken").unlink()
    after = regraded(plan).after
    assert after is not None and after.outcome.verdict == "invalid_submission", "the grader is mended, and no failure is kept"


def test_a_failure_that_goes_away_counts_for_nobody(plan: Plan) -> None:
    result = leaving(plan, guess("once"))
    assert result.score is not None and result.score.value == 4


@pytest.mark.parametrize(
    ("starter", "proof"),
    [("open('guess.txt', 'w').write('starter')", None), ("print('a stub')", "raise ValueError('not yet written')")],
)
def test_a_task_without_gold_has_its_starter_graded_or_else_empty_files(plan: Plan, starter: str, proof: str | None) -> None:
    (plan.task.folder / "proof.py").unlink()
    if proof:
        (plan.task.folder / "proof.py").write_text(proof)
    (plan.task.folder / "starter" / "train.py").write_text(starter)
    assert leaving(plan, guess("crash")).outcome.verdict == "invalid_submission"
    assert asked(plan) == ["crash", "" if "stub" in starter else "starter", "crash"]


def _deep(root: Path) -> None:
    """A file under a path that is too long to be named at once."""
    here = os.getcwd()
    os.chdir(root)
    try:
        for _ in range(30):
            os.mkdir("d" * 200)
            os.chdir("d" * 200)
        Path("deep.py").write_text("x = 1")
    finally:
        os.chdir(here)
    guess("fine")(root)


def _odd(root: Path) -> None:
    """Names that are no text, and everything that is no file."""
    for name in (b"a\nb.py", b"\x1b[31mred.py", b"\xff\xfe.py", b"-rf.py", b" .py", b"x" * 252 + b".py"):
        (root / os.fsdecode(name)).write_text("x = 1")
    os.mkfifo(root / "pipe.py")
    (root / "loop.py").symlink_to("loop.py")
    (root / "folder.py").mkdir()
    (root / "closed").mkdir()
    (root / "closed" / "inside.py").write_text("x = 1")
    (root / "closed").chmod(0)
    (root / "mode.py").write_text("x = 1")
    (root / "mode.py").chmod(0o4001 if ROOT else 0)
    guess("fine")(root)


@pytest.mark.parametrize(
    ("leave", "verdict", "words"),
    [
        pytest.param(_deep, "invalid_submission", "is longer than 1,024 bytes; leave files in fewer folders", id="a path of 6,000 bytes"),
        pytest.param(_odd, "no_improvement", "", id="odd names, kinds and modes"),
    ],
)
def test_whatever_can_be_left_can_be_graded(plan: Plan, leave: Leave, verdict: str, words: str) -> None:
    result = leaving(plan, leave)
    assert result.outcome.ended == "final_answer"
    assert result.outcome.verdict == verdict and words in (result.outcome.reason or "")


def test_a_machine_that_can_restore_nothing_leaves_the_run_ungraded(plan: Plan, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    leaving(plan.but(score_steps=False), guess("crash"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    after = regraded(plan).after
    assert after is not None and after.outcome.verdict == "ungraded"
    assert (after.outcome.reason or "").startswith("[Errno 2] No such file or directory")
