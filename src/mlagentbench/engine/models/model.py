"""Use Inspect's models as this package's `Model`s: any provider, with Inspect's connections, caching and usage counts.

`engine/models/retries.py` says how often and how long a failing provider is retried.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple, get_args

from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageUser, GenerateConfig, ModelOutput, get_model, get_model_info
from inspect_ai.model import Model as InspectModel
from inspect_ai.tool import Tool, ToolChoice, ToolInfo
from inspect_ai.util import LimitExceededError

from mlagentbench.engine.models.limiter import current_limiter
from mlagentbench.engine.models.prices import set_prices
from mlagentbench.engine.models.providers import IN_PROCESS, count, provider_of, tokens_of, window_of
from mlagentbench.engine.models.retries import (
    GivenUp,
    ProviderWaits,
    RetryPolicy,
    check_reply,
    current_retry_policy,
    persist,
    provider_error,
)
from mlagentbench.engine.models.scripted import ScriptedAPI, turn
from mlagentbench.errors import LimitName, LimitReached, MLAgentBenchError, ModelFailed
from mlagentbench.model import TRUNCATED, GenerateOptions, Limiter, Models, Reply, cut_notice
from mlagentbench.records import Price, Role, Usage
from mlagentbench.util.text import encodable

LIMITS: dict[str, LimitName] = {"token": "limit_tokens", "cost": "limit_cost", "time": "limit_time", "working": "limit_time"}
"""Our names of Inspect's limits."""
MISCOUNTED = 0.9
"""The least fraction of the token limit that a truncated reply has when its text is tokenised again."""
CHARACTERS = 4
"""Characters of a token, to estimate what a prompt takes of a rate limit. What it took is counted afterwards."""
STARTED = (*IN_PROCESS, "vllm", "sglang")
"""Providers that load or start a model as soon as Inspect makes it, even to look it up."""


class InspectRequest(NamedTuple):
    """A question to an Inspect model: a conversation, and the tools that the reply may call."""

    messages: Sequence[ChatMessage]
    tools: Sequence[ToolInfo | Tool] = ()
    tool_choice: ToolChoice | None = None
    config: GenerateConfig = GenerateConfig()


class InspectReply(NamedTuple):
    """A reply as Inspect returns it, its usage over all requests, and the seconds spent waiting for the provider."""

    output: ModelOutput
    usage: Usage
    waited: float


class RoleModel:
    """An Inspect model in one role of one run.

    Args:
        model: the model.
        role: the role.
        position: how many replies the role has received before, in a resumed run.
        retry_policy: how long a failing provider is retried.
        waits: the time spent waiting for providers, shared by all roles of a run.
        limiter: the rate limit that runs share; None for none.
    """

    def __init__(
        self,
        model: InspectModel,
        role: Role,
        position: int = 0,
        retry_policy: RetryPolicy = RetryPolicy(),
        waits: ProviderWaits | None = None,
        limiter: Limiter | None = None,
    ) -> None:
        self._model = model
        self._role = role
        self._position = position
        self._retry_policy = retry_policy
        self._waits = waits or ProviderWaits()
        self._limiter = limiter if self.check_seconds is not None else None

    @property
    def name(self) -> str:
        """The model's name as a user writes it, for example `openai/gpt-4o`."""
        return str(self._model)

    @property
    def context_tokens(self) -> int | None:
        """The context window in tokens, from the model's own configuration if it runs in this process, or else from Inspect's tables."""
        if (window := window_of(self._model.api)) is not None:
            return window
        known = get_model_info(self._model)
        return known.context_length if known else None

    @property
    def check_seconds(self) -> float | None:
        """`RetryPolicy.check`; None for a model in this process, and for a scripted one."""
        api = self._model.api
        return None if provider_of(self.name) in IN_PROCESS or isinstance(api, ScriptedAPI) else self._retry_policy.check

    async def generate(self, prompt: str, options: GenerateOptions = GenerateOptions()) -> Reply:
        """Answer a prompt.

        Raises:
            ModelFailed: the provider refused the request, failed until the last retry, or was failing when the question was cancelled.
            LimitReached: the prompt is too long for the model or was refused (`limit_context`), or a limit set through Inspect was reached.
        """
        config = GenerateConfig(temperature=options.temperature, max_tokens=options.max_tokens, stop_seqs=list(options.stop) or None)
        answer = await self.answer(InspectRequest([ChatMessageUser(content=encodable(prompt))], config=config))
        return self.reply(answer, answer.output.completion)

    def reply(self, answer: InspectReply, text: str) -> Reply:
        """Return an answer as this package's `Reply`."""
        return Reply(text, answer.usage, self.name, answer.output.stop_reason, answer.waited)

    async def answer(self, question: InspectRequest) -> InspectReply:
        """Answer a conversation.

        Raises:
            ModelFailed: as by `generate`.
            LimitReached: as by `generate`.
        """
        # The position is taken before anything is awaited, since several questions may be asked at once.
        position, self._position = self._position, self._position + 1
        started = time.monotonic()
        usages: list[Usage] = []
        estimate = sum(len(message.text) for message in question.messages) // CHARACTERS
        try:
            output = await persist(
                lambda: self._request(question, position, usages),
                model=self.name,
                tokens=estimate,
                used=lambda: sum(estimate if usage.tokens is None else usage.tokens for usage in usages),
                retry_policy=self._retry_policy,
                limiter=self._limiter,
            )
        except GivenUp as failure:
            raise self._given_up(failure) from None
        ended = time.monotonic()
        waited = self._waits.add(started, ended - (output.time or 0.0))
        return InspectReply(output, Usage.total(usages), waited)

    async def _request(self, question: InspectRequest, position: int, usages: list[Usage]) -> ModelOutput:
        """Ask once, and record the usage, whether or not the reply is of use.

        Raises:
            ProviderError: there was no reply, or none of use.
            LimitReached: the prompt is too long, or a limit set through Inspect was reached.
        """
        here = provider_of(self.name) in IN_PROCESS
        config = question.config.merge(GenerateConfig(max_retries=0, attempt_timeout=None if here else self._retry_policy.request))
        config = self._within_window(question, config)
        try:
            with turn(self._role, position):
                output = await self._model.generate(list(question.messages), question.tools, question.tool_choice, config)
        except MLAgentBenchError:
            raise
        except LimitExceededError as limit:
            raise LimitReached(LIMITS.get(limit.type, "limit_steps"), str(limit)) from None
        except Exception as error:
            # A provider may raise any exception of its client library.
            raise provider_error(error, self._model.api, here=here) from error
        usages.append(_usage(output))
        _make_whole(output)
        self._note_cut(output, config)
        _tell_cut(output)
        if output.choices and output.stop_reason == "model_length":
            raise LimitReached("limit_context", f"the prompt is longer than {self.name} can read")
        check_reply(output)
        return output

    def _within_window(self, question: InspectRequest, config: GenerateConfig) -> GenerateConfig:
        """Return the configuration with the reply limited to the context window, for a model in this process, which does not limit it.

        Raises:
            LimitReached: the prompt is too long for the model (`limit_context`).
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
        """Mark a reply as truncated by the token limit, for a model in this process that does not say so.

        Its token count does not show this: it is that of the longest reply of the batch.
        """
        api, most = self._model.api, config.max_tokens
        if window_of(api) is None or most is None or output.usage is None or output.usage.output_tokens < most or not output.choices:
            return
        tokens = count(api, output.completion)
        if tokens is not None and tokens >= MISCOUNTED * most and output.stop_reason in ("stop", "unknown"):
            output.choices[0].stop_reason = "max_tokens"

    def _given_up(self, failure: GivenUp) -> MLAgentBenchError:
        error, requests = failure.error, failure.requests
        if error is None:
            return ModelFailed(f"{self.name} was not asked, since the run waited for its rate limit for {failure.seconds:.0f} s")
        if error.too_long:
            return LimitReached("limit_context", f"the prompt is longer than {self.name} can read: {error}")
        if error.withheld:
            return LimitReached("limit_context", f"{self.name} refused the prompt: {error}")
        if error.permanent:
            return ModelFailed(f"{self.name} refused the request: {error}")
        asked = f"asked {requests} times in {failure.seconds:.0f} s" if requests > 1 else "asked once"
        wait = f", to be asked again in {error.retry_after:.0f} s" if error.retry_after else ""
        return ModelFailed(f"{self.name} gave no reply ({asked}); the last: {error}{wait}")


def _make_whole(output: ModelOutput) -> None:
    """Replace lone surrogates in a reply by their escapes, since they can be neither written to a file nor sent."""
    for choice in output.choices:
        message = choice.message.model_dump()
        if (mended := encodable(message)) != message:
            choice.message = ChatMessageAssistant.model_validate(mended)


def _tell_cut(output: ModelOutput) -> None:
    """Put into the last tool call of a reply that was cut short that it was, since its arguments are incomplete or missing."""
    if output.choices and output.stop_reason == TRUNCATED and (calls := output.message.tool_calls):
        notice = cut_notice(output.usage.output_tokens if output.usage else 0)
        calls[-1].parse_error = f"{notice}\n{calls[-1].parse_error or ''}".strip()


def _usage(output: ModelOutput) -> Usage:
    """Return the tokens as the provider counted them, and their cost if Inspect knows the price."""
    counted = output.usage
    if counted is None:
        return Usage(calls=1, uncounted=1)
    return Usage(
        input_tokens=counted.input_tokens,
        output_tokens=counted.output_tokens,
        cache_read_tokens=counted.input_tokens_cache_read or 0,
        cache_write_tokens=counted.input_tokens_cache_write or 0,
        calls=1,
        cost=counted.total_cost,
    )


def current_models(replies: Mapping[Role, int] = {}) -> Models:
    """Return the models of the running sample: the evaluation's, and those of the roles `fast` and `editor`, which fall back to it.

    Args:
        replies: how many replies each role has given before, in a resumed run.
    """
    main = get_model()
    waits, retry_policy, limiter = ProviderWaits(), current_retry_policy(), current_limiter()
    roles: tuple[Role, ...] = get_args(Role)
    models = {role: main if role == "agent" else get_model(role=role, default=main) for role in roles}
    return Models(**{role: RoleModel(model, role, replies.get(role, 0), retry_policy, waits, limiter) for role, model in models.items()})


def current_prices(given: Mapping[str, Price]) -> Mapping[str, Price]:
    """Make Inspect count the cost of the running sample, and return the prices of its models by name.

    Args:
        given: the user's prices, which take precedence over those of prices.toml.
    """
    main = get_model()
    models = {str(model): model for model in (main, *(get_model(role=role, default=main) for role in get_args(Role) if role != "agent"))}
    return set_prices(models.values(), given)


def knowledge_cutoff(name: str) -> datetime.date | None:
    """Return a model's knowledge cutoff as its maker states it; None if it is not known. No model is loaded for this."""
    provider, _, rest = name.partition("/")
    asked = rest if provider in STARTED else name
    known = get_model_info(asked) if asked else None
    return known.knowledge_cutoff_date if known else None
