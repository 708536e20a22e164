"""Write every chart of a log directory to files for papers and slides: PDF, SVG and PNG, titled, as wide as a journal's column or page."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import altair as alt

from mlagentbench.errors import UsageError
from mlagentbench.report.charts.cost_per_success import cost_per_success
from mlagentbench.report.charts.forest import forest, pairs
from mlagentbench.report.charts.interval_curves import by_attempts, by_budget, by_change, profile_curves
from mlagentbench.report.charts.outcomes import outcomes, parts
from mlagentbench.report.charts.rates import heat, heat_map
from mlagentbench.report.charts.score_curves import scores_of_task
from mlagentbench.report.charts.scores import score_over_steps
from mlagentbench.report.charts.style import Chart, Printed, name, printed, unchecked
from mlagentbench.report.charts.thresholds import success_by_threshold
from mlagentbench.report.charts.tradeoff import tradeoff
from mlagentbench.report.experiment import FEW, Experiment
from mlagentbench.report.tables.build import categories, improvement, success
from mlagentbench.results.audited import past_changes
from mlagentbench.results.budget import SPENT, at_attempts, at_budgets
from mlagentbench.results.load import Run
from mlagentbench.results.profiles import profiles

HEAT_COLUMNS = 6
"""The most columns of a heat map in a file."""
INTERVALS = "With 95% intervals."
MODES_BY: Mapping[str, str] = {"modes": "", "modes-by-agent": ", of all models together", "modes-by-model": ", of all agents together"}
TITLES: Mapping[str, tuple[str, str]] = {
    "comparisons": (
        "Differences of success rates",
        "With 95% intervals and adjusted p-values; significant ones are filled.",
    ),
    "success-and-tokens": ("Success and tokens", f"{INTERVALS} Dashed: the Pareto front."),
    "success-and-time": ("Success and time", f"{INTERVALS} Dashed: the Pareto front."),
    "success-and-cost": ("Success and cost", f"{INTERVALS} Dashed: the Pareto front."),
    "cost-per-success": ("Cost of a success", INTERVALS),
    "verdicts": ("What submissions were worth", "Shares of runs, and their numbers."),
    "endings": ("What ended the runs", "Shares of runs, and their numbers."),
    **{label: ("How runs failed", f"Shares of runs, and their numbers, by the audit{by}.") for label, by in MODES_BY.items()},
    "changes": ("Where plans of several changes break", INTERVALS),
    "thresholds-last-step": ("Success at other thresholds", "At the last step; dotted: the paper's threshold."),
    "thresholds-best-step": ("Success at other thresholds, best step", "The best step is chosen on the hidden test."),
    "profiles": ("Performance profiles", "Dotted: where success begins."),
    **{f"success-by-{spent}": (f"Success by {spent} spent", INTERVALS) for spent in SPENT},
    **{f"improvement-by-{spent}": (f"Improvement by {spent} spent", INTERVALS) for spent in SPENT},
    "pass-at-k": ("Success in k attempts", INTERVALS),
    "best-of-k": ("Improvement of the best of k attempts", "The best is chosen on the hidden test."),
}
"""The titles of figures and the lines below them; heat maps and tasks have their own."""


class Figure(NamedTuple):
    """A chart and the name of its files, without a suffix."""

    name: str
    chart: Chart


def figures(runs: Sequence[Run], compare: Sequence[str] = ()) -> Iterator[Figure]:
    """Yield the charts of runs that are not empty: for up to `FEW` runs each run's own, for more the charts that compare them."""
    if len(runs) <= FEW:
        for run in runs:
            own = score_over_steps(run.info, run.scores, run.result.baseline if run.result else None, run.last_step)
            if own is not None:
                yield Figure(f"score-{run.name}", titled(own, name(run.info.spec.task), name(run.name)))
        return
    experiment = Experiment.of(runs, compare)
    for label, chart in [*_heat_maps(experiment), *_comparing(experiment), *_curves(experiment)]:
        if chart is not None:
            yield Figure(label, titled(chart, *TITLES[label]) if label in TITLES else chart)
    for task in experiment.tasks:
        info = experiment.tasks[task][0].info
        of_task = scores_of_task(info, experiment.score_curves(task), columns=experiment.columns, title=task)
        if of_task is not None:
            yield Figure(f"scores-{task}", of_task)


def titled(chart: alt.LayerChart, title: str, words: str) -> alt.LayerChart:
    """Give a chart a title, and a line of words below it."""
    chart.title = alt.TitleParams(title, subtitle=words, offset=24)
    return chart


def _heat_maps(experiment: Experiment) -> Iterator[tuple[str, alt.LayerChart | None]]:
    """Yield the heat maps, each in parts of at most `HEAT_COLUMNS` columns, so that their text stays legible."""
    tables = {"success": success(experiment), "improvement": improvement(experiment), "success-by-category": categories(experiment)}
    parts_of = [experiment.ranking[start : start + HEAT_COLUMNS] for start in range(0, len(experiment.ranking), HEAT_COLUMNS)]
    for label, table in tables.items():
        for number, columns in enumerate(parts_of, start=1):
            yield f"{label}-{number}" if number > 1 else label, heat_map(heat(table, columns))


def _comparing(experiment: Experiment) -> Iterator[tuple[str, alt.LayerChart | None]]:
    """Yield the charts that compare columns."""
    rows, columns = experiment.leaderboard, tuple(experiment.columns)
    ranked = {column: experiment.columns[column] for column in experiment.ranking}
    yield "comparisons", forest(pairs(experiment.comparisons, experiment.ranking))
    yield "success-and-tokens", tradeoff(rows, "tokens")
    yield "success-and-time", tradeoff(rows, "minutes")
    yield "success-and-cost", tradeoff(rows, "dollars")
    yield "cost-per-success", cost_per_success(rows, columns=columns)
    yield "verdicts", outcomes(parts(ranked, "verdict"), "verdict")
    yield "endings", outcomes(parts(ranked, "ended"), "ended")
    for label, group in (("modes", ranked), ("modes-by-agent", experiment.pooled("agent")), ("modes-by-model", experiment.pooled("model"))):
        yield label, outcomes(parts(group, "mode"), "mode")
    yield "thresholds-last-step", success_by_threshold(experiment.thresholds, "last", columns=columns)
    yield "thresholds-best-step", success_by_threshold(experiment.thresholds, "best", columns=columns)


def _curves(experiment: Experiment) -> Iterator[tuple[str, alt.LayerChart | None]]:
    """Yield the curves of what columns reach by level, budget and attempts."""
    columns = tuple(experiment.columns)
    yield "changes", by_change(past_changes(experiment.columns), columns=columns)
    yield "profiles", profile_curves(profiles(experiment.columns), columns=columns)
    budgets, attempts = at_budgets(experiment.columns), at_attempts(experiment.columns)
    for spent in SPENT:
        yield f"success-by-{spent}", by_budget(budgets, spent, "success", columns=columns)
        yield f"improvement-by-{spent}", by_budget(budgets, spent, "improvement", columns=columns)
    yield "pass-at-k", by_attempts(attempts, "success", columns=columns)
    yield "best-of-k", by_attempts(attempts, "improvement", columns=columns)


def write_figures(runs: Sequence[Run], folder: Path, compare: Sequence[str] = ()) -> list[Path]:
    """Write every chart as SVG, PDF and PNG.

    Returns:
        The files, in the order of the charts.

    Raises:
        UsageError: a file cannot be written.
    """
    written: list[Path] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with unchecked():
            for label, chart in figures(runs, compare):
                stem = _stem(label, {path.stem for path in written})
                files = printed(chart)
                written += [folder / f"{stem}.{suffix}" for suffix in Printed._fields]
                written[-3].write_text(files.svg, encoding="utf-8")
                written[-2].write_bytes(files.pdf)
                written[-1].write_bytes(files.png)
    except OSError as error:
        raise UsageError(f"cannot write figures to {folder}: {error.strerror}; choose another folder with --figures") from None
    return written


def _stem(name: str, taken: set[str]) -> str:
    """Return a safe and unused name for a file, since names of tasks and runs come from run directories and may be anything."""
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", name)[:80]
    return stem if stem not in taken else f"{stem}-{len(taken)}"
