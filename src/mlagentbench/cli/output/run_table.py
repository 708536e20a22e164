"""The progress table of many runs on a terminal: a line for each run that fits, and counts of all."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Mapping
from itertools import islice
from typing import NamedTuple

from rich.cells import set_cell_size
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.style import Style

from mlagentbench.records import GradeStatus, Result, Step, Usage
from mlagentbench.report.formatting import duration, percent, quantity, tokens, visible
from mlagentbench.report.step_view import last_line
from mlagentbench.report.wording import VERDICTS
from mlagentbench.runner.preflight import ReadyRun

MARKS: Mapping[str, str] = {"ok": "✓", "error": "✗"}
STYLES: Mapping[str, Style] = {name: Style.parse(name) for name in ("bold", "dim", "cyan", "green", "red", "yellow")}
MOST_SHOWN = 200
"""The most lines of runs, even on a taller terminal."""
FRAME = 3
"""The lines beside those of runs: the headings, the counts, and one for the cursor."""


class RunStatus:
    """Listens to a run, and knows what it does now."""

    def __init__(self) -> None:
        self.step_count = 0
        self.doing = "starting"
        self.since = time.monotonic()
        self.output = ""
        """The last line of the present script's output."""

    def on_status(self, text: str) -> None:
        """Note what is being done now."""
        self.doing, self.since, self.output = visible(text).replace("\n", " "), time.monotonic(), ""

    def on_output(self, text: str) -> None:
        """Note the last line of a script's output."""
        lines = (self.output + text).rstrip("\n").rsplit("\n", 1)
        self.output = visible(lines[-1])[-200:]

    def on_step(self, step: Step) -> None:
        """Note a step that is done."""
        self.step_count = step.number


class RunRow(RunStatus):
    """One run's line in the table."""

    def __init__(self, ready: ReadyRun, number: int) -> None:
        super().__init__()
        self.ready = ready
        self.number = number
        self.usage = Usage()
        self.last = ""
        self.verdict: GradeStatus | None = None
        self.seconds = 0.0

    def on_output(self, text: str) -> None:
        """Note the last line of a script's output."""
        super().on_output(text)
        self.last = self.output.strip() or self.last

    def on_step(self, step: Step) -> None:
        """Note a step that is done, and the last line of its observation."""
        super().on_step(step)
        self.usage = Usage.total((self.usage, step.usage))
        self.doing, self.since = "thinking", time.monotonic()
        self.last = f"{MARKS.get(step.status, '!')} {last_line(step) or step.action.name}"

    def end(self, result: Result) -> None:
        """Note the result of the run, which is over."""
        self.verdict = result.outcome.verdict
        self.usage = result.total_usage
        self.seconds = result.seconds
        self.doing = "over"
        self.last = verdict_words(self.ready, result)


def verdict_words(ready: ReadyRun, result: Result) -> str:
    """Return a verdict with its score or reason, in a few words.

    For example `success: 3.03 ms (+99.7 %)`, or `invalid submission: train.py cannot be imported`.
    """
    verdict = VERDICTS[result.outcome.verdict]
    if result.score is None:
        return f"{verdict}: {result.outcome.reason}" if result.outcome.reason else verdict
    change = f" ({percent(result.improvement)})" if result.improvement is not None else ""
    return f"{verdict}: {quantity(result.score.value, ready.task.spec.metric.unit)}{change}"


class _Column(NamedTuple):
    heading: str
    width: int
    right: bool = False


class RunTable:
    """The table: the runs in progress, then those that ended last, as many as fit the terminal's height, and counts of all.

    If not all runs in progress fit, those with the latest activity are shown, in their usual order.
    """

    def __init__(self, total: int) -> None:
        self._total = total
        self._active: dict[tuple[str, int], RunRow] = {}
        self._over: deque[RunRow] = deque(maxlen=MOST_SHOWN)
        self._ended: Counter[str] = Counter()
        self._usage = Usage()
        self._began = time.monotonic()

    def start(self, ready: ReadyRun, number: int) -> RunRow:
        """Add a run that starts now, and return its row."""
        row = self._active[ready.task.id, number] = RunRow(ready, number)
        return row

    def end(self, ready: ReadyRun, number: int, result: Result) -> None:
        """Move a run that is over to those that ended."""
        row = self._active.pop((ready.task.id, number), None) or RunRow(ready, number)
        row.end(result)
        self._usage = Usage.total((self._usage, row.usage))
        self._ended["not the agent's" if result.outcome.ended in ("infrastructure", "cancelled") else VERDICTS[result.outcome.verdict]] += 1
        self._over.append(row)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        # Rich calls this from another thread while runs start and end, so the collections are copied.
        active, over = list(self._active.values()), list(self._over)
        room = max(1, min(MOST_SHOWN, console.height - FRAME))
        shown = sorted(active, key=lambda row: row.since, reverse=True)[:room]
        shown = [row for row in active if row in shown] if len(active) > room else active
        ended = list(islice(reversed(over), room - len(shown)))
        columns = _columns([row.ready.task.id for row in (*shown, *ended)], options.max_width)
        lines = [("bold", _line([column.heading for column in columns], columns))]
        lines += [("", _line(_cells(row, columns), columns)) for row in shown]
        lines += [("green" if row.verdict == "success" else "dim", _line(_cells(row, columns), columns)) for row in ended]
        lines.append(("cyan", self._counts(active, len(active) - len(shown))))
        for style, line in lines:
            # Rich's own tables take ten times as long, and a hundred runs are drawn several times a second.
            yield Segment(set_cell_size(line, options.max_width), STYLES.get(style))
            yield Segment.line()

    def _counts(self, active: list[RunRow], hidden: int) -> str:
        running = f"{len(active)} running" + (f" ({hidden} not shown)" if hidden else "")
        waiting = self._total - len(active) - sum(self._ended.values())
        ended = ", ".join(f"{count} {words}" for words, count in self._ended.most_common())
        parts = [running, f"{waiting} waiting" if waiting else "", f"{sum(self._ended.values())} over" + (f": {ended}" if ended else "")]
        used = Usage.total((self._usage, *(row.usage for row in active)))
        return " · ".join(part for part in (*parts, f"{tokens(used.tokens)} tokens", duration(time.monotonic() - self._began)) if part)


def _columns(tasks: list[str], width: int) -> list[_Column]:
    """Return the columns that fit into a width."""
    columns = [_Column("task", min(20, max(4, *map(len, tasks), 4))), _Column("run", 4, True), _Column("step", 8, True)]
    if width >= 90:
        columns += [_Column("tokens", 10, True)]
    columns += [_Column("for", 12, True)]
    left = width - sum(column.width + 2 for column in columns)
    if left < 40:
        return [*columns, _Column("now", max(0, left))]
    return [*columns, _Column("now", left * 2 // 5), _Column("last", left - left * 2 // 5 - 2)]


def _cells(row: RunRow, columns: list[_Column]) -> list[str]:
    cells = {
        "task": row.ready.task.id,
        "run": str(row.number),
        "step": f"{row.step_count}/{row.ready.spec.limits.steps}",
        "tokens": tokens(row.usage.tokens),
        "for": duration(time.monotonic() - row.since if row.verdict is None else row.seconds),
        # If there is no column `last`, the verdict is shown in the column `now`.
        "now": row.last if row.verdict is not None and columns[-1].heading == "now" else row.doing,
        "last": row.last,
    }
    return [cells[column.heading] for column in columns]


def _line(cells: list[str], columns: list[_Column]) -> str:
    fitted = [set_cell_size(cell, column.width) for cell, column in zip(cells, columns, strict=True)]
    return "  ".join(cell.rstrip().rjust(column.width) if column.right else cell for cell, column in zip(fitted, columns, strict=True))
