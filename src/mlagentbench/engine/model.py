"""Inspect's models as this package's `Model`s: any provider, with Inspect's connections, caching and counts.

How often and how long a provider that fails is asked is said in `engine/patience.py`.
"""

from __future__ import annotations

import asyncio
import datetime
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple, get_args

from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageUser, GenerateConfig, ModelOutput, get_model, get_model_info
from inspect_ai.model import Model as InspectModel
from inspect_ai.tool import Tool, ToolChoice, ToolInfo
from inspect_ai.util import LimitExceededError, suspend_working_limit

from mlagentbench.engine.patience import Patience, Trouble, Waits, check_reply, patience_in_use, trouble_with
from mlagentbench.engine.prices import tell_prices
from mlagentbench.engine.providers import IN_PROCESS, count, provider_of, tokens_of, window_of
from mlagentbench.engine.scripted import ScriptedAPI, turn
from mlagentbench.errors import LimitName, LimitReached, MLAgentBenchError, ModelFailed
from mlagentbench.model import GenerateOptions, Models, Reply
from mlagentbench.records import Price, Role, Usage, whole

LIMITS: dict[str, LimitName] = {"token": "limit_tokens", "cost": "limit_cost", "time": "limit_time", "working": "limit_time"}
"""Inspect's limits by our names."""
MISCOUNTED = 0.9
"""The part of a limit of tokens that a cut reply has at least, when its text is made into tokens again."""
STARTED = (*IN_PROCESS, "vllm", "sglang")
"""Providers that load a model to be asked anything at all."""


class Question(NamedTuple):
    """What Inspect's models are asked by: a conversation, and the tools that the reply may call."""

    messages: Sequence[ChatMessage]
    tools: Sequence[ToolInfo | Tool] = ()
    tool_choice: ToolChoice | None = None
    config: GenerateConfig = GenerateConfig()


class Answer(NamedTuple):
    """What came back, as Inspect gives it, and what it took."""

    output: ModelOutput
    usage: Usage
    waited: float


class RoleModel:
    """An Inspect model that speaks as one role of one run.

    Args:
        model: the model.
        role: as whom it speaks.
        position: how many replies the role was given before, in a run that goes on.
        patience: how long a provider that fails is asked again.
        waits: what was waited for providers; one for all roles of a run.
    """

    def __init__(
        self, model: InspectModel, role: Role, position: int = 0, patience: Patience = Patience(), waits: Waits | None = None
    ) -> None:
        self._model = model
        self._role = role
        self._position = position
        self._patience = patience
        self._waits = waits or Waits()

    @property
    def name(self) -> str:
        """As a user would write it, for example `openai/gpt-4o`."""
        return str(self._model)

    @property
    def context_tokens(self) -> int | None:
        """How many tokens it can read and write in all, by its own configuration where that is at hand, or by Inspect's tables."""
        if (window := window_of(self._model.api)) is not None:
            return window
        known = get_model_info(self._model)
        return known.context_length if known else None

    @property
    def check_seconds(self) -> float | None:
        """By our patience; None for a model in this process, and for a script."""
        api = self._model.api
        return None if provider_of(self.name) in IN_PROCESS or isinstance(api, ScriptedAPI) else self._patience.check

    async def generate(self, prompt: str, options: GenerateOptions = GenerateOptions()) -> Reply:
        """Answer a prompt.

        Raises:
            ModelFailed: the provider refused the request, or failed for longer than our patience, or until it was cancelled.
            LimitReached: the prompt is too long for the model or was refused (`limit_context`), or a limit set through Inspect was reached.
        """
        config = GenerateConfig(temperature=options.temperature, max_tokens=options.max_tokens, stop_seqs=list(options.stop) or None)
        answer = await self.answer(Question([ChatMessageUser(content=whole(prompt))], config=config))
        return self.reply(answer, answer.output.completion)

    def reply(self, answer: Answer, text: str) -> Reply:
        """An answer as the core knows it."""
        return Reply(text, answer.usage, self.name, truncated=answer.output.stop_reason == "max_tokens", waited=answer.waited)

    async def answer(self, question: Question) -> Answer:
        """Answer a conversation.

        Raises:
            ModelFailed: as by `generate`.
            LimitReached: as by `generate`.
        """
        # Taken before anything is awaited: several questions may be asked at once.
        position, self._position = self._position, self._position + 1
        started = time.monotonic()
        usages: list[Usage] = []
        requests = spoiled = 0
        trouble: Trouble | None = None
        try:
            while True:
                requests += 1
                try:
                    output = await self._request(question, position, usages)
                    break
                except Trouble as new:
                    trouble = new
                spoiled += trouble.spoiled
                pause = max(self._patience.before(requests + 1), trouble.retry_after or 0.0)
                seconds = time.monotonic() - started
                if trouble.lasting or spoiled >= self._patience.spoiled or seconds + pause > self._patience.seconds:
                    raise self._given_up(trouble, requests, seconds)
                with suspend_working_limit():
                    await asyncio.sleep(pause)
        except asyncio.CancelledError:
            # A run whose time is up while its provider fails was ended by the provider.
            if trouble is None:
                raise
            raise self._given_up(trouble, requests, time.monotonic() - started) from None
        ended = time.monotonic()
        waited = self._waits.add(started, ended - (output.time or 0.0))
        return Answer(output, Usage.total(usages), waited)

    async def _request(self, question: Question, position: int, usages: list[Usage]) -> ModelOutput:
        """Ask once, and note what it cost, whatever the reply is worth.

        Raises:
            Trouble: no reply came.
            LimitReached: the prompt is too long, or a limit set through Inspect was reached.
        """
        here = provider_of(self.name) in IN_PROCESS
        config = question.config.merge(GenerateConfig(max_retries=0, attempt_timeout=None if here else self._patience.request))
        config = self._within_window(question, config)
        try:
            with turn(self._role, position):
                output = await self._model.generate(list(question.messages), question.tools, question.tool_choice, config)
        except MLAgentBenchError:
            raise
        except LimitExceededError as limit:
            raise LimitReached(LIMITS.get(limit.type, "limit_steps"), str(limit)) from None
        except Exception as error:
            # Providers raise whatever their clients raise.
            raise trouble_with(error, self._model.api, here=here) from error
        usages.append(_usage(output))
        _make_whole(output)
        self._note_cut(output, config)
        if output.choices and output.stop_reason == "model_length":
            raise LimitReached("limit_context", f"the prompt is longer than {self.name} can read")
        check_reply(output, self._model.api, here=here)
        return output

    def _within_window(self, question: Question, config: GenerateConfig) -> GenerateConfig:
        """How to ask a model that lies in this process, which itself says nothing of prompts that are too long for it.

        Raises:
            LimitReached: the prompt is (`limit_context`).
        """
        api = self._model.api
        window = window_of(api)
        tokens = tokens_of(api, question.messages, question.tools) if window is not None else None
        if window is None or tokens is None:
            return config
        if tokens >= window:
            raise LimitReached(
                "limit_context", f"the prompt is longer than {self.name} can read: {tokens:,} tokens, and it reads {window:,}"
            )
        wanted = config.max_tokens or api.max_tokens() or window
        return config.merge(GenerateConfig(max_tokens=min(wanted, window - tokens)))

    def _note_cut(self, output: ModelOutput, config: GenerateConfig) -> None:
        """Note of a reply that it was cut by the limit of tokens, where a model in this process does not say so.

        Its count alone does not tell: it is that of the longest reply of those that were made together.
        """
        api, most = self._model.api, config.max_tokens
        if window_of(api) is None or most is None or output.usage is None or output.usage.output_tokens < most or not output.choices:
            return
        tokens = count(api, output.completion)
        if tokens is not None and tokens >= MISCOUNTED * most and output.stop_reason in ("stop", "unknown"):
            output.choices[0].stop_reason = "max_tokens"

    def _given_up(self, trouble: Trouble, requests: int, seconds: float) -> MLAgentBenchError:
        if trouble.too_long:
            return LimitReached("limit_context", f"the prompt is longer than {self.name} can read: {trouble}")
        if trouble.withheld:
            return LimitReached("limit_context", f"{self.name} refused the prompt: {trouble}")
        if trouble.lasting:
            return ModelFailed(f"{self.name} refused the request: {trouble}")
        asked = f"asked {requests} times in {seconds:.0f} s" if requests > 1 else "asked once"
        wait = f", to be asked again in {trouble.retry_after:.0f} s" if trouble.retry_after else ""
        return ModelFailed(f"{self.name} gave no reply ({asked}); the last: {trouble}{wait}")


def _make_whole(output: ModelOutput) -> None:
    """Have a reply in which halves of characters stand as their escapes: nothing could be written or sent that holds them as they are."""
    for choice in output.choices:
        message = choice.message.model_dump()
        if (mended := whole(message)) != message:
            choice.message = ChatMessageAssistant.model_validate(mended)


def _usage(output: ModelOutput) -> Usage:
    """The tokens as the provider counted them, and what they cost where Inspect knows the price."""
    counted = output.usage
    if counted is None:
        return Usage(calls=1)
    return Usage(
        input_tokens=counted.input_tokens,
        output_tokens=counted.output_tokens,
        cache_read_tokens=counted.input_tokens_cache_read or 0,
        cache_write_tokens=counted.input_tokens_cache_write or 0,
        calls=1,
        cost=counted.total_cost,
    )


def current_models(replies: Mapping[Role, int] = {}) -> Models:
    """The models of the sample that is running: the evaluation's, and those of the roles `fast` and `editor`, which fall back to it.

    Args:
        replies: how many replies each role has given before, in a run that goes on.
    """
    main = get_model()
    waits, patience = Waits(), patience_in_use()
    roles: tuple[Role, ...] = get_args(Role)
    models = {role: main if role == "agent" else get_model(role=role, default=main) for role in roles}
    return Models(**{role: RoleModel(model, role, replies.get(role, 0), patience, waits) for role, model in models.items()})


def current_prices(given: Mapping[str, Price]) -> Mapping[str, Price]:
    """Have the cost of the sample that is running counted, and return what its models cost, by their names.

    Args:
        given: prices that come before those that are kept here.
    """
    main = get_model()
    models = {str(model): model for model in (main, *(get_model(role=role, default=main) for role in get_args(Role) if role != "agent"))}
    return tell_prices(models.values(), given)


def knowledge_cutoff(name: str) -> datetime.date | None:
    """When what a model knows ends, as its maker states it; None where nobody does. Nothing is started to find out.

    Args:
        name: the model, by Inspect's name for it.
    """
    provider, _, rest = name.partition("/")
    asked = rest if provider in STARTED else name
    known = get_model_info(asked) if asked else None
    return known.knowledge_cutoff_date if known else None
