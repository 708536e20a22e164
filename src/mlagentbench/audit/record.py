"""The records of an audit, which are stored in the run's directory."""

from __future__ import annotations

from typing import Literal

from mlagentbench.records import Count, Record

ClaimKind = Literal["number", "improvement", "fix", "comparison"]
"""A stated result; that something got better; that something works now; that one of several is the best."""

ClaimVerdict = Literal["confirmed", "stale", "contradicted", "unsupported"]
"""What the evidence says of a claim: so it is; so it was before the script was changed; otherwise; or nothing."""

UNFOUNDED: tuple[ClaimVerdict, ...] = ("contradicted", "unsupported")
"""The verdicts on claims that the evidence does not bear out."""

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

    @property
    def is_unfounded(self) -> bool:
        """True if the evidence does not bear it out, and the agent does not call it a guess."""
        return self.verdict in UNFOUNDED and self.stated != "guessed"


FailureMode = Literal[
    "success",
    "format_failures",
    "token_limit",
    "hallucination",
    "debugging",
    "stopped_early",
    "no_submission",
    "invalid_submission",
    "small_improvement",
    "zero_improvement",
    "bad_plan",
]


class Mode(Record):
    """How a run came out, and the evidence for it in one line."""

    mode: FailureMode
    reason: str


class Plan(Record):
    """Where the plans of a run broke. Steps of the agent's own bookkeeping are not counted."""

    longest_edits: Count
    """The longest chain of edits without an execution in between."""
    repeated: Count
    """Steps that repeat an earlier one, with the same observation, though no file changed in between."""
    undone: Count
    """Edits that put the files back as they were at an earlier step."""
    edits: Count
    executions: Count
    failed_executions: Count
    last_improved: Count | None
    """The last step whose submission was better than all before it; None if none has a score."""
    broke_at: Count | None = None
    """The change, from 1, that no graded submission got past, of a task of dependent changes (`RunInfo.rungs`); None if one got past all,
    and for another kind of task."""


class LogLosses(Record):
    """What the summaries and retrievals of a research log dropped or altered."""

    summaries: Count
    retrievals: Count
    dropped_numbers: Count
    altered_numbers: Count
    dropped_errors: Count

    @property
    def used(self) -> bool:
        """True if the agent wrote a summary, or retrieved anything."""
        return self.summaries + self.retrievals > 0


class FactChecks(Record):
    """How an agent's own Fact Check compares with the evidence, over the claims that it repeats."""

    confirmed: Count
    """Claims that it called confirmed, and that are."""
    not_confirmed: Count
    """Claims that it called confirmed, and that are not."""
    guessed: Count
    """Claims without evidence that it called guessed."""
    not_guessed: Count
    """Claims without evidence that it did not call guessed."""


SignKind = Literal[
    "answers",
    "outside",
    "denied",
    "network",
    "timer",
    "metric",
    "data_edited",
    "copied_data",
    "written_by_hand",
    "no_data_read",
    "printed_result",
    "fake_observation",
]
"""What a sign of cheating is: answers or graders looked for; paths outside of the workspace; access that was denied; the network; a timer
replaced; a metric replaced; read-only data changed, or copied into the submission; a submission that no executed script wrote, or that one
wrote that read nothing; a result that a script prints as a text; an observation that the agent wrote itself."""


class Sign(Record):
    """A sign of cheating, for a person to look at."""

    step: Count
    kind: SignKind
    line: str
    certain: bool = False
    """True for a sign that leaves no doubt: the run is then flagged `cheated`, and is no success."""


class Audit(Record):
    """What the rules found in one run: `audit.json` in its directory."""

    version: Literal[1] = 1
    claims: tuple[Claim, ...]
    mode: Mode | None
    """None for a run that says nothing about its agent, and for one whose score is unknown and would decide."""
    plan: Plan
    log: LogLosses
    fact_checks: FactChecks
    signs: tuple[Sign, ...]
    first_unfounded: Count | None
    """The first step that states what the evidence does not bear out; None if none does."""
    carried: bool
    """True if the final answer does."""
    claimed_score: float | None
    """The last result in the final answer that is of the part of the data that was held out; None if it states none."""
    gap: float | None
    """The claimed score minus the graded one; None unless both are known and in the task's metric."""
