"""The docstrings of a standard library, and text as numbers."""

from __future__ import annotations

import ast
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

END = 0
"""The symbol after each text."""
ALPHABET = "\0\n" + "".join(map(chr, range(32, 127)))
"""The characters by their symbols; the first stands for no character."""
SYMBOLS = len(ALPHABET)
SHORTEST = 80
"""Characters; what is shorter is rather a title than a text."""
LEFT_OUT = frozenset(
    {"__pycache__", "config", "ensurepip", "idlelib", "idle_test", "lib2to3", "site-packages", "test", "tests", "turtledemo"}
)
"""Folders: tests, programs, and what is not the library's own."""


def library_files() -> list[Path]:
    """The modules of the running Python's standard library, in the order of their names."""
    root = Path(sysconfig.get_paths()["stdlib"])
    return sorted(path for path in root.rglob("*.py") if not LEFT_OUT.intersection(path.relative_to(root).parts))


def docstrings(file: Path) -> Iterator[str]:
    """The longer docstrings of a module, in its order, with `?` for each character outside the alphabet."""
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
    except (SyntaxError, UnicodeDecodeError):  # some modules are wrong on purpose
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = (ast.get_docstring(node) or "").expandtabs()
            if len(text) > SHORTEST:
                yield "".join(character if character in ALPHABET[1:] else "?" for character in text)


def symbols(texts: Iterable[str]) -> NDArray[np.int64]:
    """All texts one after another as symbols, with `END` after each."""
    joined = "".join(f"{text}\0" for text in texts)
    codes = np.frombuffer(joined.encode("ascii"), dtype=np.uint8).astype(np.int64)
    return np.where(codes >= 32, codes - 30, np.where(codes == ord("\n"), 1, END))


def streams(texts: Iterable[str], count: int) -> NDArray[np.int64]:
    """The texts as `count` streams of equal length, one after another: shape (count, length). Up to `count - 1` symbols are left over."""
    line = symbols(texts)
    length = len(line) // count
    return line[: count * length].reshape(count, length)
