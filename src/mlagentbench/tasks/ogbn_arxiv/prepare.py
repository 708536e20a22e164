"""Prepare a graph of papers that cite one another, of which the latest are to be classified.

Source: ogbn-arxiv of the Open Graph Benchmark (Hu et al., NeurIPS 2020, arXiv 2005.00687): 169,343 papers, 1,166,243 citations, 40 classes,
split by year into 90,941, 29,799 and 48,603. Its text files are read here directly, since its own reader unpickles files that it wrote.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mlagentbench.data.fetch import download, unpack
from mlagentbench.tasks.ogbn_arxiv.citations import make_graph

URL = "https://snap.stanford.edu/ogb/data/nodeproppred/arxiv.zip"
MINI_NODES = 6000
PARTS = ("train", "valid", "test")

Array = NDArray[Any]


class Graph(NamedTuple):
    """A citation graph; all arrays of nodes are in the same order."""

    features: NDArray[np.float32]
    """Shape (nodes, 128)."""
    edges: NDArray[np.int64]
    """Shape (edges, 2): a citing node, and the node that it cites."""
    years: NDArray[np.int64]
    labels: NDArray[np.int64]


def full(public: Path, private: Path) -> None:
    """Write the real graph, with the benchmark's split."""
    with tempfile.TemporaryDirectory() as folder:
        unpack(download(URL), Path(folder), keep=["arxiv/raw/*.csv.gz", "arxiv/split/time/*.csv.gz"])
        source = Path(folder) / "arxiv"
        graph = Graph(
            features=_read(source / "raw" / "node-feat.csv.gz").astype(np.float32),
            edges=_read(source / "raw" / "edge.csv.gz").astype(np.int64),
            years=_read(source / "raw" / "node_year.csv.gz").astype(np.int64)[:, 0],
            labels=_read(source / "raw" / "node-label.csv.gz").astype(np.int64)[:, 0],
        )
        parts = [_read(source / "split" / "time" / f"{part}.csv.gz").astype(np.int64)[:, 0] for part in PARTS]
    _write(public, private, graph, parts)


def mini(public: Path, private: Path, seed: int) -> None:
    """Write a synthetic graph, split by year as the real one."""
    graph = Graph(*make_graph(MINI_NODES, np.random.default_rng(seed)))
    years = graph.years
    _write(public, private, graph, [np.flatnonzero(part) for part in (years <= 2017, years == 2018, years >= 2019)])


def _read(path: Path) -> Array:
    """Read a CSV file without a header."""
    return pl.read_csv(path, has_header=False).to_numpy()


def _write(public: Path, private: Path, graph: Graph, parts: list[NDArray[np.int64]]) -> None:
    folder = public / "graph"
    folder.mkdir()
    arrays = {"features": graph.features, "edges": graph.edges, "years": graph.years}
    for part, nodes in zip(PARTS, parts, strict=True):
        arrays[f"{part}_nodes"] = nodes
        if part != "test":
            arrays[f"{part}_labels"] = graph.labels[nodes]
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", np.ascontiguousarray(array), allow_pickle=False)
    test = parts[-1]
    pl.DataFrame({"node": test, "label": graph.labels[test]}).write_csv(private / "answers.csv")
