"""Render the report as HTML files that load nothing from the network: one page for each run, and for many runs an overview that links them.

Every text goes through the templates, which escape it; `formatting.visible` makes control characters visible. All pages can be read,
searched and printed without JavaScript.
"""

from __future__ import annotations

import base64
import hashlib
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from mlagentbench.errors import UsageError
from mlagentbench.report import formatting, wording
from mlagentbench.report.charts import forest, interval_curves, scores, style, thresholds
from mlagentbench.report.charts.palette import THEMED
from mlagentbench.report.formatting import plural, visible
from mlagentbench.report.page.comparison import LEADERBOARD_COLUMNS, comparison
from mlagentbench.report.run_view import RunView, run_view
from mlagentbench.report.step_view import rejected_replies, shown_path, step_views
from mlagentbench.results.load import Loaded, Run
from mlagentbench.util.atomic import replace

LONGEST_TEXT = 12_000
"""The longest text, in characters, that is shown whole: a thought, an argument, an observation, a difference of a file."""
LONGEST_NAME = 100
"""The longest name of a run's page, in characters, before its suffix."""
FEW = 3
"""Up to so many names are listed; more are counted."""


class RunColumn(NamedTuple):
    """A column of the table of runs."""

    label: str
    kind: str = "text"
    wide: bool = False
    """Whether the column is left out on a narrow screen."""


COLUMNS = (
    RunColumn("Run", "number"),
    RunColumn("Task", wide=True),
    RunColumn("Agent", wide=True),
    RunColumn("Outcome"),
    RunColumn("Improvement", "number"),
    *(RunColumn(label, "number", wide=True) for label in ("Score", "Steps", "Time", "Tokens", "Cost")),
)


class PageFile(NamedTuple):
    """A page, and the name of its file relative to the folder of the report."""

    name: str
    html: str


def write_report(loaded: Loaded, output: Path, compare: Sequence[str] = ()) -> Path:
    """Write the page of one run, or the overview of many and beside it a folder with a page for each run (`report-runs/`).

    Returns:
        `output`.

    Raises:
        UsageError: a file cannot be written.
    """
    try:
        for page in report_pages(loaded, output.name, compare):
            path = output.parent / page.name
            path.parent.mkdir(parents=True, exist_ok=True)
            replace(path, page.html.encode("utf-8", "replace"), durable=False)
    except OSError as error:
        raise UsageError(f"cannot write the report to {output}: {error.strerror}; choose another file with -o") from None
    return output


def report_pages(loaded: Loaded, name: str, compare: Sequence[str] = ()) -> Iterator[PageFile]:
    """Yield the files of `write_report`. The last is the page that a reader opens; all links between them are relative."""
    runs, unreadable, path = loaded
    templates, scope = _templates(), str(shown_path(path))
    with style.unchecked():
        if len(runs) == 1 and not unreadable:
            yield PageFile(name, _run_page(templates, runs[0], scope))
            return
        names = _file_names(runs)
        order = [None, *(quote(names[run.directory.path]) for run in runs), None]
        folder = f"{Path(name).stem}-runs"
        for run, (before, _), (_, after) in zip(runs, pairwise(order[:-1]), pairwise(order[1:]), strict=True):
            html = _run_page(templates, run, scope, overview=f"../{quote(name)}", before=before, after=after)
            yield PageFile(f"{folder}/{names[run.directory.path]}", html)
        links = {path: f"{quote(folder)}/{quote(file)}" for path, file in names.items()}
        yield PageFile(name, _overview(templates, loaded, links, compare))


def _run_page(templates: Environment, run: Run, scope: str, **links: str | None) -> str:
    view = run_view(run, LONGEST_TEXT)
    baseline = run.result.baseline if run.result else None
    chart = scores.score_over_steps(run.info, run.scores, baseline, run.last_step, THEMED, link=lambda step: f"#step-{step}")
    return templates.get_template("run.html.j2").render(
        title=f"{run.info.spec.task}: {view.title}",
        scope=scope,
        view=view,
        limit=LONGEST_TEXT,
        folder=str(shown_path(run.directory.path)),
        chart=Markup(style.to_svg(chart)) if chart else "",
        chart_words=scores.describe_scores(run.info, run.scores, baseline),
        steps=list(step_views(run, LONGEST_TEXT)),
        rejected=rejected_replies(run, run.after_last, LONGEST_TEXT),
        **{"overview": None, "before": None, "after": None, **links},
    )


def _overview(templates: Environment, loaded: Loaded, links: dict[Path, str], compare: Sequence[str]) -> str:
    """Render the overview of all runs: the comparison and the table of runs."""
    views = [run_view(run, LONGEST_TEXT) for run in loaded.runs]
    facts: dict[str, list[str]] = {
        "Task": [view.run.info.spec.task for view in views],
        "Variant": [view.run.info.spec.data_name for view in views],
        "Agent": [view.run.info.spec.agent for view in views],
        "Model": [view.models for view in views],
        "Outcome": [view.verdict for view in views],
        "Isolation": [view.run.info.isolation for view in views],
    }
    tasks = set(facts["Task"])
    return templates.get_template("overview.html.j2").render(
        title=plural(len(views), "run") + (f" of {min(tasks)}" if len(tasks) == 1 else ""),
        scope=str(shown_path(loaded.path)),
        runs=views,
        links=links,
        together=comparison(loaded.runs, links, compare),
        leaderboard_columns=LEADERBOARD_COLUMNS,
        with_intervals=thresholds.WITH_INTERVALS,
        with_bands=interval_curves.WITH_BANDS,
        questions=tuple(forest.QUESTIONS.values()),
        unreadable=loaded.unreadable,
        damage=[line for run in loaded.runs for line in run.damage],
        columns=COLUMNS,
        filters={label: sorted(set(values)) for label, values in facts.items() if len(set(values)) > 1},
        names=[_named(noun.lower(), facts[noun]) for noun in ("Task", "Agent", "Model")],
        lede=_outcomes(views),
    )


def _templates() -> Environment:
    style, script = (files(__package__).joinpath(name).read_text(encoding="utf-8") for name in ("report.css", "report.js"))

    def shown(value: Any) -> Any:
        return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value

    templates = Environment(
        loader=PackageLoader("mlagentbench.report.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=shown,
    )
    formats = {
        each.__name__: each for each in (formatting.cost, formatting.duration, formatting.percent, formatting.quantity, formatting.tokens)
    }
    templates.filters.update(
        formats,
        breakable=_breakable,
        points=lambda share: formatting.percentage(share, 0),
        blank=lambda value: "" if value is None else value,
    )
    templates.globals.update(
        plural=plural,
        verdict_counts=wording.verdict_counts,
        policy=Markup(_policy(style, script)),
        style=Markup(style),
        script=Markup(script),
        made=time.strftime("Made by MLAgentBench on %-d %b %Y, %H:%M UTC", time.gmtime()),
    )
    return templates


def _policy(style: str, script: str) -> str:
    """Return a content security policy that allows this page's own style and script, images within it, and nothing else."""
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script)]
    own = f"style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}'"
    return f"default-src 'none'; img-src data:; {own}; base-uri 'none'; form-action 'none'"


def _file_names(runs: Sequence[Run]) -> dict[Path, str]:
    """Return a different name for the file of each run's page, by the runs' directories."""
    names: dict[Path, str] = {}
    taken: set[str] = set()
    for run in runs:
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", run.directory.name)[:LONGEST_NAME]
        # Some file systems do not tell upper from lower case.
        name = f"{name}~{len(names)}" if name.lower() in taken else name
        taken.add(name.lower())
        names[run.directory.path] = f"{name}.html"
    return names


def _named(noun: str, names: Sequence[str]) -> str:
    """List the different names if they are few, else return how many they are."""
    different = sorted(set(names))
    return ", ".join(different) if len(different) <= FEW else plural(len(different), noun)


def _outcomes(views: Sequence[RunView]) -> str:
    """Count runs by verdict: `5 successes, 2 without success`. Failures that are not the agent's are mentioned at the end."""
    counts = Counter(view.kind for view in views)
    counted = [
        plural(counts["success"], "success"),
        f"{counts['no_improvement']} without success",
        plural(counts["invalid_submission"], "invalid submission"),
        f"{counts['no_submission']} without a submission",
        f"{counts['ungraded']} not graded",
        f"{counts['unfinished']} without a result yet",
        f"{counts['damaged']} with a result that cannot be read",
    ]
    blameless = sum(view.ended in ("infrastructure", "cancelled") for view in views)
    return ", ".join(words for words in counted if not words.startswith("0 ")) + (
        f"; {blameless} of them cancelled, or ended by a failure that is not counted against the agent" if blameless else ""
    )


def _breakable(text: str) -> Markup:
    """Let a long name be broken after its hyphens, slashes, underscores, dots and colons."""
    return Markup("<wbr>").join(escape(part) for part in re.split(r"(?<=[-/_.:])", visible(text)))
