"""The records a run is made of, as they lie on disk.

All are frozen and refuse unknown fields. Times are seconds: `started` counts from the epoch (UTC), every duration comes from a monotonic
clock. A reader meets `schema_version` in a run's `run.json` and `result.json`; the version changes when a field changes its meaning.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue

from mlagentbench.errors import LimitName

SCHEMA_VERSION = 1
"""Of `result.json`."""


def _known(version: int) -> int:
    if version != SCHEMA_VERSION:
        raise ValueError(f"version {version} is of another mlagentbench than this one, which reads version {SCHEMA_VERSION}")
    return version


Version = Annotated[int, AfterValidator(_known)]
Seconds = Annotated[float, Field(ge=-1e11, le=1e11, allow_inf_nan=False)]
"""A time that can be told: a damaged file may hold any number."""
Moment = Annotated[float, Field(ge=0, le=1e11, allow_inf_nan=False)]
"""A time on the clock, in seconds from the epoch."""
Dollars = Annotated[float, Field(ge=0, le=1e11, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0, le=2**53)]
"""A number that a table can hold."""

Role = Literal["agent", "fast", "editor"]
"""Whom a model speaks as: the agent, the cheap reader of long texts, or the editor of scripts."""

Direction = Literal["maximize", "minimize"]

Ended = Literal[
    "final_answer",
    LimitName,
    "format_failure",
    "agent_error",
    "infrastructure",
    "cancelled",
]
"""How a run ended. `infrastructure` and `cancelled` are never held against the agent."""

Verdict = Literal["success", "no_improvement", "invalid_submission", "no_submission", "ungraded"]
"""What its submission was worth."""

Flag = Literal[
    "cheated",
    "unsandboxed",
    "weak_isolation",
    "within_noise",
    "scripted_model",
    "experience",
    "near_zero_baseline",
    "paper_baseline",
    "imported",
]

BaselineSource = Literal["side_by_side", "measured", "predictor", "paper"]
"""Where a baseline comes from: the starter timed beside the submission, its own runs, a naive predictor in the place of a starter that does
not run, or the paper."""

Variant = Literal["mini", "full"]
"""Of a task's data: small and generated, or real."""

BaselineChoice = Literal["auto", "paper", "none"]
"""Which one a run is compared with: the best there is, the paper's, or none."""

StepStatus = Literal["ok", "error", "limit_time", "limit_memory", "limit_output", "limit_disk", "limit_processes"]
"""How an action went: done, refused or failed (`error`), or ended by a limit on scripts."""


class Record(BaseModel):
    """A frozen record that refuses unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")


_HALF = re.compile("[\ud800-\udfff]")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def whole(value: Any) -> Any:
    r"""A text that can be written as UTF-8, or a value of JSON whose texts all can.

    A model's JSON may hold half of a character (a lone surrogate, `"\ud800"`), and so may a name of a file. The half becomes its escape, as
    it stood in the JSON, and two halves that belong together the character that they are. All else is as it was.
    """
    if isinstance(value, str):
        if value.isascii() or not _HALF.search(value):
            return value
        joined = _PAIR.sub(lambda pair: pair[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le"), value)
        return _HALF.sub(lambda half: f"\\u{ord(half[0]):04x}", joined)
    if isinstance(value, Mapping):
        return {whole(key): whole(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [whole(item) for item in value]
    return value


class Usage(Record):
    """Tokens as the provider counted them, and what they cost.

    `cost` is in US dollars, and None where any part of it is unknown.
    """

    input_tokens: Count = 0
    output_tokens: Count = 0
    cache_read_tokens: Count = 0
    cache_write_tokens: Count = 0
    calls: Count = 0
    cost: Dollars | None = None

    @property
    def tokens(self) -> int:
        """All tokens, prompt and completion."""
        return self.input_tokens + self.output_tokens + self.cache_read_tokens + self.cache_write_tokens

    @staticmethod
    def total(parts: Iterable[Usage]) -> Usage:
        """The sum; its cost is known only where the cost of every part with a call is."""
        parts = [part for part in parts if part.calls]
        costs = [part.cost for part in parts if part.cost is not None]
        return Usage(
            input_tokens=sum(part.input_tokens for part in parts),
            output_tokens=sum(part.output_tokens for part in parts),
            cache_read_tokens=sum(part.cache_read_tokens for part in parts),
            cache_write_tokens=sum(part.cache_write_tokens for part in parts),
            calls=sum(part.calls for part in parts),
            cost=sum(costs) if parts and len(costs) == len(parts) else None,
        )


class Price(Record):
    """What a million tokens of a model cost, in US dollars, and who says so."""

    input: float
    output: float
    cache_read: float
    """Of input that was read from the provider's cache."""
    cache_write: float
    """Of input that was written into it."""
    source: str
    date: datetime.date | None = None
    """The day on which the source said so; None where it does not tell."""


class Action(Record):
    """One action of an agent: its name as the paper has it (`Execute Script`), and its arguments."""

    name: str
    arguments: Mapping[str, JsonValue] = Field(default_factory=dict)


class ModelCall(Record):
    """One question to a model and what came back, kept beside the step it was made for."""

    role: Role
    model: str
    purpose: str
    """Who asked: `agent`, or the name of the action."""
    prompt: str
    reply: str
    usage: Usage
    seconds: Seconds
    rejected: str | None = None
    """For a reply of the agent that held no action: what its model was told to mend."""


class Inner(Record):
    """Something that an action did on its way: used a file, asked a model, ran a command."""

    did: Literal["list", "read", "write", "remove", "ask", "run"]
    what: str
    """The path, the role of the model, or the command."""
    seconds: Seconds = 0.0


class Step(Record):
    """One action, and what came of it."""

    number: Count
    """From 1."""
    entries: Mapping[str, str] = Field(default_factory=dict)
    """What the agent thought before it acted, by the names of its entries."""
    action: Action
    observation: str
    status: StepStatus = "ok"
    counted: bool = True
    """False for an agent's own bookkeeping, which no step limit counts."""
    started: Moment
    seconds: Seconds
    """The whole step: from the end of the step before to this observation."""
    model_seconds: Seconds = 0.0
    waited_seconds: Seconds = 0.0
    """The part of `model_seconds` spent waiting for rate limits and before retries."""
    script_seconds: Seconds = 0.0
    usage: Usage = Usage()
    malformed: Count = 0
    """Replies before this one that held no action."""
    memory: Mapping[str, JsonValue] = Field(default_factory=dict)
    """What the agent wants handed back when the run is continued from here."""
    details: Mapping[str, JsonValue] = Field(default_factory=dict)
    """What the action tells beside its observation, such as a script's exit status."""
    inside: tuple[Inner, ...] = ()
    """What the action did on its way, in order."""


class Baseline(Record):
    """The starter's own score, and where it comes from."""

    value: float
    """What scores are compared with: the mean of `values`, or their median where the score itself is one."""
    values: tuple[float, ...] = ()
    source: BaselineSource

    @property
    def spread(self) -> float | None:
        """Half the range of the values, in the metric's unit; None with fewer than two."""
        return (max(self.values) - min(self.values)) / 2 if len(self.values) > 1 else None


class Score(Record):
    """What a grader found. `baseline` is set where the grader measured the starter side by side, in the same minute on the same machine."""

    value: float
    baseline: Baseline | None = None
    details: Mapping[str, JsonValue] = Field(default_factory=dict)


class StepScore(Record):
    """The submission as it stood after a step: its score, or why it has none."""

    step: Count
    """0 is the starter, untouched."""
    value: float | None = None
    improvement: float | None = None
    reason: str | None = None


class Outcome(Record):
    """How a run ended and what its submission was worth. Statistics and retries go by this."""

    ended: Ended
    verdict: Verdict
    flags: tuple[Flag, ...] = ()
    reason: str | None = None
    """What went wrong, in one line, where something did."""


class Experience(Record):
    """What a run was given of earlier work, as it was when the run was made."""

    folder: str
    """Where it was taken from."""
    files: int
    bytes: int
    digest: str
    """SHA-256 over the files' paths and contents."""


class Imported(Record):
    """Where a run comes from that another program carried out: its logs, read into the records of this one."""

    folder: str
    """Where they lay."""
    digest: str
    """SHA-256 over the logs' paths and contents."""
    problems: tuple[str, ...] = ()
    """What of them is missing, torn or of another run, a line each."""
    beginning: str = ""
    """SHA-256 of the run's first step, which stays the same while its log grows, moves or is mended; empty where there is none yet."""
    not_graded: str | None = None
    """Why no grader here takes its submission; None where one does."""


class Result(Record):
    """How a run came out: `result.json` of its directory, written last."""

    schema_version: Version = SCHEMA_VERSION
    run: str
    outcome: Outcome
    final_answer: str | None = None
    score: Score | None = None
    baseline: Baseline | None = None
    improvement: float | None = None
    """Relative to the baseline, positive for better: 0.5 is half as good again, or half the time."""
    success: bool = False
    step_scores: tuple[StepScore, ...] = ()
    steps: Count
    seconds: Seconds
    """From the first question to the last observation; grading is not in it."""
    model_seconds: Seconds = 0.0
    waited_seconds: Seconds = 0.0
    """The part of `model_seconds` spent waiting for rate limits and before retries."""
    script_seconds: Seconds = 0.0
    grading_seconds: Seconds = 0.0
    usage: Mapping[Role, Usage] = Field(default_factory=dict)

    @property
    def total_usage(self) -> Usage:
        """All roles together."""
        return Usage.total(self.usage.values())
