"""What a run may use in all."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from mlagentbench.errors import LimitReached
from mlagentbench.records import Step, Usage

WORKSPACE_SHARE = 5
"""The part of a run's share of the disk that its workspace may take is one of so many."""


@dataclass(frozen=True)
class RunLimits:
    """What a run may use. None is no limit."""

    steps: int = 50
    time: float = 5 * 3600
    """Seconds in all."""
    working_time: float | None = None
    """Seconds that do not count waiting for rate limits and before retries."""
    tokens: int | None = None
    cost: float | None = None
    """US dollars; it holds only where the model's price is known."""
    storage_mb: int = 65536
    """What its snapshots and records take on disk, each content counted once."""
    files: int = 200_000
    """Files, folders and links in its workspace after any step."""

    def within(self, disk_share_mb: int | None) -> RunLimits:
        """The limits of a run that has a share of a disk to itself: its snapshots take at most three fifths of it.

        Its workspace takes at most a fifth (`WORKSPACE_SHARE`), so that a last snapshot always has room.
        """
        return self if disk_share_mb is None else replace(self, storage_mb=min(self.storage_mb, max(1, disk_share_mb * 3 // 5)))

    def check(self, steps: int, seconds: float, waited: float, used: Usage, stored: int = 0) -> None:
        """See that nothing is used up.

        Args:
            steps: counted steps.
            seconds: in all.
            waited: the part of them that went by waiting.
            used: tokens and cost.
            stored: bytes on disk.

        Raises:
            LimitReached: something is.
        """
        if stored > self.storage_mb << 20:
            raise LimitReached("limit_storage", f"the run has stored {stored >> 20:,} MB, and may store {self.storage_mb:,} MB")
        if steps >= self.steps:
            raise LimitReached("limit_steps", f"the run's {self.steps} steps are used up")
        if seconds >= self.time:
            raise LimitReached("limit_time", f"the run's {self.time:g} seconds are used up")
        if self.working_time is not None and seconds - waited >= self.working_time:
            raise LimitReached("limit_time", f"the run's {self.working_time:g} seconds of working time are used up")
        if self.tokens is not None and used.tokens >= self.tokens:
            raise LimitReached("limit_tokens", f"the run's {self.tokens} tokens are used up")
        if self.cost is not None and used.cost is not None and used.cost >= self.cost:
            raise LimitReached("limit_cost", f"the run's {self.cost:g} dollars are used up")


class Budget:
    """What is left of a run's limits.

    Args:
        limits: what it may use.
        steps: what was done already, whose time counts.
    """

    def __init__(self, limits: RunLimits, steps: Sequence[Step]) -> None:
        self._limits = limits
        self._deadline = time.monotonic() + limits.time - sum(step.seconds for step in steps)
        self.reached: LimitReached | None = None
        """The limit that the run has reached, whatever its agent makes of that."""
        self.over = asyncio.Event()
        """Set when one is."""

    @property
    def seconds_left(self) -> float:
        """Until the limit of time."""
        return self._deadline - time.monotonic()

    async def check(self, steps: Sequence[Step], waited: float, used: Usage, stored: int) -> None:
        """See that nothing is used up.

        Args:
            steps: what was done.
            waited: seconds of waiting since.
            used: tokens and cost in all.
            stored: bytes on disk.

        Raises:
            LimitReached: something is.
        """
        try:
            self._limits.check(
                steps=sum(step.counted for step in steps),
                seconds=self._limits.time - self.seconds_left,
                waited=sum(step.waited_seconds for step in steps) + waited,
                used=used,
                stored=stored,
            )
        except LimitReached as limit:
            self.end(limit)
            # Others have their turn before an agent that takes no notice tries again.
            await asyncio.sleep(0)
            raise

    def time_is_up(self) -> LimitReached:
        """The limit of time, reached."""
        return self.end(LimitReached("limit_time", f"the run's {self._limits.time:g} seconds are used up"))

    def end(self, limit: LimitReached) -> LimitReached:
        """Note that a limit is reached."""
        self.reached = self.reached or limit
        self.over.set()
        return limit
