"""The environment of an agent: the only place where actions are performed.

It gives an agent its actions and models, enforces the run's limits, records every step and every question to a model, and snapshots the
workspace. A step is published in the background while the agent's model replies, and awaited before the next action, so that at most the
step in progress is lost, whatever ends the run.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, TypeVar

from pydantic import JsonValue

from mlagentbench.actions.base import ActionDefinition, Observation, SessionAnswer
from mlagentbench.environment.limits import Budget
from mlagentbench.environment.listener import ActionMiddleware, Listener, SilentListener, directly
from mlagentbench.environment.provider import ProviderCheck
from mlagentbench.environment.publisher import Publisher
from mlagentbench.environment.scripts import BoxSetup, ScriptRunner
from mlagentbench.environment.step_usage import StepUsage
from mlagentbench.errors import ActionError, FormatFailure, InfrastructureError, LimitReached, ResponseFormatError
from mlagentbench.model import GenerateOptions, Model, Models, Reply
from mlagentbench.records import Action, ModelCall, Role, Step, Usage
from mlagentbench.run_spec import RunLimits
from mlagentbench.rundir.directory import RunDirectory
from mlagentbench.sandbox.base import Execution, SandboxSpec
from mlagentbench.sandbox.box import Box
from mlagentbench.util.text import encodable
from mlagentbench.workspace.paths import Workspace

T = TypeVar("T")
Ask = Callable[[Model], Awaitable[Reply]]

UNKNOWN_CONTEXT = 16_000
"""Tokens of context that a model is assumed to have if its provider states none."""
LEAST_READ = 4000
"""Characters of a file that fit into one question to any model."""

MOST_MALFORMED = 5
"""Replies in a row without an action after which a run ends, as in the paper."""


class Environment:
    """An agent's environment in one run.

    Args:
        directory: where the run is recorded; if it holds steps already, the run continues after them.
        workspace: the agent's files.
        scripts: runs the agent's scripts.
        models: the models by role.
        actions: the actions that can be called, by name.
        limits: what the run may use, including the steps already taken.
        listener: is notified of what happens; None for nobody.
        middleware: the middleware that every action passes through.
        person: asks the person who watches an interactive run; None for a run that nobody watches.
        documents: the folder of texts that the agent can search; None if there are none.
    """

    def __init__(
        self,
        *,
        directory: RunDirectory,
        workspace: Workspace,
        scripts: ScriptRunner,
        models: Models,
        actions: Mapping[str, ActionDefinition],
        limits: RunLimits = RunLimits(),
        listener: Listener | None = None,
        middleware: ActionMiddleware = directly,
        person: Callable[[str], Awaitable[str]] | None = None,
        documents: Path | None = None,
    ) -> None:
        self.directory = directory
        self.description = directory.info.description
        self.metric, self.direction = directory.info.metric, directory.info.direction
        self.workspace = workspace
        self.actions = actions
        self.documents = documents
        self.limits = limits
        self.listener: Listener = listener or SilentListener()
        self._steps = directory.steps()
        self.ended = bool(self._steps) and "final_answer" in self._steps[-1].details
        """True once a final answer was given, after which nothing can be executed."""
        self.sampling: Mapping[Role, Mapping[str, Any]] = {}
        """The agent's settings for the questions that actions ask, by role; they override fields of `GenerateOptions`."""
        self.usage: dict[Role, Usage] = directory.usage()
        """Tokens and cost by role, including those used before the run was resumed."""
        self._scripts = scripts
        self._models = models
        self._middleware = middleware
        self._person = person
        self._publisher = Publisher(workspace, directory, limits, scripts.spec.limits.workspace_mb)
        self._step_usage = StepUsage()
        workspace.watch = lambda use, path: self._step_usage.did(use, path)
        self.provider = ProviderCheck(self._record_call)
        self.budget = Budget(limits, self._steps)
        """What is left of the run's limits."""

    @property
    def steps(self) -> Sequence[Step]:
        """The steps so far, including those taken before the run was resumed."""
        return self._steps

    @property
    def seconds_left(self) -> float:
        """Seconds until the run's time limit."""
        return self.budget.seconds_left

    async def start(self) -> None:
        """Snapshot the initial workspace. Call it once, before the first step.

        Raises:
            LimitReached: the workspace holds more files than it may.
            StorageFailed: the disk is full or read-only.
        """
        await asyncio.to_thread(self._publisher.begin, len(self._steps))

    async def execute(
        self, action: Action, *, entries: Mapping[str, str] = {}, memory: Mapping[str, JsonValue] = {}, counted: bool = True
    ) -> Step:
        """Perform one action, record it, and return the step with its observation.

        An action that cannot be done is a step too: its observation says why.

        Args:
            action: the action.
            entries: the agent's thoughts before it, recorded with the step.
            memory: the agent's own data, recorded with the step for when the run continues from it.
            counted: False for an agent's own bookkeeping, which does not count towards the step limit.

        Raises:
            ActionError: a final answer was given before.
            LimitReached: a limit of the run was reached before this action.
            StorageFailed: the step before, or a record of this one, could not be written.
        """
        if self.ended:
            raise ActionError("the run has ended by its final answer, and nothing can be done after it")
        await self.settle()
        self.directory.attempts.check()
        await self._check_limits()
        action = Action(name=encodable(action.name), arguments=encodable(action.arguments))
        argument = next((value for value in action.arguments.values() if isinstance(value, str)), "")
        self.listener.on_status(f"{action.name} {argument}".strip()[:100])
        self._step_usage.acting = True
        try:
            observation = await self._middleware(action, self._perform)
        finally:
            self._step_usage.acting = False
        return self._add(action, observation, entries, memory, counted)

    @property
    def sandbox_spec(self) -> SandboxSpec:
        """What scripts may see and use in their sandbox."""
        return self._scripts.spec

    async def open_box(self, setup: BoxSetup) -> Box:
        """Start the sandbox that the agent itself runs in, for an agent that performs its actions there by itself and calls `record`.

        Raises:
            SandboxUnavailable: the run's sandbox is not bubblewrap.
            BoxEnded: it did not start.
        """
        await asyncio.to_thread(self._publisher.include, self.directory.home)
        return await self._scripts.open_box(setup, self.directory.home)

    async def record(
        self, action: Action, observation: Observation, *, entries: Mapping[str, str] = {}, memory: Mapping[str, JsonValue] = {}
    ) -> Step:
        """Record an action that the agent has performed by itself in its box, which is paused while the workspace is snapshotted.

        Raises:
            LimitReached: the step left more files than a workspace may hold, and is not published.
            StorageFailed: the step could not be written.
        """
        action = Action(name=encodable(action.name), arguments=encodable(action.arguments))
        with self._scripts.box.frozen() if self._scripts.box is not None else nullcontext():
            step = self._add(action, observation._replace(text=encodable(observation.text)), entries, memory)
            await self.settle()
        return step

    def _add(
        self, action: Action, observation: Observation, entries: Mapping[str, str], memory: Mapping[str, JsonValue], counted: bool = True
    ) -> Step:
        """Make a step of an action and its observation, and begin to publish it."""
        step_usage, self._step_usage = self._step_usage, StepUsage()
        step = Step(
            number=len(self._steps) + 1,
            entries=encodable(entries),
            action=action,
            observation=observation.text,
            status=observation.status,
            counted=counted,
            started=step_usage.wall,
            seconds=self._step_usage.started - step_usage.started,
            model_seconds=step_usage.model_seconds,
            waited_seconds=step_usage.waited,
            script_seconds=observation.script_seconds,
            usage=step_usage.usage,
            malformed=step_usage.malformed,
            memory=encodable(memory),
            details=observation.details,
            inside=tuple(step_usage.inside),
        )
        self._steps.append(step)
        self.ended = "final_answer" in observation.details
        self._publisher.publish_soon(step)
        self.listener.on_step(step)
        return step

    async def settle(self) -> None:
        """Wait until the last step is published.

        Raises:
            LimitReached: the step left more files than a workspace may hold, and is not published.
            StorageFailed: the step could not be written.
        """
        try:
            await self._publisher.settle()
        except LimitReached as limit:
            raise self.budget.end(limit) from None

    async def ask_agent(self, prompt: str, parse: Callable[[str], T], options: GenerateOptions = GenerateOptions()) -> T:
        """Ask the agent's model, and return its parsed reply.

        Args:
            prompt: the question.
            parse: parses the reply's text, and raises ResponseFormatError if it holds no action.
            options: how to sample the reply.

        Raises:
            MLAgentBenchError: as `consult` does; a ResponseFormatError says what to correct in the next question.
        """
        return await self.consult(lambda model: model.generate(prompt, options), prompt, lambda reply: parse(reply.text))

    async def consult(self, ask: Ask, prompt: str, parse: Callable[[Reply], T], *, purpose: str = "agent") -> T:
        """Ask the agent's model through the caller's own function, and return its parsed reply.

        The question is recorded, counted and limited as by `ask_agent`.

        Args:
            ask: asks the model. It may use more of the model than `generate`, such as tool calls.
            prompt: the question, for the record.
            parse: parses the reply, and raises ResponseFormatError if it holds no action.
            purpose: who asks, for the record.

        Raises:
            ResponseFormatError: the reply holds no action. Ask again, with the message, which says what to correct.
            FormatFailure: it was the fifth such reply in a row.
            LimitReached: a limit of the run was reached, or the prompt is longer than the model can read.
            ModelFailed: the provider failed for good.
        """
        await self._check_limits()
        reply, seconds = await self._generate("agent", purpose, prompt, ask)
        try:
            if not reply.text.strip():
                raise ResponseFormatError("The reply is empty.")
            answer = parse(reply)
        except ResponseFormatError as error:
            problem = f"{reply.cut_notice} {error}" if reply.truncated else str(error)
            self._record_call("agent", purpose, prompt, reply, seconds, rejected=problem)
            self._step_usage.malformed += 1
            if self._step_usage.malformed >= MOST_MALFORMED:
                raise FormatFailure(f"{MOST_MALFORMED} replies in a row held no action; the last: {problem.splitlines()[0]}") from None
            raise ResponseFormatError(problem) from None
        self._record_call("agent", purpose, prompt, reply, seconds)
        return answer

    async def ask(self, prompt: str, *, role: Role, purpose: str, options: GenerateOptions = GenerateOptions()) -> Reply:
        """Ask a model on behalf of an action, or of an agent's bookkeeping (`purpose` says which).

        Raises:
            ActionError: the prompt is longer than the model can read, or its provider refuses it, or the reply is empty.
            LimitReached: a limit of the run was reached.
            ModelFailed: the provider failed for good.
        """
        await self._check_limits()
        if self._step_usage.acting:
            options = options._replace(**self.sampling.get(role, {}))
        try:
            reply, seconds = await self._generate(role, purpose, prompt, lambda model: model.generate(prompt, options))
        except LimitReached as limit:
            if limit.ended != "limit_context":
                raise
            raise ActionError(f"{purpose} could not be done: {limit}. Choose a smaller or another part of what it has to read.") from None
        self._record_call(role, purpose, prompt, reply, seconds)
        if not reply.text.strip():
            raise ActionError(f"{purpose} could not be done: {reply.cut_notice if reply.truncated else 'the reply was empty.'}")
        return reply

    def context_tokens(self, role: Role) -> int | None:
        """Return how many tokens a role's model can read and write in all; None if that is unknown."""
        model: Model = getattr(self._models, role)
        return model.context_tokens

    def can_read(self, role: Role) -> int:
        """Return about how many characters of a file fit into one question to a role's model."""
        # A file may take half of the context, at three characters a token: the rest is for the question and the reply.
        return max(LEAST_READ, (self.context_tokens(role) or UNKNOWN_CONTEXT) * 3 // 2)

    async def storage_limit_behind(self, failure: InfrastructureError) -> LimitReached | None:
        """Return the storage limit, as reached, if a failure is the run's own fault because its files filled the disk; else None."""
        if self.budget.reached is None and (limit := await asyncio.to_thread(self._publisher.filled_by, failure)):
            self.budget.end(limit)
        reached = self.budget.reached
        return reached if reached and reached.ended == "limit_storage" else None

    async def run_script(self, command: Sequence[str]) -> Execution:
        """Run a command in the sandbox, within the limits of scripts and the run's time limit."""
        execution = await self._scripts.run(command, self.seconds_left, self._streamed)
        self._step_usage.did("run", " ".join(command), execution.seconds)
        return execution

    async def run_in_session(self, source: str) -> SessionAnswer:
        """Run Python source in the agent's session, which is started if there is none."""
        answer = await self._scripts.run_in_session(source, self.seconds_left)
        self._streamed(answer.execution.output)
        self._step_usage.did("run", "python session", answer.execution.seconds)
        return answer

    def close(self) -> None:
        """End the agent's session. Call it when the run is over."""
        self.provider.close()
        self._scripts.close()

    async def ask_person(self, request: str) -> str:
        """Ask the person who watches the run, and return the answer.

        Raises:
            ActionError: nobody watches the run.
        """
        if self._person is None:
            raise ActionError("Nobody watches this run, so there is no help to be had. Go on by yourself.")
        return await self._person(request)

    def content_after(self, step: int, path: str) -> bytes | None:
        """Return a file's content as it was after a step (0 is the start); None if there was no file."""
        return self._publisher.content_after(step, self.workspace.relative(path))

    def _streamed(self, text: str) -> None:
        """Pass a script's output on as it comes, and store it beside the step in case this process dies before the step ends."""
        self.directory.append_output(len(self._steps) + 1, text)
        self.listener.on_output(text)

    async def _perform(self, action: Action) -> Observation:
        definition = self.actions.get(action.name)
        try:
            if definition is None:
                raise ActionError(f"There is no action {action.name!r}. The actions are: {', '.join(self.actions)}.")
            observation = await definition.perform(self, **definition.check(action.arguments))
        except ActionError as error:
            return Observation(str(error), "error")
        return Observation(observation) if isinstance(observation, str) else observation

    async def _generate(self, role: Role, purpose: str, prompt: str, ask: Ask) -> tuple[Reply, float]:
        model: Model = getattr(self._models, role)
        self.listener.on_status(f"asking {model.name}")
        started = time.monotonic()
        try:
            async with asyncio.timeout(max(0.0, self.seconds_left)):
                reply = await ask(model)
        except TimeoutError:
            seconds = time.monotonic() - started
            self._record_call(role, purpose, prompt, Reply("", Usage(), model.name, "limit_time"), seconds)
            await self.provider.check(role, model, seconds)
            raise self.budget.time_is_up() from None
        return reply, time.monotonic() - started

    def _record_call(self, role: Role, purpose: str, prompt: str, reply: Reply, seconds: float, rejected: str | None = None) -> None:
        call = ModelCall(
            role=role,
            model=reply.model,
            purpose=purpose,
            prompt=prompt,
            reply=reply.text,
            usage=reply.usage,
            seconds=seconds,
            started=max(0.0, time.time() - seconds),
            stop_reason=reply.stop_reason,
            rejected=rejected,
        )
        self.directory.append_call(len(self._steps) + 1, call)
        self._step_usage.model_seconds += seconds
        self._step_usage.waited += reply.waited
        self._step_usage.did("ask", role, seconds)
        self._step_usage.usage = Usage.total((self._step_usage.usage, reply.usage))
        self.usage[role] = Usage.total((self.usage.get(role, Usage()), reply.usage))

    async def _check_limits(self) -> None:
        await self.budget.check(self._steps, self._step_usage.waited, Usage.total(self.usage.values()), self._publisher.stored)
