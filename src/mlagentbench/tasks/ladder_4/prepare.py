"""Prepare a ladder of four steps."""

from __future__ import annotations

from pathlib import Path

from mlagentbench.tasks.ladder.prepare import write_full, write_mini

RUNGS = 4


def full(public: Path, private: Path) -> None:
    """Write a ladder from a new random seed."""
    write_full(RUNGS, public, private)


def mini(public: Path, private: Path, seed: int) -> None:
    """Write a small ladder from a given seed."""
    write_mini(RUNGS, public, private, seed)
