"""The citation graph: both forms of a submission, the real archive read without its own reader, and what made-up papers cite."""

from __future__ import annotations

import gzip
import zipfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from mlagentbench.data.prepare import Prepared
from mlagentbench.errors import InvalidSubmission
from mlagentbench.task.catalogue import Task
from mlagentbench.tasks.ogbn_arxiv import prepare
from tests.mirror import Mirror
from tests.tasks.by_hand import folders, score

ARRAYS = {
    "features": np.float32,
    "edges": np.int64,
    "years": np.int64,
    "train_nodes": np.int64,
    "valid_nodes": np.int64,
    "test_nodes": np.int64,
    "train_labels": np.int64,
    "valid_labels": np.int64,
}


def arrays(data: Prepared) -> dict[str, np.ndarray]:
    found = {path.stem: np.load(path, allow_pickle=False) for path in (data.public / "graph").iterdir()}
    assert {name: array.dtype.type for name, array in found.items()} == ARRAYS
    return found


def test_both_forms_of_a_submission_score_the_fraction_of_nodes_that_are_right(
    task: Task, data: Prepared, answers: pl.DataFrame, tmp_path: Path
) -> None:
    guesses = np.random.default_rng(3).integers(0, 5, len(answers))
    guesses[::3] = answers["label"].to_numpy()[::3]
    expected = sum(guess == label for guess, label in zip(guesses.tolist(), answers["label"].to_list(), strict=True)) / len(answers)
    by_node = answers.select("node", pred=pl.Series(guesses))
    assert score(task, data, by_node.sample(fraction=1, shuffle=True, seed=1), tmp_path / "a").value == expected
    assert score(task, data, by_node.select("pred"), tmp_path / "b").value == expected
    with_zero = {"submission.csv": by_node.select(pl.col("pred").cast(pl.Float64).alias("0")).write_csv()}
    assert score(task, data, with_zero, tmp_path / "c").value == expected
    windows = {"submission.csv": "\ufeff" + by_node.select("pred").write_csv().replace("\n", "\r\n")}
    assert score(task, data, windows, tmp_path / "d").value == expected
    metrics = pytest.importorskip("sklearn.metrics")
    assert metrics.accuracy_score(answers["label"], guesses) == pytest.approx(expected)


def test_one_column_counts_by_its_place_and_two_by_the_node(task: Task, data: Prepared, answers: pl.DataFrame, tmp_path: Path) -> None:
    oracle = answers.rename({"label": "pred"})
    assert score(task, data, oracle.reverse(), tmp_path / "a").value == 1
    assert score(task, data, oracle.reverse().select("pred"), tmp_path / "b").value < 0.2


@pytest.mark.parametrize("change", [-1, 1])
def test_one_column_of_another_length_is_refused(task: Task, data: Prepared, answers: pl.DataFrame, tmp_path: Path, change: int) -> None:
    rows = answers["label"].to_list()[: len(answers) + min(change, 0)] + [0] * max(change, 0)
    with pytest.raises(InvalidSubmission, match=f"{len(answers) + change:,} rows; write exactly {len(answers):,}"):
        score(task, data, pl.DataFrame({"pred": rows}), tmp_path)


def open_graph_benchmark(path: Path) -> dict[str, np.ndarray]:
    """Write an archive as the Open Graph Benchmark publishes it, with few papers, and give what it holds."""
    rng = np.random.default_rng(5)
    years = rng.integers(2010, 2021, 40)
    held = {
        "raw/node-feat.csv.gz": rng.standard_normal((40, 128)).astype(np.float32).round(6),
        "raw/edge.csv.gz": rng.integers(0, 40, (90, 2)),
        "raw/node_year.csv.gz": years,
        "raw/node-label.csv.gz": rng.integers(0, 40, 40),
        "raw/num-node-list.csv.gz": np.array([40]),
        "raw/num-edge-list.csv.gz": np.array([90]),
        "split/time/train.csv.gz": np.flatnonzero(years <= 2017),
        "split/time/valid.csv.gz": np.flatnonzero(years == 2018),
        "split/time/test.csv.gz": np.flatnonzero(years >= 2019),
    }
    held["raw/node-feat.csv.gz"][0, :2] = 1e-05, 3
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("arxiv/RELEASE_v1.txt", "")
        archive.writestr("arxiv/mapping/labelidx2arxivcategeory.csv.gz", gzip.compress(b"label idx,arxiv category\n0,arxiv cs na\n"))
        for name, array in held.items():
            lines = (",".join(map(str, np.atleast_1d(row).tolist())) for row in array)
            archive.writestr(f"arxiv/{name}", gzip.compress(("\n".join(lines) + "\n").encode()))
    return held


def test_the_real_archive_becomes_the_same_arrays_with_the_tests_labels_withheld(mirror: Mirror, tmp_path: Path) -> None:
    place = mirror.root / "snap.stanford.edu/ogb/data/nodeproppred"
    place.mkdir(parents=True)
    held = open_graph_benchmark(place / "arxiv.zip")
    made = folders(tmp_path / "made")
    prepare.full(made.public, made.private)
    found = arrays(made)
    labels, test = held["raw/node-label.csv.gz"], held["split/time/test.csv.gz"]
    assert np.array_equal(found["features"], held["raw/node-feat.csv.gz"])
    assert np.array_equal(found["edges"], held["raw/edge.csv.gz"])
    assert np.array_equal(found["years"], held["raw/node_year.csv.gz"])
    for part in ("train", "valid"):
        assert np.array_equal(found[f"{part}_nodes"], held[f"split/time/{part}.csv.gz"])
        assert np.array_equal(found[f"{part}_labels"], labels[found[f"{part}_nodes"]])
    assert np.array_equal(found["test_nodes"], test)
    answers = pl.read_csv(made.private / "answers.csv")
    assert answers["node"].to_list() == test.tolist() and answers["label"].to_list() == labels[test].tolist()


def test_made_up_papers_are_split_by_year_and_cite_none_that_is_later(data: Prepared, answers: pl.DataFrame) -> None:
    found = arrays(data)
    years, edges = found["years"], found["edges"]
    parts = [found[f"{part}_nodes"] for part in ("train", "valid", "test")]
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(years)))
    assert years[parts[0]].max() == 2017 and set(years[parts[1]]) == {2018} and years[parts[2]].min() == 2019
    assert (years[edges[:, 0]] >= years[edges[:, 1]]).all() and (edges[:, 0] != edges[:, 1]).all()
    assert len(np.unique(edges, axis=0)) == len(edges)
    assert found["test_nodes"].tolist() == answers["node"].to_list()


def test_neighbours_tell_more_of_a_made_up_paper_than_its_own_features(data: Prepared, answers: pl.DataFrame) -> None:
    """The nearest centre of the features, and the most frequent class among the neighbours whose class is known."""
    found = arrays(data)
    x, train, labels = found["features"], found["train_nodes"], found["train_labels"]
    test, true = answers["node"].to_numpy(), answers["label"].to_numpy()
    centres = np.stack([x[train[labels == label]].mean(axis=0) if (labels == label).any() else x[0] * np.inf for label in range(40)])
    nearest = np.nan_to_num(((x[test][:, None] - centres) ** 2).sum(axis=2), nan=np.inf).argmin(axis=1)
    votes = np.zeros((len(x), 40))
    known = np.full(len(x), -1)
    known[train] = labels
    for one, other in np.concatenate([found["edges"], found["edges"][:, ::-1]]):
        if known[other] >= 0:
            votes[one, known[other]] += 1
    own, near = (nearest == true).mean(), (votes[test].argmax(axis=1) == true).mean()
    assert own < 0.45 and near > own + 0.1
