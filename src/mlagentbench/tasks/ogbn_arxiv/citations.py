"""A made-up citation graph for the mini variant: a paper's own features say little of its class, its neighbours say more."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

CLASSES = 40
FEATURES = 128
YEARS = np.arange(2008, 2021)
SIGNAL = 0.13
"""How far the classes' centres lie apart, in standard deviations of the noise around them."""
SCALE = 0.15
"""The standard deviation of a feature, about that of the real ones."""
SAME_CLASS = 0.5
"""The part of citations that are sought in the citing paper's own class; the rest go anywhere."""
CITATIONS = (2, 10)
"""From how many, and below how many, papers a paper cites."""


def make_graph(nodes: int, rng: np.random.Generator) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Features, edges, years and labels, as `prepare.Graph` has them.

    Classes are unequally frequent, later years hold more papers, and papers cite only such as are not later than they. The nodes' numbers
    are drawn at random, so that they tell nothing.
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
    """Pairs of a paper and an earlier one; papers are in the order of time."""
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
