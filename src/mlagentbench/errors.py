"""Every error that this package raises on purpose.

    MLAgentBenchError
    ├── UsageError                 what was asked for cannot be done as asked; exit status 2
    │   ├── TaskError              a task is unknown, or its folder breaks the rules
    │   ├── AgentError             an agent is unknown, or refuses its options
    │   ├── ModelUnavailable       a model is unknown, or lacks its key or package
    │   ├── SandboxUnavailable     this machine cannot give the isolation asked for
    │   └── RunNotFound            a path holds no run
    ├── ActionError                an action could not be done; the agent gets the message as its observation
    ├── ResponseFormatError        a reply holds no action; the agent's model gets the message, and may try again
    ├── InvalidSubmission          the submission cannot be scored; the message says why
    ├── LimitReached               a limit of the run was reached; the run ends, and its last snapshot is graded
    ├── RunStopped                 the person who does or watches a run stopped it; it can be resumed
    ├── ReportFailed               a page or a chart could not be made; the runs are unchanged
    ├── FormatFailure              too many replies in a row held no action; the run ends
    ├── BoxEnded                   the sandbox that an agent runs in has ended
    ├── AgentExited                an agent's program failed; the run ends
    └── InfrastructureError        neither the agent's fault nor the user's; never counts against the agent
        ├── ModelFailed            a model's provider failed for good
        │   └── ScriptFailed       a scripted model has no reply left, or got another prompt than it expects
        ├── GradingError           a grader failed, or reached its limits
        ├── Superseded             another process has taken over the run, since this one was thought dead
        └── StorageFailed          a record could not be written: a full or read-only disk

Anything else that escapes is a bug of this package, or of an agent's or a grader's own code.
"""

from typing import Literal

LimitName = Literal["limit_steps", "limit_time", "limit_tokens", "limit_cost", "limit_context", "limit_storage"]
"""The limits that end a run."""


class MLAgentBenchError(Exception):
    """The base class. The message is one line that says what is wrong and what to do."""


class UsageError(MLAgentBenchError):
    """What was asked for cannot be done as asked."""


class TaskError(UsageError):
    """A task is unknown, or its folder breaks the rules."""


class AgentError(UsageError):
    """An agent is unknown, or refuses its options."""


class ModelUnavailable(UsageError):
    """A model is unknown, or lacks its key or package."""


class SandboxUnavailable(UsageError):
    """This machine cannot give the isolation asked for."""


class RunNotFound(UsageError):
    """A path holds no run."""


class ActionError(MLAgentBenchError):
    """An action could not be done. The message becomes the agent's observation."""


class ResponseFormatError(MLAgentBenchError):
    """A reply holds no complete action. The message tells the model what to correct."""


class InvalidSubmission(MLAgentBenchError):
    """The submission cannot be scored. The message says why."""


class LimitReached(MLAgentBenchError):
    """A limit of the run was reached."""

    def __init__(self, ended: LimitName, message: str) -> None:
        super().__init__(message)
        self.ended = ended


class RunStopped(MLAgentBenchError):
    """The person who does or watches a run stopped it. It is graded as it stands, and can be resumed."""


class FormatFailure(MLAgentBenchError):
    """Too many replies in a row held no action."""


class ReportFailed(MLAgentBenchError):
    """A page or a chart could not be made of runs. The runs are unchanged."""


class BoxEnded(MLAgentBenchError):
    """The sandbox that an agent runs in has ended: at a limit, by the agent's doing, or because the run is over."""


class AgentExited(MLAgentBenchError):
    """An agent's program failed. The run ends, and its last snapshot is graded."""


class InfrastructureError(MLAgentBenchError):
    """A failure that is neither the agent's fault nor the user's. A run that ends by it does not count against the agent."""


class ModelFailed(InfrastructureError):
    """A model's provider failed for good, after its retries."""


class ScriptFailed(ModelFailed):
    """A scripted model has no reply left, or the prompt lacks a text that the reply expects."""


class GradingError(InfrastructureError):
    """A grader failed, or reached its limits. `grading/control.py` finds out whether the submission caused that."""


class Superseded(InfrastructureError):
    """Another process has taken over the run, since this one was thought dead: this one must not write any more."""


class StorageFailed(InfrastructureError):
    """A record could not be written or read back. What was written before stays."""
