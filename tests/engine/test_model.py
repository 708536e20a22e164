"""What a provider on loopback does wrong, and what is made of it; real clients, real HTTP."""

from __future__ import annotations

import asyncio
import datetime
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
import tenacity
from inspect_ai.model import ModelCost, ModelInfo, get_model, set_model_cost, set_model_info
from inspect_ai.model._model_info import clear_model_info_cache

from mlagentbench.engine.models.model import RoleModel, knowledge_cutoff
from mlagentbench.engine.models.retries import ProviderWaits, RetryPolicy, provider_error
from mlagentbench.errors import LimitReached, ModelFailed
from mlagentbench.model import GenerateOptions, Reply
from mlagentbench.records import Usage
from tests.engine import server as bad
from tests.engine.server import CACHED, READ, WRITTEN, Fault, Provider, Wire
from tests.support import HANGING, finish

pytestmark = pytest.mark.filterwarnings("ignore:The 'initial' parameter is deprecated:DeprecationWarning")

MODELS: dict[Wire, str] = {"openai": "openai/gpt-4o", "anthropic": "anthropic/claude-opus-4-5"}
WIRES: tuple[Wire, ...] = ("openai", "anthropic")
QUICK = RetryPolicy(seconds=300.0, request=120, pause=0.05, longest_pause=0.5, useless=3)
"""Pauses shortly, and gives up nothing because this machine stood still."""
SOON = QUICK._replace(request=2)
"""For a provider that does not answer."""
SMALL = GenerateOptions(max_tokens=500)
STREAMED = GenerateOptions(max_tokens=9000)
"""Long enough for Anthropic's client to be told to stream."""

PASSING = {
    "429": bad.too_many(),
    "429 with Retry-After": bad.too_many("1"),
    "500": bad.BROKEN,
    "timeout": bad.HANGS,
    "reset": bad.RESETS,
    "no body": bad.EMPTY_BODY,
    "malformed": bad.MALFORMED,
    "not JSON": bad.NOT_JSON,
    "no choices": bad.NO_CHOICES,
    "null for choices": bad.NULL_CHOICES,
    "empty choices": bad.EMPTY_CHOICES,
    "5 MB": bad.HUGE,
    "5 MB of error": bad.HUGE_ERROR,
    "withheld": bad.FILTERED,
}


def ask(wire: Wire, retry_policy: RetryPolicy = QUICK, options: GenerateOptions = SMALL, **arguments: Any) -> Reply:
    return asyncio.run(answer(wire, retry_policy, options, **arguments))


async def answer(wire: Wire, retry_policy: RetryPolicy, options: GenerateOptions = SMALL, **arguments: Any) -> Reply:
    async with get_model(MODELS[wire], memoize=False, **arguments) as model:
        return await RoleModel(model, "agent", retry_policy=retry_policy).generate("Say hello.", options)


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("fault", PASSING)
def test_a_fault_that_passes_is_survived(server: Provider, wire: Wire, fault: str) -> None:
    server.behave("Hello.", faults=[PASSING[fault]])
    asked = time.monotonic()
    assert ask(wire, SOON if fault == "timeout" else QUICK).text == "Hello."
    moments = [request.moment for request in server.requests if request.wire == wire]
    assert len(moments) == len(server.requests) >= 2
    if fault == "timeout":
        assert all(moment - asked >= number * SOON.request for number, moment in enumerate(moments)), "not asked again before its time"
    else:
        assert len(moments) == 2, "asked once more, not oftener"


@pytest.mark.parametrize("fault", ["no body", "malformed", "500"])
def test_a_streamed_fault_is_survived(server: Provider, fault: str) -> None:
    server.behave("Hello.", faults=[PASSING[fault]])
    assert ask("anthropic", options=STREAMED).text == "Hello."
    assert all(request.body["stream"] for request in server.requests)
    server.behave("Hello.", faults=[PASSING[fault]])
    assert ask("openai", streaming=True).text == "Hello."
    assert all(request.body["stream"] for request in server.requests)


def test_many_faults_in_a_row_are_survived(server: Provider) -> None:
    server.behave("Hello.", faults=[*[bad.BROKEN] * 3, bad.MALFORMED, bad.too_many(), bad.NO_CHOICES])
    assert ask("openai", QUICK).text == "Hello."
    assert len(server.requests) == 7


@pytest.mark.parametrize(
    "wire, fault, words",
    [
        ("openai", "500", "500: The server had an error"),
        ("anthropic", "500", "500: The server had an error"),
        ("anthropic", "reset", "Connection"),
        ("openai", "timeout", "exceeded"),
    ],
)
def test_a_fault_that_lasts_is_the_providers_failure(server: Provider, wire: Wire, fault: str, words: str) -> None:
    server.behave(always=PASSING[fault])
    with pytest.raises(ModelFailed, match=words) as failure:
        ask(wire, (SOON if fault == "timeout" else QUICK)._replace(seconds=1.0))
    assert "gave no reply" in str(failure.value) and "\n" not in str(failure.value)


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("fault", ["no body", "malformed", "no choices", "empty choices", "5 MB"])
def test_a_provider_that_always_answers_nothing_of_use_is_asked_a_few_times(server: Provider, wire: Wire, fault: str) -> None:
    server.behave(always=PASSING[fault])
    with pytest.raises(ModelFailed, match="asked 3 times") as failure:
        ask(wire)
    assert len(server.requests) == 3
    assert len(str(failure.value)) < 500 and "\n" not in str(failure.value)


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    "fault, words", [(bad.UNAUTHORIZED, "401: Incorrect API key.*check its key"), (bad.NO_MODEL, "404: .*check its name")]
)
def test_what_will_not_pass_is_asked_once(server: Provider, wire: Wire, fault: Fault, words: str) -> None:
    server.behave(always=fault)
    with pytest.raises(ModelFailed, match=words) as failure:
        ask(wire)
    assert len(server.requests) == 1
    assert "\n" not in str(failure.value)


def test_a_request_that_the_provider_calls_bad_is_told_in_its_words_without_the_prompt(server: Provider) -> None:
    server.behave(always=Fault(400, "unsupported_value", "Unsupported value: 'stop'."))
    with pytest.raises(ModelFailed, match="400: Unsupported value: 'stop'") as failure:
        ask("openai")
    assert "Say hello" not in str(failure.value)


@pytest.mark.parametrize("wire", WIRES)
def test_a_prompt_that_is_too_long_is_a_limit(server: Provider, wire: Wire) -> None:
    server.behave(always=bad.TOO_LONG[wire])
    with pytest.raises(LimitReached, match="longer than") as limit:
        ask(wire)
    assert limit.value.ended == "limit_context"
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "status, words",
    [
        (400, "This model's maximum context length is 4096 tokens. However, you requested 6000 tokens (4000 in the messages, 2000 more)."),
        (400, "the request exceeds the available context size, try increasing it"),
        (400, "Input token count 5000 exceeds the maximum number of tokens allowed (4096)."),
        (422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens"),
        (400, "Context window exceeded"),
        (400, "string_above_max_length: expected a string with maximum length 1048576"),
        (413, "Request Entity Too Large"),
        (500, "the request exceeds the available context size. try increasing the context size or enable context shift"),
        (500, "Context size has been exceeded."),
        (400, "context shift is disabled"),
        (400, "Trying to keep the first 9136 tokens when context the overflows. However, the model is loaded with only 7866."),
    ],
)
def test_a_prompt_that_a_server_of_ones_own_calls_too_long_is_a_limit(server: Provider, status: int, words: str) -> None:
    server.behave(always=Fault(status, "400", words))
    with pytest.raises(LimitReached, match="longer than") as limit:
        ask("openai")
    assert limit.value.ended == "limit_context"
    assert len(server.requests) == (3 if status == 500 else 1), "after a 500 the client asks twice more by itself"


@pytest.mark.parametrize(
    "status, words",
    [
        (400, "Unsupported value: 'max_tokens' is too large: 9000."),
        (400, "Invalid token in the request."),
        (400, "The input is empty."),
    ],
)
def test_other_refusals_that_speak_of_tokens_are_no_limit(server: Provider, status: int, words: str) -> None:
    server.behave(always=Fault(status, "invalid_value", words))
    with pytest.raises(ModelFailed):
        ask("openai")


@pytest.mark.parametrize(
    "status, words",
    [
        (500, "The server could not allocate 900 tokens of context."),
        (429, "The context window of all users together is exceeded; try again later."),
    ],
)
def test_passing_faults_that_speak_of_tokens_are_survived(server: Provider, status: int, words: str) -> None:
    server.behave("Hello.", faults=[Fault(status, "invalid_value", words)])
    assert ask("openai").text == "Hello."


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("how", ["request", "reply"])
def test_a_prompt_that_is_always_refused_is_a_limit(server: Provider, wire: Wire, how: str) -> None:
    server.behave(always=bad.REFUSED[wire] if how == "request" else bad.FILTERED)
    with pytest.raises(LimitReached, match="refused the prompt") as limit:
        ask(wire)
    assert limit.value.ended == "limit_context"


def test_a_reply_that_its_token_limit_cut_is_a_reply(server: Provider) -> None:
    server.behave(always=bad.CUT)
    reply = ask("openai")
    assert reply.truncated and reply.text == bad.CUT.text


@pytest.mark.parametrize("wire", WIRES)
def test_retry_after_is_waited_for_and_is_no_work(server: Provider, wire: Wire) -> None:
    server.behave("Hello.", faults=[bad.too_many("2")])
    reply = ask(wire)
    first, second = server.requests
    assert second.moment - first.moment >= 2.0
    assert reply.waited >= 2.0


def test_pauses_are_no_work_and_a_prompt_answer_waits_for_nothing(server: Provider) -> None:
    assert any(ask("openai").waited < 2 for _ in range(5)), "where this machine stands still, a prompt answer waits for it"
    server.behave("Hello.", faults=[bad.MALFORMED])
    assert ask("openai", QUICK._replace(pause=0.5)).waited >= 0.35


def test_a_wait_beyond_our_patience_is_not_begun(server: Provider) -> None:
    server.behave(always=bad.BROKEN._replace(headers=(("Retry-After", "500"),)))
    started = time.monotonic()
    with pytest.raises(ModelFailed, match="to be asked again in 500 s"):
        ask("openai")
    assert time.monotonic() - started < 250


@pytest.mark.parametrize("wire", WIRES)
def test_refusals_because_of_a_rate_limit_end_no_question(server: Provider, wire: Wire) -> None:
    server.behave("Hello.", faults=[bad.too_many()] * 8)
    assert ask(wire, QUICK._replace(seconds=0.2, pause=0.1), max_retries=0).text == "Hello."
    assert len(server.requests) == 9 and server.requests[-1].moment - server.requests[0].moment > 0.4


@pytest.mark.parametrize("host, requests", [("api.openai.com", 600.0), ("api.groq.com", None)])
def test_a_limit_of_requests_is_taken_only_where_it_is_for_a_minute(server: Provider, host: str, requests: float | None) -> None:
    headers = {"x-ratelimit-limit-requests": "600", "x-ratelimit-limit-tokens": "6000"}
    answer = httpx.Response(429, headers=headers, request=httpx.Request("POST", f"https://{host}/openai/v1/chat/completions"))
    temporary = tenacity.Future.construct(1, openai.RateLimitError("Rate limit reached.", response=answer, body=None), has_exception=True)

    error = provider_error(tenacity.RetryError(temporary), get_model(MODELS["openai"]).api)

    assert error.refusal is not None and (error.refusal.requests, error.refusal.tokens) == (requests, 6000.0)


def test_waits_at_once_count_once() -> None:
    waits = ProviderWaits()
    assert [waits.add(10, 14), waits.add(10, 13), waits.add(12, 16), waits.add(20, 20.01)] == [4, 0, 2, 0]


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("options", [SMALL, STREAMED])
def test_tokens_are_the_providers_own(server: Provider, wire: Wire, options: GenerateOptions) -> None:
    usage = ask(wire, options=options).usage
    assert usage.model_copy(update={"cost": None}) == Usage(
        input_tokens=READ, cache_read_tokens=CACHED, output_tokens=WRITTEN, calls=1, cost=None
    )
    assert usage.tokens == READ + CACHED + WRITTEN


def test_tokens_of_replies_that_were_of_no_use_are_counted_too(server: Provider) -> None:
    server.behave("Hello.", faults=[bad.FILTERED])
    usage = ask("openai").usage.model_copy(update={"cost": None})
    assert usage == Usage(input_tokens=2 * READ, cache_read_tokens=2 * CACHED, output_tokens=2 * WRITTEN, calls=2)


@pytest.fixture
def priced() -> Iterator[None]:
    set_model_cost("openai/gpt-4o", ModelCost(input=2.0, output=10.0, input_cache_write=0.0, input_cache_read=1.0))
    yield
    clear_model_info_cache()


def test_a_cost_is_a_number_where_the_price_is_known(server: Provider, priced: None) -> None:
    assert ask("openai").usage.cost == pytest.approx((2.0 * READ + 1.0 * CACHED + 10.0 * WRITTEN) / 1e6)


def test_a_run_that_is_stopped_while_its_provider_fails_was_ended_by_the_provider(server: Provider) -> None:
    server.behave(always=bad.BROKEN)

    pausing = asyncio.Event()

    class Observed(RetryPolicy):
        def before(self, request: int) -> float:
            pausing.set()
            return super().before(request)

    async def story() -> None:
        asking = asyncio.create_task(answer("openai", Observed(pause=600)))
        await asyncio.wait_for(pausing.wait(), HANGING)
        asking.cancel()
        await asking

    with pytest.raises(ModelFailed, match="500: The server had an error"):
        finish(story())


def test_a_slow_answer_that_is_stopped_is_nobodys_failure(server: Provider) -> None:
    server.behave(always=bad.HANGS)

    async def story() -> None:
        async with asyncio.timeout(1):
            await answer("openai", RetryPolicy())

    with pytest.raises(TimeoutError):
        finish(story())


def test_questions_at_once_get_a_scripts_replies_in_the_order_they_were_asked(tmp_path: Path) -> None:
    script = tmp_path / "script.yaml"
    script.write_text("".join(f"- reply: {number}\n  role: fast\n" for number in ("one", "two", "three")))

    async def story() -> list[str]:
        model = RoleModel(get_model(f"scripted/{script}"), "fast")
        return [reply.text for reply in await asyncio.gather(*(model.generate("?") for _ in range(3)))]

    assert finish(story()) == ["one", "two", "three"]


def test_pauses_double_up_to_the_longest() -> None:
    retry_policy = RetryPolicy(pause=2, longest_pause=120)
    for number, pause in ((2, 2), (3, 4), (7, 64), (8, 120), (10_000, 120)):
        assert 0.75 * pause <= retry_policy.before(number) <= 1.25 * pause


@pytest.fixture
def tables() -> Iterator[None]:
    yield
    clear_model_info_cache()


def test_a_models_cutoff_is_the_one_its_maker_states(tables: None) -> None:
    set_model_info("a-maker/a-model", ModelInfo(knowledge_cutoff_date=datetime.date(2024, 4, 30)))

    assert knowledge_cutoff("a-maker/a-model") == datetime.date(2024, 4, 30)
    assert knowledge_cutoff("vllm/a-maker/a-model") == datetime.date(2024, 4, 30), "wherever it runs"
    assert knowledge_cutoff("anthropic/claude-3-opus-20240229") == datetime.date(2023, 8, 1), "as Anthropic's documentation has it"


@pytest.mark.parametrize("name", ["nobody/knows", "scripted/no-such-file.yaml", "hf/nobody/knows", "vllm/", "hf", ""])
def test_a_model_whose_cutoff_nobody_states_has_none(name: str) -> None:
    assert knowledge_cutoff(name) is None
