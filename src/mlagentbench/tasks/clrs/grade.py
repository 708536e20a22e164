"""Score the share of pointers that the agent's model gets right on unseen graphs, as the CLRS benchmark scores `floyd_warshall`.

The model is the starter's, with the agent's weights, and runs in a sandbox without any of the agent's code. The agent's processor runs in
another: at each step it is sent the features of nodes and edges, and returns its hidden state and messages. So nothing that its code does
to its own process reaches the model or the answers.

The processor must have learned what it computes. An algorithm written by hand could work on the features as well; to detect it, some graphs
are predicted again with noise on the processor's weights. A learned processor gets little right with noise as large as its weights, and
nearly as much as before with noise of a fiftieth of them: the first excludes an algorithm that does not depend on its weights, the second
one that works with exactly the submitted weights only. Black-box tests cannot exclude more: an algorithm written by hand may depend on its
weights in any way that a learned processor does, so read `processors.py` before you believe a score that no learned processor is known to
reach.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlagentbench import CodeClient, GradingContext, InvalidSubmission, Score, ScriptLimits, SubmissionFiles, row_score
from mlagentbench.grading.code.packages import importable
from mlagentbench.grading.code.protocol import Array
from mlagentbench.tasks.clrs import serve_model, serve_processor
from mlagentbench.util.machine import ONE_THREAD

CHECKPOINT, MODEL = "checkpoint.npz", "model.py"
MAX_CHECKPOINT = 256 * 2**20
LOAD_SECONDS, STEP_SECONDS = 120.0, 60.0
LIMITS = ScriptLimits(seconds=1700, memory_mb=8192, processes=512, file_mb=16, workspace_mb=1024)
LARGE, SMALL = 1.0, 0.02
NOISES = (LARGE,) * 6 + (SMALL,) * 2
"""The noise added to the processor's weights in turn, by its root mean square relative to that of each array."""
NOISE_GRAPHS = 3
"""How many graphs are predicted with each."""
MOST_KEPT = 0.65
"""The share of its accuracy that a learned processor cannot keep, on average, with `LARGE` noise.

With 300 draws each, the trained starter kept 0.17 to 0.45, the reference solution 0.13 to 0.36, and an algorithm by hand 0.74 to 1. One
draw of the noise tells them apart less surely: up to 0.92 for the starter, and from 0.41 by hand.
"""
LEAST_KEPT = 0.5
"""The share that it keeps with `SMALL` noise; 1.0 was measured, and 0.9 still with noise of 0.2."""

Weights = Mapping[str, NDArray[np.generic]]


def grade(context: GradingContext) -> Score:
    """Return the pointer accuracy over all graphs and all pairs of nodes, each node to itself included.

    Raises:
        InvalidSubmission: the checkpoint does not fit the model with the agent's processor, the processor fails or returns another shape,
            or it does as well without its learned weights.
    """
    assert context.private is not None, "clrs has data"
    with np.load(context.private / "test.npz", allow_pickle=False) as arrays:
        graphs, pointers = arrays["A"], arrays["Pi"].astype(np.int64)
    pairs = list(zip(graphs, pointers, strict=True))
    edges_alone = float((pointers == np.arange(graphs.shape[1])[:, None]).mean())
    with _model_process(context) as model_talk, ExitStack() as stack:
        # A checkpoint that does not fit the model is refused before the processor's sandbox is started.
        model = _ModelInSandbox.load(model_talk)
        processor = stack.enter_context(_processor(context))
        size = processor.load(0, model.hidden_dim)
        right = [_right(model.predict(graph, processor), truth) for graph, truth in pairs]
        found: dict[float, list[float]] = {noise: [] for noise in NOISES}
        if np.mean(right) > edges_alone:
            weights, rng = _processors_weights(context), np.random.default_rng(context.seed)
            with _processor(context, [_with_noise(weights, noise, rng) for noise in NOISES]) as disturbed:
                for number, noise in enumerate(NOISES):
                    disturbed.load(number, model.hidden_dim)
                    accuracy = np.mean([_right(model.predict(graph, disturbed), truth) for graph, truth in pairs[:NOISE_GRAPHS]])
                    found[noise].append(float(accuracy))
    before = float(np.mean(right[:NOISE_GRAPHS]))
    kept, least = float(np.mean(found[LARGE] or 0.0)), min(found[SMALL], default=before)
    if kept > MOST_KEPT * before:
        raise InvalidSubmission(
            f"the processor gets {kept:.2f} of the pointers right also when as much noise is added to its weights as they hold, so what it"
            " does was not learned; leave one whose trained weights do it"
        )
    if least < LEAST_KEPT * before:
        raise InvalidSubmission(
            f"the processor gets {least:.2f} of the pointers right with noise of a fiftieth on its weights, and {before:.2f} without it, so"
            " it depends on exactly these weights, as nothing that was learned does"
        )
    return row_score(
        right,
        details={
            "graphs": len(graphs),
            "nodes": graphs.shape[1],
            "accuracy_by_graph": [round(each, 4) for each in right],
            "accuracy_of_edges_alone": edges_alone,
            "accuracy_with_noise_on_weights": kept,
            "parameters": model.size + size,
            "isolation": context.isolation.isolation,
        },
    )


class _ProcessorInSandbox(NamedTuple):
    """The agent's processor in its sandbox."""

    talk: CodeClient

    def load(self, number: int, hidden_dim: int) -> float:
        """Build the processor with the set of weights of this number; return how many weights these are."""
        which = np.array([number, hidden_dim], dtype=np.float64)
        doing = "loading checkpoint.npz with processors.py"
        return float(
            self.talk.ask(serve_processor.LOAD, (which,), doing=doing, seconds=LOAD_SECONDS, count=1, max_values=1).arrays[0].sum()
        )

    def call(self, arguments: tuple[Array, ...]) -> tuple[Array, ...]:
        """Call the processor; return its new hidden state and its messages, which are empty where it sends none."""
        _, edges, _, hidden = arguments
        doing = "calling the processor"
        returned = self.talk.ask(
            serve_processor.CALL, arguments, doing=doing, seconds=STEP_SECONDS, count=2, max_values=4 * (hidden.size + edges.size)
        ).arrays
        for name, found, shape in (("a hidden state", returned[0], hidden.shape), ("messages", returned[1], edges.shape)):
            if found.shape != shape and not (name == "messages" and found.shape == (0,)):
                raise InvalidSubmission(f"the processor returned {name} of shape {found.shape}; return one of shape {shape}")
        return returned


class _ModelInSandbox(NamedTuple):
    """The task's own model in its sandbox, with the agent's weights."""

    talk: CodeClient
    hidden_dim: int
    size: float
    """How many weights it has without the processor."""

    @staticmethod
    def load(talk: CodeClient) -> _ModelInSandbox:
        """Have the process load the agent's weights into the model."""
        doing = "loading checkpoint.npz into model.py"
        loaded = talk.ask(serve_model.LOAD, doing=doing, seconds=LOAD_SECONDS, count=1, max_values=2).arrays[0]
        return _ModelInSandbox(talk, int(loaded[0]), float(loaded[1]))

    def predict(self, graph: Array, processor: _ProcessorInSandbox) -> Array:
        """Return the pointers that the model predicts for a graph, of shape (nodes, nodes)."""
        nodes = len(graph)
        doing = f"predicting the paths of a graph of {nodes} nodes"
        values = 4 * nodes * nodes * (self.hidden_dim + 1)
        kind = serve_model.PREDICT
        given: tuple[Array, ...] = (graph[None].astype(np.float64),)
        for _ in range(nodes - 1):
            arguments = self.talk.ask(kind, given, doing=doing, seconds=STEP_SECONDS, count=4, max_values=values).arrays
            kind, given = serve_model.GO_ON, processor.call(arguments)
        found = self.talk.ask(kind, given, doing=doing, seconds=STEP_SECONDS, count=1, max_values=values).arrays[0]
        return np.asarray(found[0])


@contextmanager
def _model_process(context: GradingContext) -> Iterator[CodeClient]:
    folder = context.scratch / "model"
    folder.mkdir()
    (folder / MODEL).write_bytes(context.starter.read_bytes(MODEL))
    (folder / CHECKPOINT).write_bytes(context.submission.read_bytes(CHECKPOINT, MAX_CHECKPOINT))
    with _sandbox(context, folder, serve_model.__file__, kept=True) as talk:  # none of the agent's code runs in it
        yield talk


@contextmanager
def _processor(context: GradingContext, weights: Sequence[Weights] = ()) -> Iterator[_ProcessorInSandbox]:
    """Start the agent's processor.

    Args:
        context: the grading's context.
        weights: the sets of weights with which it can be loaded, by number; without any, number 0 is the agent's own.
    """
    folder = context.scratch / ("disturbed" if weights else "processor")
    context.submission.copy_to(folder, MAX_CHECKPOINT)
    checkpoint = (folder / CHECKPOINT).rename(context.scratch / f"{folder.name}.npz")
    files = [serve_processor.WEIGHTS.format(number) for number in range(max(1, len(weights)))]
    for name in (MODEL, *files):
        if (folder / name).is_dir():
            raise InvalidSubmission(f"{name} is a folder; the grader lays its own file there, so give yours another name")
    (folder / MODEL).write_bytes(context.starter.read_bytes(MODEL))
    for name, each in zip(files, weights, strict=False):
        np.savez(folder / name, allow_pickle=False, **each)
    if not weights:
        checkpoint.rename(folder / files[0])
    with _sandbox(context, folder, serve_processor.__file__) as talk:
        yield _ProcessorInSandbox(talk)


@contextmanager
def _sandbox(context: GradingContext, folder: Path, serve: str, *, kept: bool = False) -> Iterator[CodeClient]:
    with context.sandbox(
        SubmissionFiles(folder),
        Path(serve),
        packages=importable("torch", "numpy"),
        environment=ONE_THREAD,  # on a busy machine, threads that wait for each other take many times as long
        limits=LIMITS,
        max_code_bytes=4 * MAX_CHECKPOINT,
        kept=kept,
    ) as process:
        yield CodeClient(process, InvalidSubmission)


def _processors_weights(context: GradingContext) -> Weights:
    """Read the processor's weights from the checkpoint, from which the model has been loaded before."""
    with np.load(context.scratch / "model" / CHECKPOINT, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files if name.startswith(serve_processor.PROCESSOR)}


def _with_noise(weights: Weights, noise: float, rng: np.random.Generator) -> Weights:
    """Return the weights plus noise, array by array; arrays of integers stay as they are.

    Args:
        weights: the weights, by name.
        noise: its root mean square, relative to that of each array.
        rng: the generator to draw it from.
    """

    def disturbed(array: NDArray[np.generic]) -> NDArray[np.generic]:
        if array.dtype.kind != "f":
            return array
        values = array.astype(np.float64)
        added = noise * np.sqrt((values**2).mean()) * rng.standard_normal(values.shape) if values.size else 0.0
        return np.asarray(values + added, dtype=array.dtype)

    return {name: disturbed(array) for name, array in weights.items()}


def _right(found: Array, truth: NDArray[np.int64]) -> float:
    return float((found == truth).mean())
