"""Compute when each request of a queue may be sent: the arithmetic of a rate limit, without a clock, a file or a lock of its own.

A request takes a place in the queue: the number of requests before it, and their tokens. The bucket pays for places at the current rates,
and a request may be sent once all places before it are paid for. So requests are sent in the order in which they asked, whoever asks.

The rates are a fraction of the limits. When the provider refuses a request, the fraction falls to `BACK_OFF` of what it was, once for all
requests that were sent before it fell. While requests wait and are answered, it grows again, the faster the longer nothing is refused, as
the window of TCP CUBIC does (RFC 9438): a limit that is a little too high is found in minutes, and one that is much too low is left soon.
"""

from __future__ import annotations

import math
import struct
import zlib
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import NamedTuple, Self

from mlagentbench.model import Permit, Refusal

MINUTE = 60.0
BACK_OFF = 0.85
"""What remains of the fraction after a refusal."""
GROWTH = 0.03
"""How fast the growth speeds up: in t minutes the fraction grows by `GROWTH` t² / 2."""
LOWEST = 0.05
"""The fraction below which it does not fall, so that it has grown again some minutes after a provider refused everything."""
LEARNT = 60.0
"""The least requests a minute that a limit is believed to be which nobody states."""
PAUSE = 1.0
"""Seconds for which nothing is sent after a refusal that does not say how long to wait."""
BURST = 1.0
"""Seconds of an unused rate that are kept for later."""
LEAST = 0.001
"""The least seconds to wait, so that the time that is waited for is never lost to rounding."""
LOOK = 5.0
"""The most seconds after which a waiting request looks at the bucket again."""
LONGEST_BLOCK = 3600.0
"""The most seconds that a provider's Retry-After holds back everybody."""
DESERTED = 3 * LOOK
"""Seconds after which a bucket that nobody has looked at has no queue: those who waited are gone."""

_MAGIC = b"mlabkt1\n"


class Rates(NamedTuple):
    """Limits of a model in requests and tokens a minute; infinite where there is none."""

    requests: float = math.inf
    tokens: float = math.inf


@dataclass
class Bucket:
    """The state of a model's rate limit. All times are seconds of one clock, which every caller must share."""

    stated_requests: float
    """The limits that the user stated."""
    stated_tokens: float
    requests: float
    """The limits that the rates are a fraction of: those stated, or learnt from the provider."""
    tokens: float
    looked: float
    """When the bucket was last looked at."""
    fallen: float = 1.0
    """The fraction after it last fell."""
    grown: float = math.inf
    """Minutes since then in which requests had to wait and were answered; infinite before the first refusal."""
    counted: float = 0.0
    """Until when they are counted."""
    falls: float = 0.0
    """How often the fraction has fallen."""
    asked_requests: float = 0.0
    """The places taken so far: requests, and their tokens."""
    asked_tokens: float = 0.0
    paid_requests: float = 0.0
    """The part of them that is paid for."""
    paid_tokens: float = 0.0
    blocked: float = 0.0
    """Until when nothing may be sent."""
    minute: float = 0.0
    """When the current minute of counting began."""
    sent: float = 0.0
    """Requests sent in it."""
    sent_before: float = 0.0
    """Requests sent in the minute before."""

    @classmethod
    def new(cls, stated: Rates, now: float) -> Self:
        """Return a bucket that nobody has used."""
        return cls(*stated, *stated, looked=now, minute=now)

    @classmethod
    def load(cls, data: bytes, stated: Rates, now: float) -> Self:
        """Return the bucket that `dump` wrote; a new one if the data is damaged.

        Args:
            data: the bytes.
            stated: the limits that the user states. Others than before are the new rates; without any, the old ones hold.
            now: the time in seconds.
        """
        if len(data) != SIZE or data[:8] != _MAGIC or zlib.crc32(data[12:]) != int.from_bytes(data[8:12], "little"):
            return cls.new(stated, now)
        bucket = cls(*_STATE.unpack_from(data, 12))
        if stated != Rates() and stated != (bucket.stated_requests, bucket.stated_tokens):
            bucket.stated_requests, bucket.stated_tokens = bucket.requests, bucket.tokens = stated
            bucket.fallen, bucket.grown = 1.0, math.inf
        return bucket

    def dump(self) -> bytes:
        """Return the bucket as `SIZE` bytes."""
        state = _STATE.pack(*_VALUES(self))
        return _MAGIC + zlib.crc32(state).to_bytes(4, "little") + state

    @property
    def fraction(self) -> float:
        """The part of the limits that is used now; at most 1 if they are stated."""
        if self.grown == math.inf:
            return 1.0
        fraction = self.fallen + GROWTH * self.grown**2 / 2
        return min(1.0, fraction) if min(self.stated_requests, self.stated_tokens) < math.inf else fraction

    def rates(self, share: float = 1.0) -> Rates:
        """Return the current rates, a minute.

        Args:
            share: the part of the model's limits that this bucket may use.
        """
        part = self.fraction * share
        return Rates(part * self.requests, part * self.tokens)

    def place(self, model: str, tokens: int, now: float, share: float = 1.0) -> Permit:
        """Give a request the next place in the queue.

        Args:
            model: the model's name.
            tokens: an estimate of the request's tokens.
            now: the time in seconds.
            share: the part of the model's limits that this bucket may use.
        """
        self._pay(now, share)
        permit = Permit(model, self.asked_requests, self.asked_tokens, tokens)
        self.asked_requests += 1
        self.asked_tokens += tokens
        return permit

    def wait(self, permit: Permit, now: float, share: float = 1.0) -> float:
        """Return the seconds until a request may be sent at the current rates; 0 if it may be sent now."""
        self._pay(now, share)
        requests, tokens = permit.before_requests - self.paid_requests, permit.before_tokens - self.paid_tokens
        if requests <= 0 and tokens <= 0:
            return max(0.0, self.blocked - now)
        rates = self.rates(share)
        return max(LEAST, self.blocked - now, requests * MINUTE / rates.requests, tokens * MINUTE / rates.tokens)

    def send(self, permit: Permit, now: float, *, waited: bool) -> Permit:
        """Count a request that is sent now, and return its permit for `answered` and `refused`."""
        if now - self.minute >= MINUTE or now < self.minute:
            self.sent_before = self.sent if 0 < now - self.minute < 2 * MINUTE else 0.0
            self.sent, self.minute = 0.0, now - (now - self.minute) % MINUTE
        self.sent += 1
        return Permit(*permit[:4], self.falls, waited)

    def leave(self, permit: Permit, now: float, share: float = 1.0) -> None:
        """Take back a request that will not be sent."""
        self._pay(now, share)
        self.paid_requests += 1
        self.paid_tokens += permit.tokens

    def answered(self, permit: Permit, tokens: int, now: float, share: float = 1.0) -> None:
        """Note a request that was answered.

        Args:
            permit: its permit.
            tokens: the tokens that it used.
            now: the time in seconds.
            share: the part of the model's limits that this bucket may use.
        """
        self._pay(now, share)
        self.paid_tokens += permit.tokens - tokens
        if permit.waited and permit.falls == self.falls:
            self.grown += min(max(0.0, now - self.counted), MINUTE) / MINUTE
            self.counted = now

    def refused(self, permit: Permit, refusal: Refusal, now: float, share: float = 1.0) -> None:
        """Record that the provider refused a request. The request keeps its place in the queue."""
        self._pay(now, share)
        self.paid_requests -= 1
        self.paid_tokens -= permit.tokens
        pause = PAUSE if refusal.retry_after is None else min(refusal.retry_after, LONGEST_BLOCK)
        self.blocked = max(self.blocked, now + pause)
        if permit.falls == self.falls:
            self.fallen = max(LOWEST, BACK_OFF * self._learn(refusal, now, share))
            self.grown, self.counted, self.falls = 0.0, now, self.falls + 1

    def _learn(self, refusal: Refusal, now: float, share: float) -> float:
        """Take the limits that a refusal names; without any, the requests of the last minute. Return the fraction of them that was used."""
        fraction, before = self.fraction, self.requests
        named = Rates(refusal.requests or math.inf, refusal.tokens or math.inf)
        if Rates(self.requests, self.tokens) == named == Rates():
            part = min(1.0, max(0.0, now - self.minute) / MINUTE)
            named = Rates(max(LEARNT, (self.sent + self.sent_before * (1 - part)) / share))
        self.requests, self.tokens = min(before, named.requests), min(self.tokens, named.tokens)
        return min(1.0, fraction * before / self.requests) if self.requests < before else fraction

    def _pay(self, now: float, share: float) -> None:
        """Pay for places with the time since the bucket was last looked at."""
        since = now - self.looked
        self.looked = now
        rates = self.rates(share)
        if not -DESERTED <= since <= DESERTED:
            # Nobody waits, or the clock was set.
            self.paid_requests, self.paid_tokens = max(self.paid_requests, self.asked_requests), max(self.paid_tokens, self.asked_tokens)
            self.blocked = min(self.blocked, now + LONGEST_BLOCK)
            return
        minutes = max(0.0, now - max(self.blocked, now - since)) / MINUTE
        self.paid_requests = _paid(self.paid_requests, self.asked_requests, rates.requests, minutes)
        self.paid_tokens = _paid(self.paid_tokens, self.asked_tokens, rates.tokens, minutes)


_VALUES = attrgetter(*(field.name for field in fields(Bucket)))
_STATE = struct.Struct(f"<{len(fields(Bucket))}d")
SIZE = 12 + _STATE.size
"""Bytes of a bucket as `Bucket.dump` writes it."""


def _paid(paid: float, asked: float, rate: float, minutes: float) -> float:
    """Return what is paid for after some minutes at a rate."""
    if rate == math.inf:
        return paid if paid > asked else asked
    most = max(paid, asked + BURST * rate / MINUTE)
    return min(paid + minutes * rate, most)
