"""Prepare a LLaMA model, prompts that the agent sees, and others with which it is timed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mlagentbench.tasks.babylm.grammar import SOURCES, text

MODEL = "HuggingFaceTB/SmolLM2-135M"
MODEL_REVISION = "4e53f736cbb20a9a0f56b4c4bf378d9f306ff915"
MODEL_FILES = ("config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")
TEXT = "Salesforce/wikitext"
TEXT_REVISION = "b08601e04326c79dfdd32d625aee71d232d685c3"
TEXT_FILE = "wikitext-2-raw-v1/test-00000-of-00001.parquet"

SHOWN, HIDDEN = 16, 64
"""Number of the agent's prompts, and of the grader's."""
MINI_LENGTH, FULL_LENGTH = 128, 256
"""Tokens per prompt."""

END = "<|endoftext|>"
VOCABULARY, WIDTH, INNER, LAYERS, HEADS, KEY_HEADS = 1024, 192, 512, 5, 6, 3
"""Sizes of the mini variant's model."""


def mini(public: Path, private: Path, seed: int) -> None:
    """Write a model with random weights, and prompts of text from a small grammar."""
    rng = np.random.default_rng(seed)
    words = "".join(text(source, 150, rng) for source in SOURCES)
    (public / "model").mkdir()
    _write_tokenizer(public / "model", words)
    _write_weights(public / "model", rng)
    _write_prompts(public, private, words, MINI_LENGTH)


def full(public: Path, private: Path) -> None:
    """Write a small, freely available LLaMA model, and prompts from Wikipedia articles."""
    from mlagentbench.data.fetch import hugging_face

    folder = hugging_face(MODEL, MODEL_FILES, kind="model", revision=MODEL_REVISION)
    (public / "model").mkdir()
    for file in MODEL_FILES:
        shutil.copyfile(folder / file, public / "model" / file)
    articles = hugging_face(TEXT, [TEXT_FILE], kind="dataset", revision=TEXT_REVISION) / TEXT_FILE
    _write_prompts(public, private, "".join(pl.read_parquet(articles)["text"]), FULL_LENGTH)


def _write_prompts(public: Path, private: Path, words: str, length: int) -> None:
    """Cut a text into prompts: the agent's from its beginning, the grader's spread over the rest."""
    from tokenizers import Tokenizer

    ids = Tokenizer.from_file(str(public / "model" / "tokenizer.json")).encode(words, add_special_tokens=False).ids
    rows = np.array(ids[: len(ids) // length * length], dtype=np.int64).reshape(-1, length)
    assert len(rows) >= SHOWN + HIDDEN, f"only {len(rows)} prompts of {length} tokens"
    np.save(public / "prompts.npy", rows[:SHOWN])
    np.save(private / "prompts.npy", rows[np.linspace(SHOWN, len(rows) - 1, HIDDEN, dtype=int)])


def _write_tokenizer(folder: Path, words: str) -> None:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=600, special_tokens=[END], initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(words.splitlines(keepends=True), trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": END, "eos_token": END}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n")


def _write_weights(folder: Path, rng: np.random.Generator) -> None:
    """Write random weights that preserve the scale of activations, so that the generated text varies."""
    from safetensors.numpy import save_file

    def matrix(rows: int, columns: int) -> NDArray[np.float32]:
        return np.asarray(rng.standard_normal((rows, columns)) / np.sqrt(columns), dtype=np.float32)

    weights = {"model.embed_tokens.weight": rng.standard_normal((VOCABULARY, WIDTH)).astype(np.float32)}
    for layer in range(LAYERS):
        name = f"model.layers.{layer}"
        for part, rows in (("q", WIDTH), ("k", WIDTH * KEY_HEADS // HEADS), ("v", WIDTH * KEY_HEADS // HEADS), ("o", WIDTH)):
            weights[f"{name}.self_attn.{part}_proj.weight"] = matrix(rows, WIDTH)
        for part, rows, columns in (("gate", INNER, WIDTH), ("up", INNER, WIDTH), ("down", WIDTH, INNER)):
            weights[f"{name}.mlp.{part}_proj.weight"] = matrix(rows, columns)
        for part in ("input", "post_attention"):
            weights[f"{name}.{part}_layernorm.weight"] = np.ones(WIDTH, dtype=np.float32)
    weights["model.norm.weight"] = np.ones(WIDTH, dtype=np.float32)
    weights["lm_head.weight"] = matrix(VOCABULARY, WIDTH)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": VOCABULARY,
        "hidden_size": WIDTH,
        "intermediate_size": INNER,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KEY_HEADS,
        "max_position_embeddings": 512,
        "rms_norm_eps": 1e-5,
        "hidden_act": "silu",
        "tie_word_embeddings": False,
        "bos_token_id": 0,
        "eos_token_id": 0,
        "dtype": "float32",
    }
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    (folder / "generation_config.json").write_text(json.dumps({"bos_token_id": 0, "eos_token_id": 0}, indent=2) + "\n")
