"""Damage to what an agent leaves: files of every kind cut, bent, swapped and blown up, the same for the same seed.

    leave(damaged(oracle, random.Random(7)), folder)

Of a file first its own kind is damaged (tables, JSON, arrays, archives, code), or any file's bytes, or what lies in its place.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random

from mlagentbench.task.proofs import Files
from tests.fuzz.damage_bytes import BYTES
from tests.fuzz.damage_kinds import KINDS

Special = Callable[[Path], object]
"""Puts something that is no file, or none that can be read, at a path."""
Left = Mapping[str, bytes | Special]


def damaged(oracle: Files, rng: Random) -> Left:
    """Return oracle files with some of them damaged."""
    left: dict[str, bytes | Special] = {name: text.encode() if isinstance(text, str) else text for name, text in oracle.items()}
    for name in rng.sample(sorted(left), rng.choice((1, 1, 1, len(left)))):
        content = left[name]
        assert isinstance(content, bytes)
        if rng.random() < 0.04:
            left[name] = rng.choice(SPECIAL)
            continue
        for _ in range(rng.choice((1, 1, 1, 2, 5))):
            kinds = KINDS.get(Path(name).suffix, ())
            content = rng.choice(kinds if kinds and rng.random() < 0.6 else BYTES)(rng, content)[: 70 << 20]
        left[name] = content
    if rng.random() < 0.03:
        del left[rng.choice(sorted(left))]
    if rng.random() < 0.03:
        folder = os.path.dirname(rng.choice(sorted(oracle)))
        left[os.path.join(folder, rng.choice(("\udcff\udcfe.py", "a\nb.json", "x" * 250 + ".py", "-rf", "config.json", ".npz")))] = b"{}"
    return left


def leave(left: Left, folder: Path) -> None:
    """Write what an agent leaves into a folder."""
    for name, content in left.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            content(path)


# What is no file.


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(10 << 30)


def _closed(path: Path) -> None:
    path.write_bytes(b"x")
    path.chmod(0)


def _folders(path: Path) -> None:
    """A folder in a file's place, with a path below it that is too long to be named at once."""
    path.mkdir()
    here = os.open(path, os.O_RDONLY)
    for _ in range(25):
        os.mkdir("d" * 200, dir_fd=here)
        below = os.open("d" * 200, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(os.open("x.py", os.O_CREAT, dir_fd=here))
    os.close(here)


SPECIAL: tuple[Special, ...] = (
    *(os.mkfifo, Path.mkdir, _sparse, _closed, _folders),
    lambda path: path.symlink_to("/etc/passwd"),
    lambda path: path.symlink_to(path.name),
    lambda path: path.symlink_to("nowhere"),
)
