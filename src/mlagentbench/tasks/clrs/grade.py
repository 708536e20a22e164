"""The share of pointers that the agent's model gets right on graphs it has never seen, as the CLRS benchmark scores `floyd_warshall`.

The model's class is the starter's, whatever the submission holds under that name: the agent gives the weights and the processor in it, so
that another message function takes effect, and another model does not. It runs in a sandbox that has no answers and gives back numbers.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mlagentbench.errors import InvalidSubmission
from mlagentbench.grading.context import GradingContext
from mlagentbench.grading.frames import Array
from mlagentbench.grading.packages import importable
from mlagentbench.grading.reader import SubmissionFiles
from mlagentbench.grading.talk import Talk
from mlagentbench.records import Score
from mlagentbench.sandbox.base import BoxLimits
from mlagentbench.tasks.clrs.serve import LOAD, PREDICT

SERVE = Path(__file__).with_name("serve.py")
OURS = "model.py"
"""The file that is the starter's in every submission."""
MAX_CHECKPOINT = 256 * 2**20
LOAD_SECONDS, GRAPH_SECONDS = 120.0, 300.0
LIMITS = BoxLimits(seconds=1700, memory_mb=8192, processes=64, file_mb=16, workspace_mb=1024)


def grade(context: GradingContext) -> Score:
    """Pointer accuracy: over all graphs and all pairs of nodes, each node to itself included.

    Raises:
        InvalidSubmission: the checkpoint does not fit the model with the agent's processor, or what comes back are no pointers.
    """
    assert context.private is not None, "clrs has data"
    with np.load(context.private / "test.npz", allow_pickle=False) as arrays:
        graphs, pointers = arrays["A"], arrays["Pi"].astype(np.int64)
    code = _with_our_model(context)
    with context.sandbox(code, SERVE, packages=importable("torch", "numpy"), limits=LIMITS, max_code_bytes=MAX_CHECKPOINT) as process:
        talk = Talk(process, InvalidSubmission)
        loaded = talk.ask(LOAD, doing="loading checkpoint.npz with processors.py", seconds=LOAD_SECONDS, count=1, max_values=1)
        right = [_right(_predicted(talk, graph), truth) for graph, truth in zip(graphs, pointers, strict=True)]
    nodes = graphs.shape[1]
    return Score(
        value=float(np.mean(right)),
        details={
            "graphs": len(graphs),
            "nodes": nodes,
            "accuracy_by_graph": [round(each, 4) for each in right],
            "accuracy_of_edges_alone": float((pointers == np.arange(nodes)[:, None]).mean()),
            "parameters": float(loaded.arrays[0].sum()),
            "isolation": context.isolation.isolation,
        },
    )


def _with_our_model(context: GradingContext) -> SubmissionFiles:
    folder = context.scratch / "submission"
    context.submission.copy_to(folder, MAX_CHECKPOINT)
    if (folder / OURS).is_dir():
        raise InvalidSubmission(f"{OURS} is a folder; the model's class is read from the task's own file of that name")
    (folder / OURS).write_bytes(context.starter.read_bytes(OURS))
    return SubmissionFiles(folder)


def _predicted(talk: Talk, graph: Array) -> Array:
    nodes = len(graph)
    answer = talk.ask(
        PREDICT,
        (graph[None],),
        doing=f"predicting the paths of a graph of {nodes} nodes",
        seconds=GRAPH_SECONDS,
        count=1,
        max_values=16 * graph.size,
    )
    found = answer.arrays[0]
    if found.shape != (1, nodes, nodes):
        raise InvalidSubmission(f"the predictions for a graph of {nodes} nodes have shape {found.shape} instead of {(1, nodes, nodes)}")
    if not np.isin(found, np.arange(nodes)).all():
        raise InvalidSubmission(f"the predictions for a graph of {nodes} nodes are no whole numbers from 0 to {nodes - 1}")
    return np.asarray(found[0])


def _right(found: Array, truth: NDArray[np.int64]) -> float:
    return float((found == truth).mean())
