"""Ask the agent's model with messages and tools, through the environment, which records and limits every question.

The prompt is recorded as a JSON object: `messages` are the question's messages without the first `after` ones, which it shares with the
question before; `tools` are the names of the tools offered, if they have changed since then. The reply is recorded as its message in JSON.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

from inspect_ai.model import ChatMessage, ChatMessageAssistant, ContentReasoning, GenerateConfig, ModelAPI, ModelOutput, get_model, modelapi
from inspect_ai.model import Model as InspectModel
from inspect_ai.tool import ToolChoice, ToolDef, ToolInfo
from pydantic import JsonValue, TypeAdapter

from mlagentbench.engine.models.model import InspectRequest, RoleModel
from mlagentbench.environment import Environment
from mlagentbench.errors import AgentError, ResponseFormatError
from mlagentbench.model import Model, Reply

_MESSAGES: TypeAdapter[list[ChatMessage]] = TypeAdapter(list[ChatMessage])


class CheckedOutput(NamedTuple):
    """A reply, and what is wrong with it: None if it contains an action."""

    output: ModelOutput
    problem: str | None


class Conversation:
    """The sequence of an agent's questions to its model."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._before: list[JsonValue] = []
        self._offered: list[str] = []

    async def ask(
        self, question: InspectRequest, check: Callable[[ModelOutput], None] = lambda output: None, *, purpose: str = "agent"
    ) -> CheckedOutput:
        """Ask a question, and check the reply.

        Args:
            question: the question.
            check: raises ResponseFormatError if the reply contains no action.
            purpose: who asks; recorded with the call.

        Raises:
            AgentError: the model is not one of Inspect's.
            FormatFailure: it was the fifth reply without an action in a row.
            LimitReached: a limit of the run, or the model's context window, was reached.
            ModelFailed: the provider failed, and is not asked again.
        """
        outputs: list[ModelOutput] = []

        async def by_messages(model: Model) -> Reply:
            if not isinstance(model, RoleModel):
                raise AgentError(f"this agent calls tools, and the model {model.name} cannot; name one of Inspect's")
            answer = await model.answer(question)
            outputs.append(answer.output)
            return model.reply(answer, json.dumps(dumped([answer.output.message])[0], ensure_ascii=False))

        problem = None
        try:
            await self._environment.consult(by_messages, self._written(question), lambda _: check(outputs[0]), purpose=purpose)
        except ResponseFormatError as error:
            problem = str(error)
        return CheckedOutput(outputs[0], problem)

    def _written(self, question: InspectRequest) -> str:
        messages = dumped(question.messages)
        same = (one == other for one, other in zip(messages, self._before, strict=False))
        after = next((number for number, alike in enumerate(same) if not alike), min(len(messages), len(self._before)))
        offered = [tool.name if isinstance(tool, ToolInfo) else ToolDef(tool).name for tool in question.tools]
        written: dict[str, JsonValue] = {"after": after, "messages": messages[after:]}
        if offered != self._offered:
            written["tools"] = list[JsonValue](offered)
        self._before, self._offered = messages, offered
        return json.dumps(written, ensure_ascii=False, indent=1)


Ask = Callable[[InspectRequest], Awaitable[ModelOutput]]


class EnvironmentAPI(ModelAPI):
    """The agent's model as an Inspect provider, for code that uses Inspect's models: each question goes through the environment."""

    def __init__(self, model_name: str, base_url: str | None, api_key: str | None, config: GenerateConfig, ask: Ask) -> None:
        super().__init__(model_name, base_url, api_key, [], config)
        self._ask = ask

    async def generate(
        self, input: list[ChatMessage], tools: list[ToolInfo], tool_choice: ToolChoice, config: GenerateConfig
    ) -> ModelOutput:
        """Ask the agent's model."""
        output = await self._ask(InspectRequest(input, tools, tool_choice if tools else None, config))
        # Inspect counts the usage of the underlying model; here it would count it twice.
        return output.model_copy(update={"usage": None})

    def max_connections(self) -> int:
        """Return a limit that is never reached, since the underlying model has its own."""
        return 1000


@modelapi(name="environment")
def _environment_api() -> type[ModelAPI]:
    return EnvironmentAPI


def model_asking(ask: Ask) -> InspectModel:
    """Return an Inspect model that passes its questions to a function."""
    return get_model("environment/agent", memoize=False, ask=ask)


def dumped(messages: Sequence[ChatMessage]) -> list[JsonValue]:
    """Return messages as JSON, with everything that is needed to send them again."""
    whole: list[Any] = _MESSAGES.dump_python(list(messages), mode="json", exclude_none=True)
    for message in whole:
        for call in message.get("tool_calls", ()):
            call.pop("view", None)
    return whole


def loaded(messages: JsonValue) -> list[ChatMessage]:
    """Return messages from the JSON that `dumped` made."""
    return _MESSAGES.validate_python(messages)


class Thoughts(NamedTuple):
    """The contents of a reply beside its tool calls."""

    reasoning: str
    text: str

    @property
    def entries(self) -> Mapping[str, str]:
        """The thoughts as the entries of a step, without empty ones."""
        found = {"Reasoning": self.reasoning, "Thought": self.text}
        return {name: text for name, text in found.items() if text}


def thoughts_of(message: ChatMessageAssistant) -> Thoughts:
    """Return a reply's reasoning, if its provider shows it, and its text."""
    parts = [] if isinstance(message.content, str) else message.content
    reasoning = [(part.summary or "") if part.redacted else part.reasoning for part in parts if isinstance(part, ContentReasoning)]
    return Thoughts("\n\n".join(text.strip() for text in reasoning if text.strip()), message.text.strip())
