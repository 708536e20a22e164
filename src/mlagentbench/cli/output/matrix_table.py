"""Shows an experiment: what it will do, and how far it is."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from mlagentbench.experiments.driver import Driven, MatrixChanges
from mlagentbench.experiments.estimate import RunEstimate, Total
from mlagentbench.experiments.matrix import Matrix
from mlagentbench.experiments.status import CellState, MatrixState
from mlagentbench.report.console import Item, Listing
from mlagentbench.report.formatting import cost, duration, plural, tokens
from mlagentbench.report.wording import VERDICTS
from mlagentbench.util.text import some

UNKNOWN = "unknown"
NAMED = 5
"""The most runs that a line names."""


class MatrixDisplay:
    """A table of an experiment that is drawn anew as it goes on. Use it as a context manager; without a terminal it prints nothing."""

    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None

    def __enter__(self) -> MatrixDisplay:
        """Start the display."""
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        """Remove the table from the terminal."""
        if self._live:
            self._live.stop()

    @property
    def moving(self) -> bool:
        """Whether anything is shown."""
        return self._live is not None

    def show(self, status: MatrixState) -> None:
        """Draw the table."""
        if self._live:
            self._live.update(Group(matrix_table(status), Text(summary(status))), refresh=True)


def matrix_table(status: MatrixState) -> Listing:
    """Return the matrix with the outcomes of its runs so far, a row for each cell."""
    grouped = any(state.cell.group for state in status.cells)
    heading = ("agent", "model", "done>", "running>", "failed>", "waiting>", "outcomes", "tokens>", "cost>")
    return Listing(
        "task", (*(("group",) if grouped else ()), *heading), [Item(state.cell.task, _cells(state, grouped)) for state in status.cells]
    )


def _cells(state: CellState, grouped: bool) -> list[str]:
    words = [f"{count} {VERDICTS.get(name, name)}" for name, count in sorted(state.outcomes.items())]  # type: ignore[call-overload]
    return [
        *([state.cell.group] if grouped else []),
        state.cell.agent,
        state.cell.model,
        f"{state.count('done')}/{len(state.runs)}",
        *(str(state.count(stage) or "") for stage in ("running", "failed", "waiting")),
        ", ".join(words),
        tokens(state.usage.tokens),
        cost(state.usage.cost, state.usage.tokens),
    ]


def summary(status: MatrixState) -> str:
    """Return how far an experiment is, in a line."""
    runs = sum(len(state.runs) for state in status.cells)
    parts = [f"{status.count('done')} of {plural(runs, 'run')} done"]
    parts += [f"{count} {stage}" for stage in ("running", "failed", "waiting") if (count := status.count(stage))]
    parts += [f"{tokens(status.usage.tokens)} tokens", f"cost {cost(status.usage.cost, status.usage.tokens)}"]
    if status.seconds_left:
        parts.append(f"about {duration(status.seconds_left)} left")
    if status.over_budget:
        parts.append(f"no further run begins: {status.over_budget}")
    if not status.driven and status.count("done") < runs:
        parts.append("not being run")
    return " · ".join(parts)


def expectation_table(matrix: Matrix, known: Mapping[str, RunEstimate]) -> Listing:
    """Return the matrix with what a run of each cell is expected to take."""
    grouped = any(cell.group for cell in matrix.cells)
    items = []
    for cell in matrix.cells:
        one = known[cell.id]
        time = UNKNOWN if one.seconds is None else duration(one.seconds)
        cells = [cell.agent, cell.model, str(cell.runs), time, _tokens(one.tokens), cost(one.cost, None), cell.id]
        items.append(Item(cell.task, [*([cell.group] if grouped else []), *cells]))
    heading = ("agent", "model", "runs>", "time a run>", "tokens a run>", "cost a run>", "runs' names")
    return Listing("task", (*(("group",) if grouped else ()), *heading), items)


def expectation(total: Total, runs: int, at_once: int, limit: float) -> str:
    """Return how many runs are to be done, and what they are expected to take, in a line.

    Args:
        total: what the runs that are missing are expected to take.
        runs: how many runs there are in all.
        at_once: how many go on at once.
        limit: seconds that all missing runs take at most, one after another.
    """
    done = f", {runs - total.runs} of {runs} are done" if total.runs < runs else ""
    time = UNKNOWN
    if total.seconds is not None and total.longest is not None:
        time = f"about {duration(max(total.longest, total.seconds / at_once))}" if total.seconds else duration(0)
    most = f" (at most {duration(limit / at_once)} by the limits)" if total.runs and total.seconds is None else ""
    return (
        f"{plural(total.runs, 'run')} to do{done}; expected with {at_once} at once: time {time}{most}, tokens {_tokens(total.tokens)},"
        f" cost {cost(total.cost, None)}"
    )


def _tokens(count: float | None) -> str:
    return UNKNOWN if count is None else tokens(round(count))


def change_lines(changes: MatrixChanges) -> list[str]:
    """Return what is different in an experiment's file since it was last run, a line each."""
    if not changes.kept and not changes.gone:
        return []
    lines = []
    if changes.new:
        lines.append(f"The file has changed: {plural(len(changes.kept), 'run')} as before, {len(changes.new)} new.")
    if changes.gone:
        lines.append(
            f"{plural(len(changes.gone), 'run')} in the log directory no longer match the file, and are still in its report: "
            f"{some(changes.gone, NAMED)}"
        )
    return lines


def driven_lines(driven: Driven) -> list[str]:
    """Return what is not done of an experiment and why, a line each."""
    lines = [f"Nothing more was started: {driven.stopped}."] if driven.stopped else []
    lines += [f"{name} is not done after all tries; its job printed to {log}" for name, log in driven.failed.items()]
    if driven.waiting:
        lines.append(
            f"{plural(len(driven.waiting), 'run')} wait for the experience of runs that are not done: {some(driven.waiting, NAMED)}"
        )
    return lines
