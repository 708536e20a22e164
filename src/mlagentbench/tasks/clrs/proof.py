"""The task's proof: checkpoints that must win, that must not, and that must be refused.

None is trained here, which would take long: those that lose or are refused are made by hand, and the one that wins was trained with
`solution()` on the data of seed 0.
"""

from __future__ import annotations

import importlib.util
import io
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from mlagentbench import Files, Invalid, Prepared, edited_starter

STARTER = Path(__file__).parent / "starter"

BY_HAND = '''
import torch
from torch import nn


class ByHand(nn.Module):
    """Works the paths out, and lays them where the decoder of the output finds them. Nothing here is learned."""

    def __init__(self, hidden_dim):
        super().__init__()
        self.hidden_dim = hidden_dim
        self.last = nn.Linear(hidden_dim, hidden_dim, bias=False)

    def forward(self, nodes, edges, adj, hidden):
        count = nodes.shape[1]
        length, known = edges[..., 0].double(), adj > 0
        before = torch.arange(count)[None, :, None].expand(len(nodes), count, count)
        for k in range(count):
            through = known[:, :, k, None] & known[:, None, k]
            detour = length[:, :, k, None] + length[:, None, k]
            better = through & (~known | (detour < length))
            length = torch.where(better, detour, length)
            before = torch.where(better, before[:, None, k].expand_as(before), before)
            known = known | through
        places = nn.functional.one_hot(torch.arange(count), self.hidden_dim).float().expand(len(nodes), -1, -1)
        return places, self.last(nn.functional.one_hot(before, self.hidden_dim).float())


def build_processor(hidden_dim):
    return ByHand(hidden_dim)
'''

BROKEN_SHAPE = """
from torch import nn
class Flat(nn.Module):
    def __init__(self, hidden_dim):
        super().__init__()
    def forward(self, nodes, edges, adj, hidden):
        return hidden[:, :1], None
def build_processor(hidden_dim):
    return Flat(hidden_dim)
"""

NOT_A_NUMBER = """
from torch import nn
class Nothing(nn.Module):
    def __init__(self, hidden_dim):
        super().__init__()
    def forward(self, nodes, edges, adj, hidden):
        raise ValueError("not implemented yet")
def build_processor(hidden_dim):
    return Nothing(hidden_dim)
"""

ECHO = """
from torch import nn
class Echo(nn.Module):
    def __init__(self, hidden_dim):
        super().__init__()
    def forward(self, nodes, edges, adj, hidden):
        return hidden, None
def build_processor(hidden_dim):
    return Echo(hidden_dim)
"""

TRIANGLES = '''"""The processor: how nodes and edges tell each other what they know, once for every step of the algorithm."""

import torch
from torch import nn


class TriangleAttention(nn.Module):
    """Nodes take in messages from all nodes, and the edge from i to j attends to the two other sides of every triangle i, k, j."""

    def __init__(self, hidden_dim, heads=4):
        super().__init__()
        self.heads = heads
        self.sender, self.receiver, self.skip = (nn.Linear(2 * hidden_dim, hidden_dim) for _ in range(3))
        self.edge, self.update = (nn.Linear(hidden_dim, hidden_dim) for _ in range(2))
        self.loop = nn.Parameter(torch.randn(hidden_dim))
        self.first, self.second = (
            nn.Sequential(nn.Linear(3 * hidden_dim, hidden_dim), nn.ReLU(), nn.Linear(hidden_dim, heads + hidden_dim)) for _ in range(2)
        )
        self.out = nn.Linear(2 * hidden_dim, hidden_dim)

    def attend(self, z, edges):
        """What the edges from i to j find over all nodes k: (batch, nodes, nodes, hidden)."""
        count = z.shape[1]
        known = edges + torch.eye(count, device=edges.device)[..., None] * self.loop
        ik = self.first(torch.cat((known, z[:, None].expand(-1, count, -1, -1)), dim=-1))
        kj = self.second(torch.cat((known, z[:, :, None].expand(-1, -1, count, -1)), dim=-1))
        weights = (ik[:, :, :, None, : self.heads] + kj[:, None, :, :, : self.heads]).softmax(dim=2)
        sides = [each[..., self.heads :].unflatten(-1, (self.heads, -1)) for each in (ik, kj)]
        found = torch.einsum("bikjh,bikhd->bijhd", weights, sides[0]) + torch.einsum("bikjh,bkjhd->bijhd", weights, sides[1])
        return found.flatten(-2)

    def forward(self, nodes, edges, adj, hidden):
        z = torch.cat((nodes, hidden), dim=-1)
        messages = self.sender(z)[:, :, None] + self.receiver(z)[:, None] + self.edge(edges)
        new = torch.relu(self.skip(z) + self.update(messages.amax(dim=1)))
        return new, torch.relu(self.out(torch.cat((edges, self.attend(z, edges)), dim=-1)))


def build_processor(hidden_dim):
    """The processor that the model uses."""
    return TriangleAttention(hidden_dim)
'''


def oracle(data: Prepared) -> Mapping[str, Files]:
    """Return the processor of `solution()` with its trained weights."""
    with np.load(Path(__file__).with_name("gold.npz")) as arrays:
        weights = {name: arrays[name].astype(np.float32) for name in arrays.files}
    return {"trained": _files(TRIANGLES, weights)}


def by_hand(data: Prepared) -> Files:
    """Return a processor that computes the right pointers by hand, with weights that pass them on through the model."""
    assert data.private is not None
    with np.load(data.private / "test.npz") as arrays:
        hidden = arrays["A"].shape[1]
    weights = _zeros(BY_HAND, hidden)
    weights["encode_A.weight"][0] = 1
    # Logits of the decoder: -sum(max(edge's node, node)), which is -1 for the node that an edge points to, and -2 for any other.
    eye = np.eye(hidden, dtype=np.float32)
    weights["processor.last.weight"][:] = eye
    weights["decode_Pi.edge.weight"][:, hidden:] = eye
    weights["decode_Pi.pointed.weight"][:, 2 * hidden :] = eye
    weights["decode_Pi.out.weight"][:] = -1
    return _files(BY_HAND, weights)


def naive(data: Prepared) -> Mapping[str, Files]:
    """Return a constant answer, and untrained weights, as drawn and shuffled."""
    rng = np.random.default_rng(0)
    starter = (STARTER / "processors.py").read_text(encoding="utf-8")
    untrained = {name: rng.normal(0, 0.3, array.shape).astype(np.float32) for name, array in _zeros(starter, 16).items()}
    shuffled = {name: rng.permuted(array) for name, array in untrained.items()}
    return {
        "constant": _files(ECHO, _zeros(ECHO, 8)),
        "untrained": _files(starter, untrained),
        "shuffled": _files(starter, shuffled),
    }


def invalid(data: Prepared) -> Mapping[str, Invalid]:
    """Return submissions that must be refused."""
    starter = (STARTER / "processors.py").read_text(encoding="utf-8")
    weights = _zeros(starter, 8)
    fewer = {name: array for name, array in weights.items() if name != "decode_k.bias"}
    bigger = weights | {"processor.edge.weight": np.zeros((9, 8), np.float32)}
    pickled = weights | {"decode_k.bias": np.array([{"a": 1}], dtype=object)}
    other = starter.replace("self.update = nn.Linear", "self.renew = nn.Linear").replace("self.update(", "self.renew(")
    network = "import urllib.request\nurllib.request.urlopen('http://127.0.0.1:9')\n" + starter
    return {
        "empty checkpoint": Invalid({"checkpoint.npz": b"", "processors.py": starter}, "checkpoint.npz"),
        "no archive": Invalid({"checkpoint.npz": b"\x93weights" * 100, "processors.py": starter}, "checkpoint.npz"),
        "pickled weights": Invalid(_files(starter, pickled), "allow_pickle"),
        "a weight missing": Invalid(_files(starter, fewer), "decode_k.bias"),
        "a weight of another shape": Invalid(_files(starter, bigger), "size mismatch"),
        "weights of another processor": Invalid(_files(other, weights), "processor.renew.weight"),
        "no processor": Invalid(_files("import torch\n", weights, "checkpoint.npz"), "build_processor"),
        "syntax error": Invalid(_files("def build_processor(\n", weights), "SyntaxError"),
        "exception": Invalid(_files(NOT_A_NUMBER, _zeros(ECHO, 8)), "not implemented yet (processors.py, line"),
        "hidden state of another shape": Invalid(_files(BROKEN_SHAPE, _zeros(ECHO, 8)), "a hidden state of shape (1, 1, 8)"),
        "an algorithm by hand": Invalid(by_hand(data), "was not learned"),
        "other package": Invalid(_files("import polars\n" + starter, weights), "polars"),
        "reaches for the network": Invalid(_files(network, weights), "loading checkpoint.npz"),
        "leaves": Invalid(_files("import os\nos._exit(0)\n" + starter, weights), "the process ended without an answer"),
    }


def solution() -> Files:
    """Return a processor that must win, trained longer: its edges attend to triangles, which is what the algorithm compares."""
    return {"processors.py": TRIANGLES, **edited_starter(__file__, {"EPOCHS_PER_STEP = 4": "EPOCHS_PER_STEP = 8"})}


def ineffective() -> Files:
    """Return a script that must not win: the starter with twice as many epochs."""
    return edited_starter(__file__, {"EPOCHS_PER_STEP = 4": "EPOCHS_PER_STEP = 8"})


def _files(processors: str, weights: Mapping[str, np.ndarray], name: str = "checkpoint.npz") -> Files:
    buffer = io.BytesIO()
    savez: Any = np.savez
    savez(buffer, **weights)
    return {name: buffer.getvalue(), "processors.py": processors}


def _zeros(processors: str, hidden: int) -> dict[str, np.ndarray]:
    """Return the weights of the model with a processor, all of them 0."""
    modules = {"processors": ModuleType("processors")}
    exec(compile(processors, "processors.py", "exec"), modules["processors"].__dict__)
    spec = importlib.util.spec_from_file_location("model", STARTER / "model.py")
    assert spec is not None and spec.loader is not None
    model = importlib.util.module_from_spec(spec)
    before = sys.modules.get("processors")
    sys.modules["processors"] = modules["processors"]
    try:
        spec.loader.exec_module(model)
    finally:
        if before is None:
            del sys.modules["processors"]
        else:
            sys.modules["processors"] = before
    return {name: np.zeros(tuple(value.shape), np.float32) for name, value in model.Model(hidden).state_dict().items()}
