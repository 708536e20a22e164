"""The climbs on a table: each change is needed by the next, and the grader reads from the score how many are in place."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from mlagentbench.data.prepare import Prepared
from mlagentbench.records import Score
from mlagentbench.task.catalogue import find_task
from mlagentbench.task.seeds import mini_data_seed
from mlagentbench.tasks.climb_table.changes import CHANGES, NEEDED, changed
from mlagentbench.tasks.climb_table.grade import RUNGS
from mlagentbench.tasks.climb_table.prepare import FAULTS, STONES, TYPING_ERROR
from mlagentbench.util.machine import ONE_THREAD
from tests.tasks.by_hand import mini, score

IN_ORDER = NEEDED[6]
CLOSE = ("units", "loss", "schedule")
SETS = {
    **{rungs: [part for size in range(rungs + 1) for part in itertools.combinations(NEEDED[rungs], size)] for rungs in (2, 3)},
    6: [IN_ORDER[:count] for count in range(7)] + [tuple(name for name in CHANGES if name != lacking) for lacking in CLOSE],
}
"""Of two and three changes all sets; of six those in order, and those that come closest to one rung more."""


def data_of(rungs: int, folder: Path, mini_seed: int | None = None) -> Prepared:
    return mini(find_task(f"climb-{rungs}"), folder, mini_data_seed(mini_seed))


def scored(rungs: int, data: Prepared, names: tuple[str, ...], folder: Path) -> Score:
    """What the starter with these changes leaves, graded."""
    folder.mkdir()
    (folder / "train.py").write_text(str(changed(names)["train.py"]))
    (folder / "data").symlink_to(data.public / "data")
    environment = os.environ | dict.fromkeys(ONE_THREAD, "1") | {"SEED": "0"}
    subprocess.run([sys.executable, "train.py"], cwd=folder, env=environment, capture_output=True, timeout=600, check=True)
    return score(find_task(f"climb-{rungs}"), data, {"submission.csv": (folder / "submission.csv").read_bytes()}, folder / "submission")


@pytest.mark.slow
@pytest.mark.parametrize("rungs", SETS)
def test_the_score_climbs_only_as_far_as_the_changes_are_made_in_their_order(tmp_path: Path, rungs: int) -> None:
    data = data_of(rungs, tmp_path / "data")
    values = {}
    for names in SETS[rungs]:
        in_order = next(place for place, name in enumerate((*NEEDED[rungs], None)) if name not in names)
        found = scored(rungs, data, names, tmp_path / "-".join(("made", *names)))
        assert found.rung == in_order, (names, found.value)
        values[names] = found.value
    gains = {names: 1 - value / values[()] for names, value in values.items()}
    assert all(gain < 0.1 for names, gain in gains.items() if names == NEEDED[rungs][:1] or NEEDED[rungs][0] not in names), gains
    assert all(gain > 0.2 for names, gain in gains.items() if set(NEEDED[rungs][:2]) <= set(names)), gains


@pytest.mark.parametrize("rungs", FAULTS)
def test_the_rung_follows_from_the_error(tmp_path: Path, rungs: int) -> None:
    data = data_of(rungs, tmp_path / "data")
    answers = pl.read_csv(data.private / "answers.csv").with_columns(pl.col("price").cast(pl.Float64))
    for rung, most in ((0, 2.0), *RUNGS[rungs].items()):
        off = np.exp(0.999 * most * (-1.0) ** np.arange(len(answers)))
        found = score(find_task(f"climb-{rungs}"), data, answers.with_columns(pl.col("price") * off), tmp_path / "submission")
        assert found.value == pytest.approx(0.999 * most)
        assert (found.rung, found.note) == (rung, f"rung {rung} of {rungs}")
    assert list(RUNGS[rungs]) == list(range(1, len(NEEDED[rungs]) + 1)) and sorted(RUNGS[rungs].values(), reverse=True) == list(
        RUNGS[rungs].values()
    )


@pytest.mark.parametrize("rungs", FAULTS)
def test_only_what_the_climb_is_about_is_wrong_in_its_data(tmp_path: Path, rungs: int) -> None:
    data, world = data_of(rungs, tmp_path / "data"), FAULTS[rungs]
    train, test, prices = (pl.read_csv(data.public / "data" / f"{name}.csv") for name in ("train", "test", "prices"))
    answers = pl.read_csv(data.private / "answers.csv")
    real = pl.read_csv(STONES)

    assert len(prices) == world.train and len(answers) == len(real) - world.train
    assert set(prices["stone"]) == set(train["stone"]) and set(answers["stone"]) == set(test["stone"])
    assert not set(train["stone"]) & set(test["stone"])
    assert (train.group_by("stone").len()["len"] == world.reports).all()
    typed = pl.concat([prices, answers])["price"].to_numpy().copy()
    wrong = typed > real["price"].max()
    assert wrong.sum() == round(world.wrong * world.train) and not wrong[world.train :].any()
    typed[wrong] //= TYPING_ERROR
    assert sorted(typed) == sorted(real["price"])
    # The prices by line are not the stones' own, and not even a little like them.
    own = train.unique("stone", keep="first", maintain_order=True).join(prices, on="stone", maintain_order="left")["price"]
    assert (own == prices["price"]).mean() < 0.05

    reports = pl.concat([train, test])
    assert (reports["per_carat"] == 1).all() == (world.gain == 1)
    weights = (reports["reading"] / reports["per_carat"]).to_numpy()
    exact = np.abs(weights - weights.round(2)) < 1e-3 * weights
    assert exact.all() == (world.noise == world.offset == 0)
    by_laboratory = reports.with_columns(pl.Series("log", np.log(weights))).group_by("laboratory").agg(pl.col("log").mean())["log"]
    assert by_laboratory.max() - by_laboratory.min() == pytest.approx(2 * world.offset, abs=0.05)


def test_a_seed_draws_other_stones_to_learn_from_and_as_hard_a_test(tmp_path: Path) -> None:
    answers = []
    for seed in (None, 1):
        data = data_of(2, tmp_path / str(seed), seed)
        answers.append(pl.read_csv(data.private / "answers.csv"))
    one, other = answers
    assert not one.equals(other) and one["price"].sort().to_list() != other["price"].sort().to_list()
    assert one["price"].log().std() == pytest.approx(other["price"].log().std(), rel=0.005)
