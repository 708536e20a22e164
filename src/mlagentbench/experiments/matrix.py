"""Expand the file of an experiment to its matrix: a cell for every task, agent and model of a group, and the names of its runs.

A run's name is made of what it does, so that the same file always gives the same names, wherever and however often it is read.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from mlagentbench.agents.base import make_agent
from mlagentbench.errors import UsageError
from mlagentbench.experiments.file import ExperimentAgent, ExperimentBudget, ExperimentFile, Group
from mlagentbench.records import Moment, Record, Word
from mlagentbench.run_spec import RunSpec
from mlagentbench.runner.preflight import make_spec
from mlagentbench.task.catalogue import Task, find_task

NOT_CONDITIONS = frozenset({"note", "gpus", "prices", "rate_limits"})
"""The fields of a spec that change nothing about how a run comes out, so that a run with others is still the same run."""
NO_MODEL_LABEL = "-"
"""What stands for the model of an agent that asks none."""


class MatrixCell(Record):
    """The runs of one agent with one model on one task under the same conditions."""

    id: Word
    """The beginning of its runs' names."""
    group: Word
    task: Word
    agent: Word
    """The agent's label."""
    model: Word
    """The model's label."""
    runs: int
    spec: RunSpec
    """What each run is to do; its experience is missing if it is that of other cells."""
    gpu: bool
    """Whether the task wants a GPU."""
    sources: tuple[Word, ...] = ()
    """The names of the runs that are its runs' experience."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its runs."""
        return tuple(f"{self.id}-{number}" for number in range(1, self.runs + 1))


class Matrix(Record):
    """All cells of an experiment, and what it may use."""

    name: Word
    file: Path
    cells: tuple[MatrixCell, ...]
    """A cell stands after those that it has its experience from."""
    budget: ExperimentBudget = ExperimentBudget()
    scheduled: Moment = 0.0
    """When it was first run."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all runs."""
        return tuple(name for cell in self.cells for name in cell.names)

    def cell_of(self, name: str) -> MatrixCell:
        """Return the cell of a run by the run's name."""
        return self.by_id[name.rpartition("-")[0]]

    @property
    def by_id(self) -> Mapping[str, MatrixCell]:
        """The cells by their ids."""
        return {cell.id: cell for cell in self.cells}

    def stages(self) -> list[list[MatrixCell]]:
        """Return the cells in stages: all cells of a stage have their experience from earlier ones."""
        stage: dict[str, int] = {}
        for cell in self.cells:
            stage[cell.id] = 1 + max((stage[self.cell_of(source).id] for source in cell.sources), default=-1)
        return [[cell for cell in self.cells if stage[cell.id] == number] for number in range(max(stage.values()) + 1)]


def expand(file: ExperimentFile, task_paths: Iterable[Path] = ()) -> Matrix:
    """Return the matrix of an experiment. Cells that two groups share are one cell, with the larger number of runs.

    Tasks are also looked for in `task_paths`, besides the folders that the file names.

    Raises:
        TaskError: there is no such task.
        AgentError: there is no such agent, or it refuses an option.
        UsageError: a field has a wrong value, or a group has its experience from one without the same agent and model.
    """
    paths = [path.resolve() for path in (*task_paths, *file.task_paths)]
    tasks = {name: find_task(name, paths) for name in dict.fromkeys(name for group in file.groups for name in group.tasks)}
    cells: dict[str, MatrixCell] = {}
    found: dict[tuple[str, str, str], list[str]] = {}
    for group in file.groups:
        where = f"{file.path}: group {group.name}" if group.name else str(file.path)
        for task, agent in itertools.product(group.tasks, group.agents):
            for model, models in _models(group, agent).items():
                sources = _sources(group, agent, model, found, where)
                fields = {**group.fields, "agent": agent.agent, "agent_options": agent.options, "models": models}
                cell = _cell(group, tasks[task], agent.label, model, make_spec(tasks[task], fields, where), sources)
                if cell.id not in cells or cells[cell.id].runs < cell.runs:
                    cells[cell.id] = cell if cell.id not in cells else cells[cell.id].model_copy(update={"runs": cell.runs})
                found.setdefault((group.name, agent.label, model), []).extend(cell.names)
    return Matrix(name=file.name, file=file.path.resolve(), cells=tuple(cells.values()), budget=file.budget)


def _models(group: Group, agent: ExperimentAgent) -> dict[str, Mapping[str, object]]:
    """Return the models of an agent by their labels, each as `RunSpec.models`. An agent that asks none has one empty one."""
    needs = getattr(make_agent(agent.agent, agent.options), "needs_model", True)
    if not needs or not group.models:
        return {NO_MODEL_LABEL: {}}
    return {entry.label: entry.by_role() for entry in group.models}


def _sources(
    group: Group, agent: ExperimentAgent, model: str, found: Mapping[tuple[str, str, str], list[str]], where: str
) -> tuple[str, ...]:
    if group.experience_from is None:
        return ()
    sources = found.get((group.experience_from, agent.label, model))
    if sources is None:
        raise UsageError(f"{where}: experience_from: the group {group.experience_from} has no runs of {agent.label} with {model}")
    return tuple(sources)


def _cell(group: Group, task: Task, agent: str, model: str, spec: RunSpec, sources: tuple[str, ...]) -> MatrixCell:
    # Fields with their default values are left out, so that a field that a later version adds renames no run.
    conditions = spec.model_dump(mode="json", exclude_defaults=True, exclude=set(NOT_CONDITIONS))
    text = json.dumps([conditions, sources], sort_keys=True)
    short = re.sub(r"[^A-Za-z0-9_]+", "-", spec.agent.rpartition(":")[2])
    return MatrixCell(
        id=f"{task.id}-{short}-{hashlib.sha256(text.encode()).hexdigest()[:8]}",
        group=group.name,
        task=task.id,
        agent=agent,
        model=model,
        runs=group.runs,
        spec=spec,
        gpu=task.spec.gpu,
        sources=sources,
    )
