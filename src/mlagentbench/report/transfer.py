"""Compare runs of a task that were given experience of a related task, of an unrelated one, and none."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from mlagentbench.report.components import infos
from mlagentbench.report.experiment import Experiment
from mlagentbench.results.cells import Cell
from mlagentbench.results.compare import Column, Comparison, compare
from mlagentbench.results.conditions import agent_words

NONE, RELATED, UNRELATED = "none", "related", "unrelated"


class Transfer(NamedTuple):
    """The runs of one agent with one model on one task, or on all tasks, by the experience that they were given."""

    task: str | None
    """None for all tasks of which the three kinds of runs are there."""
    agent: str
    model: str
    related: str | None
    """The tasks that the related experience is of; None where there are no such runs, or for all tasks."""
    unrelated: str | None
    none_column: dict[str, Cell]
    related_column: dict[str, Cell]
    unrelated_column: dict[str, Cell]

    @property
    def over_none(self) -> Comparison:
        """Related experience compared with none."""
        return compare(RELATED, self.related_column, NONE, self.none_column)

    @property
    def over_unrelated(self) -> Comparison:
        """Related experience compared with experience of an unrelated task."""
        return compare(RELATED, self.related_column, UNRELATED, self.unrelated_column)


class _CellWithExperience(NamedTuple):
    """A cell, and the tasks that its experience is of."""

    source: str
    cell: Cell


def transfers(experiment: Experiment) -> list[Transfer]:
    """Return the transfers of each agent and model, by task, and then over all tasks.

    Experience is related if it holds runs of the task itself or of a task of the same domain (`TaskSpec.domain`), and unrelated if it holds
    runs of other tasks only. Experience without runs, such as notes, is neither.
    """
    by_agent: dict[tuple[str, str, str], dict[str, dict[str, list[_CellWithExperience]]]] = {}
    for column, info in infos(experiment).items():
        agent = agent_words(info.model_copy(update={"experience": None}))
        model = info.spec.model_names["agent"]
        under = column.removeprefix(f"{agent_words(info)}, {model}")
        for task, cell in experiment.columns[column].items():
            kind = _kind(experiment, column, task)
            if kind is not None:
                source = ", ".join(info.experience.tasks) if info.experience else ""
                by_task = by_agent.setdefault((agent, model, under), {})
                by_task.setdefault(task, {}).setdefault(kind, []).append(_CellWithExperience(source, cell))
    found = []
    for (agent, model, under), by_task in by_agent.items():
        own = [each for task, kinds in by_task.items() for each in _of_task(task, f"{agent}{under}", model, kinds)]
        found += own
        if len(own) > 1 and len({each.task for each in own}) == len(own):
            none_column, related_column = (_merged(each.none_column for each in own), _merged(each.related_column for each in own))
            unrelated_column = _merged(each.unrelated_column for each in own)
            found.append(Transfer(None, f"{agent}{under}", model, None, None, none_column, related_column, unrelated_column))
    return found


def _kind(experiment: Experiment, column: str, task: str) -> str | None:
    """Return which kind of experience the runs of a cell were given; None for one that is neither related nor unrelated."""
    info = next(run.info for run in experiment.tasks[task] if experiment.column(run) == column)
    if info.experience is None:
        return NONE
    if not info.experience.tasks:
        return None
    return RELATED if task in info.experience.tasks or (info.domain and info.domain in info.experience.domains) else UNRELATED


def _of_task(task: str, agent: str, model: str, kinds: dict[str, list[_CellWithExperience]]) -> Iterable[Transfer]:
    """Yield the transfers of a task: one for each related experience with each unrelated one."""
    lacking: list[_CellWithExperience | None] = [None]
    nones = kinds.get(NONE) or lacking
    for related in kinds.get(RELATED, []):
        for unrelated in kinds.get(UNRELATED) or lacking:
            none_column, related_column, unrelated_column = ({task: each.cell} if each else {} for each in (nones[0], related, unrelated))
            other = unrelated.source if unrelated else None
            yield Transfer(task, agent, model, related.source, other, none_column, related_column, unrelated_column)


def _merged(columns: Iterable[Column]) -> dict[str, Cell]:
    return {task: cell for column in columns for task, cell in column.items()}
