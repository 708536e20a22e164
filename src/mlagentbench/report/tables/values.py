"""Turn results into the values of a table's rows, and those values into texts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from mlagentbench.report import formatting
from mlagentbench.report.experiment import Experiment
from mlagentbench.report.tables.model import Kind, Row, Value
from mlagentbench.results.cells import RateBounds
from mlagentbench.results.statistics.intervals import Interval

INTERVAL: Mapping[str, Kind] = {"low": "number", "high": "number"}
COLUMN: Mapping[str, Kind] = {"column": "text", "agent": "text", "model": "text"}
RATE_BOUNDS: Mapping[str, Kind] = {"if_failed": "number", "if_succeeded": "number", "left_out": "count"}
BOUNDS = ("", "_low", "_high")


def identity(experiment: Experiment, column: str) -> dict[str, Value]:
    """Return the values of `COLUMN`: a column's name, its agent and its model."""
    shared = next(iter(experiment.columns[column].values())).conditions
    return {"column": column, "agent": shared.agent, "model": shared.model}


def interval(name: str, found: Interval | None) -> dict[str, Value]:
    """Return an estimate under its name, and its bounds as `low` and `high`; None where they are not known."""
    values = [None if value is None or math.isnan(value) else value for value in found or (None, None, None)]
    return dict(zip((name, "low", "high"), values, strict=True))


def bounds(found: Interval | None) -> dict[str, Value]:
    """Return an estimate and its bounds by `BOUNDS`, which are to be appended to its name."""
    return dict(zip(BOUNDS, found or (None, None, None), strict=True))


def rate_bounds(found: RateBounds | None) -> dict[str, Value]:
    """Return the values of `RATE_BOUNDS`."""
    return dict(zip(RATE_BOUNDS, found or (None, None, None), strict=True))


def estimate(row: Row, name: str, *, of: str = "", signed: bool = False) -> str:
    """Format a fraction in percent with its interval and the number it is computed from: `62.5 [31, 86] n=8`."""
    if row[name] is None:
        return formatting.NONE
    value = number(row[name])
    # The interval of a mean of equal numbers, or of few numbers, is empty or not known, and left out.
    within = formatting.interval_bounds(number(row["low"]), number(row["high"])) if row["low"] is not None else ()
    interval = f" [{', '.join(within)}]" if within else ""
    count = f" n={row[of]}" if of else ""
    return f"{'+' if signed and value > 0 else ''}{formatting.percentage(value)}{interval}{count}"


def bounded(row: Row, *, of: str) -> str:
    """Format a rate with its bounds where runs were left out of it: `62.5 [31, 86] n=8 (50 to 70)`."""
    text = estimate(row, "rate", of=of)
    if not row["left_out"]:
        return text
    low, high = (formatting.percentage(number(row[name])) for name in ("if_failed", "if_succeeded"))
    return f"{text} ({low} to {high})"


def left_out_words(rows: Sequence[Row]) -> list[str]:
    """Say what the numbers in parentheses are, where there are any."""
    if not any(row["left_out"] for row in rows):
        return []
    return ["In parentheses: the rate if all runs that failed by infrastructure or were not graded had failed, and if all had succeeded."]


def number(value: Value) -> float:
    """Return a value that is a number."""
    assert isinstance(value, (int, float))
    return float(value)
