"""Whose fault it is that a run's time is up while a question to a model has no reply: the provider's, if it answers nothing at all."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from mlagentbench.errors import LimitReached, ModelFailed
from mlagentbench.model import Model, Reply
from mlagentbench.records import Role

QUESTION = "Reply with one word: yes"
LEAST_WAIT = 1.0
"""Seconds that a question must have waited; who asks with less time left than that has used up the time otherwise."""

Keep = Callable[[Role, str, str, Reply, float], None]
"""Records a question: the role, who asked, the prompt, the reply and the seconds that it took."""


class ProviderCheck:
    """Asks the provider a short question when a run's time is up and a longer one has no reply.

    A long reply and one that never comes look alike. A provider that works answers a short question, and then the time that the long reply
    took is the agent's.

    Args:
        keep: records the question.
    """

    def __init__(self, keep: Keep) -> None:
        self._keep = keep
        self.asking: asyncio.Task[None] | None = None
        """The one question of the run, from when it is asked."""

    async def check(self, role: Role, model: Model, waited: float) -> None:
        """Find out whether a provider answers. Questions that were asked at once find it out once.

        Args:
            role: whom the model speaks as.
            model: the model.
            waited: seconds that the other question had waited.

        Raises:
            ModelFailed: it does not.
        """
        self.asking = self.asking or asyncio.create_task(self._ask(role, model, waited))
        await asyncio.shield(self.asking)

    def close(self) -> None:
        """Stop asking."""
        if self.asking is not None:
            self.asking.cancel()

    async def _ask(self, role: Role, model: Model, waited: float) -> None:
        if model.check_seconds is None or waited < LEAST_WAIT:
            return
        started = time.monotonic()
        try:
            async with asyncio.timeout(model.check_seconds):
                reply = await model.generate(QUESTION)
        except LimitReached:
            return  # an answer, too
        except (TimeoutError, ModelFailed) as error:
            why = f"{model.name} gave no reply in {waited:.0f} s, until the run's time was up, nor to a short question"
            raise ModelFailed(f"{why} in {time.monotonic() - started:.0f} s after that" + (f": {error}" if str(error) else "")) from None
        self._keep(role, "provider check", QUESTION, reply, time.monotonic() - started)
