"""The tree that the search agent grows: its nodes, read from a run's steps, and which one it goes on with.

A node is a whole script and what came of running it. The tree is made anew from the steps each time it is needed, so that a run that was
ended at any moment, or is forked at any step, goes on with the same tree.
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


class Growth(NamedTuple):
    """How a node comes about: by which kind of question, and from which node."""

    kind: Kind
    parent: int | None = None


class Node(NamedTuple):
    """A whole script, and what came of it."""

    number: int
    """From 1, in the order of writing."""
    kind: Kind
    parent: int | None
    plan: str
    script: str
    output: str
    """What running it printed."""
    metric: float | None
    """Its own validation score; None for one that has none or is buggy."""
    failed: bool
    """Whether it did not run to its end; one that did may still have no metric."""
    seconds: float
    """What writing and running it took, its model's time included."""

    @property
    def buggy(self) -> bool:
        """Whether it failed, or printed no validation score."""
        return self.metric is None


@dataclass(frozen=True)
class Policy:
    """How a tree grows."""

    drafts: int
    debug_depth: int
    debug_probability: float
    seed: int


class Tree:
    """The nodes of a run so far.

    Args:
        steps: the run's.
        direction: of the metric, as the task has it.
    """

    def __init__(self, steps: Sequence[Step], direction: Direction) -> None:
        self.nodes: list[Node] = []
        self.standing: int | None = None
        """The node whose script ran last, so that the workspace holds its submission; None where that run failed."""
        self.submitting = False
        """Whether the search is over, and its best nodes are run again."""
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
        """A node by its number."""
        return self.nodes[number - 1]

    @property
    def ranking(self) -> list[Node]:
        """The nodes that work, best first; of equals the earlier one."""
        sign = -1.0 if self._direction == "maximize" else 1.0
        return sorted((node for node in self.nodes if node.metric is not None), key=lambda node: (sign * (node.metric or 0.0), node.number))

    @property
    def to_submit(self) -> Node | None:
        """The best node that has not failed when it was run again."""
        return next((node for node in self.ranking if node.number not in self._failed_again), None)

    def next(self, policy: Policy) -> Growth:
        """What to grow: the drafts first, then a debugging of a buggy leaf or an improvement of the best node.

        Chance decides between those two, each time from the seed and the number of nodes alone.
        """
        chance = random.Random(f"{policy.seed}/{len(self.nodes)}")
        if sum(node.kind == "draft" for node in self.nodes) < policy.drafts:
            return Growth("draft")
        best = next(iter(self.ranking), None)
        leaves = self._to_debug(policy.debug_depth)
        if leaves and (best is None or chance.random() < policy.debug_probability):
            return Growth("debug", chance.choice(leaves).number)
        return Growth("improve", best.number) if best else Growth("draft")

    def _to_debug(self, most: int) -> list[Node]:
        """The buggy nodes that nothing was made of yet, and that are not the end of too long a chain of debuggings."""
        parents = {node.parent for node in self.nodes}
        return [node for node in self.nodes if node.buggy and node.number not in parents and self._depth(node) < most]

    def _depth(self, node: Node) -> int:
        depth = 0
        while node.kind == "debug" and node.parent is not None:
            depth, node = depth + 1, self[node.parent]
        return depth

    def memory(self) -> list[JsonValue]:
        """The tree, for the record."""
        return [
            {"node": node.number, "kind": node.kind, "parent": node.parent, "metric": node.metric, "buggy": node.buggy}
            for node in self.nodes
        ]


def validation_score(step: Step) -> float | None:
    """The last validation score that a script printed, if it ran to its end and the number is a finite one."""
    if step.action.name != EXECUTE or step.status != "ok":
        return None
    scores = _SCORE.findall(step.observation)
    return float(scores[-1]) if scores and math.isfinite(float(scores[-1])) else None
