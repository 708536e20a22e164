"""Make a synthetic citation graph for the mini variant.

A paper's own features say little about its class, and its neighbours say more.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

CLASSES = 40
FEATURES = 128
YEARS = np.arange(2008, 2021)
SIGNAL = 0.13
"""Standard deviation of the classes' centres in each feature, relative to that of the noise around them."""
SCALE = 0.15
"""Standard deviation of the noise in each feature, about that of the real features."""
SAME_CLASS = 0.5
"""Share of citations that are drawn from the citing paper's class; the others are drawn from all earlier papers."""
CITATIONS = (2, 10)
"""Bounds of the number of papers that a paper cites: from the first, below the second."""


def make_graph(nodes: int, rng: np.random.Generator) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Make a graph: features, edges, years and labels, as in `prepare.Graph`.

    Classes are not equally frequent, later years have more papers, and no paper cites a later one. Nodes are numbered at random, so that
    their numbers tell nothing.
    """
    frequency = 1 / (np.arange(CLASSES) + 3.0)
    labels = rng.choice(rng.permutation(CLASSES), nodes, p=frequency / frequency.sum())
    weights = np.linspace(1, 4, len(YEARS))
    years = np.sort(rng.choice(YEARS, nodes, p=weights / weights.sum()))
    centres = rng.standard_normal((CLASSES, FEATURES))
    features = SCALE * (SIGNAL * centres[labels] + rng.standard_normal((nodes, FEATURES)))
    edges = _cite(labels, rng)

    number = rng.permutation(nodes)
    order = np.argsort(number)
    edges = number[edges]
    edges = edges[np.lexsort((edges[:, 1], edges[:, 0]))]
    return features[order].astype(np.float32), edges.astype(np.int64), years[order].astype(np.int64), labels[order].astype(np.int64)


def _cite(labels: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw pairs of a paper and an earlier one that it cites; papers are in the order of time."""
    edges: list[tuple[int, int]] = []
    earlier: list[list[int]] = [[] for _ in range(CLASSES)]
    for paper, label in enumerate(labels.tolist()):
        own = earlier[label]
        cited = set()
        for _ in range(int(rng.integers(*CITATIONS)) if paper else 0):
            inside = own and rng.random() < SAME_CLASS
            cited.add(own[int(rng.integers(len(own)))] if inside else int(rng.integers(paper)))
        edges += [(paper, other) for other in sorted(cited)]
        own.append(paper)
    return np.array(edges, dtype=np.int64)
