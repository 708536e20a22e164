"""What a run may use in all."""

from __future__ import annotations

from dataclasses import dataclass

from mlagentbench.errors import LimitReached
from mlagentbench.records import Usage


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

    def check(self, steps: int, seconds: float, waited: float, used: Usage) -> None:
        """See that nothing is used up.

        Args:
            steps: counted steps.
            seconds: in all.
            waited: the part of them that went by waiting.
            used: tokens and cost.

        Raises:
            LimitReached: something is.
        """
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
