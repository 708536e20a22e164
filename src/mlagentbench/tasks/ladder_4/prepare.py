"""A ladder of four steps."""

from __future__ import annotations

from pathlib import Path

from mlagentbench.tasks.ladder.prepare import write_full, write_mini

RUNGS = 4


def full(public: Path, private: Path) -> None:
    """A ladder that nobody has seen before."""
    write_full(RUNGS, public, private)


def mini(public: Path, private: Path, seed: int) -> None:
    """A small ladder."""
    write_mini(RUNGS, public, private, seed)
