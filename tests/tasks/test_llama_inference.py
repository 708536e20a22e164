"""The grader of llama-inference: which tokens are right, worked out without the library, and what is timed beside what."""

from __future__ import annotations

import asyncio
import importlib.util
import json
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import numpy as np
import polars as pl
import pytest

from mlagentbench.data.prepare import Prepared
from mlagentbench.errors import InvalidSubmission
from mlagentbench.grading.baseline import write_files
from mlagentbench.grading.grade import Graded, grade
from mlagentbench.limits import SandboxChoice
from mlagentbench.sandbox.isolation import probe
from mlagentbench.task.catalogue import Task
from mlagentbench.task.proofs import Files
from mlagentbench.tasks.llama_inference import prepare, proof
from tests.mirror import Mirror
from tests.tasks.by_hand import folders, mini

ANOTHER: SandboxChoice = [*[found.name for found in probe() if found.available and found.name != "docker"][1:], "none"][0]
"""Where else code may run than in the strongest sandbox, in which the task's own proofs do."""


@pytest.fixture(scope="module")
def data(task: Task, tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    pytest.importorskip("tokenizers")
    return mini(task, tmp_path_factory.mktemp("llama-inference"))


@pytest.fixture(scope="module")
def public(data: Prepared) -> Path:
    return data.public


@pytest.fixture
def starter(task: Task) -> ModuleType:
    pytest.importorskip("transformers")
    spec = importlib.util.spec_from_file_location("llama_starter", task.starter / "train.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def graded(task: Task, data: Prepared, folder: Path, files: Files, sandbox: SandboxChoice = "auto") -> Graded:
    write_files(folder, files)
    return asyncio.run(grade(task, folder, variant="mini", private=data.private, sandbox=sandbox))


def by_hand(folder: Path, tokens: list[int]) -> np.ndarray:
    """The logits after a row of tokens: LLaMA (arXiv 2302.13971) in numpy, with the keys shared by groups of heads (arXiv 2305.13245)."""
    load_file = pytest.importorskip("safetensors.numpy").load_file
    weights = {name: array.astype(np.float64) for name, array in load_file(folder / "model.safetensors").items()}
    config = json.loads((folder / "config.json").read_text())
    heads, groups = config["num_attention_heads"], config["num_key_value_heads"]
    size, count = config["hidden_size"] // heads, len(tokens)

    def norm(x: np.ndarray, name: str) -> np.ndarray:
        return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + config["rms_norm_eps"]) * weights[name]

    def rotated(x: np.ndarray) -> np.ndarray:
        angles = np.arange(count)[:, None] * 10_000.0 ** (-np.arange(0, size, 2) / size)
        first, second = x[..., : size // 2], x[..., size // 2 :]
        sin, cos = np.sin(angles), np.cos(angles)
        return np.concatenate((first * cos - second * sin, second * cos + first * sin), axis=-1)

    x = weights["model.embed_tokens.weight"][tokens]
    for layer in range(config["num_hidden_layers"]):
        name = f"model.layers.{layer}"
        inside = norm(x, f"{name}.input_layernorm.weight")

        def split(part: str, number: int, inside: np.ndarray = inside, name: str = name) -> np.ndarray:
            return (inside @ weights[f"{name}.self_attn.{part}_proj.weight"].T).reshape(count, number, size).transpose(1, 0, 2)

        query, key, value = rotated(split("q", heads)), rotated(split("k", groups)), split("v", groups)
        key, value = (np.repeat(each, heads // groups, axis=0) for each in (key, value))
        scores = query @ key.transpose(0, 2, 1) / np.sqrt(size) + np.triu(np.full((count, count), -np.inf), 1)
        attention = np.exp(scores - scores.max(axis=-1, keepdims=True))
        attention /= attention.sum(axis=-1, keepdims=True)
        x = x + (attention @ value).transpose(1, 0, 2).reshape(count, -1) @ weights[f"{name}.self_attn.o_proj.weight"].T
        inside = norm(x, f"{name}.post_attention_layernorm.weight")
        gate = inside @ weights[f"{name}.mlp.gate_proj.weight"].T
        up = inside @ weights[f"{name}.mlp.up_proj.weight"].T
        x = x + (gate / (1 + np.exp(-gate)) * up) @ weights[f"{name}.mlp.down_proj.weight"].T
    return np.asarray(norm(x[-1], "model.norm.weight") @ weights["lm_head.weight"].T)


def test_the_starter_generates_what_the_model_is_by_hand(starter: ModuleType, public: Path) -> None:
    prompt = np.load(public / "prompts.npy")[0]
    found = starter.generate(starter.load(public / "model"), prompt, 6)
    tokens = prompt.tolist()
    for token in found:
        logits = by_hand(public / "model", tokens)
        assert token == logits.argmax()
        tokens.append(token)


def test_what_the_mini_model_generates_varies(starter: ModuleType, public: Path) -> None:
    """A constant, or a few tokens by heart, could not stand for it."""
    model = starter.load(public / "model")
    found = [starter.generate(model, prompt, 8) for prompt in np.load(public / "prompts.npy")[:4]]
    assert len({tuple(tokens) for tokens in found}) == 4
    assert len({token for tokens in found for token in tokens}) > 16


def test_a_tie_may_go_either_way_and_nothing_more() -> None:
    from mlagentbench.tasks.llama_inference.generator import NEW_TOKENS, TOLERANCE, Generator  # with torch, which takes seconds

    generator = Generator(cast(Any, SimpleNamespace(stdin=None, stdout=None)), InvalidSubmission)
    prompt, tokens = np.arange(4.0), np.arange(float(NEW_TOKENS))
    below = np.zeros(NEW_TOKENS)
    below[7] = 0.9 * TOLERANCE
    generator.check(prompt, tokens, lambda *given: below)
    assert generator.worst == below[7]
    for wrong in (1.1 * TOLERANCE, np.inf, np.nan):
        below[9] = wrong
        with pytest.raises(InvalidSubmission, match="new token 10 of 32 is not the most probable"):
            generator.check(prompt, tokens, lambda *given: below)


def test_prompts_are_joined_anew_each_time() -> None:
    from mlagentbench.tasks.llama_inference.grade import joined

    rows = np.arange(40.0).reshape(4, 10)
    rng = np.random.default_rng(0)
    found = [joined(rows, rng) for _ in range(50)]
    assert len({tuple(each) for each in found}) > 40
    for each in found:
        assert (each % 10 == np.arange(10)).all()
        assert len(set((each // 10).tolist())) == 2


def test_the_graders_prompts_are_not_the_agents(data: Prepared, public: Path) -> None:
    shown, hidden = np.load(public / "prompts.npy"), np.load(data.private / "prompts.npy")
    assert shown.shape == (prepare.SHOWN, prepare.MINI_LENGTH) and hidden.shape == (prepare.HIDDEN, prepare.MINI_LENGTH)
    assert not {tuple(row) for row in shown.tolist()} & {tuple(row) for row in hidden.tolist()}


def test_the_real_model_is_laid_out_as_the_mini_one(public: Path, mirror: Mirror, tmp_path: Path) -> None:
    base = "https://huggingface.co"
    for file in prepare.MODEL_FILES:
        mirror.add(f"{base}/{prepare.MODEL}/resolve/{prepare.MODEL_REVISION}/{file}", (public / "model" / file).read_bytes())
    articles = tmp_path / "articles.parquet"
    pl.DataFrame(
        {"text": ["", " = A title = \n", *(f" The dog saw {number} cats near a café .\n" for number in range(6000))]}
    ).write_parquet(articles)
    mirror.add(f"{base}/datasets/{prepare.TEXT}/resolve/{prepare.TEXT_REVISION}/{prepare.TEXT_FILE}", articles.read_bytes())
    made = folders(tmp_path / "made")
    prepare.full(made.public, made.private)
    names = [sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()) for root in (made.public, public)]
    assert names[0] == names[1]
    assert np.load(made.public / "prompts.npy").shape == (prepare.SHOWN, prepare.FULL_LENGTH)
    assert np.load(made.private / "prompts.npy").shape == (prepare.HIDDEN, prepare.FULL_LENGTH)


@pytest.mark.slow
def test_a_cache_succeeds_by_far_in_another_sandbox_too(task: Task, data: Prepared, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    found = graded(task, data, tmp_path, proof.solution(), ANOTHER)
    assert found.score is not None and found.score.baseline is not None, found.reason
    assert found.score.value < 0.6 * found.score.baseline.value
    assert bool(found.score.details["lacking"]) is (ANOTHER == "none")
    assert found.score.details["new_tokens"] == 32


ATTEMPTS = {
    "the tokens of another prompt that begins alike": proof.code(
        proof.CACHE,
        top="known = {}",
        end=f"    return known.setdefault(int(prompt[0]) % 2, {proof.RETURN.split('return ')[1].strip()})",
    ),
    "a judge of its own": proof.code(
        top="""
import gc, sys
from transformers import LlamaForCausalLM
for held in gc.get_objects():
    if type(held).__name__ == "_Server":
        held._judge = type(held)._judge = lambda *given: np.zeros(32)
LlamaForCausalLM.forward = lambda *given, **named: None
""",
        loop="tokens = torch.cat([tokens, tokens[:, -new_tokens:]], dim=1)",
    ),
    "the likeliest tokens after the last one alone": proof.code(
        """
for _ in range(new_tokens):
    best = model(input_ids=tokens[:, -1:]).logits[:, -1].argmax(-1, keepdim=True)
    tokens = torch.cat([tokens, best], dim=1)
"""
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_other_tokens_that_come_sooner_are_refused(task: Task, data: Prepared, tmp_path: Path, attempt: str) -> None:
    pytest.importorskip("transformers")
    found = graded(task, data, tmp_path, ATTEMPTS[attempt])
    assert found.score is None and found.reason is not None and "other tokens than the model's" in found.reason
