"""Submissions and scripts by which the task proves its grader."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from mlagentbench import Files, Invalid, Prepared, edited_starter
from mlagentbench.tasks.pydoc_lm.alphabet import symbols

STARTER = Path(__file__).parent / "starter"

UNIFORM = "return np.full((len(symbols), 97), 1 / 97)"

KNOWS = """
coming = STREAMS[:, self.place]
self.place += 1
found = np.full((len(symbols), 97), 1e-6)
found[np.arange(len(symbols)), coming] = 1 - 96e-6
return found
"""

WITTEN_BELL = '''"""A character model that mixes the counts after the last symbols, of several lengths (Witten and Bell, 1991)."""

import json
from pathlib import Path

import numpy as np

ALPHABET = "\\0\\n" + "".join(map(chr, range(32, 127)))
SYMBOLS = len(ALPHABET)
ORDER = 5
CHECKPOINT = Path(__file__).parent / "checkpoint" / "texts.json"


def encode(texts):
    """Turn texts into one array of symbols, with a 0 after each text."""
    number = {character: symbol for symbol, character in enumerate(ALPHABET)}
    return np.array([number[character] for text in texts for character in f"{text}\\0"])


class Model:
    """Counts of symbols after each context of up to ORDER symbols; where a longer one is unknown, the shorter ones decide."""

    def __init__(self):
        line = [0] * ORDER + encode(json.loads(CHECKPOINT.read_text(encoding="utf-8"))).tolist()
        self.tables = [{} for _ in range(ORDER + 1)]
        for place in range(ORDER, len(line)):
            for length, table in enumerate(self.tables):
                counts = table.setdefault(tuple(line[place - length : place]), {})
                counts[line[place]] = counts.get(line[place], 0) + 1

    def start(self, count):
        """Begin to read `count` streams."""
        self.contexts = [(0,) * ORDER] * count

    def step(self, symbols):
        """Take the symbols of shape (count,) that have come, and return the next ones' probabilities, of shape (count, SYMBOLS)."""
        self.contexts = [(*context[1:], int(symbol)) for context, symbol in zip(self.contexts, symbols)]
        return np.stack([self.mixed(context) for context in self.contexts])

    def mixed(self, context):
        found = np.full(SYMBOLS, 1 / SYMBOLS)
        for length, table in enumerate(self.tables):
            counts = table.get(context[ORDER - length :])
            if counts is None:
                break
            total = sum(counts.values()) + len(counts)
            found *= len(counts) / total
            found[list(counts)] += np.array(list(counts.values())) / total
        return found
'''


def oracle(data: Prepared) -> Mapping[str, Files]:
    """Return a model that holds the test's text."""
    return {"knows": {"model.py": _model(KNOWS, top=_text(data), start="self.place = 0")}}


def naive(data: Prepared) -> Mapping[str, Files]:
    """Return a model that gives all symbols the same probability, and one that holds the test's symbols in random order."""
    return {
        "constant": {"model.py": _model(UNIFORM)},
        "shuffled": {"model.py": _model(KNOWS, top=_text(data, mixed=True), start="self.place = 0")},
    }


def invalid(data: Prepared) -> Mapping[str, Invalid]:
    """Return files that are not models, and models that fail or do not return probabilities."""
    starter = {"model.py": (STARTER / "model.py").read_text(encoding="utf-8")}
    models = {
        "uneven": (UNIFORM.replace("1 / 97", "0.5"), "add up to 48.5"),
        "a little over 1": (UNIFORM.replace("1 / 97", "1.001 / 97"), "add up to 1.001"),
        "logarithms": (UNIFORM.replace("1 / 97", "-6.6"), "not their logarithms"),
        "NaN": (UNIFORM.replace("1 / 97", "np.nan"), "not finite"),
        "impossible": ("found = np.zeros((len(symbols), 97))\nfound[:, 1] = 1\nreturn found", "the probability 0, and it came"),
        "one row": ("return np.full(97, 1 / 97)", "of shape (97,); return one of (32, 97)"),
        "a symbol too few": ("return np.full((len(symbols), 96), 1 / 96)", "of shape (32, 96)"),
        "far too many": ("return np.full((len(symbols), 97000), 1 / 97000)", "larger than asked for"),
        "nothing": ("return None", "must be an array of real numbers"),
        "strings": ("return [['1'] * 97] * len(symbols)", "must be an array of real numbers"),
        "fails": ("raise ValueError('not trained')", "ValueError: not trained (model.py, line"),
        "leaves": ("import os\nos._exit(0)", "the process ended without an answer"),
        "writes": ("open('seen.txt', 'w').write('x')", "seen.txt"),
    }
    files: dict[str, tuple[Files, str]] = {case: ({"model.py": _model(step)}, reason) for case, (step, reason) in models.items()}
    files["not trained"] = (starter, "counts.npy")
    files["no class"] = ({"model.py": "print('2.0 bits per character')\n"}, "has no attribute 'Model'")
    files["syntax error"] = ({"model.py": "class Model\n"}, "SyntaxError")
    files["broken checkpoint"] = ({**starter, "checkpoint/counts.npy": b"PK\3\4"}, "importing model.py and making a Model failed")
    files["pickled checkpoint"] = ({**starter, "checkpoint/counts.npy": b"\x80\x04K\x01."}, "allow_pickle")
    return {case: Invalid(content, reason) for case, (content, reason) in files.items()}


def solution() -> Files:
    """Return a model with longer contexts, whose checkpoint is the training texts, counted when it is loaded."""
    train = (STARTER / "train.py").read_text(encoding="utf-8")
    head, _, rest = train.partition("def train(texts):")
    body = '    """Leave the texts that the model counts."""\n    CHECKPOINT.parent.mkdir(exist_ok=True)\n'
    body += '    CHECKPOINT.write_text(json.dumps(texts), encoding="utf-8")\n\n\n'
    imports = "from model import CHECKPOINT, Model, encode"
    head = head.replace("from model import CHECKPOINT, SYMBOLS, Model, encode", imports)
    return {"model.py": WITTEN_BELL, "train.py": f"{head}def train(texts):\n{body}def{rest.partition(chr(10) + 'def')[2]}"}


def ineffective() -> Files:
    """Return the starter with less smoothing."""
    return edited_starter(__file__, {"SMOOTHING = 0.05": "SMOOTHING = 0.01"}, "model.py")


def _model(step: str, top: str = "", start: str = "pass") -> str:
    """Return a `model.py` with these lines as the bodies of `step` and `start`, and `top` above the class."""
    lines = ["import numpy as np", top, "class Model:", "    def start(self, count):", textwrap.indent(start, " " * 8)]
    return "\n".join([*lines, "    def step(self, symbols):", textwrap.indent(step.strip(), " " * 8)]) + "\n"


def _text(data: Prepared, mixed: bool = False) -> str:
    """Return a line of Python that assigns the streams of the test's text to `STREAMS`, their symbols in random order if `mixed`."""
    line = symbols(json.loads((data.private / "test.json").read_text(encoding="utf-8")))
    if mixed:
        line = np.random.default_rng(0).permutation(line)
    return f"STREAMS = np.array({line[: len(line) // 32 * 32].tolist()}).reshape(32, -1)"
