"""Read log directories in Python: their runs as typed records, cells and comparisons, or as polars frames."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mlagentbench.errors import RunNotFound
from mlagentbench.results.cells import Cell, cells, columns
from mlagentbench.results.compare import Comparison, comparisons
from mlagentbench.results.conditions import Mixable
from mlagentbench.results.load import Run, by_start, scan, without_copies

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Logs:
    """The runs of one or more log directories, as they were when they were read."""

    runs: tuple[Run, ...]
    """The runs, oldest first, including those in progress, killed or damaged."""
    unreadable: tuple[str, ...] = ()
    """A line for each directory that is left out: its `run.json` cannot be read, or it is a copy of another run."""

    def frame(self) -> pl.DataFrame:
        """Return a polars frame with a row for each run and the columns of `results.frames.RUNS`."""
        from mlagentbench.results.frames import runs_frame

        return runs_frame(self.runs)

    def steps_frame(self) -> pl.DataFrame:
        """Return a polars frame with a row for each step and the columns of `results.frames.STEPS`."""
        from mlagentbench.results.frames import steps_frame

        return steps_frame(self.runs)

    def cells(self, *, mixing: Collection[Mixable] = ()) -> list[Cell]:
        """Group the runs by task, variant, agent, model, isolation and hardware; the last two may be mixed (`results.cells.cells`)."""
        return cells(self.runs, mixing=mixing)

    def columns(self, *, mixing: Collection[Mixable] = ()) -> Mapping[str, Mapping[str, Cell]]:
        """Group the cells by column (an agent with a model) and task, as tables need them."""
        return columns(self.cells(mixing=mixing))

    def comparisons(self, *, mixing: Collection[Mixable] = ()) -> list[Comparison]:
        """Compare every pair of columns task by task."""
        return comparisons(self.columns(mixing=mixing))


def load(*logs: str | Path) -> Logs:
    """Read the runs at some paths, each a log directory or one run's directory. A run at several paths is read into the result once.

    Of a run and its copies, the first whose directory has the run's name is read into the result; `unreadable` names the others.

    Raises:
        RunNotFound: there is no such directory.
    """
    runs: list[Run] = []
    unreadable: dict[str, None] = {}
    for path in map(Path, logs):
        try:
            found = scan(path)
        except RunNotFound:
            # A log directory without runs is no error: it exists before its first run does.
            if not path.is_dir():
                raise
            continue
        runs += found.runs
        unreadable |= dict.fromkeys(found.unreadable)
    kept, copies = without_copies(runs)
    return Logs(tuple(sorted(kept, key=by_start)), (*unreadable, *copies))
