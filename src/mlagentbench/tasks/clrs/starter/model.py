"""The baseline model: encode what is known, let the processor work on it, decode the next hints; and so on, step by step.

The Floyd-Warshall algorithm's inputs, hints and output, as the CLRS benchmark specifies them:

    inputs   pos (nodes, scalar)   A (edges, scalar)   adj (edges, mask)
    hints    k (nodes, one-hot)    D (edges, scalar)   msk (edges, mask)   Pi_h (edges, pointer to a node)
    output   Pi (edges, pointer to a node)

Pointers are given as probabilities over nodes and predicted as logits, one-hot and mask likewise.
"""

from typing import NamedTuple

import numpy as np
import torch
from processors import build_processor
from torch import nn
from torch.nn.functional import linear, one_hot


class Hints(NamedTuple):
    """What the algorithm holds before one of its steps, or predictions of it."""

    Pi_h: torch.Tensor  # (batch, nodes, nodes, nodes): over the last
    D: torch.Tensor  # (batch, nodes, nodes)
    msk: torch.Tensor  # (batch, nodes, nodes)
    k: torch.Tensor  # (batch, nodes)

    def as_probabilities(self):
        """Predictions in the form in which the next step takes them."""
        return Hints(self.Pi_h.softmax(-1), self.D, self.msk.sigmoid(), self.k.softmax(-1))


def first_hints(A, adj):
    """What the algorithm starts with: the edges as paths, and node 0 to lead paths through."""
    batch, nodes, _ = A.shape
    eye = torch.eye(nodes, dtype=A.dtype, device=A.device)
    return Hints(eye[None, :, None].expand(batch, nodes, nodes, nodes), A, adj, eye[0].expand(batch, nodes))


class EdgePointer(nn.Module):
    """Decodes, for every edge, logits over the nodes."""

    def __init__(self, node_dim, edge_dim, hidden_dim):
        super().__init__()
        self.source = nn.Linear(node_dim, hidden_dim)
        self.target = nn.Linear(node_dim, hidden_dim)
        self.edge = nn.Linear(edge_dim, hidden_dim)
        self.pointed = nn.Linear(node_dim, hidden_dim)
        self.out = nn.Linear(hidden_dim, 1)

    def forward(self, h, e):
        pairs = self.source(h)[:, :, None] + self.target(h)[:, None] + self.edge(e)
        pointed = self.pointed(h)[:, None, None]
        # out(max(pairs, pointed)), with max(a, b) = relu(a - b) + b and the second part taken out of the large sum.
        return (self.out(torch.relu(pairs[:, :, :, None] - pointed)) + linear(pointed, self.out.weight)).squeeze(-1)


class EdgeScalar(nn.Module):
    """Decodes a number for every edge."""

    def __init__(self, node_dim, edge_dim):
        super().__init__()
        self.source = nn.Linear(node_dim, 1)
        self.target = nn.Linear(node_dim, 1)
        self.edge = nn.Linear(edge_dim, 1)

    def forward(self, h, e):
        return (self.source(h)[:, :, None] + self.target(h)[:, None] + self.edge(e)).squeeze(-1)


class Model(nn.Module):
    """Encode, process, decode."""

    def __init__(self, hidden_dim):
        super().__init__()
        self.hidden_dim = hidden_dim
        self.encode_pos = nn.Linear(1, hidden_dim)
        self.encode_A = nn.Linear(1, hidden_dim)
        self.encode_adj = nn.Linear(1, hidden_dim)
        self.encode_k = nn.Linear(1, hidden_dim)
        self.encode_D = nn.Linear(1, hidden_dim)
        self.encode_msk = nn.Linear(1, hidden_dim)
        self.encode_Pi_source = nn.Linear(1, hidden_dim)
        self.encode_Pi_target = nn.Linear(1, hidden_dim)
        nn.init.normal_(self.encode_D.weight, std=hidden_dim**-0.5)

        self.processor = build_processor(hidden_dim)

        node_dim, edge_dim = 3 * hidden_dim, 2 * hidden_dim
        self.decode_Pi = EdgePointer(node_dim, edge_dim, hidden_dim)
        self.decode_Pi_h = EdgePointer(node_dim, edge_dim, hidden_dim)
        self.decode_D = EdgeScalar(node_dim, edge_dim)
        self.decode_msk = EdgeScalar(node_dim, edge_dim)
        self.decode_k = nn.Linear(node_dim, 1)

    def encode(self, pos, A, adj, hints):
        """The features of nodes and edges."""
        nodes = self.encode_pos(pos[..., None]) + self.encode_k(hints.k[..., None])
        edges = self.encode_A(A[..., None]) + self.encode_adj(adj[..., None])
        edges = edges + self.encode_D(hints.D[..., None]) + self.encode_msk(hints.msk[..., None])
        # A pointer belongs to three nodes: to two of them it is told in the mean over the third.
        edges = edges + self.encode_Pi_source(hints.Pi_h.mean(dim=1)[..., None]) + self.encode_Pi_target(hints.Pi_h.mean(dim=2)[..., None])
        return nodes, edges

    def step(self, pos, A, adj, hints, hidden):
        """One step of the algorithm: the new hidden state, and the features from which the decoders read what comes next."""
        nodes, edges = self.encode(pos, A, adj, hints)
        new_hidden, messages = self.processor(nodes, edges, adj, hidden)
        h = torch.cat((nodes, hidden, new_hidden), dim=-1)
        e = torch.cat((edges, torch.zeros_like(edges) if messages is None else messages), dim=-1)
        return new_hidden, h, e

    def forward(self, pos, A, adj, hints=None):
        """Run the algorithm.

        Args:
            pos, A, adj: the inputs, of shapes (batch, nodes), (batch, nodes, nodes) and (batch, nodes, nodes).
            hints: the true ones to go on from at every step but the last; None to go on from those predicted.

        Returns:
            Logits of the output, (batch, nodes, nodes, nodes), and the hints predicted for the second step and those after it.
        """
        batch, count, _ = A.shape
        hidden = A.new_zeros(batch, count, self.hidden_dim)
        current = first_hints(A, adj)
        predicted = []
        for step in range(count - 1):
            if step:
                current = hints[step] if hints else predicted[-1].as_probabilities()
            hidden, h, e = self.step(pos, A, adj, current, hidden)
            predicted.append(Hints(self.decode_Pi_h(h, e), self.decode_D(h, e), self.decode_msk(h, e), self.decode_k(h).squeeze(-1)))
        return self.decode_Pi(h, e), predicted

    @torch.no_grad()
    def predict(self, A):
        """The node before j on the shortest path from i, for graphs of weights A: (batch, nodes, nodes), whole numbers."""
        count = A.shape[1]
        pos = (torch.arange(count, dtype=A.dtype, device=A.device) / count).expand(len(A), count)
        adj = ((A + torch.eye(count, dtype=A.dtype, device=A.device)) != 0).to(A.dtype)
        # One graph at a time: the pointers of many large ones would not fit in memory.
        return torch.cat([self(pos[i : i + 1], A[i : i + 1], adj[i : i + 1])[0].argmax(-1) for i in range(len(A))])


def save(model, path):
    """Write a checkpoint: an array for every parameter and buffer."""
    np.savez(path, **{name: value.cpu().numpy() for name, value in model.state_dict().items()})


def load(path):
    """Read a checkpoint. The size of the model is that of its first encoder."""
    with np.load(path, allow_pickle=False) as arrays:
        state = {name: torch.from_numpy(arrays[name]) for name in arrays.files}
    model = Model(len(state["encode_pos.bias"]))
    model.load_state_dict(state)
    return model.eval()


def hints_of(data, index, device):
    """The hints of some runs of a data set, a `Hints` for every step, as the model takes them."""
    count = data["A"].shape[1]
    pointers = torch.as_tensor(data["Pi_h"][:, index], dtype=torch.long, device=device)
    D, msk, k = (torch.as_tensor(data[name][:, index], dtype=torch.float32, device=device) for name in ("D", "msk", "k"))
    return [Hints(one_hot(pointers[step], count).float(), D[step], msk[step], k[step]) for step in range(count)]
