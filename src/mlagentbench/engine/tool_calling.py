"""The agent of today's kind: a conversation in which the model calls the actions as tools, natively, until it calls `final_answer`.

A reply may hold several calls; they are carried out one after the other, each a step. The history grows until it is nearly as long as the
model can read, and is then compacted. What a step adds to the history is kept as the step's memory, so that a run that goes on, or a fork
of it, has the very messages of its steps.
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
from mlagentbench.engine.compaction import check_compaction, compacted, estimated, is_full
from mlagentbench.engine.conversation import FINAL_ANSWER, Conversation, as_tool, dumped, loaded, offered, thoughts_of
from mlagentbench.engine.model import Question
from mlagentbench.environment import Environment
from mlagentbench.errors import LimitReached, ResponseFormatError
from mlagentbench.records import Action, Step

FINAL = ACTIONS[FINAL_ANSWER].tool_name
NUDGE = f"Your reply called no tool, and nobody answers it. Go on by calling a tool; when the task is done, call {FINAL}."
NAMES: Mapping[str, str] = {definition.tool_name: definition.name for definition in ACTIONS.values()}


class ToolCallingAgent:
    """A conversation in which the model calls the actions as tools, natively; a long history is compacted.

    Args:
        actions: the names of the actions that are offered as tools; by default those that the research agent's prompt mentions.
        compaction: how a long history is made short: `edit` clears old results, and has a summary made where that frees too little;
            `summary` has one made at once; with `none` the run ends when the model can read no more.
        context_tokens: how many tokens the model can read; by default what Inspect knows of it.
        temperature: by default the provider's.
        max_tokens: of a reply; by default the provider's.
        reasoning_effort: how much a model thinks, for those that take it: `low`, `medium`, `high` …
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
        offered(actions)  # a name that is none is refused before anything runs
        self.compaction = check_compaction(compaction)
        self.context_tokens = context_tokens
        settings = {"temperature": temperature, "max_tokens": max_tokens, "reasoning_effort": reasoning_effort}
        self.config = GenerateConfig.model_validate({name: value for name, value in settings.items() if value is not None})

    async def __call__(self, environment: Environment) -> None:
        """Ask, and carry out what the replies call, until the final answer or a limit."""
        history = _History(self._opening(environment), environment.steps)
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

    async def _reply(self, environment: Environment, conversation: Conversation, history: _History) -> None:
        """Have one reply, of a history that is short enough for it.

        Raises:
            LimitReached: a limit of the run; or the model cannot even read the history when it is compacted.
        """
        context = self.context_tokens or environment.context_tokens("agent")
        try:
            # Of the first question nothing can be left out.
            if self.compaction != "none" and history.tokens and is_full(estimated(history.messages, history.tokens), context):
                await self._compact(conversation, history, forced=False)
            await self._ask(environment, conversation, history)
        except LimitReached as limit:
            if limit.ended != "limit_context" or self.compaction == "none":
                raise
            await self._compact(conversation, history, forced=True)
            await self._ask(environment, conversation, history)

    async def _ask(self, environment: Environment, conversation: Conversation, history: _History) -> None:
        tools = [as_tool(definition) for definition in offered(self.actions, environment.actions)]
        question = Question(history.messages, tools, "auto", self.config)
        outputs: list[ModelOutput] = []

        def parse(output: ModelOutput) -> None:
            outputs.append(output)
            if not output.message.tool_calls:
                raise ResponseFormatError(NUDGE)

        try:
            await conversation.ask(question, parse)
        except ResponseFormatError as error:
            history.add(outputs[0], ChatMessageUser(content=str(error)))
        else:
            history.add(outputs[0])

    async def _compact(self, conversation: Conversation, history: _History, *, forced: bool) -> None:
        history.replace(await compacted(history.messages, self.compaction, conversation, forced=forced))


class _History:
    """The conversation so far, and what of it no step has kept yet.

    Args:
        opening: the first messages.
        steps: what was done already, whose memories make up the rest.
    """

    def __init__(self, opening: Sequence[ChatMessage], steps: Sequence[Step]) -> None:
        self.messages = list(opening)
        self.tokens = 0
        """How many tokens the history had with its last reply, as the provider counted them; 0 where it did not."""
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
        """The first call of the last reply that has no result yet."""
        reply, answered = self._last()
        calls = reply.tool_calls or [] if reply else []
        return calls[answered] if answered < len(calls) else None

    def thoughts(self) -> Mapping[str, str]:
        """What the last reply says beside its calls, for the first of them."""
        reply, answered = self._last()
        return thoughts_of(reply).entries if reply and not answered else {}

    def _last(self) -> tuple[ChatMessageAssistant | None, int]:
        """The last reply, and how many of its calls have a result. Not by their ids: not every provider makes those unique."""
        answered = 0
        for message in reversed(self.messages):
            if isinstance(message, ChatMessageAssistant):
                return message, answered
            answered += isinstance(message, ChatMessageTool)
        return None, 0

    def memory(self) -> Mapping[str, JsonValue]:
        """What has come since the last step; the whole, where it was compacted."""
        new = dumped(self.messages[self._kept :])
        if not new:
            return {}
        return {"messages": new, "tokens": self.tokens, **({"whole": True} if self._replaced else {})}

    def add(self, output: ModelOutput, *after: ChatMessage) -> None:
        """Add a reply, and what is said to it."""
        usage = output.usage
        self.tokens = usage.total_tokens if usage else 0
        self.messages += [output.message, *after]

    def answer(self, call: ToolCall, step: Step) -> None:
        """Add a call's result."""
        text = step.observation
        if call.function not in NAMES:
            text += f" As tools they are called: {', '.join(NAMES)}."
        if call.parse_error:
            text = f"{call.parse_error}\n{text}"
        self.messages.append(ChatMessageTool(content=text, tool_call_id=call.id, function=call.function))
        self._kept, self._replaced = len(self.messages), False

    def replace(self, messages: Sequence[ChatMessage]) -> None:
        """Go on with a shorter history."""
        self.messages = list(messages)
        self.tokens, self._kept, self._replaced = 0, 0, True
