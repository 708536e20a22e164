"""The scripted model as an Inspect provider: `--model scripted/<file>`.

Every run reads the script from its start, each role its own queue. Who is speaking is said by `turn`, since a provider is told neither run
nor role.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from inspect_ai.model import ChatMessage, GenerateConfig, ModelAPI, ModelOutput, ModelUsage
from inspect_ai.tool import ToolChoice, ToolInfo

from mlagentbench.model import Script
from mlagentbench.records import Role

PREFIX = "scripted/"


class Turn(NamedTuple):
    """Whose turn it is to speak."""

    role: Role
    position: int
    """How many replies the role has been given in this run."""


_turn: ContextVar[Turn | None] = ContextVar("turn", default=None)


@contextmanager
def turn(role: Role, position: int) -> Iterator[None]:
    """Say who speaks, for the questions asked inside."""
    token = _turn.set(Turn(role, position))
    try:
        yield
    finally:
        _turn.reset(token)


class ScriptedAPI(ModelAPI):
    """Gives the replies of a file, in order. Outside of our runs they are the agent's, in the order of all questions."""

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),
        **model_args: Any,
    ) -> None:
        super().__init__(model_name, base_url, api_key, [], config)
        self._script = Script.named(model_name)
        self._asked = 0

    async def generate(
        self, input: list[ChatMessage], tools: list[ToolInfo], tool_choice: ToolChoice, config: GenerateConfig
    ) -> ModelOutput:
        """Give the next reply, cut at a stop sequence as a provider would.

        Raises:
            ScriptFailed: there is none left, or the prompt is not the expected one.
        """
        now = _turn.get()
        if now is None:
            now = Turn("agent", self._asked)
            self._asked += 1
        prompt = "\n".join(message.text for message in input)
        reply = self._script.reply(now.role, now.position, prompt, tuple(config.stop_seqs or ()))
        output = ModelOutput.from_content(self.model_name, reply.text, stop_reason="max_tokens" if reply.truncated else "stop")
        usage = reply.usage
        output.usage = ModelUsage(input_tokens=usage.input_tokens, output_tokens=usage.output_tokens, total_tokens=usage.tokens)
        return output
