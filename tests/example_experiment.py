"""An experiment as a researcher runs it, written without running anything: tasks, agents, models, and runs that come out in many ways.

Everything is drawn from a seed. Chances are by contestant and task, so that there are good and bad ones, and what is known of costs
differs. `python -m tests.example_experiment DIR` writes one to look at.
"""

from __future__ import annotations

import itertools
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mlagentbench.records import Baseline
from tests.example_runs import ExampleStep, write_run


class Contestant(NamedTuple):
    """An agent with its model."""

    agent: str
    model: str
    skill: float
    """How probable it is that it succeeds at a task of middling difficulty."""
    tokens: int
    """A step's prompt."""
    seconds: float
    cost: float | None
    """A step's, in US dollars."""


class ExampleTask(NamedTuple):
    """A task's measure, and how far it can be improved."""

    id: str
    category: str
    metric: str
    unit: str
    direction: str
    baseline: float
    reach: float
    """The improvement of an able run, relative to the baseline."""
    ease: float
    """Multiplies a contestant's skill."""


CONTESTANTS = (
    Contestant("research", "alpha/large-3", 0.55, 5200, 38, 0.0310),
    Contestant("research", "beta/turbo-4", 0.42, 4100, 31, 0.0170),
    Contestant("react", "beta/turbo-4", 0.36, 2900, 22, 0.0110),
    Contestant("research", "vllm/open-8x7b", 0.08, 4600, 19, None),
    Contestant("autogpt", "beta/turbo-4", 0.2, 7800, 44, 0.0290),
    Contestant("act", "gamma/pro-1", 0.24, 1900, 12, 0.0),
)
TASKS = (
    ExampleTask("cifar10", "canonical", "accuracy", "", "maximize", 0.525, 0.32, 0.9),
    ExampleTask("imdb", "canonical", "accuracy", "", "maximize", 0.5, 0.78, 0.5),
    ExampleTask("ogbn-arxiv", "canonical", "accuracy", "", "maximize", 0.3134, 0.95, 1.4),
    ExampleTask("house-price", "classic Kaggle", "mean_absolute_error", "USD", "minimize", 41_200.0, 0.5, 1.6),
    ExampleTask("spaceship-titanic", "classic Kaggle", "accuracy", "", "maximize", 0.5, 0.52, 1.2),
    ExampleTask("parkinsons-disease", "Kaggle challenge", "smape", "", "minimize", 62.4, 0.14, 0.1),
    ExampleTask("vectorization", "code improvement", "seconds per forward pass", "s", "minimize", 1.1, 0.997, 0.6),
    ExampleTask("babylm", "recent research", "perplexity", "", "minimize", 130.0, 0.05, 0.0),
)


def write_experiment(
    logs: Path,
    *,
    tasks: Sequence[ExampleTask] = TASKS,
    contestants: Sequence[Contestant] = CONTESTANTS,
    runs: int = 8,
    steps: int = 20,
    shortest: int = 0,
    observation: int = 200,
    seed: int = 1,
    **info: Any,
) -> int:
    """Write an experiment's runs, `runs` a task and contestant.

    Args:
        logs: the log directory.
        tasks: what there is to do.
        contestants: who does it.
        runs: how many of each.
        steps: of a run, at most.
        shortest: of a run, at least; by default a third of the most.
        observation: characters that a step is told about.
        seed: of all that is drawn.
        info: what the runs' `RunInfo` shall be beside.

    Returns:
        How many runs there are.
    """
    chance = random.Random(seed)
    plan = list(itertools.product(range(runs), tasks, contestants))
    for number, (_, task, contestant) in enumerate(plan):
        name = f"{number:04d}-{task.id}-{contestant.agent}"
        _write(logs, name, task, contestant, chance, steps, shortest, observation, **{"started": 1769854500.0 + 60 * number, **info})
    return len(plan)


def _write(
    logs: Path,
    name: str,
    task: ExampleTask,
    by: Contestant,
    chance: random.Random,
    steps: int,
    shortest: int,
    observation: int,
    **info: Any,
) -> None:
    fate = chance.random()
    succeeds = chance.random() < min(0.97, by.skill * task.ease)
    length = chance.randint(min(shortest or max(2, steps // 3), steps), steps)
    noise = [round(task.baseline * (1 + chance.gauss(0, 0.01)), 6) for _ in range(3)]
    baseline = Baseline(value=sum(noise) / 3, values=tuple(noise), source="measured")
    gain = task.reach * chance.uniform(0.6, 1.0) if succeeds else chance.uniform(-0.1, 0.09)
    ended, verdict, reason = "final_answer" if length < steps else "limit_steps", "success" if succeeds else "no_improvement", None
    if fate < 0.02:
        ended, verdict, reason = "infrastructure", "ungraded", "the provider answered 503 for an hour"
    elif not succeeds and fate < 0.12:
        ended, verdict, reason = "format_failure", "no_submission", "five replies in a row held no action"
    elif not succeeds and fate < 0.35:
        verdict, reason = "invalid_submission", "submission.csv has 9,998 rows, and needs 10,000"
    write_run(
        logs,
        name,
        list(_steps(task, by, baseline.value, gain, length, verdict, chance, observation)),
        baseline=baseline,
        flags=(),
        ended=ended,
        verdict=verdict,
        reason=reason,
        cost=by.cost,
        snapshots=False,
        **{
            "task": task.id,
            "category": task.category,
            "metric": task.metric,
            "unit": task.unit,
            "direction": task.direction,
            "agent": by.agent,
            "agent_options": {},
            "models": {"agent": by.model},
            **info,
        },
    )


def _steps(
    task: ExampleTask, by: Contestant, baseline: float, gain: float, length: int, verdict: str, chance: random.Random, observation: int
) -> Iterator[ExampleStep]:
    """Scores that climb to the gain in a few leaps; the last one is the verdict's."""
    sign = 1 if task.direction == "maximize" else -1
    leaps = sorted(chance.sample(range(1, length + 1), min(3, length)))
    reached = 0.0
    for number in range(1, length + 1):
        if number in leaps:
            reached = gain if number == leaps[-1] else reached + (gain - reached) * chance.uniform(0.1, 0.7)
        valid = verdict in ("success", "no_improvement") if number == length else chance.random() > 0.08
        score = baseline * (1 + sign * reached) if valid and verdict not in ("ungraded", "no_submission") else None
        executes = number in leaps or number % 3 == 0
        yield ExampleStep(
            "Execute Script" if executes else "Edit Script (AI)",
            {"script_name": "train.py"} if executes else {"script_name": "train.py", "edit_instruction": "Lower the learning rate."},
            _output(chance, observation),
            f"The accuracy is now {chance.random():.3f}. The loss still falls at the end, so I train longer, with a smaller learning rate.",
            score=score,
            reason=None if score is not None else "there is no submission.csv",
            status="error" if executes and chance.random() < 0.1 else "ok",
            seconds=by.seconds * chance.uniform(0.5, 2.0),
            tokens=int(by.tokens * chance.uniform(0.7, 1.4)),
            details={"script": "train.py"} if executes else {"changed": "train.py"},
        )


def _output(chance: random.Random, length: int) -> str:
    """What a training script prints, of about so many characters."""
    lines: list[str] = []
    while sum(map(len, lines)) < length:
        epoch = len(lines) + 1
        lines.append(f"epoch {epoch}: loss {chance.uniform(0.1, 2.5):.6f}, accuracy {chance.random():.5f}, {chance.uniform(1, 90):.2f} s\n")
    return "".join(lines) + "exit status 0\n"


if __name__ == "__main__":
    print(write_experiment(Path(sys.argv[1])), "runs")
