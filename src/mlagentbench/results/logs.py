"""The Python API of results: everything that a log directory holds, typed, and as frames."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mlagentbench.errors import RunNotFound
from mlagentbench.results.cells import Cell, cells
from mlagentbench.results.compare import Comparison, comparisons
from mlagentbench.results.load import Run, scan
from mlagentbench.results.tables import columns

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Logs:
    """The runs of a log directory, as they were when it was read."""

    runs: tuple[Run, ...]
    """Oldest first; those in progress, killed or torn too."""
    unreadable: tuple[str, ...] = ()
    """A line for each directory whose `run.json` cannot be read."""

    def frame(self) -> pl.DataFrame:
        """One row a run, with the columns of `results.frames.RUNS`."""
        from mlagentbench.results.frames import runs_frame

        return runs_frame(self.runs)

    def steps_frame(self) -> pl.DataFrame:
        """One row a step, with the columns of `results.frames.STEPS`."""
        from mlagentbench.results.frames import steps_frame

        return steps_frame(self.runs)

    def cells(self) -> list[Cell]:
        """The runs by task, variant, agent, model, isolation and hardware."""
        return cells(self.runs)

    def columns(self) -> Mapping[str, Mapping[str, Cell]]:
        """The cells by column (an agent with a model) and task, as tables have them."""
        return columns(self.cells())

    def comparisons(self) -> list[Comparison]:
        """Every pair of columns compared task by task."""
        return comparisons(self.columns())


def load(logs: str | Path) -> Logs:
    """Read every run at a path: a log directory, or one run's directory. A directory without runs gives none.

    Raises:
        RunNotFound: there is no such directory.
    """
    path = Path(logs)
    try:
        found = scan(path)
    except RunNotFound:
        # A log directory is there before its first run is.
        if not path.is_dir():
            raise
        return Logs(())
    return Logs(tuple(found.runs), tuple(found.unreadable))
