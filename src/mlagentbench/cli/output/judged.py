"""Say how far a model's reading of runs agrees with their audits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.text import Text

from mlagentbench.audit.record import Audit
from mlagentbench.engine.judge import Judged
from mlagentbench.report.formatting import interval_text, percentage, plural, visible
from mlagentbench.report.wording import MODES
from mlagentbench.results.statistics.agreement import Agreement, agreement


def judge_lines(audits: Mapping[str, Audit], judged: Judged) -> list[Text]:
    """Return lines that say how far a model agrees with the audits; of a single run, also where it does not."""
    both = [(audits[run], reading) for run, reading in judged.readings.items()]
    modes = agreement([(audit.mode.mode, reading.mode) for audit, reading in both if audit.mode])
    claims = agreement([(claim.verdict, one.verdict) for audit, reading in both for claim, one in reading.beside(audit)])
    unread = sum(len(audit.claims) - len(reading.claims) for audit, reading in both)
    lines = [Text()]
    if modes:
        lines.append(Text(f"The judge agrees on how {modes.same} of {plural(modes.of, 'run')} came out: {_words(modes)}"))
    if claims:
        left = f"; it left {unread} out" if unread else ""
        lines.append(Text(f"The judge agrees on {claims.same} of {plural(claims.of, 'claim')}: {_words(claims)}{left}"))
    if len(audits) == 1:
        lines += _differences(audits, judged)
    tokens = sum(reading.tokens for _, reading in both)
    return [*lines, Text(f"{tokens:,} tokens; to see both in Inspect Scout: scout view --scans {judged.scan.parent}", style="dim")]


def _words(found: Agreement) -> str:
    kappa = "" if found.kappa is None else f", Cohen's kappa {found.kappa:.2f}"
    return f"{percentage(found.share.value)} % [{interval_text(found.share.low, found.share.high)}]{kappa}"


def _differences(audits: Mapping[str, Audit], judged: Judged) -> Iterator[Text]:
    for run, reading in judged.readings.items():
        audit = audits[run]
        if audit.mode and audit.mode.mode != reading.mode:
            yield Text(
                visible(f"how it came out: {MODES[audit.mode.mode]} by the audit, {MODES[reading.mode]} by the judge: {reading.reason}")
            )
        for claim, one in reading.beside(audit):
            if claim.verdict != one.verdict:
                yield Text(visible(f"step {claim.step}: {claim.verdict} by the audit, {one.verdict} by the judge: {claim.quote}"))
                yield Text(visible(f"    {one.reason}"), style="dim")
