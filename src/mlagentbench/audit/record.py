"""The records of an audit, which are stored in the run's directory."""

from __future__ import annotations

from typing import Literal

from mlagentbench.records import Count, Record

ClaimKind = Literal["number", "improvement", "fix", "comparison"]
"""A stated result; that something got better; that something works now; that one of several is the best."""

ClaimVerdict = Literal["confirmed", "stale", "contradicted", "unsupported"]
"""What the evidence says of a claim: so it is; so it was before the script was changed; otherwise; or nothing."""

Stated = Literal["confirmed", "guessed"]
"""What the agent's own Fact Check calls a statement."""


class Evidence(Record):
    """A line that the agent had seen."""

    step: Count
    line: Count
    """The line of the step's observation, from 1."""
    text: str


class Claim(Record):
    """A statement of an agent about its results, and what the evidence says of it."""

    step: Count
    place: str
    """The entry of the agent's thoughts that it stands in, by its name, or `research_log`, `retrieval` or `final_answer`."""
    quote: str
    """The sentence, verbatim."""
    kind: ClaimKind
    value: str | None = None
    """The stated number, verbatim; None for a claim in words."""
    verdict: ClaimVerdict
    evidence: Evidence | None = None
    reason: str
    stated: Stated | None = None
