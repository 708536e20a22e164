"""Turns in timing: who is first, how many there are, and who sleeps meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import pytest

from mlagentbench.grading.code.timing import FEWEST_ROUNDS, MOST_ROUNDS, TimedProcess, in_turns


class Fake:
    """Stands for a process: frozen or awake, and takes the seconds that it is told."""

    def __init__(self, seconds: Callable[[int], float]) -> None:
        self.seconds = seconds
        self.frozen = False
        self.given: list[int] = []

    def freeze(self) -> None:
        self.frozen = True

    @contextmanager
    def awake(self) -> Iterator[None]:
        self.frozen = False
        yield
        self.frozen = True


def turns(submission: Fake, starter: Fake, *, rounds: int = 5, budget: float = 1e9) -> tuple[list[float], list[float], list[Fake]]:
    numbers = iter(range(1000))
    order: list[Fake] = []

    def measure(process: TimedProcess, number: int) -> float:
        fake = cast(Any, process)
        other = starter if fake is submission else submission
        assert other.frozen and not fake.frozen
        order.append(fake)
        fake.given.append(number)
        return float(fake.seconds(number))

    theirs, ours = in_turns(cast(Any, submission), cast(Any, starter), lambda: next(numbers), measure, rounds=rounds, budget=budget)
    return theirs, ours, order


def test_both_are_given_the_same_and_take_turns_at_being_first() -> None:
    submission, starter = Fake(lambda number: 1.0), Fake(lambda number: 2.0)
    theirs, ours, order = turns(submission, starter)
    assert (theirs, ours) == ([1.0] * 5, [2.0] * 5)
    assert submission.given == starter.given == [0, 1, 2, 3, 4]
    assert {id(fake) for fake in order[0::2]} == {id(submission), id(starter)}
    assert order[0] is not order[2] and order[0] is order[4]


@pytest.mark.parametrize(
    ("starter", "rounds"),
    [
        pytest.param(1.2, 5 * MOST_ROUNDS, id="the ratio stays within two standard errors of 0.9"),
        pytest.param(1.0, 6, id="as fast, and soon known not to be a tenth faster"),
        pytest.param(2.0, 5, id="far faster"),
    ],
)
def test_an_unsteady_machine_is_timed_longer_while_the_verdict_is_in_doubt(starter: float, rounds: int) -> None:
    theirs, ours, _ = turns(Fake(lambda number: 1.0 + 0.3 * (number % 2)), Fake(lambda number: starter))
    assert len(theirs) == len(ours) == rounds


def test_a_single_slow_trial_leaves_no_doubt() -> None:
    assert len(turns(Fake(lambda number: 1.0), Fake(lambda number: 1.0 + 0.2 * (number == 2)))[0]) == 5


def test_slow_code_is_timed_no_longer_than_the_budget_but_a_few_times() -> None:
    assert len(turns(Fake(lambda number: 10.0), Fake(lambda number: 10.0), budget=1.0)[0]) == FEWEST_ROUNDS
    assert len(turns(Fake(lambda number: 1.0), Fake(lambda number: 1.0), budget=7.5)[0]) == 4
