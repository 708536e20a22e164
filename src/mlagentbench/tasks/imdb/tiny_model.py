"""Write a tiny DistilBERT with random weights for the mini variant, in files with the names and formats of the real one.

The files are written without the libraries that read them, so that they do not depend on the version installed, nor on there being one.
Formats: safetensors (https://github.com/huggingface/safetensors), and tokenizer.json of the tokenizers library.
"""

from __future__ import annotations

import json
import re
import struct
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

DIMENSION = 64
FEED_FORWARD = 128
LAYERS = 2
HEADS = 4
POSITIONS = 512
INITIAL_RANGE = 0.05
"""Standard deviation of the random weights: larger than BERT's 0.02, since the model is so narrow."""
POSITION_RANGE = 0.01
"""Standard deviation of the position embeddings: smaller, so that without pre-training they do not outweigh the words."""

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
CHARACTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
PUNCTUATION = ".,!?'\"-:;()"


def write_tiny_model(folder: Path, texts: Iterable[str], rng: np.random.Generator) -> None:
    """Write a masked language model and a tokenizer whose vocabulary has the words of `texts`."""
    vocabulary = _vocabulary(texts)
    folder.mkdir()
    (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in vocabulary), encoding="utf-8")
    _write_json(folder / "config.json", _config(len(vocabulary)))
    _write_json(folder / "tokenizer.json", _tokenizer(vocabulary))
    _write_json(
        folder / "tokenizer_config.json",
        {"do_lower_case": True, "model_max_length": POSITIONS, "tokenizer_class": "DistilBertTokenizer"},
    )
    _write_safetensors(folder / "model.safetensors", _weights(len(vocabulary), rng))


def _vocabulary(texts: Iterable[str]) -> list[str]:
    """List the tokens: special ones, punctuation, characters at a word's start and inside it, then whole words, frequent ones first."""
    words = Counter(word for text in texts for word in re.findall(r"[a-z0-9]+", text.lower()) if len(word) > 1)
    frequent = sorted(words, key=lambda word: (-words[word], word))
    return [*SPECIAL, *PUNCTUATION, *CHARACTERS, *(f"##{character}" for character in CHARACTERS), *frequent]


def _config(vocabulary_size: int) -> Mapping[str, object]:
    return {
        "activation": "gelu",
        "architectures": ["DistilBertForMaskedLM"],
        "attention_dropout": 0.1,
        "dim": DIMENSION,
        "dropout": 0.1,
        "hidden_dim": FEED_FORWARD,
        "initializer_range": INITIAL_RANGE,
        "max_position_embeddings": POSITIONS,
        "model_type": "distilbert",
        "n_heads": HEADS,
        "n_layers": LAYERS,
        "pad_token_id": 0,
        "qa_dropout": 0.1,
        "seq_classif_dropout": 0.2,
        "sinusoidal_pos_embds": False,
        "tie_weights_": True,
        "vocab_size": vocabulary_size,
    }


def _tokenizer(vocabulary: list[str]) -> Mapping[str, object]:
    start, end = ({"SpecialToken": {"id": token, "type_id": 0}} for token in ("[CLS]", "[SEP]"))
    first, second = ({"Sequence": {"id": name, "type_id": 0}} for name in "AB")
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": number, "content": token, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
            for number, token in enumerate(SPECIAL)
        ],
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
            "lowercase": True,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [start, first, end],
            "pair": [start, first, end, second, end],
            "special_tokens": {token: {"id": token, "ids": [vocabulary.index(token)], "tokens": [token]} for token in ("[CLS]", "[SEP]")},
        },
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {token: number for number, token in enumerate(vocabulary)},
        },
    }


def _weights(vocabulary_size: int, rng: np.random.Generator) -> Mapping[str, NDArray[np.float32]]:
    weights: dict[str, NDArray[np.float32]] = {}

    def matrix(name: str, rows: int, columns: int, deviation: float = INITIAL_RANGE) -> None:
        weights[f"{name}.weight"] = rng.normal(0, deviation, (rows, columns)).astype(np.float32)

    def linear(name: str, inputs: int, outputs: int) -> None:
        matrix(name, outputs, inputs)
        weights[f"{name}.bias"] = np.zeros(outputs, np.float32)

    def norm(name: str) -> None:
        weights[f"{name}.weight"] = np.ones(DIMENSION, np.float32)
        weights[f"{name}.bias"] = np.zeros(DIMENSION, np.float32)

    matrix("distilbert.embeddings.word_embeddings", vocabulary_size, DIMENSION)
    matrix("distilbert.embeddings.position_embeddings", POSITIONS, DIMENSION, POSITION_RANGE)
    norm("distilbert.embeddings.LayerNorm")
    for number in range(LAYERS):
        layer = f"distilbert.transformer.layer.{number}"
        for part in ("q_lin", "k_lin", "v_lin", "out_lin"):
            linear(f"{layer}.attention.{part}", DIMENSION, DIMENSION)
        norm(f"{layer}.sa_layer_norm")
        linear(f"{layer}.ffn.lin1", DIMENSION, FEED_FORWARD)
        linear(f"{layer}.ffn.lin2", FEED_FORWARD, DIMENSION)
        norm(f"{layer}.output_layer_norm")
    linear("vocab_transform", DIMENSION, DIMENSION)
    norm("vocab_layer_norm")
    weights["vocab_projector.bias"] = np.zeros(vocabulary_size, np.float32)  # it shares the matrix of the word embeddings
    return weights


def _write_safetensors(path: Path, tensors: Mapping[str, NDArray[np.float32]]) -> None:
    """Write the header's length, the header in JSON, then the tensors one after another, all little-endian."""
    head: dict[str, object] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, tensor in tensors.items():
        begin, end = end, end + tensor.nbytes
        head[name] = {"dtype": "F32", "shape": tensor.shape, "data_offsets": (begin, end)}
    text = json.dumps(head, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(tensor.astype("<f4").tobytes() for tensor in tensors.values()))


def _write_json(path: Path, content: Mapping[str, object]) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
