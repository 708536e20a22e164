"""Grading again what was timed: it is timed anew, with about the ratio to the starter that it had."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from mlagentbench import Result
from mlagentbench.model import Models, Script
from mlagentbench.rundir.directory import find_runs
from mlagentbench.runner.regrade import regrade_all
from mlagentbench.task.catalogue import find_task
from tests.plans import make_plan

TOLERANCE = 0.5
"""Of the ratio of a submission's seconds to the starter's, measured beside each other, on a machine with busy neighbours."""
AGENT = """
from mlagentbench import Action

class Stays:
    needs_model = False

    async def __call__(self, environment):
        await environment.execute(Action(name="List Files", arguments={"dir_path": "."}))
        await environment.execute(Action(name="Final Answer", arguments={"final_answer": "as it was"}))
"""


@pytest.mark.slow
def test_a_timed_submission_graded_again_has_about_the_ratio_it_had(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(AGENT)
    plan = make_plan(find_task("vectorization"), tmp_path / "runs", agent=f"{tmp_path / 'agent.py'}:Stays", baseline="auto")
    first = asyncio.run(plan.conduct(Models.scripted(Script([]))))
    assert not (tmp_path / "runs" / "gradings").exists(), "what was timed is never taken from a grading before"
    (found,) = asyncio.run(regrade_all(find_runs(tmp_path / "runs"), every_step=True))
    assert found.after is not None, found.reason
    assert ratio(found.after) == pytest.approx(ratio(first), rel=TOLERANCE)
    assert ratio(first) == pytest.approx(1.0, rel=TOLERANCE), "the starter is as fast as itself"
    assert [score.value for score in found.after.step_scores] == [found.after.score and found.after.score.value] * 2, "timed once"


def ratio(result: Result) -> float:
    assert result.score is not None and result.score.baseline is not None
    return result.score.value / result.score.baseline.value
