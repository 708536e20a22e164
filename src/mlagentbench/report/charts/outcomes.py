"""Draw bars of how runs came out: by the verdict on their submissions, by what ended them, or by their failure mode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import altair as alt

from mlagentbench.report import wording
from mlagentbench.report.charts.palette import LIGHT, Palette
from mlagentbench.report.charts.style import data, layered, quoted, short
from mlagentbench.results.cells import Cell
from mlagentbench.results.counts import Counts

WIDTH, BAR = 360, 26
"""The width of the plot and the height of a bar, in pixels."""
ROOM = 18
"""The least width of a part, in pixels, that has room for its count."""

Kind = Literal["verdict", "ended", "mode"]
APART = "not counted"
VERDICTS: Mapping[str, str] = {**{verdict: words for verdict, words in wording.VERDICTS.items() if verdict != "ungraded"}, "apart": APART}
ENDINGS: Mapping[str, str] = {
    "final_answer": "final answer",
    "limit_steps": "limit of steps",
    "limit_time": "limit of time",
    "limit": "another limit",
    "format_failure": "replies without an action",
    "agent_error": "error of the agent",
    "apart": APART,
}

MODES: Mapping[str, str] = {
    "success": "success",
    "small_improvement": "small improvement",
    "bad_plan": "bad plan",
    "hallucination": "hallucination",
    "debugging": "debugging",
    "token_limit": "token limit",
    "no_valid_submission": "no valid submission",
    "stopped_early": "stopped early",
    "apart": "none, or not audited",
}
"""How runs came out: the audit's modes, of which some are drawn as one."""
AS_ONE: Mapping[str, str] = {
    "zero_improvement": "bad_plan",
    "no_submission": "no_valid_submission",
    "invalid_submission": "no_valid_submission",
    "format_failures": "no_valid_submission",
}
WORDS: Mapping[Kind, Mapping[str, str]] = {"verdict": VERDICTS, "ended": ENDINGS, "mode": MODES}


def colors(kind: Kind, palette: Palette) -> Mapping[str, str]:
    """Return the colours of a kind's parts."""
    return {"verdict": palette.verdicts, "ended": palette.endings, "mode": palette.modes}[kind]


class BarPart(NamedTuple):
    """A part of a bar: the runs of a column that came out in one way."""

    column: str
    kind: str
    """A key of `VERDICTS`, `ENDINGS` or `MODES`."""
    runs: int
    of: int
    """How many runs the column has."""
    start: float
    """The share of the bar before this part, 0 to 1."""

    @property
    def share(self) -> float:
        """The part's share of the bar, 0 to 1."""
        return self.runs / self.of

    @property
    def middle(self) -> float:
        """The middle of the part, as a share of the bar."""
        return self.start + self.share / 2


def parts(columns: Mapping[str, Mapping[str, Cell]], kind: Kind) -> list[BarPart]:
    """Count the runs of each column by how they came out; those that are not counted come last."""
    kinds = WORDS[kind]
    found = []
    for column, by_task in columns.items():
        of_kind = [_kind(run, kind) for cell in by_task.values() for run in cell.runs]
        start = 0
        for each in kinds:
            if runs := of_kind.count(each):
                found.append(BarPart(column, each, runs, len(of_kind), start / len(of_kind)))
                start += runs
    return found


def outcomes(found: Sequence[BarPart], kind: Kind) -> alt.LayerChart | None:
    """Draw a bar for each column, divided into its parts with their numbers of runs, for a file; the page has HTML for it.

    Returns:
        The chart; None if there are no runs, or if all came out in one way.
    """
    kinds = WORDS[kind]
    present = [each for each in kinds if any(part.kind == each for part in found)]
    if len(present) < 2:
        return None
    columns = list(dict.fromkeys(part.column for part in found))
    filled = colors(kind, LIGHT)
    rows = [
        {
            "row": columns.index(part.column),
            "kind": kinds[part.kind],
            "from": part.start,
            "to": part.start + part.share,
            "middle": part.middle,
            "text": f"{part.runs:,}" if part.share * WIDTH >= ROOM else "",
        }
        for part in found
    ]
    labels = short(columns)
    totals = {column: next(part.of for part in found if part.column == column) for column in columns}
    names = f"[{', '.join(quoted(f'{labels[column]}, n {totals[column]:,}') for column in columns)}][datum.value]"
    y = alt.Y("row:O", axis=alt.Axis(title=None, domain=False, ticks=False, labelExpr=names, labelLimit=340), scale=alt.Scale(padding=0.14))
    x = alt.X(
        "from:Q", scale=alt.Scale(domain=[0, 1], nice=False), axis=alt.Axis(title="share of runs", format=".0%", tickCount=5, grid=False)
    )
    scale = alt.Scale(domain=[kinds[each] for each in present], range=[filled[each] for each in present])
    shown = alt.Legend(title=None, orient="top", columns=4, symbolType="square", columnPadding=16)
    bars = alt.Chart(data(rows)).mark_bar(stroke=LIGHT.background, strokeWidth=1)
    layers = [
        bars.encode(x=x, x2=alt.X2("to"), y=y, color=alt.Color("kind:N", scale=scale, legend=shown)),
        alt.Chart(data(rows)).mark_text(fontSize=12, color=LIGHT.on_bars).encode(x=alt.X("middle:Q"), y=y, text="text:N"),
    ]
    return layered(layers, WIDTH, BAR * len(columns), LIGHT)


def _kind(run: Counts, kind: Kind) -> str:
    if kind == "mode":
        return AS_ONE.get(run.mode, run.mode) if run.mode else "apart"
    if not run.counted:
        return "apart"
    if kind == "verdict":
        return run.verdict
    return run.ended if run.ended in ENDINGS else "limit"
