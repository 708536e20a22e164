"""Define the tool-calling agent: a conversation in which the model calls the actions as native tools until it calls `final_answer`.

A reply may contain several calls; they are executed one after the other, each as a step. When the history has nearly filled the context
window, it is compacted. The messages that a step adds to the history are stored as the step's memory, so that a resumed run or a fork
continues with exactly these messages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    GenerateConfig,
    ModelOutput,
)
from inspect_ai.tool import ToolCall
from pydantic import JsonValue

from mlagentbench.actions import ACTIONS
from mlagentbench.agents.base import render
from mlagentbench.engine.agents.compaction import check_compaction, compacted, estimated, is_full
from mlagentbench.engine.agents.conversation import Conversation, dumped, loaded, thoughts_of
from mlagentbench.engine.agents.tools import FINAL_ANSWER, as_tool, offered
from mlagentbench.engine.models.model import InspectRequest
from mlagentbench.environment import Environment
from mlagentbench.errors import LimitReached, ResponseFormatError
from mlagentbench.records import Action, Step

FINAL = ACTIONS[FINAL_ANSWER].tool_name
NUDGE = f"Your reply called no tool, and nobody answers it. Go on by calling a tool; when the task is done, call {FINAL}."
NAMES: Mapping[str, str] = {definition.tool_name: definition.name for definition in ACTIONS.values()}


class ToolCallingAgent:
    """An agent whose model calls the actions as native tools in one conversation; a long history is compacted.

    Args:
        actions: the names of the actions that are offered as tools; by default those that the research agent's prompt mentions.
        compaction: how a long history is compacted: `edit` clears old results, and summarises if that frees too little; `summary`
            summarises at once; with `none` the run ends when the context window is full.
        context_tokens: the model's context window in tokens; by default the one that Inspect knows.
        temperature: the sampling temperature; by default the provider's.
        max_tokens: the most tokens of a reply; by default the provider's.
        reasoning_effort: how much the model reasons, for models with this setting: `low`, `medium`, `high` …
    """

    def __init__(
        self,
        actions: Sequence[str] | None = None,
        compaction: str = "edit",
        context_tokens: int | None = None,
        temperature: float | None = None,
        max_tokens: int | None = None,
        reasoning_effort: str | None = None,
    ) -> None:
        self.actions = actions
        offered(actions)  # raises for an unknown name before anything runs
        self.compaction = check_compaction(compaction)
        self.context_tokens = context_tokens
        settings = {"temperature": temperature, "max_tokens": max_tokens, "reasoning_effort": reasoning_effort}
        self.config = GenerateConfig.model_validate({name: value for name, value in settings.items() if value is not None})

    async def __call__(self, environment: Environment) -> None:
        """Ask the model and execute the tool calls of its replies, until the final answer or a limit."""
        history = _MessageHistory(self._opening(environment), environment.steps)
        conversation = Conversation(environment)
        while not environment.ended:
            call = history.unanswered()
            if call is None:
                await self._reply(environment, conversation, history)
                continue
            action = Action(name=NAMES.get(call.function, call.function), arguments=call.arguments)
            step = await environment.execute(action, entries=history.thoughts(), memory=history.memory())
            history.answer(call, step)

    def _opening(self, environment: Environment) -> list[ChatMessage]:
        limits = environment.limits
        instructions = render("tool_calling.md", steps=limits.steps, hours=f"{limits.time / 3600:g} hours", final=FINAL)
        task = environment.description.strip()
        return [ChatMessageSystem(content=instructions), ChatMessageUser(content=task, source="input")]

    async def _reply(self, environment: Environment, conversation: Conversation, history: _MessageHistory) -> None:
        """Ask for one reply, after compacting the history if it is too long.

        Raises:
            LimitReached: a limit of the run was reached, or even the compacted history is longer than the context window.
        """
        context = self.context_tokens or environment.context_tokens("agent")
        try:
            # The first question has no reply before it, so there is nothing to compact.
            if self.compaction != "none" and history.tokens and is_full(estimated(history.messages, history.tokens), context):
                await self._compact(conversation, history, forced=False)
            await self._ask(environment, conversation, history)
        except LimitReached as limit:
            if limit.ended != "limit_context" or self.compaction == "none":
                raise
            await self._compact(conversation, history, forced=True)
            await self._ask(environment, conversation, history)

    async def _ask(self, environment: Environment, conversation: Conversation, history: _MessageHistory) -> None:
        tools = [as_tool(definition) for definition in offered(self.actions, environment.actions)]
        question = InspectRequest(history.messages, tools, "auto", self.config)
        output, problem = await conversation.ask(question, _check_calls)
        history.add(output, *([ChatMessageUser(content=problem)] if problem else []))

    async def _compact(self, conversation: Conversation, history: _MessageHistory, *, forced: bool) -> None:
        history.replace(await compacted(history.messages, self.compaction, conversation, forced=forced))


def _check_calls(output: ModelOutput) -> None:
    if not output.message.tool_calls:
        raise ResponseFormatError(NUDGE)


class _MessageHistory:
    """The conversation so far, the first messages and what the steps' memories hold, and which of it is in no step yet."""

    def __init__(self, opening: Sequence[ChatMessage], steps: Sequence[Step]) -> None:
        self.messages = list(opening)
        self.tokens = 0
        """The tokens of the history with its last reply, as the provider counted them; 0 if it did not."""
        self._kept = len(self.messages)
        self._replaced = False
        for step in steps:
            if "messages" in step.memory:
                whole = bool(step.memory.get("whole"))
                self.messages = [*([] if whole else self.messages), *loaded(step.memory["messages"])]
                tokens = step.memory.get("tokens")
                self.tokens = tokens if isinstance(tokens, int) else 0
            if call := self.unanswered():
                self.answer(call, step)

    def unanswered(self) -> ToolCall | None:
        """Return the first call of the last reply that has no result yet; None if all have one."""
        reply, answered = self._last()
        calls = reply.tool_calls or [] if reply else []
        return calls[answered] if answered < len(calls) else None

    def thoughts(self) -> Mapping[str, str]:
        """Return the reasoning and text of the last reply, for the step of its first call only."""
        reply, answered = self._last()
        return thoughts_of(reply).entries if reply and not answered else {}

    def _last(self) -> tuple[ChatMessageAssistant | None, int]:
        """Return the last reply, and how many of its calls have a result: counted, since some providers' call ids are not unique."""
        answered = 0
        for message in reversed(self.messages):
            if isinstance(message, ChatMessageAssistant):
                return message, answered
            answered += isinstance(message, ChatMessageTool)
        return None, 0

    def memory(self) -> Mapping[str, JsonValue]:
        """Return the memory of the next step: the messages since the last step, or the whole history if it was compacted since."""
        new = dumped(self.messages[self._kept :])
        if not new:
            return {}
        return {"messages": new, "tokens": self.tokens, **({"whole": True} if self._replaced else {})}

    def add(self, output: ModelOutput, *after: ChatMessage) -> None:
        """Add a reply, and messages that follow it."""
        usage = output.usage
        self.tokens = usage.total_tokens if usage else 0
        self.messages += [output.message, *after]

    def answer(self, call: ToolCall, step: Step) -> None:
        """Add the result of a call."""
        text = step.observation
        if call.function not in NAMES:
            text += f" As tools they are called: {', '.join(NAMES)}."
        if call.parse_error:
            text = f"{call.parse_error}\n{text}"
        self.messages.append(ChatMessageTool(content=text, tool_call_id=call.id, function=call.function))
        self._kept, self._replaced = len(self.messages), False

    def replace(self, messages: Sequence[ChatMessage]) -> None:
        """Replace the history by a compacted one."""
        self.messages = list(messages)
        self.tokens, self._kept, self._replaced = 0, 0, True
