"""Prepare what the overview shows of many runs together: tables of agents with models by task, and charts. Empty parts are left out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup

from mlagentbench.report import formatting
from mlagentbench.report.charts import forest, interval_curves, outcomes, score_curves, style, thresholds, tradeoff
from mlagentbench.report.charts.cost_per_success import cost_per_success
from mlagentbench.report.charts.forest import ForestRow
from mlagentbench.report.charts.outcomes import BarPart
from mlagentbench.report.charts.palette import THEMED, SeriesStyle, looks
from mlagentbench.report.charts.rates import HeatMap, heat
from mlagentbench.report.components import Components
from mlagentbench.report.experiment import FEW, Experiment, LeaderboardRow, Notice
from mlagentbench.report.tables import audited, build, studies
from mlagentbench.report.tables.model import Table, TextTable, grid
from mlagentbench.report.wording import BEST_STEP
from mlagentbench.results.audited import past_changes
from mlagentbench.results.budget import SPENT, at_attempts, at_budgets
from mlagentbench.results.cells import Cell
from mlagentbench.results.load import Run
from mlagentbench.results.profiles import profiles
from mlagentbench.results.statistics.intervals import Interval

KEYED = 2
"""From so many columns on, a key of colours is shown."""


class KeyEntry(NamedTuple):
    """An entry of a key: the colour, dashes and marker of a column in the charts, and its name."""

    name: str
    look: SeriesStyle
    lines: bool = True
    """Whether the charts draw the column as lines, not as points only."""

    @property
    def dash(self) -> str:
        """The dashes as SVG writes them; empty for a solid line."""
        return " ".join(map(str, self.look.dash))


class Picture(NamedTuple):
    """A chart with a description."""

    title: str
    svg: Markup
    words: str
    points: tuple[str, ...] = ()
    """The values of the chart, one by one, for readers who cannot see it."""


class BarName(NamedTuple):
    """Whose runs are in a bar."""

    agent: str
    model: str = ""
    under: str = ""


class Bars(NamedTuple):
    """A bar of runs for each column, agent or model, by how they came out, with a key."""

    title: str
    names: Mapping[str, str]
    """The kinds of runs that there are, by `BarPart.kind`."""
    colors: Mapping[str, str]
    bars: tuple[tuple[BarName, tuple[BarPart, ...]], ...]


class TitledTable(NamedTuple):
    """A table as people see it, with its title and notes."""

    title: str
    table: TextTable
    notes: tuple[str, ...]

    @staticmethod
    def of(table: Table) -> TitledTable:
        """Return a table as people see it."""
        return TitledTable(table.title, grid(table), tuple(table.notes))


class PlanBreaks(NamedTuple):
    """Where plans of several changes break."""

    pictures: tuple[Picture, ...]
    table: TitledTable


class Amount(NamedTuple):
    """A number with a note on its interval and what it is computed from."""

    value: str
    note: str = ""
    interval: Interval | None = None
    """The interval to draw."""


AUDITED = (audited.unfounded, audited.log_losses)
LEADERBOARD_COLUMNS = ("Runs", "Success", "Improvement", "Steps a run", "Tokens a run", "Time a run", "Cost a run", "Cost a success")


TITLES: Mapping[str, str] = {
    "agents": "Which agent succeeds most?",
    "pairs": "How sure is it that one beats another?",
    "success": "Which tasks do they succeed at?",
    "categories": "Which categories of tasks?",
    "components": "Which component of the agent matters?",
    "log": "When does the research log help?",
    "transfer": "Does experience of another task help?",
    "improvement": "How much better than the starter are they?",
    "tradeoff": "What does success take?",
    "budget": "Does a larger budget help?",
    "attempts": "Does trying again help?",
    "outcomes": "How did runs come out?",
    "changes": "Where do plans of several changes break?",
    "audited": "Is what they state true?",
    "thresholds": "Would another threshold change it?",
    "curves": "How did scores develop?",
}
"""The titles of the parts of the overview, by their anchors, which are also the names of `Overview`'s fields."""


class Overview(NamedTuple):
    """The parts of the overview."""

    notices: tuple[Notice, ...]
    key: tuple[KeyEntry, ...]
    leaderboard: tuple[LeaderboardRow, ...]
    """The columns of the heat maps, the most successful first."""
    agents: tuple[tuple[LeaderboardRow, tuple[Amount, ...]], ...]
    pairs: tuple[ForestRow, ...]
    pairs_left_out: int
    """How many pairs are not in `pairs`, since they are too many."""
    span: tuple[float, float]
    """The range of the differences of `pairs`."""
    verdict: str
    """How many differences are significant."""
    success: HeatMap | None
    improvement: HeatMap | None
    profiles: tuple[Picture, ...]
    """Performance profiles, which go with `improvement`."""
    budget: tuple[Picture, ...]
    attempts: tuple[Picture, ...]
    categories: HeatMap | None
    components: tuple[TitledTable, ...]
    log: tuple[TitledTable, ...]
    transfer: tuple[TitledTable, ...]
    notes: Mapping[str, str]
    """Notes on the rows of the heat maps: a task's category, a category's number of tasks."""
    tradeoff: tuple[Picture, ...]
    numbers: tuple[KeyEntry, ...]
    """The key of `tradeoff`, where points have numbers."""
    outcomes: tuple[Bars, ...]
    changes: PlanBreaks | None
    audited: tuple[TitledTable, ...]
    """The tables of the audit."""
    thresholds: tuple[Picture, ...]
    curves: tuple[Picture, ...]

    @property
    def titles(self) -> Mapping[str, str]:
        """The titles of all parts by their anchors, in the order of the page."""
        return TITLES

    @property
    def contents(self) -> tuple[tuple[str, str], ...]:
        """The anchors and titles of the parts that are not empty."""
        return tuple((place, title) for place, title in TITLES.items() if getattr(self, place))


def comparison(runs: Sequence[Run], links: Mapping[Path, str], compare: Sequence[str] = ()) -> Overview:
    """Prepare the overview of many runs; `links` are the addresses of their pages, by the runs' directories."""
    experiment = Experiment.of(runs, compare)
    many = len(runs) > FEW and experiment.counted > 0
    rows = tuple(sorted(experiment.leaderboard, key=lambda row: experiment.ranking.index(row.column)))
    pairs = forest.pairs(experiment.comparisons, experiment.ranking) if many else []
    compared = rows if many else ()
    by_column = looks(experiment.columns, THEMED)
    # The table of agents and models says the same about a single task.
    by_task = many and len(experiment.tasks) > 1
    notes = {task: runs[0].info.category for task, runs in experiment.tasks.items()}
    for name, groups in experiment.categories.items():
        notes[name] = formatting.plural(len({task for group in groups.values() for task in group.tasks}), "task")
    of_studies = _studies(experiment) if many else {}
    return Overview(
        notices=tuple(experiment.notices()),
        key=tuple(KeyEntry(column, look) for column, look in by_column.items()) if len(by_column) >= KEYED else (),
        leaderboard=rows,
        agents=tuple((row, _amounts(row)) for row in compared),
        pairs=tuple(pairs),
        pairs_left_out=sum(bool(each.tasks) for each in experiment.comparisons) - len(pairs) if pairs else 0,
        span=forest.span(pairs) if pairs else (0.0, 0.0),
        verdict=forest.verdict(experiment.comparisons) if pairs else "",
        success=heat(build.success(experiment), experiment.ranking) if by_task else None,
        improvement=heat(build.improvement(experiment), experiment.ranking) if by_task else None,
        categories=heat(build.categories(experiment), experiment.ranking) if many and experiment.categories else None,
        components=of_studies.get("components", ()),
        log=of_studies.get("log", ()),
        transfer=of_studies.get("transfer", ()),
        notes=notes,
        tradeoff=_tradeoffs(compared, experiment.columns),
        numbers=tuple(
            KeyEntry(f"{number}  {row.column}", by_column[row.column], lines=False) for number, row in enumerate(compared, start=1)
        )
        if tradeoff.numbered(compared)
        else (),
        profiles=_profiles(experiment) if many else (),
        budget=_budgets(experiment) if many else (),
        attempts=_attempts(experiment) if many else (),
        outcomes=_outcomes(experiment, rows) if many else (),
        changes=_changes(experiment) if many else None,
        audited=tuple(TitledTable.of(table) for make in AUDITED if (table := make(experiment)).rows) if many else (),
        thresholds=_thresholds(experiment) if many else (),
        curves=_score_curves(experiment, links),
    )


def _amounts(row: LeaderboardRow) -> tuple[Amount, ...]:
    apart = row.apart.total()
    success = improvement = Amount("none")
    if row.rate:
        note = f"{formatting.interval_text(row.rate.low, row.rate.high)}, {formatting.plural(len(row.tasks), 'task')}"
        if row.bounds and row.bounds.left_out:
            low, high = (formatting.percentage(bound) for bound in (row.bounds.if_failed, row.bounds.if_succeeded))
            note += f"; {low} to {high} with {row.bounds.left_out} left out"
        success = Amount(f"{formatting.percentage(row.rate.value)} %", note, row.rate)
    if row.improvement:
        bounds = formatting.interval_text(row.improvement.low, row.improvement.high)
        improvement = Amount(f"{formatting.percentage(row.improvement.value)} %", f"{bounds}{', ' * bool(bounds)}{row.valid:,} valid")
    return (
        Amount(f"{row.runs:,}", f"{apart} not counted" if apart else ""),
        success,
        improvement,
        _mean(row.steps, formatting.number),
        _mean(row.tokens, lambda value: formatting.tokens(round(value)), formatting.tokens(None) if row.runs else "none"),
        _mean(row.seconds, formatting.duration),
        _cost(row),
        _cost_per_success(row),
    )


def _studies(experiment: Experiment) -> dict[str, tuple[TitledTable, ...]]:
    """Return the tables of studies that have rows, by the part of the page."""
    found = Components(experiment)
    tables = {
        "components": (studies.components(found), studies.components_improvement(found)),
        "log": (studies.log_trends(found), studies.log_by_step(found)),
        "transfer": (studies.transfer(experiment),),
    }
    return {part: tuple(TitledTable.of(each) for each in of if each.rows) for part, of in tables.items()}


def _cost(row: LeaderboardRow) -> Amount:
    """Return the mean cost of a run, with a note if only some costs are known; `unknown` if none is, and a dash without tokens."""
    unknown = row.runs - row.priced
    asked = row.tokens.value if row.tokens else None if row.runs else 0
    if row.cost is None or asked == 0:
        return Amount(formatting.cost(None, asked))
    found = _mean(row.cost, lambda dollars: formatting.cost(dollars, asked))
    notes = [found.note, f"unknown for {formatting.plural(unknown, 'run')}" if unknown else ""]
    return found._replace(note="; ".join(note for note in notes if note))


def _cost_per_success(row: LeaderboardRow) -> Amount:
    """Return the cost of a success with its interval, whose end may be unknown; a dash where nothing was paid for."""
    found = row.cost_per_success
    if found is None or not found.value:
        return Amount(formatting.NONE)
    low, high = formatting.cost(found.low, 1), formatting.cost(found.high, 1) if math.isfinite(found.high) else "no end"
    return Amount(formatting.cost(found.value, 1), f"{low} to {high}" if low != high else "")


def _mean(interval: Interval | None, shown: Callable[[float], str], missing: str = "none") -> Amount:
    if interval is None:
        return Amount(missing)
    low, high = shown(interval.low), shown(interval.high)
    return Amount(shown(interval.value), f"{low} to {high}" if low != high else "")


def _tradeoffs(rows: Sequence[LeaderboardRow], columns: Iterable[str]) -> tuple[Picture, ...]:
    titles: Mapping[tradeoff.Amount, str] = {"tokens": "Tokens", "minutes": "Time", "dollars": "Cost"}
    pictures = []
    for amount, title in titles.items():
        missing = tradeoff.left_out(rows, amount)
        words = f"On the front: {'; '.join(tradeoff.on_front(rows, amount))}."
        words += f" Not known for all runs, and so not drawn: {'; '.join(missing)}." if missing else ""
        pictures += _picture(title, tradeoff.tradeoff(rows, amount, THEMED, columns=columns), words)
    pictures += _picture("Cost of a success", cost_per_success(rows, THEMED, columns=columns))
    return tuple(pictures)


def _profiles(experiment: Experiment) -> tuple[Picture, ...]:
    found = profiles(experiment.columns)
    points = [f"{each.column}, {each.level:+.0%}: {formatting.percentage(each.share.value)} %" for each in found]
    chart = interval_curves.profile_curves(found, THEMED, columns=experiment.columns)
    return tuple(_picture("Runs that improve by more", chart, points=tuple(points)))


def _budgets(experiment: Experiment) -> tuple[Picture, ...]:
    found = at_budgets(experiment.columns)
    pictures = []
    for spent in SPENT:
        points = [f"{each.column}, {each.budget:g}: {formatting.percentage(each.rate.value)} %" for each in found if each.spent == spent]
        chart = interval_curves.by_budget(found, spent, palette=THEMED, columns=experiment.columns)
        pictures += _picture(spent.capitalize(), chart, points=tuple(points))
    return tuple(pictures)


def _attempts(experiment: Experiment) -> tuple[Picture, ...]:
    found = at_attempts(experiment.columns)
    titles: Mapping[interval_curves.Measure, str] = {"success": "pass@k", "improvement": "Best of k"}
    pictures = []
    for measure, title in titles.items():
        values = [(each, each.pass_at_k if measure == "success" else each.best_of_k) for each in found]
        points = [f"{each.column}, {each.k}: {formatting.percentage(value.value)} %" for each, value in values if value is not None]
        chart = interval_curves.by_attempts(found, measure, THEMED, columns=experiment.columns)
        pictures += _picture(title, chart, points=tuple(points))
    return tuple(pictures)


def _outcomes(experiment: Experiment, rows: Sequence[LeaderboardRow]) -> tuple[Bars, ...]:
    """Return bars of the runs' verdicts, of what ended the runs and of their modes, each only if it is not the same for all runs."""
    columns = {row.column: BarName(row.agent, row.model, row.under) for row in rows}
    found = [
        _bars("What submissions were worth", "verdict", experiment.columns, columns),
        _bars("What ended the runs", "ended", experiment.columns, columns),
        _bars("How runs failed, by the audit", "mode", experiment.columns, columns),
    ]
    for by in ("agent", "model"):
        pooled = experiment.pooled(by)
        found.append(_bars(f"How runs failed, by {by}", "mode", pooled, {name: BarName(name) for name in pooled}))
    return tuple(bars for bars in found if len(bars.names) > 1)


def _bars(title: str, kind: outcomes.Kind, groups: Mapping[str, Mapping[str, Cell]], names: Mapping[str, BarName]) -> Bars:
    parts = outcomes.parts(groups, kind)
    present = {each: word for each, word in outcomes.WORDS[kind].items() if any(part.kind == each for part in parts)}
    bars = ((name, tuple(part for part in parts if part.column == group)) for group, name in names.items())
    return Bars(title, present, outcomes.colors(kind, THEMED), tuple(bars))


def _changes(experiment: Experiment) -> PlanBreaks | None:
    """Draw the share of runs that got past each dependent change; None without a run of a task of such changes."""
    table = audited.changes(experiment)
    if not table.rows:
        return None
    chart = interval_curves.by_change(past_changes(experiment.columns), THEMED, columns=experiment.columns)
    return PlanBreaks(tuple(_picture("Runs that got past each change", chart)), TitledTable.of(table))


def _thresholds(experiment: Experiment) -> tuple[Picture, ...]:
    titles: Mapping[thresholds.At, str] = {"last": "At the last step", "best": f"At the {BEST_STEP}"}
    pictures = []
    for at, title in titles.items():
        chart = thresholds.success_by_threshold(experiment.thresholds, at, THEMED, columns=experiment.columns)
        points = [
            f"{each.column}, {each.threshold:.0%}: {formatting.percentage(rate.value)} %, {formatting.interval_text(rate.low, rate.high)}"
            for each in experiment.thresholds
            if (rate := each.last if at == "last" else each.best) is not None
        ]
        pictures += _picture(title, chart, points=tuple(points))
    return tuple(pictures)


def _score_curves(experiment: Experiment, links: Mapping[Path, str]) -> tuple[Picture, ...]:
    """Draw the scores of each task that has at least two runs with a valid score."""
    pictures = []
    for task, runs in experiment.tasks.items():
        found = experiment.score_curves(task, links)
        if sum(bool(curve.values) for curve in found) >= 2:
            info = runs[0].info
            chart = score_curves.scores_of_task(info, found, THEMED, columns=experiment.columns)
            pictures += _picture(task, chart, score_curves.describe_curves(info, found))
    return tuple(pictures)


def _picture(title: str, chart: style.Chart | None, words: str = "", points: tuple[str, ...] = ()) -> list[Picture]:
    """Return a list of one picture, or of none without a chart."""
    return [Picture(title, Markup(style.to_svg(chart)), words, points)] if chart is not None else []
