"""Prepare the data of the climbs on a table, from 6,000 real diamonds.

They are a sample of the 53,940 of ggplot2, in the order of their prices, so both variants use them. `diamonds.LICENSE` says where it is
from. What is made up is how they were weighed, and how the prices were written down.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mlagentbench.task.seeds import SEED

STONES = Path(__file__).with_name("diamonds.csv.gz")
LABORATORIES = ("A", "B", "C", "D", "E")
TYPING_ERROR = 100
"""By how much a price is too large that was typed wrongly."""


class Faults(NamedTuple):
    """What happened to the data."""

    train: int
    """Stones whose price is given. It divides the number of all."""
    reports: int = 1
    """Laboratories that examined each stone."""
    gain: float = 1.0
    """A balance shows at most so many times what it would show in carats, and at least the inverse. It is recorded."""
    offset: float = 0.0
    """The logarithm of the largest factor by which a laboratory's balances are off. It is not recorded."""
    noise: float = 0.0
    """Standard deviation of the logarithm of a reading."""
    wrong: float = 0.0
    """Share of the given prices that are typed wrongly."""


FAULTS = {
    2: Faults(train=150),
    3: Faults(train=2000, gain=50),
    6: Faults(train=1200, reports=5, gain=50, offset=1.0, noise=0.075, wrong=0.06),
}
"""By the number of faults. With few stones to learn from, the fall of the learning rate does the most harm."""


def mini(public: Path, private: Path, seed: int, *, rungs: int) -> None:
    """Write the real stones, with the readings, the order and the typing errors of the seed."""
    write(FAULTS[rungs], seed, public, private)


def full(public: Path, private: Path, *, rungs: int) -> None:
    """Write the real stones, with the readings, the order and the typing errors of the tasks' own seed."""
    write(FAULTS[rungs], SEED, public, private)


def write(faults: Faults, seed: int, public: Path, private: Path) -> None:
    """Write the reports on all stones, and the prices of those of them that are to learn from."""
    stones = pl.read_csv(STONES)
    rng = np.random.default_rng(seed)
    # One of each run of stones in the order of their prices, so that every seed's test has the same spread of prices.
    runs = np.arange(len(stones)).reshape(faults.train, -1)
    chosen = rng.permutation(rng.permuted(runs, axis=1)[:, 0])
    others = rng.permutation(np.setdiff1d(runs, chosen))
    ids = _ids(np.log(stones["price"].to_numpy()[chosen]), len(stones), rng)
    order = np.concatenate([chosen, others])
    reports = _reports(stones, faults, rng)[(order[:, None] * faults.reports + np.arange(faults.reports)).ravel()]
    reports = reports.insert_column(0, pl.Series("stone", np.repeat(ids, faults.reports)))
    answers = pl.DataFrame({"stone": ids, "price": stones["price"].to_numpy()[order]})

    data = public / "data"
    data.mkdir()
    reports[: faults.train * faults.reports].write_csv(data / "train.csv")
    reports[faults.train * faults.reports :].write_csv(data / "test.csv")
    wrong = np.zeros(faults.train, dtype=bool)
    wrong[rng.choice(faults.train, round(faults.wrong * faults.train), replace=False)] = True
    typed = pl.col("price") * pl.when(pl.Series(wrong)).then(TYPING_ERROR).otherwise(1)
    answers[: faults.train].with_columns(typed).sort("stone").write_csv(data / "prices.csv")
    answers[faults.train :].write_csv(private / "answers.csv")


def _ids(prices: NDArray[np.float64], count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw ids for all stones, of which the first are those to learn from.

    The prices are written in the order of the ids. Whoever matches them by line has wrong ones; ids by which they would be right in part,
    by chance, are drawn again.
    """
    while True:
        ids = rng.permutation(count) + 1
        if np.corrcoef(prices, prices[np.argsort(ids[: len(prices)])])[0, 1] < -1 / np.sqrt(len(prices)):
            return ids


def _reports(stones: pl.DataFrame, faults: Faults, rng: np.random.Generator) -> pl.DataFrame:
    """Return `reports` rows on each stone, one after another, by different laboratories."""
    shape = (len(stones), faults.reports)
    # Of each few stones in the order of their prices, every laboratory has one, so that all have stones of all sizes.
    turns = rng.permuted(np.tile(np.arange(len(LABORATORIES)), (len(stones) // len(LABORATORIES), 1)), axis=1).reshape(-1, 1)
    laboratory = (turns + np.arange(faults.reports)) % len(LABORATORIES)
    offset = rng.permutation(np.linspace(-faults.offset, faults.offset, len(LABORATORIES)))[laboratory]
    gain = np.exp(rng.uniform(-np.log(faults.gain), np.log(faults.gain), shape))
    carats = stones["carat"].to_numpy()[:, None]
    reading = carats * gain * np.exp(offset + faults.noise * rng.standard_normal(shape))
    rows = stones[np.repeat(np.arange(len(stones)), faults.reports)]
    return rows.select(
        pl.Series("laboratory", np.array(LABORATORIES)[laboratory].ravel()),
        pl.Series("reading", reading.ravel()).round_sig_figs(5),
        pl.Series("per_carat", gain.ravel()).round_sig_figs(5),
        *("cut", "color", "clarity", "depth", "table"),
    )
