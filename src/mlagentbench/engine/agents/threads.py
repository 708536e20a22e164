"""Tell the main thread of an agent of another framework from its side calls and its sub-agents.

Such an agent sends requests to a model, and says nothing about what they are for. Beside its own conversation there can be

- side calls: a title, a summary, a value in a set form, for which the agent offers no tools, or one that the reply must call;
- sub-agents, which the main thread starts by a tool call and waits for. Their conversations begin with a task of their own.

Claude Code has all of these, Codex and mini-swe-agent have one thread, and AIDE begins a new conversation with every request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageSystem, ModelOutput
from inspect_ai.tool import ToolChoice, ToolFunction
from pydantic import JsonValue

Thread = Literal["agent", "side call", "sub-agent"]
"""What a request belongs to; it is the purpose that its record states."""


class MainThread:
    """The conversation whose calls are the steps of a run."""

    def __init__(self) -> None:
        self._has_tools = False
        self._first = ""
        self._reply: ChatMessageAssistant | None = None

    @property
    def begun(self) -> bool:
        """Whether there was a reply to it."""
        return self._reply is not None

    def of(self, messages: Sequence[ChatMessage], tools: Sequence[str], choice: ToolChoice | None) -> Thread:
        """Return what a request belongs to, by its conversation, the tools that it offers, and which of them it must call."""
        if isinstance(choice, ToolFunction) or (self._has_tools and not tools):
            return "side call"
        continued = self._reply is None or not self._reply.tool_calls or _holds(messages, self._reply)
        return "agent" if continued or _first(messages) == self._first else "sub-agent"

    def begins(self, messages: Sequence[ChatMessage], tools: Sequence[str]) -> bool:
        """Return whether a request is the first of this thread: the first that offers tools, and no answer to the reply before."""
        return bool(tools) and not self._has_tools and self._reply is not None and not _holds(messages, self._reply)

    def take(self, messages: Sequence[ChatMessage], tools: Sequence[str], reply: ModelOutput) -> None:
        """Go on with a request of this thread and the reply to it."""
        self._has_tools = self._has_tools or bool(tools)
        self._first = _first(messages)
        self._reply = reply.message

    def news(self, messages: Sequence[ChatMessage]) -> str:
        """Return what a request of this thread adds to the last reply: the results of its tool calls, and other messages.

        It is empty where the request does not hold that reply, as when the agent begins a new conversation.
        """
        if self._reply is None:
            return ""
        last = max((number for number, message in enumerate(messages) if _same(message, self._reply)), default=len(messages))
        return "\n".join(text for message in messages[last + 1 :] if (text := message.text.strip()))


class Called(NamedTuple):
    """What a reply asks for, as the name and the arguments of an action."""

    name: str
    arguments: Mapping[str, JsonValue]


def called(reply: ChatMessageAssistant) -> Called:
    """Return a reply's tool calls as one action: the only call, or several under their names joined; `Reply` without any."""
    calls = reply.tool_calls or []
    if not calls:
        return Called("Reply", {})
    if len(calls) == 1:
        return Called(calls[0].function, dict(calls[0].arguments))
    names = dict.fromkeys(call.function for call in calls)
    return Called(" + ".join(names), {"calls": [{"name": call.function, "arguments": call.arguments} for call in calls]})


def _first(messages: Sequence[ChatMessage]) -> str:
    return next((message.text for message in messages if not isinstance(message, ChatMessageSystem)), "")


def _holds(messages: Sequence[ChatMessage], reply: ChatMessageAssistant) -> bool:
    return any(_same(message, reply) for message in messages)


def _same(message: ChatMessage, reply: ChatMessageAssistant) -> bool:
    """Return whether a message is a reply that the agent has been given: it makes the same calls, or has the same text."""
    if not isinstance(message, ChatMessageAssistant):
        return False
    if reply.tool_calls:
        ids = {call.id for call in message.tool_calls or ()}
        return any(call.id in ids for call in reply.tool_calls)
    return bool(reply.text.strip()) and message.text.strip() == reply.text.strip()
