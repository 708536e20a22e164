"""Write a ladder's files from a seed, which is given for the mini variant, and drawn at each preparation for the full one."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl

from mlagentbench.tasks.ladder.locks import lock
from mlagentbench.tasks.ladder.world import LINKS, MODULUS, PRIME, TEN, Change, Kind, LadderSize, World, make, noisy

MINI = LadderSize(train=1500, test=600, references=400, columns=6, levels=16)
FULL = LadderSize(train=6000, test=2500, references=700, columns=8, levels=24)

NOTES: dict[Kind, str] = {
    "offset": "A number is added to the reading.",
    "mirror": "The reading is subtracted from a number.",
    "gain": "The reading is multiplied by a number.",
    "drift": "A number times `day` is added to the reading.",
    "partner": "A number times another row's reading, as it is before this step, is added to the reading. The other row's id is in one of"
    f" the columns {', '.join(f'`{name}`' for name in LINKS)}. Which one it is, is not recorded.",
    "raw": "A number times the raw reading of `data/readings.csv` is added to the reading.",
    "echo": f"A number is added to the reading. Here the code is raised by the tens (0 to {MODULUS // TEN}) of the reading before the step"
    " before this one, before the last remainder is taken.",
}
LAST = "All steps are right: these are the true readings. What is left is to learn the target from them.\n"


def full(public: Path, private: Path, seed: int, *, rungs: int) -> None:
    """Write a ladder from a secret seed, so that nobody has seen it before."""
    write(rungs, FULL, seed, public, private)


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
    rng = np.random.default_rng([seed, rungs, 1])
    first, *later = (note(world, number, rng) for number in range(1, rungs + 1))
    (data / "step_1.txt").write_text(first, encoding="utf-8")
    for number, text in enumerate([*later, LAST], 1):
        (data / f"after_step_{number}.locked").write_bytes(lock(text, world.readings[number]))
    steps = {f"step_{number}": reading[world.test] for number, reading in enumerate(world.readings[1:], 1)}
    pl.DataFrame({"id": world.test, "target": world.target[world.test], **steps}).write_csv(private / "answers.csv")
    (private / "seed.json").write_text(json.dumps({"seed": seed, "rungs": rungs, "size": size._asdict()}) + "\n", encoding="utf-8")


def note(world: World, number: int, rng: np.random.Generator) -> str:
    """Return what is known of a step, numbered from 1, followed by its references as a table."""
    step, rows = world.steps[number - 1], world.references[number - 1]
    references = pl.DataFrame({"id": rows, "reference": noisy(world.readings[number][rows], rng)})
    # All kinds' notes are as long, so that the size of a locked one does not tell its kind.
    what = NOTES[step.kind].ljust(max(map(len, NOTES.values()))) + _code(step)
    return f"# Step {number}\n\n{what}\n\nAll arithmetic is on whole numbers modulo {MODULUS}.\n\n{references.write_csv()}"


def _code(step: Change) -> str:
    first, second, _ = step.columns
    one, other, hidden = step.weights
    return (
        f" The number depends on a code; the number of each code is not recorded. To get a row's code, multiply `{first}` by {one},"
        f" `{second}` by {other}, and a third column by {hidden}; add the three, take the remainder after division by {PRIME}, and then"
        f" the remainder after division by {len(step.numbers)}. The third column is one of the others with few values; which one is not"
        " recorded."
    )
