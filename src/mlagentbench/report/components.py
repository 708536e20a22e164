"""Find which columns of an experiment differ in one component of the research agent, or in the experience that they were given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cached_property
from typing import Any, NamedTuple

from mlagentbench.report.experiment import Experiment
from mlagentbench.results.budget import budgets, within
from mlagentbench.results.cells import Cell, together
from mlagentbench.results.compare import UNKNOWN_CATEGORY, Column, Comparison, compare
from mlagentbench.results.conditions import agent_words
from mlagentbench.results.effort import Effort, effort
from mlagentbench.results.statistics.intervals import adjusted
from mlagentbench.results.statistics.trends import Trend, trend
from mlagentbench.run_spec import RunInfo

LOG, HIGH_LEVEL, SUMMARIES = "Research log", "High-level actions", "Summaries"
SWITCHES: Mapping[str, str] = {"research_log": LOG, "high_level_actions": HIGH_LEVEL, "summarise": SUMMARIES}
"""The components that are options of their own, by the option; the others are the entries of a reply."""
AMOUNTS: Mapping[str, Callable[[Effort], int | None]] = {
    "steps": lambda did: did.steps,
    "complexity": lambda did: did.changed_lines,
    "experiments": lambda did: did.experiments,
    "restarts": lambda did: did.restarts,
}
"""What the research log's benefit is related to."""


class Setting(NamedTuple):
    """A column's agent: which components it has, and everything else about it."""

    components: frozenset[str]
    rest: tuple[str, ...]
    """The other options of the agent, the model, and the conditions in the column's name."""


class Ablation(NamedTuple):
    """A column, and the one that differs from it in lacking one component."""

    component: str
    full: str
    """The name of the column with the component."""
    without: str
    category: str | None
    """The category of the tasks; None for all tasks."""
    comparison: Comparison
    p_adjusted: float
    """The p-value on these tasks, adjusted for all components, and for all categories where there is one."""


class LogTrend(NamedTuple):
    """How the benefit of the research log changes over tasks with an amount."""

    full: str
    without: str
    measure: str
    """`success` or `improvement`."""
    amount: str
    """One of `AMOUNTS`."""
    trend: Trend
    p_adjusted: float
    """The p-value, adjusted for all trends of the experiment."""


class Components:
    """The columns of an experiment that differ in one component."""

    def __init__(self, experiment: Experiment) -> None:
        self._experiment = experiment

    @cached_property
    def pairs(self) -> list[tuple[str, str, str]]:
        """Pairs of columns that differ in one component: its name, the column with it, and the column without it."""
        settings = {column: found for column, info in infos(self._experiment).items() if (found := setting(info, column))}
        return [
            (next(iter(one.components - other.components)), full, without)
            for full, one in settings.items()
            for without, other in settings.items()
            if one.rest == other.rest and other.components < one.components and len(one.components - other.components) == 1
        ]

    @cached_property
    def ablations(self) -> list[Ablation]:
        """Each pair, compared over all tasks and over those of each category."""
        whole: list[Ablation] = []
        parts: list[Ablation] = []
        columns = self._experiment.columns
        for component, full, without in self.pairs:
            first, second = columns[full], columns[without]
            categories = dict.fromkeys(cell.category or UNKNOWN_CATEGORY for cell in first.values())
            for category in (None, *(categories if len(categories) > 1 else ())):
                found = compare(full, _of(first, category), without, _of(second, category))
                if found.tasks:
                    (parts if category else whole).append(Ablation(component, full, without, category, found, 1.0))
        return [*_adjusted(whole), *_adjusted(parts)]

    @cached_property
    def log_trends(self) -> list[LogTrend]:
        """How the benefit of the research log changes with each amount, for each pair that differs in it."""
        found: list[tuple[str, str, str, str, Trend]] = []
        for component, full, without in self.pairs:
            if component != LOG:
                continue
            amounts = {name: self._amounts(full, without, of) for name, of in AMOUNTS.items()}
            for measure, benefits in _benefits(self._experiment.columns[full], self._experiment.columns[without]).items():
                for name, by_task in amounts.items():
                    tasks = [task for task in benefits if task in by_task]
                    line = trend([by_task[task] for task in tasks], [benefits[task] for task in tasks])
                    if line is not None:
                        found.append((full, without, measure, name, line))
        ps = adjusted([line.p for *_, line in found])
        return [LogTrend(*each, p_adjusted=p) for each, p in zip(found, ps, strict=True)]

    @cached_property
    def log_by_step(self) -> list[tuple[int, Comparison]]:
        """Each pair that differs in the research log, compared as if each run had ended within some steps.

        Left out are tasks of which not every step of each run was graded.
        """
        found = []
        for component, full, without in self.pairs:
            if component != LOG:
                continue
            columns = [self._experiment.columns[column] for column in (full, without)]
            graded = [
                {task: cell for task, cell in by_task.items() if cell.counted and all(run.progress is not None for run in cell.counted)}
                for by_task in columns
            ]
            runs = [run for by_task in graded for cell in by_task.values() for run in cell.counted]
            for steps in budgets(runs, "steps") if runs else []:
                first, second = ({task: within(cell, "steps", steps) for task, cell in by_task.items()} for by_task in graded)
                comparison = compare(full, first, without, second)
                if comparison.tasks:
                    found.append((round(steps), comparison))
        return found

    def _amounts(self, full: str, without: str, of: Callable[[Effort], int | None]) -> dict[str, float]:
        """Return the mean amount of each task over the counted runs of both columns, each counting alike; without unknown ones."""
        found: dict[str, dict[str, list[int | None]]] = {}
        for column, task, did in self._efforts:
            if column in (full, without):
                found.setdefault(task, {}).setdefault(column, []).append(of(did))
        means: dict[str, float] = {}
        for task, by_column in found.items():
            known = [[amount for amount in each if amount is not None] for each in by_column.values()]
            if len(known) == 2 and all(known):
                means[task] = sum(sum(each) / len(each) for each in known) / 2
        return means

    @cached_property
    def _efforts(self) -> list[tuple[str, str, Effort]]:
        """The column, the task and the effort of each counted run of a column that differs from another in the research log."""
        wanted = {column for component, *columns in self.pairs if component == LOG for column in columns}
        runs = self._experiment.runs
        return [
            (column, run.info.spec.task, effort(run))
            for run, (_, counted) in zip(runs, together(runs), strict=True)
            if counted.counted and (column := self._experiment.column(run)) in wanted
        ]


def infos(experiment: Experiment) -> dict[str, RunInfo]:
    """Return what is known of one run of each column."""
    found: dict[str, RunInfo] = {}
    for run in experiment.runs:
        found.setdefault(experiment.column(run), run.info)
    return found


def setting(info: RunInfo, column: str) -> Setting | None:
    """Return the setting of a column; None where its agent is not the research agent."""
    from mlagentbench.agents import research  # takes as long as a small report
    from mlagentbench.agents.research_options import ResearchOptions

    kinds: dict[str, Callable[..., research.ResearchAgent]] = {
        "research": research.ResearchAgent,
        "react": research.react,
        "act": research.act,
    }
    kinds |= {"full-history": research.full_history, "adaptive-entries": research.adaptive_entries}
    kinds |= {"primitive-only": research.primitive_only}
    try:
        agent = kinds[info.spec.agent](**info.spec.agent_options)
    except (KeyError, TypeError, ValueError):  # pydantic's ValidationError is a ValueError
        return None
    usual = research.ResearchAgent()
    names = [field.name for field in fields(ResearchOptions) if field.name not in ("entries", *SWITCHES)]
    other: dict[str, Any] = {name: getattr(agent, name) for name in names if getattr(agent, name) != getattr(usual, name)}
    words = agent_words(info.model_copy(update={"spec": info.spec.replace(agent="research", agent_options=other)}))
    have = frozenset((*agent.entries, *(name for option, name in SWITCHES.items() if getattr(agent, option))))
    under = column.removeprefix(f"{agent_words(info)}, {info.spec.model_names['agent']}")
    return Setting(have, (words, info.spec.model_names["agent"], under))


def _of(column: Column, category: str | None) -> dict[str, Cell]:
    return {task: cell for task, cell in column.items() if category in (None, cell.category or UNKNOWN_CATEGORY)}


def _benefits(first: Column, second: Column) -> dict[str, dict[str, float]]:
    """Return the difference of each shared task, by measure."""
    both = [(task, first[task], second[task]) for task in first if task in second]
    means = {
        "success": [(task, one.rate, other.rate) for task, one, other in both],
        "improvement": [(task, one.improvement, other.improvement) for task, one, other in both],
    }
    return {measure: {task: one.value - other.value for task, one, other in each if one and other} for measure, each in means.items()}


def _adjusted(found: list[Ablation]) -> list[Ablation]:
    ps = adjusted([each.comparison.these_tasks.p if each.comparison.these_tasks else 1.0 for each in found])
    return [each._replace(p_adjusted=p) for each, p in zip(found, ps, strict=True)]
