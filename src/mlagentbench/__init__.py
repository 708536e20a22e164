"""MLAgentBench: a benchmark of language agents doing machine-learning experimentation.

    import mlagentbench

    logs = mlagentbench.run(task="vectorization", variant="mini", agent="research", models={"agent": "openai/gpt-4o"})
    logs.frame()        # a polars frame, one row a run

docs/api.md lists the public names. Importing this package does nothing else: each name is imported from its module at its first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlagentbench.actions.base import ActionContext as ActionContext
    from mlagentbench.actions.base import Observation as Observation
    from mlagentbench.actions.base import action as action
    from mlagentbench.agents.base import Agent as Agent
    from mlagentbench.data import fetch as fetch
    from mlagentbench.data.prepare import Prepared as Prepared
    from mlagentbench.engine.models.model import knowledge_cutoff as knowledge_cutoff
    from mlagentbench.engine.run import run as run
    from mlagentbench.engine.run import run_async as run_async
    from mlagentbench.environment import Environment as Environment
    from mlagentbench.errors import ActionError as ActionError
    from mlagentbench.errors import AgentError as AgentError
    from mlagentbench.errors import FormatFailure as FormatFailure
    from mlagentbench.errors import GradingError as GradingError
    from mlagentbench.errors import InfrastructureError as InfrastructureError
    from mlagentbench.errors import InvalidSubmission as InvalidSubmission
    from mlagentbench.errors import LimitReached as LimitReached
    from mlagentbench.errors import MLAgentBenchError as MLAgentBenchError
    from mlagentbench.errors import ModelFailed as ModelFailed
    from mlagentbench.errors import ModelUnavailable as ModelUnavailable
    from mlagentbench.errors import ReportFailed as ReportFailed
    from mlagentbench.errors import ResponseFormatError as ResponseFormatError
    from mlagentbench.errors import RunNotFound as RunNotFound
    from mlagentbench.errors import RunStopped as RunStopped
    from mlagentbench.errors import SandboxUnavailable as SandboxUnavailable
    from mlagentbench.errors import ScriptFailed as ScriptFailed
    from mlagentbench.errors import StorageFailed as StorageFailed
    from mlagentbench.errors import TaskError as TaskError
    from mlagentbench.errors import UsageError as UsageError
    from mlagentbench.grading.code.client import CodeClient as CodeClient
    from mlagentbench.grading.context import GradingContext as GradingContext
    from mlagentbench.grading.reader import SubmissionFiles as SubmissionFiles
    from mlagentbench.limits import ScriptLimits as ScriptLimits
    from mlagentbench.model import GenerateOptions as GenerateOptions
    from mlagentbench.model import Reply as Reply
    from mlagentbench.model import ScriptedModel as ScriptedModel
    from mlagentbench.model import ScriptedReply as ScriptedReply
    from mlagentbench.records import Action as Action
    from mlagentbench.records import Outcome as Outcome
    from mlagentbench.records import Result as Result
    from mlagentbench.records import Score as Score
    from mlagentbench.records import Step as Step
    from mlagentbench.records import Usage as Usage
    from mlagentbench.results.compare import by_category as by_category
    from mlagentbench.results.compare import by_cutoff as by_cutoff
    from mlagentbench.results.counts import counts as counts
    from mlagentbench.results.load import Run as Run
    from mlagentbench.results.logs import Logs as Logs
    from mlagentbench.results.logs import load as load
    from mlagentbench.run_spec import RunLimits as RunLimits
    from mlagentbench.run_spec import RunSpec as RunSpec
    from mlagentbench.task.catalogue import Task as Task
    from mlagentbench.task.metrics import mean_absolute_error as mean_absolute_error
    from mlagentbench.task.metrics import root_mean_squared_error as root_mean_squared_error
    from mlagentbench.task.proofs import Files as Files
    from mlagentbench.task.proofs import Invalid as Invalid
    from mlagentbench.task.proofs import edited_starter as edited_starter
    from mlagentbench.task.proofs import invalid_tables as invalid_tables
    from mlagentbench.task.proofs import shuffled as shuffled
    from mlagentbench.task.proofs import table_text as table_text
    from mlagentbench.task.sampling import row_score as row_score
    from mlagentbench.task.seeds import SEED as SEED
    from mlagentbench.task.table_task import TableTask as TableTask
    from mlagentbench.task.tables import Column as Column
    from mlagentbench.task.tables import Number as Number
    from mlagentbench.task.tables import OneOf as OneOf
    from mlagentbench.task.tables import Text as Text
    from mlagentbench.task.tables import align as align
    from mlagentbench.task.tables import align_rows as align_rows

_MODULES = {
    "actions.base": ("ActionContext", "Observation", "action"),
    "agents.base": ("Agent",),
    "data": ("fetch",),
    "data.prepare": ("Prepared",),
    "engine.models.model": ("knowledge_cutoff",),
    "engine.run": ("run", "run_async"),
    "environment": ("Environment",),
    "errors": (
        *("ActionError", "AgentError", "FormatFailure", "GradingError", "InfrastructureError", "InvalidSubmission", "LimitReached"),
        *("MLAgentBenchError", "ModelFailed", "ModelUnavailable", "ReportFailed", "ResponseFormatError", "RunNotFound"),
        *("RunStopped", "SandboxUnavailable", "ScriptFailed", "StorageFailed", "TaskError", "UsageError"),
    ),
    "grading.code.client": ("CodeClient",),
    "grading.context": ("GradingContext",),
    "grading.reader": ("SubmissionFiles",),
    "limits": ("ScriptLimits",),
    "model": ("GenerateOptions", "Reply", "ScriptedModel", "ScriptedReply"),
    "records": ("Action", "Outcome", "Result", "Score", "Step", "Usage"),
    "results.compare": ("by_category", "by_cutoff"),
    "results.counts": ("counts",),
    "results.load": ("Run",),
    "results.logs": ("Logs", "load"),
    "run_spec": ("RunLimits", "RunSpec"),
    "task.catalogue": ("Task",),
    "task.metrics": ("mean_absolute_error", "root_mean_squared_error"),
    "task.proofs": ("Files", "Invalid", "edited_starter", "invalid_tables", "shuffled", "table_text"),
    "task.sampling": ("row_score",),
    "task.seeds": ("SEED",),
    "task.table_task": ("TableTask",),
    "task.tables": ("Column", "Number", "OneOf", "Text", "align", "align_rows"),
}
"""The public names, by the module that defines them."""
_HOMES = {name: module for module, names in _MODULES.items() for name in names}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"{__name__}.{_HOMES[name]}")
    # `fetch` is a module itself.
    value = getattr(module, name, None) or importlib.import_module(f"{module.__name__}.{name}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *__all__]
