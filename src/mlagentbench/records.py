"""The records of a run, as they are stored on disk.

All are frozen and refuse unknown fields. Times are seconds: `started` counts from the epoch (UTC), every duration comes from a monotonic
clock. A run's `run.json` and `result.json` hold a `schema_version`, which changes if a field changes its meaning.
"""

from __future__ import annotations

import datetime
import json
import math
import statistics
from collections.abc import Iterable, Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, JsonValue
from pydantic_core import PydanticCustomError

from mlagentbench.errors import LimitName

SCHEMA_VERSION = 1
"""The version of `result.json`."""

UNKNOWN_VERSION = "unknown_version"
"""The type of the validation error for a record whose `schema_version` is not known here."""


def unknown_version(version: object, *known: int) -> PydanticCustomError:
    """Return the validation error for a record of a version that is not among the known ones."""
    words = {"version": json.dumps(version)[:40], "known": " and ".join(map(str, known))}
    return PydanticCustomError(
        UNKNOWN_VERSION, "its schema version is {version}, and this mlagentbench knows {known}; read it with the one that wrote it", words
    )


def _known(version: object) -> object:
    if type(version) is not int or version != SCHEMA_VERSION:
        raise unknown_version(version, SCHEMA_VERSION)
    return version


Version = Annotated[int, BeforeValidator(_known)]
LARGEST = 1e100
"""The size of scores and improvements, beyond which sums of their squares could overflow."""
Measure = Annotated[float, Field(ge=-LARGEST, le=LARGEST, allow_inf_nan=False)]
"""A score, a baseline or an improvement, within bounds, since a damaged file may hold any number."""
StandardError = Annotated[float, Field(ge=0, le=LARGEST, allow_inf_nan=False)]
"""A standard error, in the unit of what it belongs to."""
Seconds = Annotated[float, Field(ge=0, le=1e11, allow_inf_nan=False)]
"""A duration."""
Moment = Annotated[float, Field(ge=0, le=1e11, allow_inf_nan=False)]
"""A time on the clock, in seconds from the epoch."""
Dollars = Annotated[float, Field(ge=0, le=1e11, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0, le=10**12)]
"""A count. Sums of thousands of them fit into 64 bits."""
Word = Annotated[str, Field(max_length=1000)]
"""A name, which stands in headings of tables and in charts."""

Role = Literal["agent", "fast", "editor"]
"""What a model is used for: as the agent, as the cheap reader of long texts, or as the editor of scripts."""

Direction = Literal["maximize", "minimize"]

Termination = Literal[
    "final_answer",
    LimitName,
    "format_failure",
    "agent_error",
    "infrastructure",
    "cancelled",
]
"""How a run ended. `infrastructure` and `cancelled` never count against the agent."""

GradeStatus = Literal["success", "no_improvement", "invalid_submission", "no_submission", "ungraded"]
"""The verdict on a run's submission."""

Flag = Literal[
    "cheated",
    "unsandboxed",
    "weak_isolation",
    "within_noise",
    "scripted_model",
    "experience",
    "examples",
    "documents",
    "near_zero_baseline",
    "paper_baseline",
    "answers_visible",
    "imported",
]

BaselineSource = Literal["side_by_side", "measured", "predictor", "paper"]
"""Where a baseline comes from: the starter timed beside the submission, separate runs of the starter, a naive predictor in place of
a starter that does not run, or the paper."""

Variant = Literal["mini", "full"]
"""The variant of a task's data: small and generated, or real."""

BaselineChoice = Literal["auto", "paper", "none"]
"""The baseline that a run is compared with: the starter's own, the paper's, or none."""

StepStatus = Literal["ok", "error", "limit_time", "limit_memory", "limit_output", "limit_disk", "limit_processes"]
"""How an action went: done, refused or failed (`error`), or ended by a limit on scripts."""


class Record(BaseModel):
    """A frozen record that refuses unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")


class Usage(Record):
    """Tokens as the provider counted them, and their cost.

    `cost` is in US dollars, and None if any part of it is unknown.
    """

    input_tokens: Count = 0
    output_tokens: Count = 0
    cache_read_tokens: Count = 0
    cache_write_tokens: Count = 0
    calls: Count = 0
    cost: Dollars | None = None
    uncounted: Annotated[Count, Field(exclude_if=lambda calls: not calls)] = 0
    """The calls whose tokens the provider did not report. They are in none of the counts of tokens."""

    @property
    def tokens(self) -> int | None:
        """All tokens, prompt and completion; None if a provider did not report those of a call."""
        return None if self.uncounted else self.input_tokens + self.output_tokens + self.cache_read_tokens + self.cache_write_tokens

    @staticmethod
    def total(parts: Iterable[Usage]) -> Usage:
        """Return the sum of usages; its cost is None unless the cost of every part with a call is known."""
        parts = [part for part in parts if part.calls]
        costs = [part.cost for part in parts if part.cost is not None]
        # Not validated: a sum may be beyond the bounds of its parts.
        return Usage.model_construct(
            input_tokens=sum(part.input_tokens for part in parts),
            output_tokens=sum(part.output_tokens for part in parts),
            cache_read_tokens=sum(part.cache_read_tokens for part in parts),
            cache_write_tokens=sum(part.cache_write_tokens for part in parts),
            calls=sum(part.calls for part in parts),
            uncounted=sum(part.uncounted for part in parts),
            cost=sum(costs) if parts and len(costs) == len(parts) else None,
        )


class Price(Record):
    """The price of a million tokens of a model, in US dollars, and its source."""

    input: float
    output: float
    cache_read: float
    """For input that was read from the provider's cache."""
    cache_write: float
    """For input that was written into it."""
    source: str
    date: datetime.date | None = None
    """The date of the source; None if it states none."""


class Action(Record):
    """One action of an agent: its name in the paper (`Execute Script`), and its arguments."""

    name: str
    arguments: Mapping[str, JsonValue] = Field(default_factory=dict)


class ModelCall(Record):
    """One question to a model and its reply, stored beside the step that it was asked for."""

    role: Role
    model: str
    purpose: str
    """Who asked: `agent`, or the name of the action."""
    prompt: str
    reply: str
    usage: Usage
    seconds: Seconds
    started: Moment = 0.0
    """When it was asked; 0 in records that do not say."""
    stop_reason: Word | None = None
    """What ended the reply, as `Reply.stop_reason`; `limit_time` if the run's time was up before it came, and None in older records."""
    rejected: str | None = None
    """For a reply of the agent that held no action: the message that its model got; None for any other reply."""


class Inner(Record):
    """One operation within an action: it used a file, asked a model, or ran a command."""

    did: Literal["list", "read", "write", "remove", "ask", "run"]
    what: str
    """The path, the role of the model, or the command."""
    seconds: Seconds = 0.0


class Step(Record):
    """One action, and its result."""

    number: Count
    """The step's number, from 1."""
    entries: Mapping[str, str] = Field(default_factory=dict)
    """The agent's thoughts before the action, by the names of its entries."""
    action: Action
    observation: str
    status: StepStatus = "ok"
    counted: bool = True
    """False for an agent's own bookkeeping, which does not count towards the step limit."""
    started: Moment
    seconds: Seconds
    """The duration of the whole step: from the end of the step before to this observation."""
    model_seconds: Seconds = 0.0
    waited_seconds: Seconds = 0.0
    """The part of `model_seconds` spent waiting for rate limits and before retries."""
    script_seconds: Seconds = 0.0
    usage: Usage = Usage()
    malformed: Count = 0
    """The number of replies before this step's that held no action."""
    memory: Mapping[str, JsonValue] = Field(default_factory=dict)
    """The agent's own data, which it reads back when the run continues from here."""
    details: Mapping[str, JsonValue] = Field(default_factory=dict)
    """What the action records beside its observation, such as a script's exit code."""
    inside: tuple[Inner, ...] = ()
    """The operations within the action, in order."""


Resampled = Annotated[tuple[float, ...], Field(exclude_if=lambda found: not found)]
"""Scores of samples of the test rows. A record without them does not mention them."""


class Baseline(Record):
    """The score that a run's score is compared with, and its source."""

    value: Measure
    """The baseline score: the mean of `values`, or their median for a timed score, which is a median too."""
    values: tuple[Measure, ...] = ()
    source: BaselineSource
    resampled: Resampled = ()
    """As `Score.resampled`, averaged over the starter's runs."""

    @property
    def standard_error(self) -> float | None:
        """The standard error of `value` from the scatter of `values`: of their mean s / sqrt(n), of a median sqrt(pi / 2) times that.

        It is what all runs that are compared with this measurement share. None with fewer than two values.
        """
        if len(self.values) < 2:
            return None
        error = statistics.stdev(self.values) / math.sqrt(len(self.values))
        return error * math.sqrt(math.pi / 2) if self.source == "side_by_side" else error

    @property
    def spread(self) -> float | None:
        """How much better than the mean of the values one more value is by chance in one of twenty cases, in the metric's unit.

        This is the margin of the one-sided 95% prediction bound for a normal value, t(0.95, n - 1) * s * sqrt(1 + 1/n) (Hahn and Meeker
        1991, section 4.7). None with fewer than two values.
        """
        count = len(self.values)
        if count < 2:
            return None
        from scipy.special import stdtrit  # imported here because it takes longer than most of what reads records

        return float(stdtrit(count - 1, 0.95)) * statistics.stdev(self.values) * math.sqrt(1 + 1 / count)


class Score(Record):
    """The result of a grader. `baseline` is set if the grader timed the starter too, in the same minute on the same machine."""

    value: float
    """In the metric's unit. Any number, until it is checked to be a `Measure`, since graders may give any."""
    standard_error: StandardError | None = None
    """How far the score is from that of other test rows, in the metric's unit; None where it does not come from rows, as a time does."""
    resampled: Resampled = ()
    """The scores of the same submission on samples of the test rows, for differences of submissions (`task/sampling.py`).

    With them the answers to some rows could be computed, so gradings and baselines keep them, and results do not.
    """
    baseline: Baseline | None = None
    success: bool | None = None
    """Whether the submission is a success by the task's own rule, such as a medal; None where it is one by its improvement."""
    rung: Count | None = None
    """How many of the task's stages the submission has reached; None for a task without stages."""
    note: str = ""
    """What the score means beside its value, in a few words such as `rung 2 of 4`."""
    details: Mapping[str, JsonValue] = Field(default_factory=dict)


def _measured(score: Score) -> Score:
    if not abs(score.value) <= LARGEST:
        raise ValueError(f"the score is {score.value:g}, and must be a finite number of at most {LARGEST:g}")
    return score


class StepScore(Record):
    """The score of the submission as it was after a step, or why it has none."""

    step: Count
    """The step's number; 0 is the unchanged starter."""
    value: Measure | None = None
    standard_error: StandardError | None = None
    gain_error: StandardError | None = None
    """As `Result.gain_error`."""
    improvement: Measure | None = None
    reason: str | None = None
    success: bool | None = None
    """As `Score.success`."""
    rung: Count | None = None
    """As `Score.rung`."""
    note: str = ""
    """As `Score.note`."""


class Outcome(Record):
    """How a run ended, and the verdict on its submission. Statistics and retries depend on it."""

    ended: Termination
    verdict: GradeStatus
    flags: tuple[Flag, ...] = ()
    reason: str | None = None
    """What went wrong, in one line; None if nothing did."""


class Result(Record):
    """The result of a run: `result.json` in its directory, written last."""

    schema_version: Version = SCHEMA_VERSION
    run: str
    outcome: Outcome
    final_answer: str | None = None
    score: Annotated[Score, AfterValidator(_measured)] | None = None
    baseline: Baseline | None = None
    gain_error: StandardError | None = None
    """The standard error of the gain over the baseline from the rows of the test set, in the metric's unit (`task.success.gain_error`)."""
    improvement: Measure | None = None
    """The improvement relative to the baseline, positive for better: 0.5 is a score 1.5 times as high, or half the time."""
    success: bool = False
    step_scores: tuple[StepScore, ...] = ()
    steps: Count
    seconds: Seconds
    """From the first question to the last observation, without grading."""
    model_seconds: Seconds = 0.0
    waited_seconds: Seconds = 0.0
    """The part of `model_seconds` spent waiting for rate limits and before retries."""
    script_seconds: Seconds = 0.0
    grading_seconds: Seconds = 0.0
    usage: Mapping[Role, Usage] = Field(default_factory=dict)

    @property
    def total_usage(self) -> Usage:
        """The usage of all roles together."""
        return Usage.total(self.usage.values())

    @property
    def rung(self) -> int:
        """The most of the task's rungs that a graded submission of the run reached (`Score.rung`); 0 for a run that cheated."""
        scores = () if "cheated" in self.outcome.flags else (self.score, *self.step_scores)
        return max((score.rung or 0 for score in scores if score), default=0)
