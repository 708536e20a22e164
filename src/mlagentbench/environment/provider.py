"""Decides whether a run that timed out while waiting for a model's reply is to blame, or a provider that hangs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from mlagentbench.errors import LimitReached, ModelFailed
from mlagentbench.model import Model, Reply
from mlagentbench.records import Role

QUESTION = "Reply with one word: yes"
LEAST_WAIT = 1.0
"""Seconds that a question must have waited for the provider to be checked; after less, the run had used up its time before asking."""

RecordCall = Callable[[Role, str, str, Reply, float], None]
"""Records a question: the role, who asked, the prompt, the reply and the seconds that it took."""


class ProviderCheck:
    """Asks a provider a short question if a run's time is up while another question has no reply.

    A slow reply and one that never comes look the same. If the provider answers the short question, it works, and the time that the
    other reply took counts as the agent's.
    """

    def __init__(self, record_call: RecordCall) -> None:
        self._record_call = record_call
        self.asking: asyncio.Task[None] | None = None
        """The run's only check; None until there is one."""

    async def check(self, role: Role, model: Model, waited: float) -> None:
        """Raise ModelFailed if the provider does not answer. Concurrent calls share one check.

        Args:
            role: the model's role.
            model: the model.
            waited: seconds that the other question had waited.

        Raises:
            ModelFailed: the provider gave no reply within `model.check_seconds`.
        """
        self.asking = self.asking or asyncio.create_task(self._ask(role, model, waited))
        await asyncio.shield(self.asking)

    def close(self) -> None:
        """Cancel the check, if it is in progress."""
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
            return  # the provider answered, if only that the prompt is too long
        except (TimeoutError, ModelFailed) as error:
            why = f"{model.name} gave no reply in {waited:.0f} s, until the run's time was up, nor to a short question"
            raise ModelFailed(f"{why} in {time.monotonic() - started:.0f} s after that" + (f": {error}" if str(error) else "")) from None
        self._record_call(role, "provider check", QUESTION, reply, time.monotonic() - started)
