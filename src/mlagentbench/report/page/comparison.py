"""Prepare what the page's overview shows of many runs together: tables of agents with models by task, and charts.

The only markup made here is the charts' SVG; the templates escape the rest. Empty parts are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup

from mlagentbench.report import text
from mlagentbench.report.charts import outcomes, rates, score_curves, style, thresholds, tradeoff
from mlagentbench.report.charts.rates import HeatCell, HeatMap, between, hundredth
from mlagentbench.report.charts.style import THEMED, looks
from mlagentbench.report.experiment import FEW, Experiment, LeaderboardRow, Notice
from mlagentbench.report.tables.build import notices
from mlagentbench.results.load import Run
from mlagentbench.results.statistics import Interval

LABELLED = 5.5
"""Percent of a bar from which a piece has room for its number."""
KEYED = 2
"""From so many columns on, a key of colours is shown."""


class ColourKey(NamedTuple):
    """An entry of a key: a colour of the charts and the name it stands for."""

    name: str
    color: str
    dash: str = ""


class Picture(NamedTuple):
    """A chart with a description."""

    title: str
    svg: Markup
    words: str
    points: tuple[str, ...] = ()
    """The values of the chart, one by one, for readers who cannot see it."""


class BarPiece(NamedTuple):
    """A piece of a bar; positions and widths are in percent of the bar's length."""

    color: str
    start: float
    width: float
    middle: float
    runs: int
    label: str
    """The number of runs, if there is room for it, else empty."""
    words: str


class Bar(NamedTuple):
    """The runs of a column by verdict, or by what ended them."""

    head: ColumnName
    runs: int
    pieces: tuple[BarPiece, ...]


class Bars(NamedTuple):
    """A bar for each column, with a key."""

    title: str
    key: tuple[ColourKey, ...]
    bars: tuple[Bar, ...]


class ColumnName(NamedTuple):
    """A column's name in parts."""

    agent: str
    model: str
    under: str


class ShadedCell(NamedTuple):
    """A cell of a heat map."""

    value: str
    bounds: str
    of: str
    apart: str
    level: int | None


class HeatRow(NamedTuple):
    """A row of a heat map."""

    name: str
    note: str
    boxes: tuple[ShadedCell, ...]


class HeatTable(NamedTuple):
    """A heat map as a table."""

    rows: tuple[HeatRow, ...]
    averages: HeatRow | None


class Whisker(NamedTuple):
    """An interval drawn as a line; the values are in percent of the scale."""

    start: float
    width: float
    at: float


class Amount(NamedTuple):
    """A number with a note on its interval and what it is computed from."""

    value: str
    note: str = ""
    whisker: Whisker | None = None


class LeaderboardTableRow(NamedTuple):
    """A column over all its tasks, as a row of the table of agents and models."""

    head: ColumnName
    amounts: tuple[Amount, ...]


STANDING_COLUMNS = ("Runs", "Success", "Improvement", "Steps a run", "Tokens a run", "Time a run", "Cost a run")


class Overview(NamedTuple):
    """The parts of the overview."""

    told: tuple[Notice, ...]
    key: tuple[ColourKey, ...]
    heads: tuple[ColumnName, ...]
    standings: tuple[LeaderboardTableRow, ...]
    success: HeatTable | None
    improvement: HeatTable | None
    tradeoffs: tuple[Picture, ...]
    numbers: tuple[ColourKey, ...]
    """The key of `tradeoffs`, where points have numbers."""
    outcomes: tuple[Bars, ...]
    categories: HeatTable | None
    thresholds: tuple[Picture, ...]
    courses: tuple[Picture, ...]

    @property
    def contents(self) -> tuple[tuple[str, str], ...]:
        """The anchors and titles of the parts that are not empty."""
        parts = [
            ("agents", "Agents and models", self.standings),
            ("success", "Success by task", self.success),
            ("improvement", "Improvement by task", self.improvement),
            ("categories", "By category", self.categories),
            ("tradeoff", "Success and what it took", self.tradeoffs),
            ("outcomes", "How runs came out", self.outcomes),
            ("thresholds", "Other thresholds", self.thresholds),
            ("courses", "Scores over steps", self.courses),
        ]
        return tuple((place, title) for place, title, there in parts if there)


def comparison(runs: Sequence[Run], links: Mapping[Path, str]) -> Overview:
    """Prepare the overview of many runs.

    Args:
        runs: all of them.
        links: the addresses of runs within the page, by the runs' directories.
    """
    experiment = Experiment.of(runs)
    many = len(runs) > FEW and experiment.counted > 0
    standings = experiment.standings if many else []
    columns = experiment.columns if many else {}
    by_column = looks(experiment.columns, THEMED)
    return Overview(
        told=tuple(notices(experiment)),
        key=tuple(ColourKey(column, look.color, " ".join(map(str, look.dash))) for column, look in by_column.items())
        if len(by_column) >= KEYED
        else (),
        heads=tuple(_head(standing) for standing in experiment.standings),
        standings=tuple(LeaderboardTableRow(_head(standing), _amounts(standing)) for standing in standings),
        # The standings say the same about a single task.
        success=_table(rates.heat("success", columns), experiment) if len(experiment.tasks) > 1 else None,
        improvement=_table(rates.heat("improvement", columns), experiment) if len(experiment.tasks) > 1 else None,
        tradeoffs=_tradeoffs(standings),
        numbers=tuple(ColourKey(f"{number}  {column}", look.color) for number, (column, look) in enumerate(by_column.items(), start=1))
        if tradeoff.numbered(standings)
        else (),
        outcomes=_outcomes(experiment) if many else (),
        categories=_categories(experiment) if many else None,
        thresholds=_thresholds(experiment) if many else (),
        courses=_courses(experiment, links),
    )


def _head(standing: LeaderboardRow) -> ColumnName:
    return ColumnName(standing.agent, standing.model, standing.under)


def _amounts(standing: LeaderboardRow) -> tuple[Amount, ...]:
    apart = standing.apart.total()
    over = text.plural(len(standing.tasks), "task")
    rate = standing.rate
    return (
        Amount(f"{standing.runs:,}", f"{apart} not counted" if apart else ""),
        Amount(f"{hundredth(rate.value)} %", f"{between(rate)}, {over}", _whisker(rate)) if rate else Amount("none"),
        _improvement(standing),
        _mean(standing.steps, text.number),
        _mean(standing.tokens, lambda value: text.tokens(round(value))),
        _mean(standing.seconds, text.duration),
        _cost(standing),
    )


def _improvement(standing: LeaderboardRow) -> Amount:
    found = standing.improvement
    if found is None:
        return Amount("none")
    bounds = f"{between(found)}, " if found.low < found.high else ""
    return Amount(f"{hundredth(found.value)} %", f"{bounds}{f'{standing.valid:,} valid'}")


def _cost(standing: LeaderboardRow) -> Amount:
    """Return the mean cost of a run, with a note if only some costs are known; `unknown` if none is, and a dash without tokens."""
    unknown = standing.runs - standing.priced
    asked = standing.tokens.value if standing.tokens else 0
    if standing.cost is None or not asked:
        return Amount(text.cost(None, asked))
    found = _mean(standing.cost, lambda dollars: text.cost(dollars, asked))
    notes = [found.note, f"unknown for {text.plural(unknown, 'run')}" if unknown else ""]
    return found._replace(note="; ".join(note for note in notes if note))


def _mean(interval: Interval | None, shown: Callable[[float], str]) -> Amount:
    if interval is None:
        return Amount("none")
    low, high = shown(interval.low), shown(interval.high)
    return Amount(shown(interval.value), f"{low} to {high}" if low != high else "")


def _whisker(interval: Interval) -> Whisker:
    return Whisker(round(100 * interval.low, 1), round(100 * (interval.high - interval.low), 1), round(100 * interval.value, 1))


def _table(heat: HeatMap, experiment: Experiment) -> HeatTable | None:
    if not any(square.value is not None for by_column in heat.rows.values() for square in by_column.values()):
        return None
    rows = tuple(
        HeatRow(task, experiment.tasks[task][0].info.category, tuple(_box(square, heat) for square in by_column.values()))
        for task, by_column in heat.rows.items()
    )
    averages = HeatRow("Average", "", tuple(_box(square, heat) for square in heat.averages.values()))
    return HeatTable(rows, averages if len(rows) > 1 else None)


def _categories(experiment: Experiment) -> HeatTable | None:
    if not experiment.categories:
        return None
    heat = rates.heat_of_groups(experiment.categories, tuple(experiment.columns))
    rows = []
    for name, by_column in heat.rows.items():
        tasks = {task for group in experiment.categories[name].values() for task in group.tasks}
        rows.append(HeatRow(name, text.plural(len(tasks), "task"), tuple(_box(square, heat) for square in by_column.values())))
    return HeatTable(tuple(rows), None)


def _box(square: HeatCell, heat: HeatMap) -> ShadedCell:
    apart = f"{square.apart} not counted" if square.apart else ""
    level = None if square.value is None else rates.level(square.value, heat.measure)
    return ShadedCell(square.shown, square.bounds, square.of, apart, level)


def _tradeoffs(standings: Sequence[LeaderboardRow]) -> tuple[Picture, ...]:
    titles: Mapping[tradeoff.Amount, str] = {"tokens": "Tokens", "minutes": "Time", "dollars": "Cost"}
    pictures = []
    for amount, title in titles.items():
        chart = tradeoff.tradeoff(standings, amount, THEMED, legend=False)
        if chart is None:
            continue
        missing = tradeoff.left_out(standings, amount)
        words = f"Not known for all runs, and so not drawn: {'; '.join(missing)}." if missing else ""
        pictures.append(Picture(title, _svg(chart), words))
    return tuple(pictures)


def _outcomes(experiment: Experiment) -> tuple[Bars, ...]:
    """Return bars of the runs' verdicts and of what ended the runs, each only if it is not the same for all runs."""
    titles: Mapping[outcomes.Kind, str] = {"verdict": "What submissions were worth", "ended": "What ended the runs"}
    found = []
    for kind, title in titles.items():
        words, colors = (outcomes.VERDICTS, THEMED.verdicts) if kind == "verdict" else (outcomes.ENDINGS, THEMED.endings)
        parts = outcomes.parts(experiment.columns, kind)
        key = tuple(ColourKey(word, colors[each]) for each, word in words.items() if any(part.kind == each for part in parts))
        if len(key) > 1:
            bars = [
                _bar(_head(standing), [part for part in parts if part.column == standing.column], kind) for standing in experiment.standings
            ]
            found.append(Bars(title, key, tuple(bars)))
    return tuple(found)


def _bar(head: ColumnName, parts: Sequence[outcomes.BarPart], kind: outcomes.Kind) -> Bar:
    words = outcomes.VERDICTS if kind == "verdict" else outcomes.ENDINGS
    colors = THEMED.verdicts if kind == "verdict" else THEMED.endings
    pieces, start = [], 0.0
    for part in parts:
        width = 100 * part.runs / part.of
        label = f"{part.runs:,}" if width >= LABELLED else ""
        pieces.append(
            BarPiece(colors[part.kind], round(start, 2), round(width, 2), round(start + width / 2, 2), part.runs, label, words[part.kind])
        )
        start += width
    return Bar(head, parts[0].of, tuple(pieces))


def _thresholds(experiment: Experiment) -> tuple[Picture, ...]:
    titles: Mapping[thresholds.At, str] = {"last": "At the last step", "best": "At the best step"}
    pictures = []
    for at, title in titles.items():
        chart = thresholds.success_by_threshold(experiment.thresholds, at, THEMED, columns=experiment.columns, legend=False)
        if chart is None:
            continue
        points = [
            f"{each.column}, {each.threshold:.0%}: {hundredth(rate.value)} %, {between(rate)}"
            for each in experiment.thresholds
            if (rate := each.last if at == "last" else each.best) is not None
        ]
        pictures.append(Picture(title, _svg(chart), "", tuple(points)))
    return tuple(pictures)


def _courses(experiment: Experiment, links: Mapping[Path, str]) -> tuple[Picture, ...]:
    """Draw the scores of each task that has at least two runs with a valid score."""
    pictures = []
    for task, runs in experiment.tasks.items():
        found = experiment.courses(task, links)
        if sum(bool(course.values) for course in found) < 2:
            continue
        info = runs[0].info
        chart = score_curves.scores_of_task(info, found, THEMED, columns=experiment.columns, legend=False)
        if chart is not None:
            pictures.append(Picture(task, _svg(chart), score_curves.describe_courses(info, found)))
    return tuple(pictures)


def _svg(chart: style.Chart) -> Markup:
    return Markup(style.to_svg(chart))
