"""Search what the agent sees for parts of the private files: whole files, runs of answers in any encoding, and chunks of bytes."""

from __future__ import annotations

import bisect
import hashlib
import math
import zlib
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from mlagentbench.checks.findings import Finding, failed, ok
from mlagentbench.checks.public_files import SEPARATORS, unpacked
from mlagentbench.checks.public_tables import Answers, numbers_or_text
from mlagentbench.task.catalogue import Task
from mlagentbench.util.text import some
from mlagentbench.workspace.paths import CACHES

CHUNK = 64
"""Bytes of a chunk that is searched for; stretches of answers are at least as long, or have half as many rows."""
BITS = 64.0
"""The least information of a stretch of answers, in bits, so that it does not recur by chance: many bytes of equal answers say little."""
STRETCHES = 24
"""How many stretches of answers are searched for, about, spread evenly."""
RAW_STRETCHES = 256
"""How many chunks of bytes are searched for, about, in all private files together."""
SHARE = 0.2
"""The share of a file's chunks that may be found in public, since texts of one kind repeat phrases, and formats have headers."""
HEADER = 128
"""Bytes at a file's start that may be the same in all files of its format, and are not searched for."""
MAX_BYTES = 1 << 30
"""Bytes of public data after which no further file is searched."""
HISTORY = frozenset({".git", ".hg", ".svn"})
ROWS = "rows"
JOINS = {
    "lines": b"\n",
    "a list": b", ",
    "a dense list": b",",
    "words": b" ",
    "words and commas": b", ",
    "words and dense commas": b",",
}
"""The bytes between two values, by encoding; none in arrays, and where the values are written one after the other."""
SAYS = 256
"""The least size of a compressed file, in bytes, for its copy to be a leak: a file of zeros, say, equals others by chance."""
GAP = b"\0\xff\0\xff"


class _Haystack(NamedTuple):
    """All that the agent sees, as one string of bytes."""

    text: bytes
    starts: list[int]
    names: list[str]
    digests: dict[str, str]
    """The files' names by the SHA-256 digest of their content, before unpacking."""

    def where(self, needle: bytes) -> str | None:
        """Return the name of the file that contains some bytes; None if none does."""
        found = self.text.find(needle)
        return self.names[bisect.bisect_right(self.starts, found) - 1] if found >= 0 else None


def find_copies(task: Task, public: Path, private: Path, answers: Answers | None) -> Finding:
    """Search everything that the agent sees for the private files and the answers."""
    history = [path for path in task.starter.rglob("*") if path.name in HISTORY]
    if history:
        return failed("copies", f"the starter has a history of its own in {history[0].name}; remove it")
    haystack = _haystack(task, public)
    found = list(_answers_in(haystack, answers)) if answers is not None else []
    found += list(_files_in(haystack, private, public, answers))
    found = list(dict.fromkeys(found))
    return failed("copies", f"{some(found)}; keep what tells answers in private alone") if found else ok("copies")


def _haystack(task: Task, public: Path) -> _Haystack:
    text, starts, names, digests = bytearray(), [0], ["nowhere"], {}
    for root, shown in ((task.starter, "starter"), (public, "public"), (task.folder / "problem.md", "problem.md")):
        for path in sorted(root.rglob("*")) if root.is_dir() else [root]:
            parts = path.relative_to(root).parts
            if not path.is_file() or any(fnmatch(part, cache) for part in parts for cache in CACHES):
                continue
            data = path.read_bytes()
            name = "/".join((shown, *parts))
            digests[hashlib.sha256(data).hexdigest()] = name
            for inner, content in unpacked(name, data):
                if len(text) < MAX_BYTES:
                    starts.append(len(text))
                    names.append(inner)
                    text += content + GAP
                    if content.count(b"\0") >= len(content) / 2:
                        text += content.replace(b"\0", b"") + GAP  # text in UTF-16 or UTF-32, as in arrays
    return _Haystack(bytes(text), starts, names, digests)


def _answers_in(haystack: _Haystack, answers: Answers) -> Iterator[str]:
    """Yield a line for each answer column that is found, as text or as an array, in the order of the answers or of their ids."""
    ids = answers.ids
    orders = {"": np.arange(answers.rows), " by id": np.argsort(numbers_or_text(ids), kind="stable")}
    written: dict[str, list[str]] = {name: answers.frame[name].fill_null("").to_list() for name in answers.values.columns}
    for target in answers.targets:
        numbered = [f"{value:g}" for value in target.values]
        if target.name not in written or (target.classes and numbered != written[target.name]):
            written[f"{target.name}, by number" if target.name in written else target.name] = numbered
    for name, values in written.items():
        bits = _bits(values)
        for order in orders.values():
            ordered = [values[row] for row in order]
            spans = list(_spans(ordered, bits))
            named = [f"{ids[int(row)]},{values[row]}".encode() for row in order]
            for encoding, pieces in {ROWS: named, **_encodings(ordered)}.items():
                needles = [(b"\n" if encoding == ROWS else JOINS.get(encoding, b"")).join(pieces[start:end]) for start, end in spans]
                places = [place for place in (haystack.where(needle) for needle in needles) if place]
                if len(places) >= max(1, len(needles) / 2):
                    yield f"{places[0]} holds the answers ({name}) as {encoding}"


def _encodings(values: list[str]) -> dict[str, list[bytes]]:
    """Return a column's values as bytes, one by one, for each encoding in which they may be written one after the other."""
    numbers = np.array([_number(value) for value in values])
    bare = [value.encode() for value in values]
    quoted = [b'"' + value + b'"' for value in bare] if np.isnan(numbers).any() else bare
    found = {**dict.fromkeys(JOINS, bare), "a list": quoted, "a dense list": quoted}
    if np.isnan(numbers).any():
        numbers = np.unique(values, return_inverse=True)[1].astype(np.float64)  # each class by its number in sorted order
        found["text"] = bare
    whole = bool((numbers == np.round(numbers)).all())
    kinds = ["<f4", "<f8"]
    if whole and np.abs(numbers).max() < 2**31:
        kinds += ["<i8", "<i4"]
        kinds += ["u1"] if numbers.min() >= 0 and numbers.max() < 256 else []
    for kind in kinds:
        found[f"an array of {np.dtype(kind).name}"] = [value.tobytes() for value in numbers.astype(kind)]
    if whole and numbers.min() >= 0 and numbers.max() < 256:
        found["a pickled list"] = [b"K" + bytes([int(value)]) for value in numbers]
    return found


def _number(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        return math.nan


def _bits(values: list[str]) -> dict[str, float]:
    """Return the information of each value in bits, from how often it occurs."""
    return {value: -math.log2(count / len(values)) for value, count in Counter(values).items()}


def _spans(values: list[str], bits: dict[str, float]) -> Iterator[tuple[int, int]]:
    """Yield the first and last row (exclusive) of stretches that do not recur by chance, evenly spread."""
    spans, start, bits_so_far, length = [], 0, 0.0, 0
    for row, value in enumerate(values):
        bits_so_far, length = bits_so_far + bits[value], length + len(value) + 1
        if bits_so_far >= BITS and (length >= CHUNK or row + 1 - start >= CHUNK // 2):
            spans.append((start, row + 1))
            start, bits_so_far, length = row + 1, 0.0, 0
    step = max(1, len(spans) // STRETCHES)
    yield from spans[::step]


def _files_in(haystack: _Haystack, private: Path, public: Path, answers: Answers | None) -> Iterator[str]:
    """Yield a line for each private file that is public too, whole or in large part.

    A private table may be public if it does not hold the answers.
    """
    files = [path for path in sorted(private.rglob("*")) if path.is_file() and path.stat().st_size >= CHUNK]
    for path in files:
        data = path.read_bytes()
        name = f"private/{path.relative_to(private).as_posix()}"
        table = path.suffix in SEPARATORS
        same = haystack.digests.get(hashlib.sha256(data).hexdigest())
        if same and len(zlib.compress(data)) >= SAYS and not (table and answers is not None and not _holds_answers(path, data, answers)):
            yield f"{name} is also {same}"
        elif not table:
            needles = _raw_stretches(data, max(4, RAW_STRETCHES // len(files)))
            places = [place for place in (haystack.where(needle) for needle in needles) if place]
            if len(places) >= 2 and len(places) > SHARE * len(needles):
                yield f"{len(places)} of {len(needles)} stretches of {name} stand in {Counter(places).most_common(1)[0][0]}"


def _holds_answers(path: Path, data: bytes, answers: Answers) -> bool:
    """Return whether a table has a column with an answer column's name or values; True if it cannot be read."""
    try:
        frame = pl.read_csv(data, separator=SEPARATORS[path.suffix], infer_schema=False)
    except pl.exceptions.PolarsError:
        return True
    wanted = [set(answers.frame[name].to_list()) for name in answers.values.columns]
    named = set(answers.values.columns) & set(frame.columns)
    return bool(named) or any(set(frame[name].to_list()) == values for name in frame.columns for values in wanted)


def _raw_stretches(data: bytes, most: int) -> list[bytes]:
    """Return up to `most` chunks of at least 12 distinct bytes, evenly spread."""
    starts = range(HEADER if len(data) > 4 * HEADER else 0, len(data) - CHUNK + 1, CHUNK)
    step = max(1, len(starts) // (2 * most))
    chunks = (data[start : start + CHUNK] for start in starts[::step])
    return [chunk for chunk in chunks if len(set(chunk)) >= 12][:most]
