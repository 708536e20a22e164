"""Lock a text so that only those who know the right readings after a step can read it: the key is a digest of these readings.

So the agent's script checks a step by itself, without a secret or an answer within its reach: the right readings of all rows open the next
note, and any others open nothing. `starter/unlock.py` is the other half.
"""

from __future__ import annotations

import hashlib

from mlagentbench.tasks.ladder.world import Ints

DIGEST = 32
"""Bytes of the text's own digest, which stand before it, so that a wrong key is noticed."""


def key(readings: Ints) -> bytes:
    """Return the key that belongs to the readings of all rows after a step."""
    return hashlib.sha256(",".join(map(str, readings.tolist())).encode()).digest()


def lock(text: str, readings: Ints) -> bytes:
    """Return a text that only the readings open: it is added, bit by bit, to a stream that SHAKE-256 makes of the key."""
    plain = text.encode()
    plain = hashlib.sha256(plain).digest() + plain
    stream = hashlib.shake_256(key(readings)).digest(len(plain))
    return bytes(one ^ other for one, other in zip(plain, stream, strict=True))
