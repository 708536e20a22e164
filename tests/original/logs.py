"""Logs as the original writes them, small enough to be read: for tests of what reads them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mlagentbench.original.write import import_logs
from mlagentbench.results.load import Run

ENTRIES = ("Reflection", "Research Plan and Status", "Fact Check", "Thought", "Action", "Action Input")
BEGAN = 1_700_000_000.0
"""When the log's run began, in seconds from the epoch; a step takes ten."""
TOLD = "Your response was in incorrect format. Please provide a valid response with all entries: " + ", ".join(ENTRIES)


def imported(folder: Path, runs: Path | None = None) -> Run:
    """The only run of a log folder."""
    (found,) = import_logs(folder, runs or folder.parent / "runs")
    assert found.run is not None, found.reason
    return found.run


class OriginalLog:
    """One run's folder, written turn by turn.

    Args:
        root: the folder.
        agent: the original's class of agent.
        model: the model in all roles.
        task: the original's name of the task.
        research_log: whether the agent keeps one, by steps of its own.
    """

    def __init__(
        self, root: Path, *, agent: str = "ResearchAgent", model: str = "gpt-4", task: str = "cifar10", research_log: bool = False
    ) -> None:
        self.root = root
        self.agent = root / "agent_log"
        self.env = root / "env_log"
        self.arguments = {
            "task": task,
            "agent_type": agent,
            "llm_name": model,
            "fast_llm_name": model,
            "edit_script_llm_name": model,
            "max_steps": 50,
            "max_time": 18000,
            "max_retries": 5,
            "agent_max_steps": 50,
            "resume": None,
            "no_retrieval": not research_log,
            "valid_format_entires": None,
        }
        self.research_log = research_log
        self.steps: list[dict[str, Any]] = []
        self.low: list[dict[str, Any]] = []
        self.history: list[dict[str, Any]] = []
        for folder in (self.agent, self.env / "tool_logs", self.env / "traces"):
            folder.mkdir(parents=True)
        self.agent.joinpath("main_log").write_text("Enabled Tools in Prompt:[]\n====Start====\n")
        problem = "Make train.py better."
        self.root.joinpath("log").write_text(
            f"Namespace({', '.join(f'{name}={value!r}' for name, value in self.arguments.items())})\n"
            f"Benchmark folder name:  {task}\nResearch problem:  {problem}\n"
        )
        self.description = problem

    def call(self, path: Path, prompt: str, reply: str, sent: int = 100, sampled: int = 20) -> None:
        """Log a call of a model, after those that the file holds."""
        with path.open("a") as file:
            file.write(f"\n===================prompt=====================\n\n\nHuman: {prompt} \n\nAssistant:")
            file.write(f"\n==================={self.arguments['llm_name']} response (2000)=====================\n{reply}")
            file.write(f"\n===================tokens=====================\nNumber of prompt tokens: {sent}\n")
            file.write(f"Number of sampled tokens: {sampled}\n\n\n")

    def step(
        self,
        action: str,
        arguments: object,
        observation: str,
        *,
        files: Mapping[str, str] | None = None,
        does: Sequence[tuple[str, Any]] = (),
    ) -> int:
        """Take a step of the environment, and give its index."""
        index = len(self.steps)
        time = BEGAN + 10 * (index + 1)
        self.low += [
            {"action": {"name": name, "args": args}, "observation": "done", "timestamp": time - 1 + place / 100}
            for place, (name, args) in enumerate(does)
        ]
        self.steps.append({"action": {"name": action, "args": arguments}, "observation": observation, "timestamp": time})
        if files is not None:
            self.workspace(f"step_{index}_files", files)
        return index

    def turn(
        self,
        action: str,
        arguments: Mapping[str, Any] | str,
        observation: str,
        *,
        thought: str = "Go on.",
        refused: Sequence[str] = (),
        tool: str | None = None,
        files: Mapping[str, str] | None = None,
        does: Sequence[tuple[str, Any]] = (),
    ) -> None:
        """Take a turn of the agent: its replies, its step, and the research log's steps around it.

        Args:
            action: what it does.
            arguments: as an object, or as text that is none: then there is no step.
            observation: what it is told.
            thought: what it thinks first.
            refused: replies before, that held no action.
            tool: what the action's own model replies; None for an action without.
            files: the workspace afterwards; None for no snapshot.
            does: the low-level actions of the step, by name with their arguments.
        """
        number = len(self.history)
        if self.research_log and number > 3:
            index = self.step("Retrieval from Research Log", {"current_plan": ""}, "What mattered.")
            self.call(self.env / "tool_logs" / f"step_{index}_tool_log.log", "Retrieve.", "What mattered.", 7, 3)
        raw = arguments if isinstance(arguments, str) else json.dumps(arguments)
        entries = dict(
            zip(ENTRIES, (" It works.\n", " 1. **Look**.\n", " Nothing.\n", f" {thought}\n", f" {action}\n", f" {raw}\n"), strict=True)
        )
        reply = "".join(f"{entry}:{text}" for entry, text in entries.items())
        prompt = f"You are at turn {number}."
        for text in refused:
            self.call(self.agent / f"step_{number}_log.log", prompt, text)
            prompt += f"\n\n {TOLD}\n\n"
        self.call(self.agent / f"step_{number}_log.log", prompt, reply)
        if isinstance(arguments, str):
            observation = f"ActionInputParsingError: {observation}"
        else:
            if tool is not None:
                self.call(self.env / "tool_logs" / f"step_{len(self.steps)}_tool_log.log", f"Do {raw}.", tool, 50, 40)
            self.step(action, dict(arguments), observation, files=files, does=does)
        kept = entries | {"Research Plan and Status": " 1. Look.\n\n\n"}
        self.history.append({"step_idx": len(self.steps), "action": kept, "observation": observation})
        if not isinstance(arguments, str):
            self.history = [turn for turn in self.history if not turn["observation"].startswith("ActionInputParsingError")]
        if self.research_log:
            self.call(self.agent / f"step_{number}_summary_log.log", f"Summarise {raw}.", "Sure. [Reasoning]: It was right.", 30, 9)
            self.step(
                "Append Summary to Research Log",
                {"content": f"\n\nStep {number}:\n[Reasoning]: It was right.\n"},
                "Successfully appended to research log",
                files=files,
            )
        state = {"args": self.arguments, "log_dir": "logs", "history_steps": self.history}
        self.agent.joinpath(f"agent_{len(self.steps) - 1}_{number}.json").write_text(json.dumps(state, indent=4))

    def workspace(self, name: str, files: Mapping[str, str]) -> None:
        """Write a snapshot of the workspace."""
        for path, text in files.items():
            place = self.env / "traces" / name / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)

    def end(
        self, *, files: Mapping[str, str] | None = None, seconds: float | None = None, error: str | None = None, message: str = ""
    ) -> Path:
        """Write what is written at the end, and give the folder."""
        trace = {"steps": self.steps, "low_level_steps": self.low, "action_infos": {}, "task_description": self.description}
        (self.env / "trace.json").write_text(json.dumps(trace, indent=4))
        (self.env / "overall_time.txt").write_text(str(10.0 * len(self.steps) if seconds is None else seconds))
        if error:
            (self.env / "error.txt").write_text(error)
        if files is not None:
            self.workspace("step_final_files", files)
        if message:
            with self.root.joinpath("log").open("a") as file:
                file.write(f"Final message:  {message}\n")
        return self.root


def example(root: Path, **options: Any) -> OriginalLog:
    """A run of three turns that ends with an answer; its first reply held no action."""
    log = OriginalLog(root, **options)
    log.turn(
        "Understand File",
        {"file_name": "train.py", "things_to_look_for": "the model"},
        "A small CNN.",
        refused=["I would look at the file first."],
        tool="A small CNN.",
        files={"train.py": "epochs = 1\n"},
        does=[("Read File", {"file_name": "train.py"})],
    )
    log.turn(
        "Edit Script (AI)",
        {"script_name": "train.py", "edit_instruction": "Train for longer.", "save_name": "train.py"},
        "The edited file is saved to train.py.",
        thought="It trains too shortly.",
        tool="```python\nepochs = 9\n```",
        files={"train.py": "epochs = 9\n", "backup/train.py_1": "epochs = 1\n"},
        does=[("Read File", {"file_name": "train.py"}), ("Write File", {"file_name": "train.py", "content": "epochs = 9"})],
    )
    log.turn("Final Answer", {"final_answer": "It is better."}, "end", files={"train.py": "epochs = 9\n"})
    return log
