"""The tree of the search agent: its nodes, read from a run's steps, and the choice of the next node.

A node is a whole script with the result of running it. The tree is rebuilt from the steps each time it is needed, so that a run which is
resumed after any step, or forked from it, continues with the same tree.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from pydantic import JsonValue

from mlagentbench.records import Direction, Step

WRITE, EXECUTE = "Write File", "Execute Script"
Kind = Literal["draft", "debug", "improve"]
KINDS: Mapping[str, Kind] = {"draft": "draft", "debug": "debug", "improve": "improve"}

_SCORE = re.compile(r"^[ \t*]*validation[ _]score[ \t*]*[:=][ \t*]*([-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)(?![\w.%])", re.I | re.M)


class NextNode(NamedTuple):
    """The kind of the next node, and the node that it is made from."""

    kind: Kind
    parent: int | None = None


class Node(NamedTuple):
    """A whole script, and the result of running it."""

    number: int
    """From 1, in the order in which the scripts were written."""
    kind: Kind
    parent: int | None
    plan: str
    script: str
    output: str
    """The observation of running it."""
    metric: float | None
    """Its own validation score; None if it failed or printed none."""
    failed: bool
    """Whether writing or running it failed; a script that ran to its end may still have no metric."""
    seconds: float
    """Seconds that writing and running it took, the model's time included."""

    @property
    def buggy(self) -> bool:
        """Whether it failed, or printed no validation score."""
        return self.metric is None


@dataclass(frozen=True)
class Policy:
    """The settings of the search, as in `SearchAgent`."""

    drafts: int
    debug_depth: int
    debug_probability: float
    seed: int


class SearchTree:
    """The nodes of a run so far."""

    def __init__(self, steps: Sequence[Step], direction: Direction) -> None:
        self.nodes: list[Node] = []
        self.standing: int | None = None
        """The node whose script ran last, so that the workspace holds its submission; None if that failed or gave no score."""
        self.submitting = False
        """Whether the search is over and the best node is being run again, to be submitted."""
        self.pending: Step | None = None
        """The step that wrote a script which has not run yet."""
        self._direction = direction
        self._failed_again: set[int] = set()
        for step in steps:
            if "node" in step.memory:
                self._take(step)

    def _take(self, step: Step) -> None:
        number, again = int(str(step.memory["node"])), bool(step.memory.get("again"))
        self.submitting = self.submitting or again
        written = step if step.action.name == WRITE else self.pending
        if written is None:
            return
        if step.action.name == WRITE and step.status == "ok":
            self.pending = step
            return
        self.pending = None
        metric = validation_score(step)
        failed = metric is None
        self.standing = None if failed else number
        if again:
            if failed:
                self._failed_again.add(number)
            return
        parent = step.memory.get("parent")
        self.nodes.append(
            Node(
                number=number,
                kind=KINDS[str(step.memory["kind"])],
                parent=parent if isinstance(parent, int) else None,
                plan=written.entries.get("Plan", ""),
                script=str(written.action.arguments["content"]),
                output=step.observation,
                metric=metric,
                failed=step.status != "ok",
                seconds=written.seconds + step.seconds,
            )
        )

    def __getitem__(self, number: int) -> Node:
        """Return a node by its number."""
        return self.nodes[number - 1]

    @property
    def ranking(self) -> list[Node]:
        """The nodes with a metric, best first; of equals, the earlier first."""
        sign = -1.0 if self._direction == "maximize" else 1.0
        return sorted((node for node in self.nodes if node.metric is not None), key=lambda node: (sign * (node.metric or 0.0), node.number))

    @property
    def to_submit(self) -> Node | None:
        """The best node that has not failed in a second run."""
        return next((node for node in self.ranking if node.number not in self._failed_again), None)

    def next(self, policy: Policy) -> NextNode:
        """Return what to grow next: first the drafts, then a repair of a buggy leaf or an improvement of the best node.

        The choice between those two is random, drawn from the seed and the number of nodes alone, so that a resumed run makes the same one.
        """
        chance = random.Random(f"{policy.seed}/{len(self.nodes)}")
        if sum(node.kind == "draft" for node in self.nodes) < policy.drafts:
            return NextNode("draft")
        best = next(iter(self.ranking), None)
        leaves = self._to_debug(policy.debug_depth)
        if leaves and (best is None or chance.random() < policy.debug_probability):
            return NextNode("debug", chance.choice(leaves).number)
        return NextNode("improve", best.number) if best else NextNode("draft")

    def _to_debug(self, most: int) -> list[Node]:
        """Return the buggy nodes without children that end a chain of fewer than `most` repairs."""
        parents = {node.parent for node in self.nodes}
        return [node for node in self.nodes if node.buggy and node.number not in parents and self._depth(node) < most]

    def _depth(self, node: Node) -> int:
        depth = 0
        while node.kind == "debug" and node.parent is not None:
            depth, node = depth + 1, self[node.parent]
        return depth

    def memory(self) -> list[JsonValue]:
        """Return the tree as JSON, for the memory of a step."""
        return [
            {"node": node.number, "kind": node.kind, "parent": node.parent, "metric": node.metric, "buggy": node.buggy}
            for node in self.nodes
        ]


def validation_score(step: Step) -> float | None:
    """Return the last validation score that a script printed; None if the script failed or that number is not finite."""
    if step.action.name != EXECUTE or step.status != "ok":
        return None
    scores = _SCORE.findall(step.observation)
    return float(scores[-1]) if scores and math.isfinite(float(scores[-1])) else None
