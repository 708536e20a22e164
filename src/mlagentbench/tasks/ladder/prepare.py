"""Write a ladder's files from a seed, which is given for the mini variant, and drawn at each preparation for the full one."""

from __future__ import annotations

import json
import secrets
from pathlib import Path

import numpy as np
import polars as pl

from mlagentbench.tasks.ladder.world import ECHO, KINDS, LINKS, MODULUS, Kind, LadderSize, World, make, noisy

MINI = LadderSize(train=1500, test=600, references=300, columns=6, levels=16)
FULL = LadderSize(train=6000, test=2500, references=500, columns=8, levels=24)

BY_COLUMN = "depends on one of the columns with few values; which column, and the number for each of its values, is not recorded."
NOTES: dict[Kind, str] = {
    "offset": f"A number is added to the reading. It {BY_COLUMN}",
    "gain": f"The reading is multiplied by a number. It {BY_COLUMN}",
    "drift": f"A number times `day` is added to the reading. The number {BY_COLUMN}",
    "partner": "A number times another row's reading, as it is before this step, is added to the reading. The other row's id is in one of"
    f" the columns {', '.join(f'`{name}`' for name in LINKS)}. Which one it is, and the number, the same for all rows, is not recorded.",
    "echo": f"A number is added to the reading. It depends on the tens (0 to {MODULUS // ECHO}) of the reading before the step before this"
    " one; the numbers are not recorded.",
}


def full(public: Path, private: Path, *, rungs: int) -> None:
    """Write a ladder from a new random seed, so that nobody has seen it before."""
    write(rungs, FULL, secrets.randbits(48), public, private)


def mini(public: Path, private: Path, seed: int, *, rungs: int) -> None:
    """Write a small ladder from a given seed."""
    write(rungs, MINI, seed, public, private)


def write(rungs: int, size: LadderSize, seed: int, public: Path, private: Path) -> None:
    """Write the agent's data to `public`, and the test's targets and readings after every step to `private`."""
    world = make(rungs, size, seed)
    data = public / "data"
    data.mkdir()
    pl.DataFrame({"id": np.arange(len(world.target)), **world.table}).write_csv(data / "readings.csv")
    pl.DataFrame({"id": world.train, "target": world.target[world.train]}).write_csv(data / "train.csv")
    pl.DataFrame({"id": world.test}).write_csv(data / "test.csv")
    _references(world, np.random.default_rng([seed, rungs, 1])).write_csv(data / "references.csv")
    (data / "notes.md").write_text(notes(rungs), encoding="utf-8")
    steps = {f"step_{number}": reading[world.test] for number, reading in enumerate(world.readings[1:], 1)}
    pl.DataFrame({"id": world.test, "target": world.target[world.test], **steps}).write_csv(private / "answers.csv")
    (private / "seed.json").write_text(json.dumps({"seed": seed, "rungs": rungs, "size": size._asdict()}) + "\n", encoding="utf-8")


def notes(rungs: int) -> str:
    """Return the text of `notes.md`, which says what is known of each step."""
    lines = [f"{number}. {NOTES[kind]}" for number, kind in enumerate(KINDS[rungs], 1)]
    return "\n".join(
        [
            "# The steps from raw to true readings",
            "",
            f"All arithmetic is on whole numbers modulo {MODULUS}. The steps are taken in this order:",
            "",
            *lines,
            "",
        ]
    )


def _references(world: World, rng: np.random.Generator) -> pl.DataFrame:
    parts = [
        pl.DataFrame({"step": np.full(len(rows), number), "id": rows, "reference": noisy(world.readings[number][rows], rng)})
        for number, rows in enumerate(world.references, 1)
    ]
    return pl.concat(parts)
