"""Provide the scripted model to Inspect: `--model scripted/<file>`.

If tools are offered, a reply that is a JSON object with the key `tool_calls` calls them; `text` is the reply's text:

    {"text": "Look around first.", "tool_calls": [{"name": "list_files", "arguments": {"dir_path": "."}}]}

Every run reads the script from its start, and each role has its own queue. The context manager `turn` says which role is asked, since
Inspect tells a provider neither run nor role.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple
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


class ScriptPosition(NamedTuple):
    """The role that is asked, and the position in its queue."""

    role: Role
    position: int
    """How many replies the role has received in this run."""


_turn: ContextVar[ScriptPosition | None] = ContextVar("turn", default=None)


@contextmanager
def turn(role: Role, position: int) -> Iterator[None]:
    """Set the role and position for the questions asked inside this context."""
    token = _turn.set(ScriptPosition(role, position))
    try:
        yield
    finally:
        _turn.reset(token)


class ScriptedAPI(ModelAPI):
    """A provider that gives the replies of a script, in order. Outside our runs, every question gets the agent's next reply."""

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),
        **model_args: object,
    ) -> None:
        super().__init__(model_name, base_url, api_key, [], config)
        self._script = Script.named(model_name)
        self._asked = 0

    async def generate(
        self, input: list[ChatMessage], tools: list[ToolInfo], tool_choice: ToolChoice, config: GenerateConfig
    ) -> ModelOutput:
        """Return the next reply, cut at a stop sequence as a provider would.

        Raises:
            ScriptFailed: no reply is left, or the prompt is not the expected one.
        """
        now = _turn.get()
        if now is None:
            now = ScriptPosition("agent", self._asked)
            self._asked += 1
        prompt = "\n".join(message.text for message in input)
        reply = self._script.reply(now.role, now.position, prompt, tuple(config.stop_seqs or ()))
        text, calls = _calls(reply.text) if tools else (reply.text, [])
        message = ChatMessageAssistant(content=text, tool_calls=calls or None, model=self.model_name)
        reason: StopReason = "max_tokens" if reply.truncated else "tool_calls" if calls else "stop"
        output = ModelOutput(model=self.model_name, choices=[ChatCompletionChoice(message=message, stop_reason=reason)])
        usage = reply.usage
        if usage.tokens is not None:
            output.usage = ModelUsage(input_tokens=usage.input_tokens, output_tokens=usage.output_tokens, total_tokens=usage.tokens)
        return output

    async def count_text_tokens(self, text: str) -> int:
        """Return about how many tokens a text has; Inspect would download a tokeniser."""
        return len(text) // 4 + 1


def _calls(text: str) -> tuple[str, list[ToolCall]]:
    """Return a reply's text, and the tools that it calls."""
    try:
        reply = json.loads(text)
    except ValueError:
        return text, []
    if not isinstance(reply, dict) or "tool_calls" not in reply:
        return text, []
    calls = [ToolCall(id=uuid4().hex, function=call["name"], arguments=call.get("arguments", {})) for call in reply["tool_calls"]]
    return reply.get("text", ""), calls
