"""Tracks what is left of a run's limits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from mlagentbench.errors import LimitReached, ModelFailed
from mlagentbench.records import Step, Usage
from mlagentbench.run_spec import RunLimits


class Budget:
    """What is left of a run's limits after some steps."""

    def __init__(self, limits: RunLimits, steps: Sequence[Step]) -> None:
        self._limits = limits
        self._deadline = time.monotonic() + limits.time - sum(step.seconds for step in steps)
        self.reached: LimitReached | None = None
        """The first limit that the run has reached, even if its agent ignores the exception."""
        self.over = asyncio.Event()
        """Set when a limit is reached."""

    @property
    def seconds_left(self) -> float:
        """Seconds until the time limit."""
        return self._deadline - time.monotonic()

    async def check(self, steps: Sequence[Step], waited: float, used: Usage, stored: int) -> None:
        """Raise LimitReached if a limit is used up, and note it.

        Args:
            steps: the steps so far.
            waited: seconds of waiting since the last step.
            used: tokens and cost in all.
            stored: bytes on disk.

        Raises:
            LimitReached: a limit is used up.
            ModelFailed: tokens or cost are limited, and a provider does not report its tokens.
        """
        limited = [name for name in ("tokens", "cost") if getattr(self._limits, name) is not None]
        if used.uncounted and limited:
            told = f"the provider reported no tokens for {used.uncounted} of {used.calls} calls"
            raise ModelFailed(f"{told}, so the limit of {' and '.join(limited)} cannot be kept; run without --{' and --'.join(limited)}")
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
            # An agent that ignores the error and tries again in a loop must not starve the other tasks of the event loop.
            await asyncio.sleep(0)
            raise

    def time_is_up(self) -> LimitReached:
        """Note that the time limit is reached, and return it as an error to raise."""
        return self.end(LimitReached("limit_time", f"the run's {self._limits.time:g} seconds are used up"))

    def end(self, limit: LimitReached) -> LimitReached:
        """Note that a limit is reached, and return it. The first one stays in `reached`."""
        self.reached = self.reached or limit
        self.over.set()
        return limit
