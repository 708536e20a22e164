"""Estimate how long an experiment takes and what it costs, from the runs that its log directory holds already."""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from mlagentbench.engine.models.prices import price_of, unpriced
from mlagentbench.errors import RunNotFound, UsageError
from mlagentbench.experiments.matrix import Matrix, MatrixCell
from mlagentbench.experiments.state import UNCOMMITTED, ExperimentState
from mlagentbench.records import Result, Usage
from mlagentbench.run_spec import RunSpec
from mlagentbench.rundir.directory import find_runs


class RunEstimate(NamedTuple):
    """What a run is expected to take; None for what is not known."""

    seconds: float | None = None
    tokens: float | None = None
    cost: float | None = None
    """US dollars."""


class Total(NamedTuple):
    """What several runs are expected to take; None for what is not known of some of them."""

    runs: int
    seconds: float | None
    """Of all runs, one after another."""
    longest: float | None
    """Seconds of the longest run."""
    tokens: float | None
    cost: float | None


def estimate(state: ExperimentState, cells: Iterable[MatrixCell]) -> dict[str, RunEstimate]:
    """Return what a run of each cell is expected to take, by the cell's id: the mean of the runs of its kind in the log directory.

    Runs are of a kind if they have the same task, variant, agent with its options, models and limits. Where a price is known now that was
    not when a run was done, its cost is that of its tokens.
    """
    known = _earlier(state)
    return {cell.id: _mean(known.get(_kind(cell.spec), []), cell.spec) for cell in cells}


def total(state: ExperimentState, cells: Iterable[MatrixCell], known: Mapping[str, RunEstimate]) -> Total:
    """Return what the runs of cells that are not done yet are expected to take."""
    missing = [known[cell.id] for cell in cells for name in cell.names if not state.committed(name)]
    seconds, tokens, cost = (_sum(values) for values in zip(*missing, strict=True)) if missing else (0.0, 0.0, 0.0)
    longest = None if seconds is None else max((run.seconds or 0.0 for run in missing), default=0.0)
    return Total(len(missing), seconds, longest, tokens, cost)


def check_budget(matrix: Matrix) -> None:
    """Raise UsageError if an experiment's cost is limited and a model has no known price.

    Raises:
        UsageError: the price of a model is not known.
    """
    unknown = dict.fromkeys(name for cell in matrix.cells for name in unpriced(cell.spec))
    if matrix.budget.cost is not None and unknown:
        raise UsageError(
            f"{matrix.file}: budget.cost cannot hold: the price of {' and '.join(unknown)} is not known;"
            " give it under prices (docs/experiments.md), or limit tokens instead"
        )


def _sum(values: Iterable[float | None]) -> float | None:
    found = list(values)
    known = [value for value in found if value is not None]
    return sum(known) if len(known) == len(found) else None


def _earlier(state: ExperimentState) -> Mapping[str, list[Result]]:
    found: defaultdict[str, list[Result]] = defaultdict(list)
    try:
        runs = find_runs(state.log_directory)
    except (RunNotFound, OSError):
        return {}
    for run in runs:
        try:
            spec, result = run.info.spec, run.result
        except RunNotFound:
            continue
        if result is not None and result.outcome.ended not in UNCOMMITTED:
            found[_kind(spec)].append(result)
    return found


def _kind(spec: RunSpec) -> str:
    # `run.json` names every role's model, and a file perhaps only the agent's.
    parts = spec.model_dump(mode="json", include={"task", "variant", "agent", "agent_options", "limits"})
    return json.dumps({**parts, "models": spec.model_names}, sort_keys=True)


def _mean(results: list[Result], spec: RunSpec) -> RunEstimate:
    if not results:
        return RunEstimate()
    tokens = [count for result in results if (count := result.total_usage.tokens) is not None]
    costs = [cost for result in results if (cost := _cost(result, spec)) is not None]
    return RunEstimate(
        statistics.fmean(result.seconds + result.grading_seconds for result in results),
        statistics.fmean(tokens) if len(tokens) == len(results) else None,
        statistics.fmean(costs) if len(costs) == len(results) else None,
    )


def _cost(result: Result, spec: RunSpec) -> float | None:
    """Return what a run cost, or would cost at the prices that are known; None if one is not."""
    if result.total_usage.cost is not None or not result.total_usage.calls:
        return result.total_usage.cost or 0.0
    return _sum(_priced(usage, spec.model(role).name, spec) for role, usage in result.usage.items() if usage.calls)


def _priced(usage: Usage, model: str, spec: RunSpec) -> float | None:
    price = price_of(model, spec.prices)
    if price is None:
        return None
    parts = (
        (usage.input_tokens, price.input),
        (usage.output_tokens, price.output),
        (usage.cache_read_tokens, price.cache_read),
        (usage.cache_write_tokens, price.cache_write),
    )
    return sum(count * dollars for count, dollars in parts) / 1e6
