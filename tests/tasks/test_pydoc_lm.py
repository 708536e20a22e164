"""The character model: its bits worked out here too, what it can and cannot see while it reads, and the text it reads."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import math
import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from mlagentbench.data.prepare import Prepared
from mlagentbench.errors import InvalidSubmission
from mlagentbench.grading.grade import grade
from mlagentbench.sandbox.isolation import probe
from mlagentbench.task.catalogue import Task
from mlagentbench.tasks.pydoc_lm import prepare
from mlagentbench.tasks.pydoc_lm.alphabet import ALPHABET, SYMBOLS, streams, symbols
from mlagentbench.tasks.pydoc_lm.docstrings import write_docstrings
from mlagentbench.tasks.pydoc_lm.grade import STREAMS
from tests.tasks.by_hand import folders, score

LEARNS = """
import numpy as np

class Model:
    def start(self, count):
        self.counts = np.ones((count, 97), dtype=np.float32)
        self.read = 0

    def step(self, symbols):
        if self.read:
            self.counts[np.arange(len(symbols)), symbols] += 1
        self.read += 1
        return self.counts / self.counts.sum(axis=1, keepdims=True)
"""
"""It knows nothing, and counts the symbols of each stream as they come."""


@pytest.fixture(scope="module")
def texts(data: Prepared) -> list[str]:
    found = json.loads((data.private / "test.json").read_text())
    assert isinstance(found, list)
    return found


@pytest.fixture
def starter(task: Task) -> ModuleType:
    spec = importlib.util.spec_from_file_location("starter_model", task.starter / "model.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_score_is_the_mean_of_the_bits_of_each_symbol_given_those_before(
    task: Task, data: Prepared, texts: list[str], tmp_path: Path
) -> None:
    found = score(task, data, {"model.py": LEARNS}, tmp_path)
    joined = "".join(text + "\0" for text in texts)
    length = len(joined) // STREAMS
    bits = 0.0
    for stream in range(STREAMS):
        seen: dict[str, int] = {}
        for place, character in enumerate(joined[stream * length : (stream + 1) * length]):
            bits -= math.log2((seen.get(character, 0) + 1) / (place + 97))
            seen[character] = seen.get(character, 0) + 1
    assert found.details["symbols"] == STREAMS * length
    assert found.value == pytest.approx(bits / (STREAMS * length), rel=1e-5)
    assert 4 < found.value < 6.6


def test_a_symbol_comes_only_after_its_probabilities_are_gone(task: Task, data: Prepared, texts: list[str], tmp_path: Path) -> None:
    """A model that hunts for what comes next, in all that it was ever sent and in the pipes, finds none of it."""
    hunts = f"""
import numpy as np, os, select, sys

class Model:
    def start(self, count):
        self.seen = []

    def step(self, symbols):
        frame, server = sys._getframe(), None
        while frame:
            server = frame.f_locals.get("question", server)
            frame = frame.f_back
        assert len(server.arrays) == 1 and server.arrays[0].shape == (len(symbols),), "more was sent than asked for"
        for descriptor in range(3, 64):
            try:
                if select.select([descriptor], [], [], 0)[0] and os.fstat(descriptor).st_mode & 0o170000 == 0o010000:
                    raise RuntimeError(f"more is waiting in descriptor {{descriptor}}")
            except (OSError, ValueError):
                pass
        return np.full((len(symbols), {SYMBOLS}), 1 / {SYMBOLS})
"""
    assert score(task, data, {"model.py": hunts}, tmp_path).value == pytest.approx(math.log2(SYMBOLS))


def test_answers_in_advance_are_seen(task: Task, data: Prepared, tmp_path: Path) -> None:
    eager = LEARNS.replace(
        "        self.read += 1\n",
        """        self.read += 1
        import os, struct
        for descriptor in range(3, 64):
            try:
                os.write(descriptor, struct.pack("<4sQIII", b"MLAB", 4, 3, 0, 0))
            except OSError:
                pass
""",
    )
    with pytest.raises(InvalidSubmission, match="only"):
        score(task, data, {"model.py": eager}, tmp_path)


def test_what_it_prints_counts_for_nothing(task: Task, data: Prepared, tmp_path: Path) -> None:
    prints = LEARNS.replace("self.read += 1", "self.read += 1; print('0.01 bits per character', flush=True)")
    assert score(task, data, {"model.py": prints}, tmp_path).value > 4


def test_symbols_are_the_alphabets_places_with_an_end_after_each_text() -> None:
    assert len(ALPHABET) == SYMBOLS == 97
    line = symbols(["a\n ~", "!"])
    assert line.tolist() == [ALPHABET.index(character) for character in "a\n ~\0!\0"]
    assert streams(["a\n ~", "!"], 3).tolist() == [line[:2].tolist(), line[2:4].tolist(), line[4:6].tolist()]


def test_the_starters_symbols_are_the_graders(starter: ModuleType, texts: list[str]) -> None:
    assert starter.ALPHABET == ALPHABET
    assert np.array_equal(starter.encode(texts), symbols(texts))


def test_no_text_is_both_learnt_and_tested_and_all_are_of_the_alphabet(data: Prepared, texts: list[str]) -> None:
    train = json.loads((data.public / "data" / "train.json").read_text())
    assert not set(train) & set(texts) and len(set(train)) == len(train) > 3 * len(texts)
    assert set("".join([*train, *texts])) <= set(ALPHABET[1:])
    assert all(text == text.strip("\n") and len(text) > 80 for text in texts)


def test_the_words_of_the_test_are_those_of_the_data_to_learn_from_and_of_no_other_library(data: Prepared, texts: list[str]) -> None:
    def words(found: list[str]) -> list[str]:
        return re.findall(r"[a-z]{4,}", " ".join(found))

    known = set(words(json.loads((data.public / "data" / "train.json").read_text())))
    assert sum(word in known for word in words(texts)) > 0.95 * len(words(texts))
    other = set(words(write_docstrings(300, np.random.default_rng(1))))
    assert sum(word in other for word in words(texts)) < 0.5 * len(words(texts)), "the language around them alone"


def test_the_real_test_is_of_another_library_for_each_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepare, "FULL_TEXTS", 20)
    found = []
    for seed in range(2):
        made = folders(tmp_path / f"{seed}")
        prepare.full(made.public, made.private, seed)
        found.append((made.private / "test.json").read_text())
    assert found[0] != found[1]


READS = """
import re, sysconfig
from pathlib import Path
import numpy as np

ALPHABET = "\\0\\n" + "".join(map(chr, range(32, 127)))
REACH = 10

class Model:
    def __init__(self):
        self.coming = {}
        library = Path(sysconfig.get_paths()["stdlib"])
        for file in [*library.glob("*.py"), *library.glob("[a-h]*/*.py")]:
            for text in re.findall(r'\"\"\"(.{80,}?)\"\"\"', file.read_text(errors="replace"), re.DOTALL):
                line = "\\n".join(line.removeprefix("    ") for line in text.split("\\n"))
                self.coming.update((line[i - REACH : i], line[i]) for i in range(REACH, len(line)))

    def start(self, count):
        self.contexts = [""] * count

    def step(self, symbols):
        found = np.full((len(symbols), 97), 1 / 97)
        for row, symbol in enumerate(symbols):
            self.contexts[row] = (self.contexts[row] + ALPHABET[symbol])[-REACH:]
            coming = self.coming.get(self.contexts[row], "")
            if coming and coming in ALPHABET:
                found[row] = 0.1 / 97
                found[row, ALPHABET.index(coming)] += 0.9
        return found
"""
"""It has learnt nothing, and looks for what it reads among the docstrings that come with Python."""

SEARCHES = """
import importlib, os, sys
import numpy as np

class Model:
    def __init__(self):
        for place in [*sys.path, os.path.expanduser("~"), "/tmp", "/work", ".."]:
            for folder, _, files in os.walk(place):
                if "pydoc_lm" in folder or os.path.basename(folder) == "private":
                    raise RuntimeError(f"found it in {folder}")
        try:
            importlib.import_module("mlagentbench.tasks.pydoc_lm.docstrings").write_docstrings
        except ImportError:
            return
        raise RuntimeError("found it")

    def start(self, count):
        pass

    def step(self, symbols):
        return np.full((len(symbols), 97), 1 / 97)
"""

CLAIMS = """
import numpy as np

class Model:
    def start(self, count):
        pass

    def step(self, symbols):
        return np.full((len(symbols), 97), (1 + 9e-5) / 97)
"""


@pytest.mark.slow
def test_the_docstrings_that_come_with_python_are_of_no_use(task: Task, data: Prepared, tmp_path: Path) -> None:
    """A text that lies there has fewer than 4.3 bits a character with this model."""
    assert score(task, data, {"model.py": READS}, tmp_path).value > 5


def test_neither_the_text_nor_what_writes_it_is_found_where_a_model_runs(task: Task, data: Prepared, tmp_path: Path) -> None:
    if not any(found.available for found in probe()):
        pytest.skip("this machine has no sandbox")
    (tmp_path / "model.py").write_text(SEARCHES)
    found = asyncio.run(grade(task, tmp_path, variant="mini", private=data.private))
    assert found.score is not None, found.reason
    assert found.score.value == pytest.approx(math.log2(SYMBOLS))


def test_probabilities_that_add_up_to_a_little_more_gain_nothing(task: Task, data: Prepared, tmp_path: Path) -> None:
    assert score(task, data, {"model.py": CLAIMS}, tmp_path).value == pytest.approx(math.log2(SYMBOLS), abs=1e-12)
