"""Say how far two raters agree on the same items. Pure functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import NamedTuple

from mlagentbench.results.statistics.intervals import Interval, success_rate


class Agreement(NamedTuple):
    """How far two raters agree."""

    same: int
    of: int
    share: Interval
    """The share of items on which they agree, with Wilson's interval."""
    kappa: float | None
    """Cohen's kappa (1960); None if both give one and the same answer to all items, so that chance alone would make them agree."""


def agreement(pairs: Sequence[tuple[Hashable, Hashable]]) -> Agreement | None:
    """Return how far two raters agree; None without items."""
    if not pairs:
        return None
    same = sum(first == second for first, second in pairs)
    firsts, seconds = Counter(first for first, _ in pairs), Counter(second for _, second in pairs)
    by_chance = sum(firsts[kind] * seconds[kind] for kind in firsts) / len(pairs) ** 2
    kappa = (same / len(pairs) - by_chance) / (1 - by_chance) if by_chance < 1 else None
    return Agreement(same, len(pairs), success_rate(same, len(pairs)), kappa)
