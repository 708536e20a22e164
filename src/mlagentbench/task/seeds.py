"""The seeds that tasks draw their data from.

A script cannot read this package, but it can draw numbers from likely seeds, such as 0, 1 and 42, and find the one whose numbers are in the
public data: it then has the noise of every target and the order of every row. To find this seed, it would have to try them all.
"""

from __future__ import annotations

import hashlib

SEED = 0x27D1_920B_0D9F_E487
"""A random number of 62 bits, drawn anew until the test rows that it chooses in digits-lowlabel and diabetes were neither easier nor harder
than those of most others."""


def mini_data_seed(number: int | None = None) -> int:
    """Return the seed of mini data (62 bits) for a `--mini-seed`; `SEED` without one. A small number does not make it easy to guess."""
    if number is None:
        return SEED
    return int.from_bytes(hashlib.sha256(f"{SEED}/{number}".encode()).digest()[:8], "big") >> 2
