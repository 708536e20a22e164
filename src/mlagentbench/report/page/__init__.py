"""Render the report page: one HTML file that contains everything it needs, and loads nothing from the network.

Every text goes through the templates, which escape it; `text.visible` makes control characters visible. A run's part of the page is its
story. A small report includes the stories as HTML, so that it can be read, searched and printed without JavaScript. A large one includes
the same HTML compressed (gzip), and decompresses a story when the reader opens its run.
"""

from __future__ import annotations

import base64
import bisect
import gzip
import hashlib
import re
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from mlagentbench.errors import UsageError
from mlagentbench.report.charts import scores, style, thresholds
from mlagentbench.report.page.comparison import STANDING_COLUMNS, comparison
from mlagentbench.report.run_view import RunView, run_view
from mlagentbench.report.step_view import TextBudget, rejected_replies, shown_path, step_views
from mlagentbench.report.text import plural, visible
from mlagentbench.results.load import Loaded, Run

MAX_BYTES = 4_900_000
"""The limit of the page's size; texts are cut shorter to keep it."""
WHOLE = 1_500_000
"""Up to so many characters, the stories are in the page as HTML; beyond, compressed."""
ROOMS = tuple(
    TextBudget(words, output)
    for words, output in (
        *((12_000, 12_000), (6_000, 5_000), (4_000, 2_500), (3_000, 1_500), (2_000, 1_000), (1_500, 700), (1_200, 500), (1_000, 400)),
        *((800, 300), (600, 240), (450, 190), (330, 150), (240, 120), (170, 90), (120, 60), (80, 40)),
    )
)
"""Limits of texts, from the largest to the smallest: the first that keeps the page within `MAX_BYTES` is used, or else the last."""
FEW = 3
"""Up to so many names are listed; more are counted."""
SAMPLE = 10
"""About how many runs are rendered to estimate the size of the page, before all are."""


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
    RunColumn("Score", "number", wide=True),
    RunColumn("Steps", "number", wide=True),
    RunColumn("Time", "number", wide=True),
    RunColumn("Tokens", "number", wide=True),
    RunColumn("Cost", "number", wide=True),
)


class Filter(NamedTuple):
    """A filter of the table of runs."""

    label: str
    key: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class RunPage:
    """A run's part of the page."""

    slug: str
    title: str
    html: Markup
    packed: str = ""
    """The HTML compressed, for a script element, where it is not in the page as HTML."""


def write_report(loaded: Loaded, output: Path) -> Path:
    """Write the report of one run or of many as one page.

    Returns:
        `output`.

    Raises:
        UsageError: the file cannot be written.
    """
    html = render_report(loaded)
    temporary = output.with_name(f".{output.name}.part")
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(html.encode("utf-8", "replace"))
        temporary.replace(output)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise UsageError(f"cannot write the report to {output}: {error.strerror}; choose another file with -o") from None
    return output


def render_report(loaded: Loaded, *, max_bytes: int = MAX_BYTES, whole: int = WHOLE) -> str:
    """Return the page of `write_report` as a string.

    Args:
        loaded: the runs.
        max_bytes: the limit of the page's size.
        whole: up to so many characters, the stories are in the page as HTML.
    """
    runs, unreadable, path = loaded
    many = len(runs) != 1 or bool(unreadable)
    slugs = _slugs(runs)
    pages = _Pages(many, slugs)
    views = [run_view(run, slugs[run.directory.path], ROOMS[0]) for run in runs]
    with style.unchecked():
        overview = pages.overview(runs, views, unreadable) if many else Markup()
        room, stories = _fitted(pages, runs, max_bytes - len(overview.encode("utf-8", "replace")), whole)
    title = _counted(views) if many else f"{views[0].task}: {views[0].title}"
    return pages.shell(title, str(shown_path(path)), overview, stories, room)


class _Pages:
    """The templates, and what they have in common."""

    def __init__(self, many: bool, slugs: dict[Path, str]) -> None:
        self.many = many
        self.slugs = slugs
        self._charts: dict[Path, Markup] = {}
        self._templates = Environment(
            loader=PackageLoader("mlagentbench.report.page"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            finalize=lambda value: visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value,
        )
        self._templates.filters.update(breakable=_breakable, blank=lambda value: "" if value is None else value)
        self._templates.globals.update(plural=plural)

    def run(self, run: Run, room: TextBudget) -> RunPage:
        """Render one run's story."""
        slug = self.slugs[run.directory.path]
        view = run_view(run, slug, room)
        html = self._templates.get_template("run.html.j2").render(
            run=view,
            many=self.many,
            chart=self._chart(run, slug),
            chart_words=scores.describe_scores(run.info, run.scores, run.result.baseline if run.result else None),
            steps=step_views(run, slug, room) if run.steps else (),
            rejected=rejected_replies(run, run.after_last, room),
        )
        return RunPage(slug, view.title, Markup(html))

    def overview(self, runs: Sequence[Run], views: Sequence[RunView], unreadable: Sequence[str]) -> Markup:
        """Render the overview of all runs: the comparison and the table of runs."""
        links = {path: f"#{quote(slug)}" for path, slug in self.slugs.items()}
        html = self._templates.get_template("overview.html.j2").render(
            runs=views,
            together=comparison(runs, links),
            standing_columns=STANDING_COLUMNS,
            with_intervals=thresholds.WITH_INTERVALS,
            unreadable=unreadable,
            columns=COLUMNS,
            filters=_filters(views),
            title=_counted(views),
            tasks=_named("task", [view.task for view in views]),
            agents=_named("agent", [view.agent for view in views]),
            models=_named("model", [view.models for view in views]),
            lede=_outcomes(views),
        )
        return Markup(html)

    def shell(self, title: str, scope: str, overview: Markup, stories: Sequence[RunPage], room: TextBudget) -> str:
        """Render the whole page."""
        style, script = (files(__package__).joinpath(name).read_text(encoding="utf-8") for name in ("report.css", "report.js"))
        packed = any(story.packed for story in stories)
        return self._templates.get_template("report.html.j2").render(
            title=title,
            scope=scope,
            policy=Markup(_policy(style, script)),
            style=Markup(style),
            script=Markup(script),
            overview=overview,
            runs=stories,
            packed=packed,
            made=time.strftime("Made by MLAgentBench on %-d %b %Y, %H:%M UTC", time.gmtime()),
            room=room,
        )

    def _chart(self, run: Run, slug: str) -> Markup:
        key = run.directory.path
        if key not in self._charts:
            baseline = run.result.baseline if run.result else None
            steps = run.steps[-1].number if run.steps else 0
            link = f"#{quote(slug)}/"
            chart = scores.score_over_steps(run.info, run.scores, baseline, steps, style.THEMED, link=lambda step: f"{link}{step}")
            self._charts[key] = Markup(style.to_svg(chart)) if chart else Markup()
        return self._charts[key]


def _fitted(pages: _Pages, runs: Sequence[Run], max_bytes: int, whole: int) -> tuple[TextBudget, list[RunPage]]:
    """Render all stories, with their texts cut as little as the page's size allows."""
    sample = runs[:: max(1, len(runs) // SAMPLE)]
    # The rest of the page is its style and script, and a heading for each run.
    budget = max_bytes - 50_000 - 500 * len(runs)

    def seems_to_fit(room: TextBudget) -> bool:
        return sum(len(_pack(pages.run(run, room).html)) for run in sample) * len(runs) <= budget * len(sample)

    first = bisect.bisect_left(ROOMS[:-1], True, key=seems_to_fit) if len(sample) < len(runs) else 0
    for room in ROOMS[first:]:
        stories = [pages.run(run, room) for run in runs]
        if sum(len(story.html) for story in stories) <= min(whole, budget):
            break
        stories = [RunPage(story.slug, story.title, Markup(), _pack(story.html)) for story in stories]
        if sum(len(story.packed) for story in stories) <= budget:
            break
    return room, stories


def _pack(html: str) -> str:
    return base64.b64encode(gzip.compress(html.encode("utf-8", "replace"), 9, mtime=0)).decode("ascii")


def _policy(style: str, script: str) -> str:
    """Return a content security policy that allows this page's own style and script, images within it, and nothing else."""
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script)]
    own = f"style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}'"
    return f"default-src 'none'; img-src data:; {own}; base-uri 'none'; form-action 'none'"


def _slugs(runs: Sequence[Run]) -> dict[Path, str]:
    """Return unique anchors for runs, by the runs' directories."""
    slugs: dict[Path, str] = {}
    for run in runs:
        slug = "run-" + re.sub(r"[^A-Za-z0-9._-]+", "-", run.directory.name)
        slugs[run.directory.path] = f"{slug}~{len(slugs)}" if slug in slugs.values() else slug
    return slugs


def _filters(views: Sequence[RunView]) -> list[Filter]:
    keys = [("Task", "task", "task"), ("Variant", "variant", "variant"), ("Agent", "agent", "agent"), ("Model", "model", "models")]
    keys += [("Outcome", "outcome", "verdict"), ("Isolation", "isolation", "isolation")]
    found = [Filter(label, key, tuple(sorted({getattr(view, attribute) for view in views}))) for label, key, attribute in keys]
    return [each for each in found if len(each.values) > 1]


def _named(noun: str, names: Sequence[str]) -> str:
    """List the different names if they are few, else return how many they are."""
    different = sorted(set(names))
    return ", ".join(different) if len(different) <= FEW else plural(len(different), noun)


def _counted(views: Sequence[RunView]) -> str:
    tasks = sorted({view.task for view in views})
    return plural(len(views), "run") + (f" of {tasks[0]}" if len(tasks) == 1 else "")


def _outcomes(views: Sequence[RunView]) -> str:
    """Count runs by verdict: `5 successes, 2 without success`. Failures that are not the agent's are mentioned at the end."""
    counts = Counter(view.kind for view in views)
    told = [
        plural(counts["success"], "success"),
        f"{counts['no_improvement']} without success",
        plural(counts["invalid_submission"], "invalid submission"),
        f"{counts['no_submission']} without a submission",
        f"{counts['ungraded']} not graded",
        f"{counts['unfinished']} without a result yet",
        f"{counts['damaged']} with a result that cannot be read",
    ]
    blameless = sum(view.ended in ("infrastructure", "cancelled") for view in views)
    return ", ".join(words for words in told if not words.startswith("0 ")) + (
        f"; {blameless} of them cancelled, or ended by a failure that is not counted against the agent" if blameless else ""
    )


def _breakable(text: str) -> Markup:
    """Let a long name be broken after its hyphens, slashes, underscores, dots and colons."""
    return Markup("<wbr>").join(escape(part) for part in re.split(r"(?<=[-/_.:])", visible(text)))
