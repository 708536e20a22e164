"""Where plans of several changes break, and what a research log's losses go with: on planted runs, with numbers worked out by hand."""

from __future__ import annotations

import pytest

from mlagentbench.audit.record import LogLosses
from mlagentbench.results.audited import log_effects, past_changes
from mlagentbench.results.counts import Counts
from mlagentbench.results.statistics.intervals import average_rate, success_rate
from tests.example_cells import broken, column, lost, won


def reached(rung: int, rungs: int) -> Counts:
    """A run that got past `rung` of `rungs` changes."""
    return lost(0.0, rung=rung, rungs=rungs, broke_at=None if rung == rungs else rung + 1)


def logged(success: bool, **lost_there: int) -> Counts:
    """A run with a research log."""
    losses = LogLosses(**{"summaries": 2, "retrievals": 0, "dropped_numbers": 0, "altered_numbers": 0, "dropped_errors": 0, **lost_there})
    return won(log=losses) if success else lost(0.0, log=losses)


def test_a_change_is_passed_by_the_runs_that_broke_later_or_never() -> None:
    three = [reached(0, 3), reached(1, 3), reached(3, 3), reached(3, 3), broken(rungs=3, broke_at=1)]

    found = past_changes({"a": column(ladder=three)})

    assert [(each.change, each.share.value, each.runs) for each in found] == [(1, 0.75, 4), (2, 0.5, 4), (3, 0.5, 4)]
    assert found[0].share == success_rate(3, 4)


def test_only_tasks_with_so_many_changes_are_counted_each_once() -> None:
    tasks = {"two": [reached(2, 2)] * 8, "four": [reached(1, 4), reached(4, 4)], "none": [won()]}

    found = past_changes({"a": column(**tasks)})

    assert [(each.change, each.tasks, each.runs) for each in found] == [(1, 2, 10), (2, 2, 10), (3, 1, 2), (4, 1, 2)]
    assert found[1].share == average_rate([(8, 8), (1, 2)])


def test_without_a_task_of_changes_there_is_nothing_to_say() -> None:
    assert past_changes({"a": column(one=[won(), lost()])}) == []


def test_a_planted_harm_of_dropping_errors_is_found_and_no_other() -> None:
    # Runs that dropped an error never succeed; dropping numbers goes with nothing.
    runs = [logged(True, dropped_numbers=number % 2) for number in range(8)]
    runs += [logged(False, dropped_errors=1, dropped_numbers=number % 2) for number in range(8)]

    found = {each.lost: each for each in log_effects({"a": column(one=runs)})}

    errors, numbers = found["dropped_errors"], found["dropped_numbers"]
    assert (errors.with_loss, errors.without) == (success_rate(0, 8), success_rate(8, 8))
    assert errors.inference is not None and numbers.inference is not None
    assert errors.inference.difference.value == -1.0
    assert errors.inference.p < 0.001
    assert numbers.inference.difference.value == pytest.approx(0)
    assert numbers.inference.difference.low < 0 < numbers.inference.difference.high
    assert "altered_numbers" not in found, "no run altered one, so that there is nothing to compare"


def test_a_difference_between_tasks_is_none_of_the_log() -> None:
    # The hard task has the long runs, which lose something; within each task it goes with nothing.
    easy = [logged(True)] * 9 + [logged(True, dropped_numbers=1)]
    hard = [logged(False)] + [logged(False, dropped_numbers=1)] * 9

    dropped = log_effects({"a": column(easy=easy, hard=hard)})[0]

    assert (dropped.with_loss.value, dropped.without.value) == (0.1, 0.9)
    assert dropped.inference is not None
    assert (dropped.inference.difference.value, dropped.cells) == (0.0, 2)


def test_runs_without_a_log_are_on_neither_side_and_columns_have_a_line_together() -> None:
    runs = [logged(True), logged(False, altered_numbers=1), won(), lost()]

    found = log_effects({"a": column(one=runs), "b": column(model="vendor/b", one=runs), "c": column(model="vendor/c", one=[won()])})

    altered = {each.column: (each.runs_with, each.runs_without) for each in found if each.lost == "altered_numbers"}
    assert altered == {"a": (1, 1), "b": (1, 1), None: (2, 2)}
