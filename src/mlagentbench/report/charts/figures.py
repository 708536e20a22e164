"""Write every chart of a log directory to files: SVG for papers and slides, and PNG."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from mlagentbench.errors import UsageError
from mlagentbench.report.charts.forest import forest, pairs
from mlagentbench.report.charts.outcomes import outcomes, parts
from mlagentbench.report.charts.rates import heat, heat_map
from mlagentbench.report.charts.score_curves import scores_of_task
from mlagentbench.report.charts.scores import score_over_steps
from mlagentbench.report.charts.style import Chart, to_png, to_svg, unchecked
from mlagentbench.report.charts.thresholds import success_by_threshold
from mlagentbench.report.charts.tradeoff import tradeoff
from mlagentbench.report.experiment import FEW, Experiment
from mlagentbench.report.tables.build import categories, improvement, success
from mlagentbench.results.load import Run


class Figure(NamedTuple):
    """A chart and the name of its files, without a suffix."""

    name: str
    chart: Chart


def figures(runs: Sequence[Run]) -> Iterator[Figure]:
    """Yield the charts of runs that are not empty: for up to `FEW` runs each run's own, for more the charts that compare them."""
    if len(runs) <= FEW:
        for run in runs:
            own = score_over_steps(run.info, run.scores, run.result.baseline if run.result else None, _last(run))
            if own is not None:
                yield Figure(f"score-{run.name}", own)
        return
    experiment = Experiment.of(runs)
    ranked = {column: experiment.columns[column] for column in experiment.ranking}
    found: dict[str, Chart | None] = {
        "success": heat_map(heat(success(experiment), experiment.ranking)),
        "improvement": heat_map(heat(improvement(experiment), experiment.ranking)),
        "success-by-category": heat_map(heat(categories(experiment), experiment.ranking)),
        "comparisons": forest(pairs(experiment.comparisons, experiment.ranking)),
        "success-and-tokens": tradeoff(experiment.leaderboard, "tokens"),
        "success-and-time": tradeoff(experiment.leaderboard, "minutes"),
        "success-and-cost": tradeoff(experiment.leaderboard, "dollars"),
        "verdicts": outcomes(parts(ranked, "verdict"), "verdict"),
        "endings": outcomes(parts(ranked, "ended"), "ended"),
        "thresholds-last-step": success_by_threshold(experiment.thresholds, "last", columns=experiment.columns),
        "thresholds-best-step": success_by_threshold(experiment.thresholds, "best", columns=experiment.columns),
    }
    for task in experiment.tasks:
        info = experiment.tasks[task][0].info
        found[f"scores-{task}"] = scores_of_task(info, experiment.score_curves(task), columns=experiment.columns, title=task)
    for name, chart in found.items():
        if chart is not None:
            yield Figure(name, chart)


def write_figures(runs: Sequence[Run], folder: Path) -> list[Path]:
    """Write every chart as SVG and PNG.

    Returns:
        The files, in the order of the charts.

    Raises:
        UsageError: a file cannot be written.
    """
    written: list[Path] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with unchecked():
            for name, chart in figures(runs):
                stem = _stem(name, {path.stem for path in written})
                written += [folder / f"{stem}.svg", folder / f"{stem}.png"]
                written[-2].write_text(to_svg(chart), encoding="utf-8")
                written[-1].write_bytes(to_png(chart))
    except OSError as error:
        raise UsageError(f"cannot write figures to {folder}: {error.strerror}; choose another folder with --figures") from None
    return written


def _last(run: Run) -> int:
    return run.steps[-1].number if run.steps else 0


def _stem(name: str, taken: set[str]) -> str:
    """Return a safe and unused name for a file, since names of tasks and runs come from run directories and may be anything."""
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", name)[:80]
    return stem if stem not in taken else f"{stem}-{len(taken)}"
