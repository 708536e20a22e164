"""The climbs: each change is needed by the next, and the grader reads from the score how many are in place."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from mlagentbench.data.prepare import Prepared
from mlagentbench.task.catalogue import find_task
from mlagentbench.task.seeds import SEED
from mlagentbench.tasks.climb.changes import CHANGES, changed
from tests.tasks.by_hand import mini, score

pytest.importorskip("sklearn")

NAMES = tuple(CHANGES)
IN_ORDER = [NAMES[:count] for count in range(len(NAMES) + 1)]
ALL_BUT_ONE = [tuple(name for name in NAMES if name != left_out) for left_out in NAMES[:-1]]


def submitted(data: Prepared, names: tuple[str, ...], folder: Path) -> bytes:
    """What the starter with these changes leaves."""
    folder.mkdir()
    (folder / "train.py").write_text(str(changed(names)["train.py"]))
    (folder / "data").symlink_to(data.public / "data")
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "train.py"], cwd=folder, env=environment, capture_output=True, timeout=600, check=True)
    return (folder / "submission.csv").read_bytes()


@pytest.mark.slow
def test_the_score_climbs_only_as_far_as_the_changes_are_made_in_their_order(tmp_path: Path) -> None:
    task = find_task("climb-5")
    data = mini(task, tmp_path / "data", SEED)
    for names in (*IN_ORDER, *ALL_BUT_ONE):
        in_order = next(place for place, name in enumerate((*NAMES, None)) if name not in names)
        text = submitted(data, names, tmp_path / "-".join(("made", *names)))
        found = score(task, data, {"submission.csv": text}, tmp_path / "submission")
        assert found.rung == (in_order if in_order > 2 else 0), (names, found.value)


@pytest.mark.parametrize("name", NAMES)
def test_a_change_alone_gains_little(tmp_path: Path, name: str) -> None:
    task = find_task("climb-5")
    data = mini(task, tmp_path / "data", 3)
    alone, starter = (
        score(task, data, {"submission.csv": submitted(data, names, tmp_path / f"made{len(names)}")}, tmp_path / "submission").value
        for names in ((name,), ())
    )
    assert 1 - alone / starter < 0.1


@pytest.mark.parametrize(
    ("rate", "of_five", "of_four"), [(0.9, 0, 0), (0.86, 0, 0), (0.8, 0, 1), (0.4, 3, 2), (0.12, 4, 3), (0.06, 5, 4), (0, 5, 4)]
)
def test_the_rung_follows_from_the_error_rate(tmp_path: Path, rate: float, of_five: int, of_four: int) -> None:
    for rungs, expected in ((5, of_five), (4, of_four)):
        task = find_task(f"climb-{rungs}")
        data = mini(task, tmp_path / str(rungs))
        answers = pl.read_csv(data.private / "answers.csv")
        wrong = pl.Series(np.arange(len(answers)) < rate * len(answers))
        table = answers.with_columns(pl.when(wrong).then((pl.col("digit") + 1) % 10).otherwise("digit").alias("digit"))
        found = score(task, data, table, tmp_path / "submission")
        assert (found.rung, found.note) == (expected, f"rung {expected} of {rungs}")


def test_the_labels_have_an_order_of_their_own_where_the_loader_is_at_fault(tmp_path: Path) -> None:
    tables = []
    for rungs in (5, 4):
        data = mini(find_task(f"climb-{rungs}"), tmp_path / str(rungs))
        train, labels = (pl.read_csv(data.public / "data" / f"{name}.csv") for name in ("train", "labels"))
        assert (train["id"] == labels["id"]).all() is (rungs == 4)
        tables.append((train, labels.sort("id")))
    assert all(one.equals(other) for one, other in zip(*tables, strict=True))
