"""The record of a model's reading of a run, which stands beside the audit and never replaces it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from mlagentbench.audit.record import Audit, Claim, ClaimVerdict, FailureMode
from mlagentbench.records import Count, Record
from mlagentbench.rundir.directory import RunDirectory
from mlagentbench.rundir.files import storage, text_of
from mlagentbench.rundir.provenance import extend
from mlagentbench.util.atomic import replace

FILE = "judge.json"


class JudgedClaim(Record):
    """A model's verdict on one claim."""

    step: Count
    place: str
    quote: str
    """As in `Claim`: the audit's claim that it is about."""
    value: str | None = None
    verdict: ClaimVerdict
    reason: str


class JudgeReading(Record):
    """What a model says of a run: `judge.json` in its directory."""

    version: Literal[1] = 1
    model: str
    mode: FailureMode
    reason: str
    claims: tuple[JudgedClaim, ...]
    """Those of the audit's claims that the model gave a verdict on."""
    tokens: Count
    """What the reading took."""

    def beside(self, audit: Audit) -> Iterator[tuple[Claim, JudgedClaim]]:
        """Yield each claim of an audit that this reading judges, with its verdict."""
        judged = {(each.step, each.place, each.quote, each.value): each for each in self.claims}
        for claim in audit.claims:
            found = judged.get((claim.step, claim.place, claim.quote, claim.value))
            if found is not None:
                yield claim, found


def write_reading(directory: RunDirectory, reading: JudgeReading) -> None:
    """Store a model's reading in a run's directory, in place of an earlier one.

    Raises:
        StorageFailed: it could not be written.
    """
    with storage(directory.path):
        replace(directory.path / FILE, text_of(reading))
    extend(directory, FILE)
