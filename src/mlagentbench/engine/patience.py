"""How long a provider that fails is asked again, and what its failures mean.

One loop does all asking again, `RoleModel.answer` in `engine/model.py`. Inspect is told not to (`max_retries=0`): by itself it asks for
ever, waits up to half an hour between two requests, takes no note of Retry-After, and gives up at once on a reply that is none. What it is
used for is its judgement, which failures may pass: 408, 429 and all of 5xx, lost connections, and timeouts. Below it the clients of OpenAI
and Anthropic each ask up to twice more, after half a second to eight; that is part of one request here.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from inspect_ai.model import ModelAPI, ModelOutput

from mlagentbench.engine.scripted import ScriptedAPI

EXCERPT = 300
"""Characters of a provider's own words that a message quotes."""
LONGEST_REPLY = 2_000_000
"""Characters of a reply. The most that a model of today writes at once, 128,000 tokens, is a quarter of it."""
LEAST_WAIT = 0.1
"""Seconds; what is less is this process's own work, not waiting for a provider."""
REMEDIES = {401: "check its key", 403: "check what its key may do", 404: "check its name", 429: "check its quota"}
"""What to do about an answer that will stay the same, by its HTTP status."""
TOO_LONG = re.compile(
    "|".join(
        (
            "maximum context length",
            r"context[_ ](?:length|window|size|limit)[_ ](?:(?:is|was) )?exceeded",
            r"exceeds? (?:the )?(?:available |maximum |model'?s? )*context",
            r"(?:prompt|input|request) (?:is|was) too (?:long|large)",
            r"token count\b.{0,40}\bexceeds",
            r"tokens`?\s*\+.{1,40}must be <=",
            "string_above_max_length",
        )
    ),
    re.IGNORECASE,
)
"""How servers say, each in words of its own, that a prompt is longer than their model can read."""


class Patience(NamedTuple):
    """How long a provider that fails is asked again."""

    seconds: float = 900.0
    """From a question's first request until the run is ended as `infrastructure`. Such a run can be resumed."""
    request: int = 600
    """Seconds for one request; the clients' own limit, but for all that they do within it."""
    pause: float = 2.0
    """Seconds before the second request; they double with each, and vary by a quarter."""
    longest_pause: float = 120.0
    """Seconds; a provider that says Retry-After is waited for longer."""
    check: float = 60.0
    """Seconds for a short question when a run's time is up and its last one has no reply: a provider that answers neither ended the run."""
    spoiled: int = 4
    """How many replies in all may be of no use, which costs tokens each time: empty, malformed, far too long, or withheld."""

    def before(self, request: int) -> float:
        """Seconds to pause before a request, by its number from 1."""
        # The exponent is bounded, since a float is.
        doubled = self.pause * 2.0 ** min(request - 2, 60)
        return min(doubled, self.longest_pause) * random.uniform(0.75, 1.25)


_in_use: ContextVar[Patience] = ContextVar("patience")


def patience_in_use() -> Patience:
    """The patience of the evaluation that is running."""
    return _in_use.get(Patience())


@contextmanager
def use_patience(patience: Patience) -> Iterator[None]:
    """Have this patience for the evaluations inside."""
    token = _in_use.set(patience)
    try:
        yield
    finally:
        _in_use.reset(token)


class Trouble(Exception):
    """A request brought no reply.

    Args:
        reason: what came instead, in words.
        lasting: whether asking again is of no use.
        spoiled: whether the provider did answer, with something of no use.
        withheld: whether it says that it will not show what the model wrote, or have it read the prompt.
        too_long: whether it says that the prompt is longer than the model can read.
        retry_after: seconds that the provider asks to wait.
    """

    def __init__(
        self,
        reason: str,
        *,
        lasting: bool = False,
        spoiled: bool = False,
        withheld: bool = False,
        too_long: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(reason)
        self.lasting = lasting
        self.spoiled = spoiled
        self.withheld = withheld
        self.too_long = too_long
        self.retry_after = retry_after


class Waits:
    """Time that went by waiting for providers; questions that wait at once share it, and it counts once."""

    def __init__(self) -> None:
        self._until = 0.0

    def add(self, start: float, end: float) -> float:
        """The seconds between two moments that were not counted before."""
        start, self._until = max(start, self._until), max(end, self._until)
        return end - start if end - start >= LEAST_WAIT else 0.0


def trouble_with(error: Exception, api: ModelAPI, *, here: bool = False) -> Trouble:
    """What an error of Inspect's, or of a client's below it, means; `here` for a model that computes in this process."""
    # Inspect was told to ask once; where it would have asked again, it wraps the error.
    attempt = getattr(error, "last_attempt", None)
    cause = attempt.exception() if attempt is not None else error
    status = _status(cause)
    words = _words(cause)
    if attempt is not None:
        decision = api.should_retry(cause)
        return Trouble(words, retry_after=getattr(decision, "retry_after", None))
    if status is None and here:
        return Trouble(words, spoiled=True)
    if status is None:
        # No answer of the provider's that says no: it sent something that could not be read.
        return Trouble(f"a malformed reply ({words})", spoiled=True)
    if status == 413 or (status in (400, 422) and TOO_LONG.search(str(cause))):
        return Trouble(words, lasting=True, too_long=True)
    remedy = REMEDIES.get(status)
    return Trouble(words + (f" ({remedy})" if remedy else ""), lasting=True)


def check_reply(output: ModelOutput, api: ModelAPI, *, here: bool = False) -> None:
    """See that a reply is one; of a model that computes in this process (`here`), an empty one is.

    Raises:
        Trouble: it is not.
    """
    if not output.choices:
        raise Trouble("a reply without choices", spoiled=True)
    if output.stop_reason == "content_filter":
        reason = " ".join((output.error or output.completion)[:EXCERPT].split())
        raise Trouble(f"the content was withheld ({reason})", spoiled=True, withheld=True)
    if len(output.completion) > LONGEST_REPLY:
        raise Trouble(f"a reply of {len(output.completion):,} characters", spoiled=True)
    # Thinking that took all the tokens leaves no text, and is the model's own doing; a script's reply is what its author wrote.
    nothing = not output.completion.strip() and not output.message.tool_calls
    if nothing and output.stop_reason != "max_tokens" and not here and not isinstance(api, ScriptedAPI):
        raise Trouble("an empty reply", spoiled=True)


def _status(error: BaseException) -> int | None:
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else None


def _words(error: BaseException) -> str:
    """A provider's own words for an error, in one line."""
    # Inspect puts the whole request into the message of some errors, and keeps the provider's beside it.
    message = getattr(error.__cause__ if hasattr(error, "provider_message") else error, "message", None)
    body = getattr(error.__cause__ if hasattr(error, "provider_message") else error, "body", None)
    inner = body.get("error", body) if isinstance(body, Mapping) else None
    if isinstance(inner, Mapping) and "message" in inner:
        message = inner["message"]
    text = " ".join(str(message or error)[:EXCERPT].split())
    status = _status(error)
    return f"{status}: {text}" if status is not None else f"{type(error).__name__}: {text}"
