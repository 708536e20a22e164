"""What scores say of a task, where whole checks would be slow or need luck: rivals of oracle, timed tasks, a baseline of nothing."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import pytest

from mlagentbench.checks.findings import Name, Numbers
from mlagentbench.checks.score_findings import Measurements, Ran, judge
from mlagentbench.errors import GradingError
from mlagentbench.grading.baseline import StarterRun
from mlagentbench.grading.grade import Graded
from mlagentbench.records import Baseline, Score
from mlagentbench.sandbox.base import EndReason, Execution
from mlagentbench.task.catalogue import Task, load_task
from mlagentbench.task.new import TEMPLATE

DIGESTS = itertools.count()
"""Those of submissions, of which no two are the same."""
REFUSED = {str(number): (Graded(reason="row 3 is blank", seconds=0), "blank") for number in range(6)}


def task(*, mode: str = "file", direction: str = "maximize") -> Task:
    template = load_task(TEMPLATE)
    spec = template.spec
    submission = spec.submission.model_copy(update={"mode": mode})
    metric = spec.metric.model_copy(update={"direction": direction})
    return template._replace(spec=spec.model_copy(update={"submission": submission, "metric": metric}))


def graded(value: float, beside: float | None = None) -> Graded:
    baseline = None if beside is None else Baseline(value=beside, source="side_by_side")
    return Graded(score=Score(value=value, baseline=baseline), seconds=0)


def ran(found: Graded | None, *, exit_code: int = 0, reason: EndReason = "exit", output: str = "") -> StarterRun:
    return StarterRun(Execution(output, exit_code, reason, seconds=2.0, output_bytes=0), found, digest=str(next(DIGESTS)))


def judged(of: Task | None = None, **changed: object) -> tuple[dict[Name, str], Numbers]:
    """What fails of a task that is right but for what is changed, and its numbers."""
    sound = Measurements(
        starters=(ran(graded(0.5)), ran(graded(0.52))),
        solution=ran(graded(0.8)),
        ineffective=ran(graded(0.5)),
        oracle={"answers": graded(1.0)},
        naive={"constant": graded(0.3), "shuffled": graded(0.2)},
        invalid=REFUSED,
        reordered=graded(1.0),
        moved=graded(0.2),
    )
    findings, numbers = judge(of or task(), sound._replace(**changed))  # type: ignore[arg-type]
    return {finding.name: finding.detail for finding in findings if finding.status == "failed"}, numbers


def test_a_sound_task_has_no_fault() -> None:
    found, numbers = judged()
    assert found == {}
    assert numbers.baseline == pytest.approx(0.51)
    assert (numbers.solution_success, numbers.ineffective_success) == (True, False)
    assert numbers.solution_improvement == pytest.approx(0.8 / 0.51 - 1)
    assert (numbers.refused, numbers.invalid) == (6, 6)
    assert numbers.starter_spread == pytest.approx(0.02 / 2**0.5 / 0.51)
    assert numbers.naive_improvement == pytest.approx(0.3 / 0.51 - 1), "the better of the two"


def test_a_submission_that_stands_for_the_starter_is_not_compared_with_itself() -> None:
    stub = task()
    starter = stub.spec.starter.model_copy(update={"state": "stub", "predictor": "constant"})
    stub = stub._replace(spec=stub.spec.model_copy(update={"starter": starter}))
    failing = ran(None, exit_code=1, output="NotImplementedError")
    found, numbers = judged(stub, starters=(failing,), ineffective=ran(graded(0.31)))
    assert found == {} and numbers.starter_spread is None
    assert numbers.naive_improvement == pytest.approx(0.2 / 0.3 - 1)


@pytest.mark.parametrize(
    "changed, name, expected",
    [
        ({"oracle": {"answers": graded(0.9), "rounded": graded(0.75)}, "reordered": graded(0.9)}, "oracle", "'rounded' by solution()"),
        ({"oracle": {"answers": graded(0.55)}, "reordered": graded(0.55), "solution": None}, "oracle", "no success over the baseline"),
        ({"oracle": {"answers": Graded(reason="no table", seconds=0)}}, "oracle", "'answers' (no table)"),
        ({"naive": {"constant": graded(0.95), "shuffled": graded(0.2)}}, "constant", "is not 10% better than constant"),
        ({"naive": {"constant": graded(1.0), "shuffled": graded(0.2)}}, "naive", "as good as the oracle: 'constant'"),
        ({"naive": {"constant": graded(0.2)}}, "shuffled", "no naive submission 'shuffled'"),
        ({"moved": graded(1.0)}, "ids", "ignores the ids"),
        ({"reordered": graded(0.4)}, "row order", "0.4 instead of 1"),
        ({"reordered": Graded(reason="rows", seconds=0)}, "row order", "refused: rows"),
        ({"invalid": dict(list(REFUSED.items())[:5])}, "invalid", "only 5 invalid submissions"),
        ({"starters": (ran(graded(0.5)), ran(None, output="bye"))}, "starter", "said at last: bye"),
        ({"starters": (ran(graded(0.5)), ran(graded(0.5), exit_code=1, output="KeyError: 'x'"))}, "starter", "KeyError: 'x'"),
        ({"starters": (ran(graded(0.5)), ran(None, reason="memory"))}, "starter", "its limit of memory"),
        ({"starters": (ran(graded(0.5)), GradingError("the grader of x failed"))}, "grader", "(it came with the starter (1))"),
        (
            {"starters": (ran(graded(0.5)), ran(graded(0.525)))},
            "spread",
            "0.5 to 0.525 with 2 seeds, a standard deviation of 3.4% where 3%",
        ),
        ({"naive": {"constant": graded(0.3), "shuffled": graded(0.57)}}, "naive", "a success over the starter: 'shuffled'"),
        ({"ineffective": ran(graded(0.6))}, "ineffective", "a success for one changed setting"),
        ({"solution": ran(graded(0.55))}, "solution", "+7.8% over the baseline, no success"),
    ],
)
def test_a_fault_is_named(changed: Mapping[str, object], name: Name, expected: str) -> None:
    found, _ = judged(**changed)
    assert expected in found[name]


def test_a_change_that_leaves_what_the_starter_leaves_shows_nothing() -> None:
    first, second = ran(graded(0.5)), ran(graded(0.52))
    found, _ = judged(starters=(first, second), ineffective=ran(graded(0.5))._replace(digest=first.digest))
    assert found.keys() == {"ineffective"} and "what ineffective() leaves is what the starter leaves" in found["ineffective"]
    found, _ = judged(starters=(first, second), ineffective=ran(graded(0.52))._replace(digest=second.digest))
    assert found == {}, "they are run with the first seed, and so compared with it"


def test_a_graders_mistake_is_told_once() -> None:
    mistake = "the grader of my-task failed at my_task/grade.py, line 20: NameError"
    broken, error = Graded(reason=mistake, seconds=0, failed=True), GradingError(mistake)
    found, _ = judged(
        starters=(error, error),
        solution=error,
        ineffective=error,
        oracle={"answers": broken},
        naive={"constant": broken},
        invalid={"empty": (broken, "")},
        reordered=broken,
        moved=broken,
    )
    assert found == {"grader": f"{mistake} (it came with the starter (0), the starter (1), solution() and 5 more)"}
    found, _ = judged(invalid={**REFUSED, "empty": (broken, ""), "blank": (broken, "")})
    assert found["invalid"].startswith(f"each of 'empty', 'blank' crashes the grader ({mistake}); ")


def test_all_naive_ones_beating_the_oracle_is_a_direction_turned_round() -> None:
    found, _ = judged(task(direction="minimize"))
    assert "direction" in found and "oracle" in found


def test_over_a_baseline_of_nothing_any_gain_is_a_success() -> None:
    nothing: tuple[Ran, ...] = (ran(graded(0.0)), ran(graded(0.0)))
    knows_nothing = {"constant": graded(0.0), "shuffled": graded(0.0)}
    found, numbers = judged(starters=nothing, ineffective=ran(graded(0.0)), naive=knows_nothing)
    assert found == {}
    assert numbers.solution_improvement is None and numbers.solution_success is True
    found, _ = judged(starters=nothing, ineffective=ran(graded(0.01)))
    assert "a success over the starter: 'constant', 'shuffled'" in found["naive"], "a starter that scores nothing is beaten by anything"
    assert "better than a baseline of 0" in found["ineffective"]


def test_a_timed_task_is_compared_with_the_starter_beside_it() -> None:
    timed = {
        "starters": (ran(graded(2.0, 2.0)),),
        "solution": ran(graded(0.1, 1.5)),
        "ineffective": ran(graded(1.7, 1.7)),
        "oracle": {"fast": graded(0.12, 1.4)},
        "naive": {"late": graded(1.6, 1.55)},
        "reordered": None,
        "moved": None,
    }
    found, numbers = judged(task(mode="code", direction="minimize"), **timed)
    assert found == {}
    assert numbers.baseline is None and numbers.solution_improvement == pytest.approx(1.4 / 1.5)
    found, _ = judged(task(mode="code", direction="minimize"), **{**timed, "naive": {"late": graded(1.0, 1.5)}})
    assert "a success over the starter: 'late'" in found["naive"]
