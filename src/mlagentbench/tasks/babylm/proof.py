"""The task's proof: models made by hand that know the answers, know nothing, or break a rule.

A GPT-2 without layers whose last normalisation has a bias and zero weight gives the same logits everywhere, so that it can hold any
distribution over tokens.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlagentbench import Files, Invalid, Prepared, edited_starter
from mlagentbench.tasks.babylm.prepare import GPT2

END = "<|endoftext|>"
WIDTH = 8


def oracle(data: Prepared) -> Mapping[str, Files]:
    """Return a model that knows the test text: each passage is a token of its own."""
    lines = (data.private / "passages.jsonl").read_text(encoding="utf-8").splitlines()
    passages = [json.loads(line)["text"] for line in lines]
    tokenizer = _tokenizer(passages)
    logits = np.full(257 + len(passages), -20.0)
    logits[257:] = -np.log(2 * len(passages))
    logits[0] = -np.log(2)
    return {"the test text": _model(logits, tokenizer)}


def naive(data: Prepared) -> Mapping[str, Files]:
    """Return models that give all bytes the same probability, their frequency in the training text, or that of another byte."""
    counts = _byte_counts(data)
    tokenizer = _tokenizer()
    wrong = counts.copy()
    wrong[1:] = np.random.default_rng(0).permutation(counts[1:])
    return {
        "constant": _model(np.zeros(257), tokenizer),
        "frequencies": _model(np.log(counts), tokenizer),
        "shuffled": _model(np.log(wrong), tokenizer),
    }


def invalid(data: Prepared) -> Mapping[str, Invalid]:
    """Return folders that must be refused."""
    fine = _model(np.zeros(257), _tokenizer())
    config = json.loads(fine["model/config.json"])
    tokenizer = json.loads(fine["model/tokenizer.json"])

    def with_config(**changes: Any) -> Files:
        return {**fine, "model/config.json": json.dumps({**config, **changes})}

    def with_tokenizer(**changes: Any) -> Files:
        return {**fine, "model/tokenizer.json": json.dumps({**tokenizer, **changes})}

    return {
        "empty weights": Invalid({**fine, "model/model.safetensors": b""}, "loading the model failed"),
        "random bytes": Invalid({**fine, "model/model.safetensors": b"\x80\x04" * 500}, "loading the model failed"),
        "no JSON": Invalid({**fine, "model/config.json": "{"}, "config.json is no JSON"),
        "pickled weights": Invalid({**fine, "model/pytorch_model.bin": b"\x80\x04."}, "pickled weights and code are not read"),
        "code": Invalid({**fine, "model/modeling.py": "print('hello')\n"}, "pickled weights and code are not read"),
        "code elsewhere": Invalid(with_config(auto_map={"AutoModelForCausalLM": "modeling.Mine"}), "auto_map"),
        "other kind of model": Invalid(with_config(model_type="bert"), "model_type 'bert'"),
        "too large": Invalid(with_config(n_embd=4096), "has the wrong shape for"),
        "weights missing": Invalid(with_config(n_layer=1), "which config.json calls for"),
        "NaN": Invalid(_model(np.full(257, np.nan), fine["model/tokenizer.json"]), "not finite"),
        "small letters only": Invalid(with_tokenizer(normalizer={"type": "Lowercase"}), "does not give back the text"),
        "nothing at all": Invalid(
            with_tokenizer(normalizer={"type": "Replace", "pattern": {"Regex": "[\\s\\S]"}, "content": ""}), "give back"
        ),
        "tokens the model lacks": Invalid(_model(np.zeros(60), fine["model/tokenizer.json"]), "the model knows 60"),
        "no end token": Invalid(with_config(eos_token_id=None), "no eos_token_id"),
        "an end token of text": Invalid(with_config(eos_token_id=_id_of(tokenizer, "e")), "end token"),
        "sees ahead": Invalid({**fine, **_looks_ahead()}, "looks ahead"),
    }


def solution() -> Files:
    """Return a script that must win: a LLaMA , which sees four times as far, and how far words are apart."""
    size = "vocab_size=640, hidden_size=48, intermediate_size=128, num_hidden_layers=1, num_attention_heads=4, max_position_embeddings=64"
    other = f"LlamaConfig({size}, initializer_range=0.1, tie_word_embeddings=True, bos_token_id=0, eos_token_id=0)"
    return edited_starter(
        __file__,
        {
            "import GPT2Config, GPT2LMHeadModel,": "import LlamaConfig, LlamaForCausalLM,",
            'GPT2Config.from_pretrained("gpt2")': other,
            "GPT2LMHeadModel(config)": "LlamaForCausalLM(config)",
            "BATCH = 32": "BATCH = 8",
        },
    )


def ineffective() -> Files:
    """Return a script that must not win: the starter with twice as many epochs."""
    return edited_starter(__file__, {"EPOCHS = 8": "EPOCHS = 16"})


def _byte_counts(data: Prepared) -> NDArray[np.float64]:
    """Count how often each token of `_tokenizer` occurs in the training text, plus one."""
    files = sorted((data.public / "babylm_data" / "babylm_10M").iterdir())
    found: Counter[int] = Counter()
    for file in files:
        found.update(file.read_bytes())
    counts = np.ones(257)
    for place, byte in enumerate(_alphabet().values(), start=1):
        counts[place] += found[byte]
    counts[0] += len(files)
    return counts


def _model(logits: NDArray[np.float64], tokenizer: str | bytes) -> dict[str, str | bytes]:
    """Return the files of a model that gives these logits at every place."""
    from safetensors.numpy import save

    embedding = np.zeros((len(logits), WIDTH), dtype=np.float32)
    embedding[:, 0] = logits
    bias = np.eye(WIDTH, dtype=np.float32)[0]
    weights = {
        "transformer.wte.weight": embedding,
        "transformer.wpe.weight": np.zeros((256, WIDTH), dtype=np.float32),
        "transformer.ln_f.weight": np.zeros(WIDTH, dtype=np.float32),
        "transformer.ln_f.bias": bias,
    }
    config = {**GPT2, "vocab_size": len(logits), "n_positions": 256, "n_embd": WIDTH, "n_layer": 0, "n_head": 1}
    return {
        "model/config.json": json.dumps(config),
        "model/tokenizer.json": tokenizer,
        "model/model.safetensors": save(weights, metadata={"format": "pt"}),
    }


def _looks_ahead() -> dict[str, str | bytes]:
    """Return the files of a model of random weights whose config asks for attention in both directions."""
    from safetensors.numpy import save

    rng = np.random.default_rng(0)
    width, wider, tokens = 16, 32, 257
    shapes = {
        "model.embed_tokens.weight": (tokens, width),
        "model.norm.weight": (width,),
        "lm_head.weight": (tokens, width),
        **{f"model.layers.0.self_attn.{name}_proj.weight": (width, width) for name in "qkvo"},
        **{f"model.layers.0.mlp.{name}_proj.weight": (wider, width) for name in ("gate", "up")},
        "model.layers.0.mlp.down_proj.weight": (width, wider),
        "model.layers.0.input_layernorm.weight": (width,),
        "model.layers.0.post_attention_layernorm.weight": (width,),
    }
    weights = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    config = {
        "model_type": "llama",
        "is_causal": False,
        "vocab_size": tokens,
        "hidden_size": width,
        "intermediate_size": wider,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "max_position_embeddings": 256,
        "bos_token_id": 0,
        "eos_token_id": 0,
    }
    return {"model/config.json": json.dumps(config), "model/model.safetensors": save(weights, metadata={"format": "pt"})}


def _tokenizer(words: Sequence[str] = ()) -> str:
    """Return a tokenizer.json of the end token, the 256 bytes and some whole words, in this order."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    vocabulary = {END: 0, **{character: place for place, character in enumerate(_alphabet(), start=1)}}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([END])
    tokenizer.add_tokens([AddedToken(word, normalized=False) for word in words])
    return str(tokenizer.to_str())


def _alphabet() -> dict[str, int]:
    """Return the bytes by the characters that GPT-2's tokenizer writes for them: printable bytes as they are, the others from 256 on."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in printable]
    return {**{chr(byte): byte for byte in printable}, **{chr(256 + place): byte for place, byte in enumerate(others)}}


def _id_of(tokenizer: Mapping[str, Any], character: str) -> int:
    return int(tokenizer["model"]["vocab"][character])
