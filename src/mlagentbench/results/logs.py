"""The Python API of results: everything that a log directory holds, typed, and as frames."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mlagentbench.errors import RunNotFound
from mlagentbench.results.cells import Cell, cells
from mlagentbench.results.compare import Comparison, comparisons
from mlagentbench.results.conditions import Mixable
from mlagentbench.results.load import Run, scan
from mlagentbench.results.tables import columns

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Logs:
    """The runs of one log directory or of several, as they were when they were read."""

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

    def cells(self, *, mixing: Collection[Mixable] = ()) -> list[Cell]:
        """The runs by task, variant, agent, model, isolation and hardware; the last two may be mixed (`results.cells.cells`)."""
        return cells(self.runs, mixing=mixing)

    def columns(self, *, mixing: Collection[Mixable] = ()) -> Mapping[str, Mapping[str, Cell]]:
        """The cells by column (an agent with a model) and task, as tables have them."""
        return columns(self.cells(mixing=mixing))

    def comparisons(self, *, mixing: Collection[Mixable] = ()) -> list[Comparison]:
        """Every pair of columns compared task by task."""
        return comparisons(self.columns(mixing=mixing))


def load(*logs: str | Path) -> Logs:
    """Read every run at some paths, each a log directory or one run's directory, once. A directory without runs gives none.

    Raises:
        RunNotFound: there is no such directory.
    """
    runs: dict[Path, Run] = {}
    unreadable: dict[str, None] = {}
    for path in map(Path, logs):
        try:
            found = scan(path)
        except RunNotFound:
            # A log directory is there before its first run is.
            if not path.is_dir():
                raise
            continue
        for run in found.runs:
            runs.setdefault(run.directory.path.resolve(), run)
        unreadable |= dict.fromkeys(found.unreadable)
    return Logs(tuple(sorted(runs.values(), key=lambda run: (run.info.started, run.name))), tuple(unreadable))
