"""Sample runs of the Floyd-Warshall algorithm on random graphs, as the CLRS-30 benchmark does (arXiv 2205.15659, appendix A).

The same seed, number and size give the same graphs, hints and outputs as the benchmark's own sampler, bit for bit, without JAX or
TensorFlow; the tests hold checksums of its data. Its test set is seed 3, 32 graphs of 64 nodes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

EDGE_PROBABILITY = 0.5
"""Probability of each direction of an edge. An edge exists where both directions do: between a quarter of all pairs."""


class Runs(NamedTuple):
    """Runs on b graphs of n nodes; a run has n steps, and its hints show the algorithm's state before each."""

    pos: NDArray[np.float64]
    """Input: the nodes' positions, i / n. Shape (b, n)."""
    A: NDArray[np.float64]
    """Input: the edges' weights, symmetric, 0 for none. Shape (b, n, n)."""
    adj: NDArray[np.float64]
    """Input: 1 for an edge, and from every node to itself. Shape (b, n, n)."""
    Pi_h: NDArray[np.int64]
    """Hint: the node before j on the best path from i that is known. Shape (n, b, n, n), as all hints of edges."""
    D: NDArray[np.float64]
    """Hint: the length of that path."""
    msk: NDArray[np.float64]
    """Hint: 1 where a path is known."""
    k: NDArray[np.float64]
    """Hint: the node through which paths are tried next, one-hot. Shape (n, b, n)."""
    Pi: NDArray[np.int64]
    """Output: the node before j on the shortest path from i; i itself where there is none.

    Pi[i, i] is i but where an edge from i to itself is longer than the way to another node and back. Shape (b, n, n)."""


def sample(count: int, nodes: int, seed: int) -> Runs:
    """Sample runs on random graphs.

    Args:
        count: how many graphs.
        nodes: how many nodes each has.
        seed: below 2**32.
    """
    # The legacy generator gives the same numbers in every release of numpy; they are drawn in the benchmark's order.
    rng = np.random.RandomState(seed)
    return run(np.stack([_graph(rng, nodes) for _ in range(count)]))


def run(A: NDArray[np.float64]) -> Runs:
    """Run the algorithm on graphs given by their weights, of shape (b, n, n)."""
    count, nodes, _ = A.shape
    pos = np.broadcast_to(np.arange(nodes) / nodes, (count, nodes))
    adj = ((A + np.eye(nodes)) != 0).astype(np.float64)
    D, known = A.copy(), adj != 0
    Pi = np.tile(np.arange(nodes)[:, None], (count, 1, nodes))
    hints: list[tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]] = []
    for k in range(nodes):
        hints.append((Pi.copy(), D.copy(), known.astype(np.float64)))
        # A path through k is better where it is the first or a shorter one. None changes row or column k, so all can be replaced at once.
        through = known[:, :, k, None] & known[:, None, k, :]
        length = D[:, :, k, None] + D[:, None, k, :]
        better = through & (~known | (length < D))
        D = np.where(better, length, D)
        Pi = np.where(better, Pi[:, None, k, :], Pi)
        known = known | through
    Pi_h, distances, masks = (np.stack(column) for column in zip(*hints, strict=True))
    k_h = np.broadcast_to(np.eye(nodes)[:, None], (nodes, count, nodes))
    return Runs(pos.copy(), A, adj, Pi_h, distances, masks, k_h.copy(), Pi)


def _graph(rng: np.random.RandomState, nodes: int) -> NDArray[np.float64]:
    """Draw the weights of a random undirected graph: geometric means of two uniform numbers, slightly raised to stay above 0."""
    probability = rng.choice((EDGE_PROBABILITY,))
    edges = rng.binomial(1, probability, size=(nodes, nodes))
    weights = rng.uniform(size=(nodes, nodes))
    return np.asarray(edges * edges.T * np.sqrt(weights * weights.T + 1e-3), dtype=np.float64)
