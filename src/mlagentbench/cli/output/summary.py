"""Prints the results of runs, for people and as JSON."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from mlagentbench.records import Result
from mlagentbench.report.console import Definitions, Item, Listing, unbroken
from mlagentbench.report.formatting import cost, duration, estimate, percent, plural, quantity, tokens, visible
from mlagentbench.report.step_view import shown_path
from mlagentbench.report.wording import FLAGS, VERDICTS, baseline_words, direction_words, headline, outcome_words, price_words
from mlagentbench.run_spec import RunInfo
from mlagentbench.rundir.directory import RunDirectory
from mlagentbench.task.spec import UNGRADED


def as_json(directory: RunDirectory) -> str:
    """Return one run as one line of JSON."""
    info, result = directory.info, _result(directory)
    usage = result.total_usage
    return json.dumps(
        {
            "run": info.run,
            "task": info.spec.task,
            "variant": info.spec.variant,
            "mini_seed": info.spec.mini_seed,
            "agent": info.spec.agent,
            "model": info.spec.model_names["agent"],
            "ended": result.outcome.ended,
            "verdict": result.outcome.verdict,
            "flags": list(result.outcome.flags),
            "reason": result.outcome.reason,
            "score": result.score.value if result.score else None,
            "baseline": result.baseline.value if result.baseline else None,
            "improvement": result.improvement,
            "success": result.success,
            "steps": result.steps,
            "seconds": round(result.seconds, 3),
            "tokens": usage.tokens,
            "cost": usage.cost,
            "isolation": info.isolation,
            "log": str(directory.path),
        }
    )


class JsonLines:
    """Prints runs as lines of JSON. If the reader closes the pipe, it prints no more, and the other runs continue."""

    def __init__(self) -> None:
        self._read = True

    def __call__(self, directory: RunDirectory) -> None:
        """Print a run that is over."""
        if not self._read:
            return
        try:
            click.echo(as_json(directory))
        except BrokenPipeError:
            self._read = False
            # Python would fail to write the rest of the buffer when it exits.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def show(console: Console, directory: RunDirectory, places: Sequence[tuple[str, Path]]) -> None:
    """Print one run, and below it the paths of its files."""
    info, result = directory.info, _result(directory)
    console.print()
    console.print(Text(visible(headline(info, result)), style=f"bold {'green' if result.success else 'yellow'}"))
    console.print(Definitions(_rows(info, result)), crop=False)
    console.print()
    unbroken(console, ("run", info.run), *((label, str(shown_path(path))) for label, path in places))


def show_all(console: Console, directories: Sequence[RunDirectory], places: Sequence[tuple[str, Path]]) -> None:
    """Print several runs, each with its numbers, and below them the counts of verdicts by task."""
    runs = [(directory.info, _result(directory)) for directory in directories]
    items = [
        Item(
            info.run,
            (
                VERDICTS[result.outcome.verdict] + ("" if result.outcome.ended == "final_answer" else f" ({outcome_words(result)})"),
                estimate(result.score.value, result.score.standard_error, info.unit) if result.score else "",
                percent(result.improvement) if result.improvement is not None else "",
                str(result.steps),
                duration(result.seconds),
                tokens(result.total_usage.tokens),
            ),
            "green" if result.success else "",
        )
        for info, result in runs
    ]
    console.print(Listing("run", ("verdict", "score>", "improvement>", "steps>", "time>", "tokens>"), items), crop=False)
    for task in dict.fromkeys(info.spec.task for info, _ in runs):
        verdicts = Counter(VERDICTS[result.outcome.verdict] for info, result in runs if info.spec.task == task)
        counted = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common())
        console.print(Text.assemble((task, "bold"), f": {plural(verdicts.total(), 'run')}: {counted}"))
    for flag in dict.fromkeys(flag for _, result in runs for flag in result.outcome.flags):
        console.print(Text(f"{FLAGS[flag].title}: {FLAGS[flag].meaning}", style="yellow"))
    unbroken(console, *((label, str(shown_path(path))) for label, path in places))


def _rows(info: RunInfo, result: Result) -> list[tuple[str, str]]:
    usage = result.total_usage
    priced = price_words(info.spec.prices.values()) if usage.cost is not None else ""
    rows = [("task", f"{info.spec.task}, {info.spec.data_name} variant"), ("agent", f"{info.spec.agent}, {info.spec.model_names['agent']}")]
    if result.score:
        score = estimate(result.score.value, result.score.standard_error, info.unit)
        rows.append(("score", f"{score}  ({info.metric}, {direction_words(info.direction)})"))
    if result.baseline:
        rows.append(("baseline", f"{quantity(result.baseline.value, info.unit)}  ({baseline_words(result.baseline, info.unit)})"))
    if result.improvement is not None:
        rows.append(("improvement", f"{percent(result.improvement)}  (a success needs more than +10 %)"))
    if info.metric != UNGRADED:
        rows.append(("success", "yes" if result.success else "no"))
    rows += [
        ("ended", _ended(info, result)),
        ("steps", str(result.steps)),
        ("time", f"{duration(result.seconds)}  (model {duration(result.model_seconds)}, scripts {duration(result.script_seconds)})"),
        ("tokens", f"{tokens(usage.tokens)} in {plural(usage.calls, 'call')}"),
        ("cost", f"{cost(usage.cost, usage.tokens)}  ({priced})" if priced else cost(usage.cost, usage.tokens)),
        ("isolation", info.isolation),
    ]
    rows += [("note", f"{FLAGS[flag].title}: {FLAGS[flag].meaning}") for flag in result.outcome.flags]
    return rows


def _ended(info: RunInfo, result: Result) -> str:
    """Return how the run ended, with the reason if the title above does not state it."""
    reason = result.outcome.reason
    return f"{outcome_words(result)}: {reason}" if reason and reason not in headline(info, result) else outcome_words(result)


def _result(directory: RunDirectory) -> Result:
    result = directory.result
    assert result is not None, "a run is shown when it is over"
    return result
