"""The search agent: a tree search over whole solutions.

A node of the tree is a complete script: a first draft, a repair of a node that failed, or an improvement of the best node so far. The best
node is the one with the best validation score, which each script measures and prints itself. The idea is that of AIDE (arXiv 2502.13138);
the prompts and the code are this project's own.

Each node takes two steps, one that writes the script and one that runs it, so that it has a snapshot and a score of its own in the record.
All scripts share one workspace: a script finds the files that the scripts before it left there.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, JsonValue
from pydantic.dataclasses import dataclass

from mlagentbench.agents.base import ask_until_parsed, render
from mlagentbench.agents.reply.whole_script import read_script
from mlagentbench.agents.search_tree import EXECUTE, WRITE, NextNode, Node, Policy, SearchTree
from mlagentbench.environment import Environment
from mlagentbench.model import GenerateOptions
from mlagentbench.records import Action, Step
from mlagentbench.util.text import shortened

NODE_STEPS = 2
OUTPUT_SHOWN, PLAN_SHOWN = 6000, 400
"""Characters of a script's output, and of an earlier plan, that a prompt holds."""
SLOWER = 1.5
"""How much longer than before a script may take when it is run again."""


@dataclass(frozen=True)
class SearchAgent:
    """Drafts, debugs and improves whole scripts, and submits the one with the best validation score."""

    script: str = "train.py"
    """The file that every script is written to. What it holds at first is shown to the model."""
    drafts: Annotated[int, Field(ge=1)] = 5
    """How many first solutions are written."""
    debug_depth: Annotated[int, Field(ge=0)] = 3
    """How often in a row a failing script is repaired before it is abandoned."""
    debug_probability: Annotated[float, Field(ge=0, le=1)] = 0.5
    """The probability that a failing script is repaired rather than the best one improved."""
    max_nodes: Annotated[int, Field(ge=1)] | None = None
    """How many scripts are written in all; None for as many as the run's limits allow."""
    seed: int = 0
    """The seed of the random choices."""
    temperature: Annotated[float, Field(ge=0)] | None = None
    """The sampling temperature of the replies. None leaves it to the provider."""
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    """The most tokens of a reply. None leaves it to the provider."""

    async def __call__(self, environment: Environment) -> None:
        """Inspect the starter, grow the tree while the limits allow it, and submit its best node."""
        policy = Policy(self.drafts, self.debug_depth, self.debug_probability, self.seed)
        for action in self._first_actions()[len(environment.steps) :]:
            await environment.execute(action)
        while True:
            tree = SearchTree(environment.steps, environment.direction)
            if tree.pending is not None:
                await self._run(environment, tree.pending)
            elif self._may_grow(environment, tree):
                await self._write(environment, tree, tree.next(policy))
            elif self._may_submit_again(environment, tree):
                await self._write_again(environment, tree)
            else:
                break
        await environment.execute(Action(name="Final Answer", arguments={"final_answer": _answer(tree)}), memory={"tree": tree.memory()})

    def _first_actions(self) -> tuple[Action, Action]:
        """Return the actions that come before the first node."""
        return (
            Action(name="List Files", arguments={"dir_path": "."}),
            Action(name="Read File", arguments={"file_name": self.script}),
        )

    async def _run(self, environment: Environment, written: Step) -> None:
        memory = {key: value for key, value in written.memory.items() if key != "tree"}
        entries = {"Node": written.entries["Node"]}
        await environment.execute(Action(name=EXECUTE, arguments={"script_name": self.script}), entries=entries, memory=memory)

    async def _write(self, environment: Environment, tree: SearchTree, growth: NextNode) -> None:
        """Ask the model for a new node and write its script."""
        number = len(tree.nodes) + 1
        options = GenerateOptions(self.temperature, self.max_tokens)
        written = await ask_until_parsed(environment, self._prompt(environment, tree, growth), read_script, options, again="Reply again.")
        origin = f" of {growth.parent}" if growth.parent else ""
        entries = {"Node": f"{number}: {growth.kind}{origin}", "Plan": written.plan}
        memory: dict[str, JsonValue] = {"node": number, "kind": growth.kind, "parent": growth.parent, "tree": tree.memory()}
        await environment.execute(self._writing(written.script), entries=entries, memory=memory)

    async def _write_again(self, environment: Environment, tree: SearchTree) -> None:
        """Write the best node again, to be run and submitted."""
        best = tree.to_submit
        assert best is not None
        entries = {"Node": f"{best.number}: again, to be submitted"}
        memory: dict[str, JsonValue] = {"node": best.number, "again": True, "tree": tree.memory()}
        await environment.execute(self._writing(best.script), entries=entries, memory=memory)

    def _writing(self, script: str) -> Action:
        return Action(name=WRITE, arguments={"file_name": self.script, "content": script})

    def _may_grow(self, environment: Environment, tree: SearchTree) -> bool:
        """Return whether steps and time suffice for another node, and for running the best one again after it."""
        if tree.submitting or (self.max_nodes is not None and len(tree.nodes) >= self.max_nodes):
            return False
        best = tree.to_submit
        spare = _steps_left(environment) - NODE_STEPS - (NODE_STEPS if best else 0)
        slowest = max((node.seconds for node in tree.nodes), default=0.0)
        return spare >= 1 and environment.seconds_left > SLOWER * (slowest + (best.seconds if best else 0.0))

    def _may_submit_again(self, environment: Environment, tree: SearchTree) -> bool:
        """Return whether the workspace holds another node's submission, and steps and time suffice to run the best again."""
        best = tree.to_submit
        if best is None or tree.standing == best.number:
            return False
        return _steps_left(environment) > NODE_STEPS and environment.seconds_left > best.seconds

    def _prompt(self, environment: Environment, tree: SearchTree, growth: NextNode) -> str:
        parent = tree[growth.parent] if growth.parent else None
        listed, starter = environment.steps[:2]
        part = environment.can_read("agent") // 2
        return render(
            "search.md",
            task=environment.description.strip(),
            script=self.script,
            files=listed.observation,
            starter=shortened(starter.observation.rstrip(), part) if starter.status == "ok" else "",
            metric=environment.metric,
            better="more" if environment.direction == "maximize" else "less",
            time_left=f"{max(1, int(environment.seconds_left // 60))} minutes",
            earlier=[_summary(node) for node in tree.nodes],
            kind=growth.kind,
            parent=parent,
            fault=_fault(parent) if parent else "",
            output=shortened(parent.output, min(OUTPUT_SHOWN, part)) if parent else "",
        )


def _steps_left(environment: Environment) -> int:
    return environment.limits.steps - sum(step.counted for step in environment.steps)


def _summary(node: Node) -> str:
    """Return one line of the prompt about an earlier node."""
    origin = f" of {node.parent}" if node.parent else ""
    score = "does not work" if node.metric is None else f"validation score {node.metric:g}"
    return f"- Script {node.number} ({node.kind}{origin}), {score}: {' '.join(shortened(node.plan, PLAN_SHOWN).split())}"


def _fault(node: Node) -> str:
    return "It failed." if node.failed else "It ran, and printed no line `validation score: NUMBER` with a finite number."


def _answer(tree: SearchTree) -> str:
    """Return the final answer: which node is submitted, and its own validation score."""
    found = f"Of {len(tree.nodes)} scripts {len(tree.ranking)} worked."
    if tree.standing is None:
        return f"{found} None of them is submitted."
    node = tree[tree.standing]
    return f"{found} Submitted is script {node.number}, whose own validation score is {node.metric:g}. {node.plan}".strip()
