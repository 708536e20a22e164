"""The text of the BabyLM challenge (2023): ten sources, of which the training and the development part are public and the test part is not.

The grader is given passages of the test part. In full they are a sample, about 110,000 words drawn evenly from each source in proportion to
its size: a model can be compared by them as well as by all ten million, and they are read in minutes without a graphics card.
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
"""Characters that a passage has at most."""
PASSAGES = 320
"""In full, of all sources together."""

GPT2 = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "bos_token_id": 0, "eos_token_id": 0}
MINI_SIZE = {"vocab_size": 1024, "n_positions": 128, "n_embd": 96, "n_layer": 2, "n_head": 4}
FULL_SIZE = {"vocab_size": 16384, "n_positions": 512, "n_embd": 768, "n_layer": 12, "n_head": 12}


def mini(public: Path, private: Path, seed: int) -> None:
    """Text of a small grammar, about 130,000 words."""
    rng = np.random.default_rng(seed)
    test: dict[str, str] = {}
    for source in SOURCES:
        _write(public, TRAINING, source, text(source, 700, rng))
        _write(public, DEVELOPMENT, source, text(source, 70, rng))
        test[source] = text(source, 70, rng)
    _write_config(public, MINI_SIZE)
    _write_passages(private, {source: list(passages(part)) for source, part in test.items()})


def full(public: Path, private: Path) -> None:
    """The challenge's own files."""
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
    """A text in pieces that join to it again, each as long as `size` allows: it ends with a line, or else with a word, or anywhere."""
    start = 0
    while start < len(text):
        end = start + size
        if end < len(text):
            end = text.rfind("\n", start, end) + 1 or text.rfind(" ", start, end) + 1 or end
        yield text[start:end]
        start = end


def _sample(found: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """From each source its share of `PASSAGES`, evenly spread over it, at least one."""
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


def _write_config(public: Path, size: Mapping[str, int]) -> None:
    (public / "gpt2").mkdir()
    (public / "gpt2" / "config.json").write_text(json.dumps({**GPT2, **size}, indent=2) + "\n")


def _write_passages(private: Path, chosen: Mapping[str, list[str]]) -> None:
    """A line of JSON a passage."""
    with (private / "passages.jsonl").open("w", encoding="utf-8", newline="\n") as file:
        for source, pieces in chosen.items():
            for piece in pieces:
                file.write(json.dumps({"source": source, "text": piece}) + "\n")
