"""Run an agent of another framework in an environment, so that its questions and actions are recorded and limited like any agent's.

The state of such an agent is inside its framework and cannot be saved. A resumed run therefore restarts the agent and replays what it
received before: the replies stored in the steps' memories, and the steps' observations. This works as long as the agent acts as it did
the first time; if it does not, the run fails, since it would be another run.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import NoReturn, TypeVar

from inspect_ai.model import ModelOutput
from pydantic import JsonValue

from mlagentbench.agents.base import render
from mlagentbench.engine.agents.conversation import Conversation, thoughts_of
from mlagentbench.engine.agents.tools import FINAL_ANSWER
from mlagentbench.engine.models.model import InspectRequest
from mlagentbench.environment import Environment
from mlagentbench.errors import AgentError, FormatFailure
from mlagentbench.records import Action, Step
from mlagentbench.util.text import encodable

T = TypeVar("T")
MOST_IDLE = 50
"""How many replies in a row without an action end a run; a framework may need several for one action."""

LEAVING = 5.0
"""Seconds that an agent has to end when its run has ended; one that goes on longer can no longer ask or act."""


class ExternalAgent:
    """The interface through which a framework's agent uses an environment.

    After the final answer or an error, `ask` and `act` do not return, since a framework would catch the exception and go on. `stay`
    ends the agent instead.

    Args:
        environment: the environment of the agent's run.
        check: checks a reply, and raises ResponseFormatError if the framework will reject it.
    """

    def __init__(self, environment: Environment, check: Callable[[ModelOutput], None] = lambda output: None) -> None:
        self._environment = environment
        self._conversation = Conversation(environment)
        self._check = check
        self._replies = deque(output for step in environment.steps for output in _replies(step))
        self._steps = deque(environment.steps)
        self._new: list[JsonValue] = []
        self._entries: dict[str, str] = {}
        self._acting = asyncio.Lock()
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def ask(self, question: InspectRequest) -> ModelOutput:
        """Ask the agent's model, or return the stored reply when the run is resumed."""
        if self._replies:
            output = self._replies.popleft()
        elif self._steps:
            await self._end(self._changed("it asks once more"))
        else:
            output = await self._guarded(self._asked(question))
            self._new.append(output.model_dump(mode="json", exclude_none=True))
        self._entries |= thoughts_of(output.message).entries
        return output

    async def act(self, name: str, arguments: Mapping[str, JsonValue]) -> str:
        """Execute an action and return its observation, or the stored one when the run is resumed. Only one is executed at a time."""
        action = Action(name=name, arguments=arguments)
        async with self._acting:
            entries, self._entries = self._entries, {}
            if self._steps:
                return (await self._repeated(action)).observation
            if self._replies:
                await self._end(self._changed("it asks once less"))
            memory: dict[str, JsonValue] = {"replies": self._new} if self._new else {}
            self._new = []
            step = await self._guarded(self._environment.execute(action, entries=entries, memory=memory))
            if self._environment.ended:
                await self._end()
            return step.observation

    async def stay(self, agent: Coroutine[object, None, str]) -> None:
        """Run the agent until it returns its answer, submits it as an action, or fails.

        Raises:
            AgentError: in a resumed run, the agent does not repeat what it did before.
            whatever ended it: a limit, a model that failed, or an error of the agent's own.
        """
        acting = asyncio.create_task(agent)
        try:
            await asyncio.wait((acting, self._over), return_when=asyncio.FIRST_COMPLETED)
            if self._over.done():
                self._over.result()
                return
            answer = await acting
            acting = asyncio.create_task(self._submitted(answer))
            await self._over
        finally:
            acting.cancel()
            await asyncio.wait((acting,), timeout=LEAVING)
            if self._over.done() and not self._over.cancelled():
                self._over.exception()

    async def _submitted(self, answer: str) -> str:
        return await self.act(FINAL_ANSWER, {"final_answer": answer})

    async def _asked(self, question: InspectRequest) -> ModelOutput:
        if len(self._new) >= MOST_IDLE:
            raise FormatFailure(f"{MOST_IDLE} replies in a row led to no action")
        # A reply without an action is recorded and counted already, and the framework tells the model what is wrong with it.
        return (await self._conversation.ask(question, self._check)).output

    async def _repeated(self, action: Action) -> Step:
        step = self._steps.popleft()
        if step.action != Action(name=encodable(action.name), arguments=encodable(action.arguments)):
            await self._end(self._changed(f"it does {action.name} where it did {step.action.name}, or with other arguments"))
        return step

    def _changed(self, how: str) -> AgentError:
        number = len(self._environment.steps) - len(self._steps)
        return AgentError(f"the run cannot go on: begun anew, its agent changes its mind about step {max(1, number)}: {how}; start another")

    async def _guarded(self, doing: Coroutine[object, None, T]) -> T:
        """Return what a coroutine returns. If it fails, end the agent with that error, and do not return."""
        try:
            return await doing
        except Exception as error:
            await self._end(error)

    async def _end(self, error: Exception | None = None) -> NoReturn:
        """End the agent, with an error or because the run has ended, and do not return."""
        if not self._over.done():
            if error:
                self._over.set_exception(error)
            else:
                self._over.set_result(None)
        await asyncio.get_running_loop().create_future()
        raise AssertionError("nobody sets it")


def task_prompt(environment: Environment, final: str) -> str:
    """Return the prompt that tells an agent of another framework its task, its limits, and the name of the action that ends it."""
    limits = environment.limits
    hours = f"{limits.time / 3600:g} hours"
    return render("external.md", task=environment.description.strip(), steps=limits.steps, hours=hours, final=final)


def _replies(step: Step) -> Sequence[ModelOutput]:
    kept = step.memory.get("replies")
    return [ModelOutput.model_validate(output) for output in kept] if isinstance(kept, list) else []
