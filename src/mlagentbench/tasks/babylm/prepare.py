"""Prepare the text of the BabyLM challenge (2023): ten sources, each with a public training and development part and a private test part.

The grader is given passages of the test part. In the full variant they are a sample, about 110,000 words spread evenly over each source in
proportion to its size: models compare by it as well as by all ten million, and scoring it takes minutes without a GPU.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from mlagentbench.tasks.babylm.grammar import SOURCES, text

REPOSITORY = "cambridge-climb/BabyLM"
REVISION = "cbde7ced419df6d8a9f2e4f7e80fe3f30fa558ca"
"""Its folder `original` holds the challenge's files as they were given out."""
TRAINING, DEVELOPMENT = ("babylm_10M", "train"), ("babylm_dev", "dev")
"""Folder and file ending, as in the challenge's own archive."""

PASSAGE = 2000
"""The most characters of a passage."""
PASSAGES = 320
"""About how many passages the full variant has of all sources together."""

GPT2 = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "bos_token_id": 0, "eos_token_id": 0}
MINI_SIZE = {
    **{"vocab_size": 640, "n_positions": 16, "n_embd": 32, "n_layer": 1, "n_head": 4},
    # With GPT-2's own small weights, a model as narrow as this stays for long where it does not attend to earlier words yet, and how long
    # depends on the seed.
    **{"initializer_range": 0.1, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0},
}
FULL_SIZE = {"vocab_size": 16384, "n_positions": 512, "n_embd": 768, "n_layer": 12, "n_head": 12}


def mini(public: Path, private: Path, seed: int) -> None:
    """Generate text of a small grammar, about 50,000 words."""
    rng = np.random.default_rng(seed)
    test: dict[str, str] = {}
    for source in SOURCES:
        _write(public, TRAINING, source, text(source, 36, rng))
        _write(public, DEVELOPMENT, source, text(source, 9, rng))
        test[source] = text(source, 9, rng)
    _write_config(public, MINI_SIZE)
    _write_passages(private, {source: list(passages(part)) for source, part in test.items()})


def full(public: Path, private: Path) -> None:
    """Fetch the challenge's own files."""
    from mlagentbench.data.fetch import hugging_face

    parts = ("10M", "dev", "test")
    names = [f"original/{part}/{source}.txt" for part in parts for source in SOURCES]
    folder = hugging_face(REPOSITORY, names, kind="dataset", revision=REVISION) / "original"
    test: dict[str, list[str]] = {}
    for source in SOURCES:
        for part, place in (("10M", TRAINING), ("dev", DEVELOPMENT)):
            target = _file(public, place, source)
            shutil.copyfile(folder / part / f"{source}.txt", target)
        test[source] = list(passages((folder / "test" / f"{source}.txt").read_text(encoding="utf-8")))
    _write_config(public, FULL_SIZE)
    _write_passages(private, _sample(test))


def passages(text: str, size: int = PASSAGE) -> Iterator[str]:
    """Split a text into pieces of at most `size` characters, each ending with a line where possible, or else with a word."""
    start = 0
    while start < len(text):
        end = start + size
        if end < len(text):
            end = text.rfind("\n", start, end) + 1 or text.rfind(" ", start, end) + 1 or end
        yield text[start:end]
        start = end


def _sample(found: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Choose from each source its share of `PASSAGES`, spread evenly over it, at least one."""
    total = sum(map(len, found.values()))
    chosen = {}
    for source, pieces in found.items():
        whole = [piece for piece in pieces if len(piece) > PASSAGE // 2] or pieces
        places = np.linspace(0, len(whole) - 1, max(1, round(PASSAGES * len(pieces) / total)), dtype=int)
        chosen[source] = [whole[place] for place in dict.fromkeys(places.tolist())]
    return chosen


def _write(public: Path, place: tuple[str, str], source: str, content: str) -> None:
    _file(public, place, source).write_text(content, encoding="utf-8", newline="")


def _file(public: Path, place: tuple[str, str], source: str) -> Path:
    folder, ending = place
    path = public / "babylm_data" / folder / f"{source}.{ending}"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _write_config(public: Path, size: Mapping[str, float]) -> None:
    (public / "gpt2").mkdir()
    (public / "gpt2" / "config.json").write_text(json.dumps({**GPT2, **size}, indent=2) + "\n")


def _write_passages(private: Path, chosen: Mapping[str, list[str]]) -> None:
    """Write a line of JSON for each passage."""
    with (private / "passages.jsonl").open("w", encoding="utf-8", newline="\n") as file:
        for source, pieces in chosen.items():
            for piece in pieces:
                file.write(json.dumps({"source": source, "text": piece}) + "\n")
