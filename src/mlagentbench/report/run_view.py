"""Turn a run's records into the words and figures that the page and the terminal show.

Nothing here makes HTML or markup. Texts are cut but otherwise stay as agents wrote them: the caller escapes them. Steps are in
`step_view.py`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import NamedTuple

from pydantic import JsonValue

from mlagentbench.audit.record import UNFOUNDED
from mlagentbench.report import formatting, wording
from mlagentbench.report.step_view import shown_path, usage_words
from mlagentbench.results.load import Run
from mlagentbench.task.success import THRESHOLD


class KeyFigure(NamedTuple):
    """A key figure; `note` explains it."""

    label: str
    value: str
    note: str = ""


class Share(NamedTuple):
    """A part of the run's time, as a piece of a bar: `start` and `width` are in percent."""

    kind: str
    label: str
    start: float
    width: float


class RunView(NamedTuple):
    """A run without its steps, in words and figures."""

    run: Run
    models: str
    started: str
    kind: str
    """The verdict, `unfinished`, or `damaged` where the result cannot be read."""
    verdict: str
    ended: str
    """What ended the run, in two or three words."""
    title: str
    lede: str
    reason: str
    flags: tuple[wording.FlagWords, ...]
    figures: tuple[KeyFigure, ...]
    shares: tuple[Share, ...]
    final_answer: formatting.CutText | None
    description: formatting.CutText
    facts: tuple[KeyFigure, ...]
    command: str
    """The command that shows the run in a terminal."""


def run_view(run: Run, limit: int) -> RunView:
    """Return the view of a run, with texts cut to `limit` characters."""
    info, result = run.info, run.result
    title, lede = _title(run)
    without_result = "damaged" if run.result_is_damaged else "unfinished"
    return RunView(
        run=run,
        models=", ".join(dict.fromkeys(info.spec.model_names.values())),
        started=time.strftime("%-d %b %Y, %H:%M UTC", time.gmtime(info.started)) if info.started else "",
        kind=result.outcome.verdict if result else without_result,
        verdict=wording.VERDICTS[result.outcome.verdict] if result else without_result,
        ended=wording.ended_briefly(result.outcome.ended) if result else "",
        title=title,
        lede=lede,
        reason=(result.outcome.reason or "") if result else "",
        flags=tuple(wording.FLAGS[flag] for flag in result.outcome.flags) if result else (),
        figures=_figures(run),
        shares=_shares(run),
        final_answer=formatting.cut(result.final_answer, limit) if result and result.final_answer else None,
        description=formatting.cut(info.description, limit),
        facts=_facts(run),
        command=f"mlab show {shown_path(run.directory.path)}",
    )


def _title(run: Run) -> tuple[str, str]:
    """Return a run's verdict as a title, and the sentences below the title."""
    info, result = run.info, run.result
    if run.result_is_damaged:
        return "Damaged result", f"There is a result, and it cannot be read; the run has {formatting.plural(len(run.steps), 'step')}."
    if result is None:
        return (
            "No result yet",
            f"The run is in progress, or was stopped before it ended: {formatting.plural(len(run.steps), 'step')} so far.",
        )
    verdict = _capital(wording.VERDICTS[result.outcome.verdict])
    steps, seconds = formatting.plural(result.steps, "step"), formatting.duration(result.seconds)
    ended = f"The run {wording.outcome_words(result)}, after {steps} and {seconds}."
    if result.score is None:
        return verdict, ended
    baseline = result.baseline.value if result.baseline else None
    scores = _capital(wording.scores(info, result.score, baseline))
    title = verdict if baseline is None else f"{verdict}: {wording.change(result.score.value, baseline, info.unit, info.direction)}"
    compared = " for the starter" if baseline is not None else ", with no baseline to compare"
    if result.score.success is not None:
        compared = f": {result.score.note}" if result.score.note else ""
    return title, f"{scores}{compared}. {ended}"


def _figures(run: Run) -> tuple[KeyFigure, ...]:
    info, result = run.info, run.result
    figures: list[KeyFigure] = []
    if result:
        score = formatting.estimate(result.score.value, result.score.standard_error, info.unit) if result.score else "none"
        note = f"{info.metric.replace('_', ' ')}, {wording.direction_words(info.direction)}"
        figures.append(KeyFigure("Score", score, "; ".join(filter(None, (note, result.score.note if result.score else "")))))
        baseline = formatting.quantity(result.baseline.value, info.unit) if result.baseline else "none"
        figures.append(KeyFigure("Baseline", baseline, wording.baseline_words(result.baseline, info.unit) if result.baseline else ""))
        success = "yes" if result.success else "no"
        improvement = "none" if result.improvement is None else formatting.percent(result.improvement)
        figures.append(KeyFigure("Improvement", improvement, "of the baseline, positive for better"))
        figures.append(KeyFigure("Success", success, f"needs an improvement of more than {THRESHOLD * 100:g} % at the last step"))
    marks = [formatting.plural(run.failed, "step") + " refused, failed or stopped"] if run.failed else []
    marks += [formatting.plural(run.malformed, "reply") + " without an action"] if run.malformed else []
    figures.append(KeyFigure("Steps", str(len(run.steps)), "; ".join(marks)))
    figures.append(KeyFigure("Time", formatting.duration(run.seconds), ""))
    roles = [f"{role} {usage_words(usage)}" for role, usage in run.usage_by_role.items() if usage.calls]
    figures.append(KeyFigure("Tokens", formatting.tokens(run.usage.tokens), "; ".join(roles) or usage_words(run.usage)))
    if run.usage.tokens != 0:
        note = "the provider did not report its tokens" if run.usage.uncounted else "no price is known for this model; --prices gives one"
        if run.usage.cost is not None:
            note = wording.price_words(info.spec.prices.values())
        figures.append(KeyFigure("Cost", formatting.cost(run.usage.cost, run.usage.tokens), note))
    if run.audit:
        claims = run.audit.claims
        notes = [wording.verdict_counts(claims)]
        if guesses := sum(claim.stated == "guessed" and claim.verdict in UNFOUNDED for claim in claims):
            notes.append("the agent called " + ("it a guess" if len(claims) == 1 else f"{guesses} of them no more than a guess"))
        if run.audit.carried:
            notes.append(("it" if len(claims) == 1 else "an unfounded one") + " is in the final answer")
        figures.append(KeyFigure("Claims", str(len(claims)), "; ".join(filter(None, notes))))
        if run.audit.mode:
            figures.append(KeyFigure("How it came out", wording.MODES[run.audit.mode.mode], wording.mode_words(info, run.audit)))
    figures.append(KeyFigure("Isolation", info.isolation, "what the agent's scripts ran in"))
    return tuple(figures)


def _shares(run: Run) -> tuple[Share, ...]:
    """Split the time into waiting for models, running scripts, the framework itself, and grading after the run."""
    parts = [
        ("model", "model", run.model_seconds),
        ("scripts", "scripts", run.script_seconds),
        ("framework", "framework", run.framework_seconds),
        ("grading", "grading, after the run", run.grading_seconds),
    ]
    total = sum(seconds for _, _, seconds in parts)
    shares: list[Share] = []
    start = 0.0
    for kind, label, seconds in parts:
        width = 100 * seconds / total if total else 0.0
        if seconds:
            shares.append(Share(kind, f"{label} {formatting.duration(seconds)}", round(start, 2), round(width, 2)))
        start += width
    return tuple(shares)


def _facts(run: Run) -> tuple[KeyFigure, ...]:
    """Return what a reader needs to repeat the run."""
    info, options = run.info, _pairs(run.info.spec.agent_options)
    facts = [
        KeyFigure("Run", info.run),
        KeyFigure("Task", f"{info.spec.task}, {info.spec.data_name} data"),
        KeyFigure("Agent", f"{info.spec.agent} ({options})" if options else info.spec.agent),
    ]
    facts += [KeyFigure(f"Model ({role})", model) for role, model in info.spec.model_names.items()]
    facts.append(KeyFigure("Limits", _pairs({name: value for name, value in asdict(info.spec.limits).items() if value is not None})))
    facts.append(KeyFigure("Versions", _pairs(info.versions)))
    facts.append(KeyFigure("Hardware", _pairs(info.hardware) or "not known"))
    if info.parent:
        facts.append(KeyFigure("Continued from", info.parent))
    if info.imported:
        facts.append(KeyFigure("Imported from", info.imported.folder))
    if info.experience:
        facts.append(KeyFigure("Experience", f"{formatting.plural(info.experience.files, 'file')} of {info.experience.folder}"))
    if info.examples:
        facts.append(KeyFigure("Examples", ", ".join(example.path for example in info.examples)))
    if info.spec.documents:
        facts.append(KeyFigure("Documents", info.spec.documents))
    return tuple(facts)


def _pairs(values: Mapping[str, JsonValue] | Mapping[str, str]) -> str:
    return ", ".join(
        f"{name} {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}" for name, value in values.items()
    )


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
