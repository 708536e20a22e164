"""Define how long a failing provider is retried, and classify its failures.

All retries are made by one loop, `persist`. Inspect's own are turned off (`max_retries=0`): it retries for ever, waits up to half an hour
between two requests, ignores Retry-After, and gives up at once on a malformed reply. Inspect only decides which failures are temporary:
408, 429 and all of 5xx, lost connections, and timeouts. `make_model` turns off the retries of the clients below it, which know of no rate
limit that runs share.
tenacity would replace the loop alone, and the loop must also end a question that is cancelled with the provider's last error.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import NamedTuple, TypeVar
from urllib.parse import urlsplit

from inspect_ai.model import ModelAPI, ModelOutput
from inspect_ai.util import suspend_working_limit

from mlagentbench.model import Limiter, Permit, Refusal
from mlagentbench.util.text import one_line

Answer = TypeVar("Answer")

EXCERPT = 300
"""The most characters of a provider's message that ours quote."""
LONGEST_REPLY = 2_000_000
"""The most characters of a reply. The most that today's models write at once, 128,000 tokens, is a quarter of it."""
GROQ = "api.groq.com"
"""The host of Groq."""
LEAST_WAIT = 0.1
"""Seconds below which a wait is not counted, since it is this process's own work."""
REMEDIES = {401: "check its key", 403: "check what its key may do", 404: "check its name", 429: "check its quota"}
"""What to do about a permanent error, by its HTTP status."""
TOO_LONG = re.compile(
    "|".join(
        (
            "maximum context length",
            r"context[_ ](?:length|window|size|limit)[_ ](?:(?:is|was|has been) )?exceeded",
            "context shift is disabled",
            "context the overflows",
            r"(?:greater|longer) than the (?:maximum )?(?:context|model) length",
            r"exceeds? (?:the )?(?:available |maximum |model'?s? )*context",
            r"(?:prompt|input|request) (?:is|was) too (?:long|large)",
            r"token count\b.{0,40}\bexceeds",
            r"tokens`?\s*\+.{1,40}must be <=",
            "string_above_max_length",
        )
    ),
    re.IGNORECASE,
)
"""Matches the messages by which servers say that a prompt is longer than the context window."""


class RetryPolicy(NamedTuple):
    """How long a failing provider is retried."""

    seconds: float = 900.0
    """Seconds from a question's first request until the run is ended as `infrastructure`. Such a run can be resumed. The time until the
    last refusal because of a rate limit does not count, since such a refusal ends no run."""
    request: int = 600
    """Seconds for one request, including the retries of the provider's client."""
    pause: float = 2.0
    """Seconds before the second request; they double with each further one, and vary randomly by up to a quarter."""
    longest_pause: float = 120.0
    """The most seconds between two requests, unless a provider asks for more with Retry-After."""
    check: float = 60.0
    """Seconds for a short test question when a run's time is up and its last question has no reply. If that is not answered either, the
    provider has ended the run."""
    useless: int = 4
    """How many useless replies end a question, since each costs tokens: malformed, far too long, or withheld."""

    def before(self, request: int) -> float:
        """Return the seconds to pause before a request, numbered from 1 (pauses begin with the second)."""
        # The exponent is bounded, since a larger one would overflow the float.
        doubled = self.pause * 2.0 ** min(request - 2, 60)
        return min(doubled, self.longest_pause) * random.uniform(0.75, 1.25)


_in_use: ContextVar[RetryPolicy] = ContextVar("retry_policy")


def current_retry_policy() -> RetryPolicy:
    """Return the retry policy of the running evaluation."""
    return _in_use.get(RetryPolicy())


@contextmanager
def use_retry_policy(retry_policy: RetryPolicy) -> Iterator[None]:
    """Use a retry policy for the evaluations inside this context."""
    token = _in_use.set(retry_policy)
    try:
        yield
    finally:
        _in_use.reset(token)


@dataclass(eq=False)
class ProviderError(Exception):
    """A request returned no reply, or none of use."""

    reason: str
    """What happened instead."""
    permanent: bool = False
    """Whether retrying is useless."""
    useless: bool = False
    """Whether the provider did reply, but with something useless."""
    withheld: bool = False
    """Whether its content filter withheld the reply or rejected the prompt."""
    too_long: bool = False
    """Whether the prompt is longer than the context window."""
    retry_after: float | None = None
    """The seconds that the provider asks to wait."""
    refusal: Refusal | None = None
    """What the provider said of its rate limit, if that is why it refused."""

    def __str__(self) -> str:
        return self.reason


class GivenUp(Exception):
    """A question was given up.

    Args:
        error: the last error; None if the question was cancelled while it waited for a rate limit.
        requests: how often the provider was asked.
        seconds: how long the question took.
    """

    def __init__(self, error: ProviderError | None, requests: int, seconds: float) -> None:
        super().__init__(error, requests, seconds)
        self.error = error
        self.requests = requests
        self.seconds = seconds


async def persist(
    request: Callable[[], Awaitable[Answer]],
    *,
    model: str,
    tokens: int = 0,
    used: Callable[[], int] = lambda: 0,
    retry_policy: RetryPolicy = RetryPolicy(),
    limiter: Limiter | None = None,
) -> Answer:
    """Send a request, again and again while that may help, and return its answer.

    Args:
        request: sends the request once; raises ProviderError.
        model: the model's name.
        tokens: an estimate of the request's tokens.
        used: returns the tokens that all requests so far have used.
        retry_policy: how long a failing provider is retried.
        limiter: the rate limit that runs share; None to send at once, and to pause longer and longer after a refusal.

    Raises:
        GivenUp: it failed until the last retry, or it was cancelled while the provider was failing or its rate limit was waited for.
    """
    clock = asyncio.get_running_loop().time
    started = patience = clock()
    requests = useless = 0
    error: ProviderError | None = None
    permit: Permit | None = None
    waiting = False
    try:
        while True:
            if limiter is not None:
                waiting = True
                with suspend_working_limit():
                    permit = await limiter.admit(model, tokens, permit)
                waiting = False
            requests, used_before = requests + 1, used()
            try:
                answer = await request()
            except ProviderError as new:
                error = new
            else:
                if limiter is not None and permit is not None:
                    await limiter.answered(permit, used() - used_before)
                return answer
            useless += error.useless
            pause = max(retry_policy.before(requests + 1), error.retry_after or 0.0)
            if error.refusal is not None:
                patience = clock()
                if limiter is not None and permit is not None:
                    await limiter.refused(permit, error.refusal)
                    continue
            elif error.permanent or useless >= retry_policy.useless or clock() - patience + pause > retry_policy.seconds:
                raise GivenUp(error, requests, clock() - started)
            permit = None
            with suspend_working_limit():
                await asyncio.sleep(pause)
    except asyncio.CancelledError:
        # If a run's time is up while its provider is failing or holds it back, the provider has ended the run.
        if error is None and not waiting:
            raise
        raise GivenUp(error, requests, clock() - started) from None


class ProviderWaits:
    """The time spent waiting for providers. Time in which several questions wait at once counts once."""

    def __init__(self) -> None:
        self._until = 0.0

    def add(self, start: float, end: float) -> float:
        """Add a wait by its start and end, and return the seconds of it that were not counted before."""
        start, self._until = max(start, self._until), max(end, self._until)
        return end - start if end - start >= LEAST_WAIT else 0.0


def provider_error(error: Exception, api: ModelAPI, *, here: bool = False) -> ProviderError:
    """Return the `ProviderError` that an error of Inspect or of a provider's client means; `here` is True for a model in this process."""
    # Inspect may ask only once; it wraps an error after which it would have retried.
    attempt = getattr(error, "last_attempt", None)
    cause = attempt.exception() if attempt is not None else error
    status = _status(cause)
    words = _words(cause)
    if status is not None and _is_overflow(status, str(cause) if status < 500 else words):
        return ProviderError(words, permanent=True, too_long=True)
    if attempt is not None:
        decision = api.should_retry(cause)
        retry_after = getattr(decision, "retry_after", None)
        limited = status == 429 or getattr(decision, "kind", None) == "rate_limit"
        return ProviderError(words, retry_after=retry_after, refusal=_refusal(cause, retry_after) if limited else None)
    if status is None and here:
        return ProviderError(words, useless=True)
    if status is None:
        # Without a status it is no refusal: the client could not read what the provider sent.
        return ProviderError(f"a malformed reply ({words})", useless=True)
    remedy = REMEDIES.get(status)
    return ProviderError(words + (f" ({remedy})" if remedy else ""), permanent=True)


def check_reply(output: ModelOutput) -> None:
    """Raise ProviderError if a reply is of no use. An empty one is the model's own doing, and is accepted.

    Raises:
        ProviderError: the reply has no choices, is withheld, or far too long.
    """
    if not output.choices:
        raise ProviderError("a reply without choices", useless=True)
    if output.stop_reason == "content_filter":
        reason = one_line(output.error or output.completion, EXCERPT)
        raise ProviderError(f"the content was withheld ({reason})", useless=True, withheld=True)
    if len(output.completion) > LONGEST_REPLY:
        raise ProviderError(f"a reply of {len(output.completion):,} characters", useless=True)


def _is_overflow(status: int, message: str) -> bool:
    """Return whether an error says that the prompt is longer than the context window, which some servers tell with a status of 500."""
    return status == 413 or ((status in (400, 422) or status >= 500) and TOO_LONG.search(message) is not None)


def _refusal(error: BaseException, retry_after: float | None) -> Refusal:
    """Return what a provider says of its rate limit, in the headers of OpenAI (and Azure, Groq, vLLM, LiteLLM) or Anthropic.

    Groq's limit of requests is not taken, since it is that of a day (https://console.groq.com/docs/rate-limits).
    """
    response = getattr(error, "response", None)
    headers = getattr(response, "headers", None) or {}

    def limit(what: str) -> float | None:
        for name in (f"x-ratelimit-limit-{what}", f"anthropic-ratelimit-{what}-limit"):
            value = str(headers.get(name, ""))
            if value.isdecimal() and value.isascii() and 0 < len(value) < 16 and int(value) > 0:
                return float(value)
        return None

    daily = urlsplit(str(getattr(response, "url", ""))).hostname == GROQ
    return Refusal(retry_after, None if daily else limit("requests"), limit("tokens"))


def _status(error: BaseException) -> int | None:
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else None


def _words(error: BaseException) -> str:
    """Return a provider's message for an error, in one line."""
    # The message of some of Inspect's errors contains the whole request; the provider's own message is in their cause.
    message = getattr(error.__cause__ if hasattr(error, "provider_message") else error, "message", None)
    body = getattr(error.__cause__ if hasattr(error, "provider_message") else error, "body", None)
    inner = body.get("error", body) if isinstance(body, Mapping) else None
    if isinstance(inner, Mapping) and "message" in inner:
        message = inner["message"]
    text = one_line(str(message or error), EXCERPT)
    status = _status(error)
    return f"{status}: {text}" if status is not None else f"{type(error).__name__}: {text}"
