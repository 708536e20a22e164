"""What a run may use in all."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from mlagentbench.errors import LimitReached
from mlagentbench.records import Step, Usage
from mlagentbench.run_spec import RunLimits


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
