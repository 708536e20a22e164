"""Models that compute in this process: tiny ones with random weights, that talk nonsense through the whole loop; and options of models."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from pydantic import JsonValue

from mlagentbench.engine.models.model import RoleModel
from mlagentbench.engine.models.providers import check_model, make_models, tokens_of
from mlagentbench.errors import LimitReached, ModelUnavailable
from mlagentbench.model import GenerateOptions, Reply
from mlagentbench.run_spec import ModelSpec
from mlagentbench.rundir.directory import find_runs
from tests import commands
from tests.engine.whole import Ended, carry_out, make_plan
from tests.plans import resumed
from tests.runner.lives import make_task
from tests.support import HANGING, reply

pytestmark = pytest.mark.filterwarnings("ignore:The 'initial' parameter is deprecated:DeprecationWarning")

LONG, SHORT = 16_384, 600
"""Tokens that the models read, a byte a token: all that an agent says, and less than it begins with."""


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders `long` and `short`, each with a model of the Transformers library, as `save_pretrained` writes them."""
    for package in ("torch", "transformers", "accelerate"):
        pytest.importorskip(package)
    from tokenizers import Tokenizer, decoders, pre_tokenizers
    from tokenizers import models as kinds
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast, set_seed

    folder = tmp_path_factory.mktemp("models")
    vocabulary = {token: number for number, token in enumerate([*sorted(pre_tokenizers.ByteLevel.alphabet()), "<end>"])}
    end = vocabulary["<end>"]
    for name, window in (("long", LONG), ("short", SHORT)):
        tokenizer = Tokenizer(kinds.BPE(vocab=vocabulary, merges=[]))
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>").save_pretrained(folder / name)
        set_seed(1)
        sizes = {"n_positions": window, "n_embd": 8, "n_layer": 1, "n_head": 1}
        GPT2LMHeadModel(GPT2Config(vocab_size=end + 1, bos_token_id=end, eos_token_id=end, **sizes)).save_pretrained(folder / name)
    return folder


def run(tmp_path: Path, folder: Path, agent: str, **options: object) -> Ended:
    plan = make_plan(tmp_path, agent, max_tokens=20, **options)
    return carry_out(plan.but(models={"agent": ModelSpec(name="hf/local", options={"model_path": str(folder)})}), "hf/local")


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["research", "tool-calling"])
def test_a_model_that_talks_nonsense_is_the_agents_failure_and_its_tokens_count(models: Path, tmp_path: Path, agent: str) -> None:
    ended = run(tmp_path, models / "long", agent)
    outcome, usage = ended.result.outcome, ended.result.usage["agent"]
    assert outcome.ended == "format_failure" and outcome.reason is not None and outcome.reason.startswith("5 replies in a row")
    calls = ended.directory.calls(1)
    assert usage.calls == len(calls) == 5
    assert usage.input_tokens >= sum(len(call.prompt.encode()) for call in calls if agent != "tool-calling") and usage.output_tokens <= 100
    assert usage.cost is None, "nobody states a price, and that is not nothing"
    assert ended.directory.info.spec.model("agent").options == {"model_path": str(models / "long")}


@pytest.mark.parametrize("agent", ["research", "tool-calling"])
def test_an_agents_prompt_that_a_model_in_this_process_cannot_read_is_a_limit(models: Path, tmp_path: Path, agent: str) -> None:
    ended = run(tmp_path, models / "short", agent)
    assert ended.result.outcome.ended == "limit_context"
    assert f"and it reads {SHORT}" in (ended.result.outcome.reason or "")
    assert ended.result.total_usage.tokens == 0


def test_what_a_fast_model_in_this_process_cannot_read_is_told_as_an_observation(models: Path, tmp_path: Path) -> None:
    replies = [
        reply("Understand File", '{"file_name": "train.py", "things_to_look_for": "what it prints"}'),
        reply("Final Answer", '{"final_answer": "done"}'),
    ]
    script = tmp_path / "replies.jsonl"
    script.write_text("".join(json.dumps({"reply": text}) + "\n" for text in replies))
    ended = carry_out(make_plan(tmp_path, "research"), f"scripted/{script}", fast_model=f"hf/{models / 'short'}")
    assert ended.result.outcome.ended == "final_answer"
    assert ended.directory.steps()[0].status == "error"
    assert "longer than" in ended.directory.steps()[0].observation


def ask(folder: Path, prompt: str, most: int) -> Reply:
    async def story() -> Reply:
        async with AsyncExitStack() as clients:
            spec = ModelSpec(name="hf/local", options={"model_path": str(folder)})
            made = await make_models(clients, [spec, spec.model_copy()], 1)
            model = made(spec)
            assert made(spec.model_copy()) is model, "its weights are read once"
            assert tokens_of(model.api, []) == 0
            return await RoleModel(model, "agent").generate(prompt, GenerateOptions(max_tokens=most))

    return asyncio.run(story())


def test_a_reply_ends_where_the_model_can_read_no_more(models: Path) -> None:
    around = len(b"user: \n")
    answer = ask(models / "short", "x" * (SHORT - around - 5), 200)
    assert answer.usage.input_tokens == SHORT - 5 and answer.usage.output_tokens <= 5
    with pytest.raises(LimitReached, match="longer than hf/local can read"):
        ask(models / "short", "x" * (SHORT - around), 200)


def test_a_reply_that_is_cut_says_so(models: Path) -> None:
    assert ask(models / "long", "Say hello.", 1).truncated, "even a model that talks nonsense does not end with its first token"


@pytest.mark.slow
def test_a_run_whose_time_is_up_leaves_nothing_computing(models: Path, tmp_path: Path) -> None:
    make_task(tmp_path / "guess")
    chosen = ("--agent", "research", "--model", "hf/local", "-M", f"model_path={models / 'long'}", "-A", "max_tokens=12000")
    limits = ("--variant", "mini", "--sandbox", "none", "--baseline", "none", "--time", "4s", "--json")
    command = [*commands.MLAB, "run", "guess", "--task-path", "guess", *chosen, *limits]
    finished = commands.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=HANGING, env={**os.environ, "HF_HUB_OFFLINE": "1"}
    )
    assert finished.returncode == 0, finished.stderr
    assert json.loads(finished.stdout)["ended"] == "limit_time"
    assert "terminate called" not in finished.stderr
    (made,) = find_runs(tmp_path / "runs")
    with resumed(made.path, 0) as plan:
        assert plan.spec.model("agent").options == {"model_path": str(models / "long")}, "a fork has the same model"
    with resumed(made.path, 0, model="scripted/demo") as plan:
        assert not plan.spec.model("agent").options, "another model has options of its own"


@pytest.mark.parametrize(
    ("name", "options", "fault"),
    [
        ("openai/gpt-4o", {"api_key": "dummy"}, "a key is no option of a model"),
        ("openai/gpt-4o", {"config": 1}, "no option 'config'"),
        ("nobody/x", {}, "'nobody/x' cannot be used"),
        ("scripted/nowhere.yaml", {}, "nowhere.yaml"),
        ("openai/gpt-4o", {}, "No OPENAI_API_KEY"),
        ("vllm/no/model", {}, "it needs vllm; pip install vllm"),
    ],
)
def test_a_model_that_cannot_be_had_is_one_line_before_anything_runs(
    monkeypatch: pytest.MonkeyPatch, name: str, options: Mapping[str, JsonValue], fault: str
) -> None:
    for variable in ("OPENAI_API_KEY", "AZUREAI_OPENAI_API_KEY", "VLLM_BASE_URL"):
        monkeypatch.delenv(variable, raising=False)
    if name.startswith("vllm") and importlib.util.find_spec("vllm"):
        pytest.skip("vllm is installed")
    with pytest.raises(Exception, match=fault) as failure:
        check_model(name, options)
    assert "\n" not in str(failure.value) and "[bold]" not in str(failure.value)


@pytest.mark.parametrize(("name", "options"), [("hf//no/such/folder", {}), ("hf/local", {"model_path": "./nowhere"})])
def test_a_folder_that_is_not_there_is_one_line_before_anything_runs(models: Path, name: str, options: Mapping[str, JsonValue]) -> None:
    with pytest.raises(ModelUnavailable, match="there is no folder"):
        check_model(name, options)


def test_options_of_a_model_reach_its_provider(server: object) -> None:
    with pytest.raises(ModelUnavailable, match="no_such_option"):
        check_model("openai/gpt-4o", {"no_such_option": 1})
    check_model("openai/gpt-4o", {"responses_api": False})
