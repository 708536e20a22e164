"""The scripted model as an Inspect provider: `--model scripted/<file>`.

To an agent that offers tools, a reply that is a JSON object with the key `tool_calls` calls them; `text` is what it says beside that:

    {"text": "Look around first.", "tool_calls": [{"name": "list_files", "arguments": {"dir_path": "."}}]}

Every run reads the script from its start, each role its own queue. Who is speaking is said by `turn`, since a provider is told neither run
nor role.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple
from uuid import uuid4

from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessage,
    ChatMessageAssistant,
    GenerateConfig,
    ModelAPI,
    ModelOutput,
    ModelUsage,
    StopReason,
)
from inspect_ai.tool import ToolCall, ToolChoice, ToolInfo

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
        text, calls = _calls(reply.text) if tools else (reply.text, [])
        message = ChatMessageAssistant(content=text, tool_calls=calls or None, model=self.model_name)
        reason: StopReason = "max_tokens" if reply.truncated else "tool_calls" if calls else "stop"
        output = ModelOutput(model=self.model_name, choices=[ChatCompletionChoice(message=message, stop_reason=reason)])
        usage = reply.usage
        output.usage = ModelUsage(input_tokens=usage.input_tokens, output_tokens=usage.output_tokens, total_tokens=usage.tokens)
        return output


def _calls(text: str) -> tuple[str, list[ToolCall]]:
    """A reply's text, and the tools it calls."""
    try:
        reply = json.loads(text)
    except ValueError:
        return text, []
    if not isinstance(reply, dict) or "tool_calls" not in reply:
        return text, []
    calls = [ToolCall(id=uuid4().hex, function=call["name"], arguments=call.get("arguments", {})) for call in reply["tool_calls"]]
    return reply.get("text", ""), calls
