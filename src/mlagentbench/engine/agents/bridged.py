"""Run an agent of another framework, unmodified, in a sandbox of its own: its requests to a model come over Inspect's agent bridge.

The agent runs beside the workspace in one sandbox (`sandbox/box.py`) that has no network. It finds a server on the loopback address, which
speaks the protocols of OpenAI, Anthropic and Google, and passes each request to this process. Here the request goes to the agent's model
through the environment, which records, counts and limits it like any other.

A step is one call of the agent's main thread with the tool calls that the reply asks for. Its observation is what the next request adds.
All processes of the sandbox are paused while the workspace is snapshotted. Side calls and sub-agents are recorded under their own purpose
(see `threads.py`), and are no steps.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from importlib.util import find_spec
from typing import NamedTuple, NoReturn

from inspect_ai.agent import Agent as InspectAgent
from inspect_ai.agent import AgentState, sandbox_agent_bridge
from inspect_ai.model import ChatMessage, ChatMessageUser, GenerateConfig, GenerateFilter, Model, ModelOutput
from inspect_ai.tool import ToolChoice, ToolFunction, ToolInfo, internal_tool_type

from mlagentbench.actions.base import Observation
from mlagentbench.engine.agents.conversation import Conversation, thoughts_of
from mlagentbench.engine.agents.threads import MainThread, called
from mlagentbench.engine.agents.tools import FINAL_ANSWER
from mlagentbench.engine.box import attach
from mlagentbench.engine.compat import look_often_for_requests
from mlagentbench.engine.models.model import InspectRequest
from mlagentbench.environment import BoxSetup, Environment
from mlagentbench.errors import AgentError, AgentExited, BoxEnded, LimitReached, MLAgentBenchError
from mlagentbench.records import Action, StepStatus
from mlagentbench.sandbox.base import HOME, Isolation, Mount
from mlagentbench.sandbox.box import Box

PORT = 13131
"""Where the agent finds its models, on the loopback address of its sandbox."""
BASE_URLS = {
    "OPENAI_BASE_URL": f"http://localhost:{PORT}/v1",
    "ANTHROPIC_BASE_URL": f"http://localhost:{PORT}",
    "GOOGLE_GEMINI_BASE_URL": f"http://localhost:{PORT}",
}
KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "GEMINI_API_KEY", "GOOGLE_API_KEY")
"""Variables in which programs expect a key. They hold a word that is none."""
NO_KEY = "none-is-needed"
WAIT_FOR_PORT = f"""
import socket, time
while socket.socket().connect_ex(("localhost", {PORT})):
    time.sleep(0.02)
"""
"""A program that ends once the bridge listens, which takes seconds."""
MODEL = "inspect"
"""The name under which the agent asks for its model; any other name leads to the same one."""
PACKAGES = ("openai", "anthropic")
"""With these the bridge reads requests."""
LOOK = 0.2
"""Seconds between two looks for requests of the agent's; each takes about 10 ms."""
LEAVING = 5.0
"""Seconds that the bridge has to end after its sandbox."""
MOST_AT_ONCE = 32
"""Requests without a reply that end the run: each is held in this process's memory."""
LAST_WORDS = 65536
"""Bytes of a program's output and errors that are read."""


class Bridge(NamedTuple):
    """What a `solver` or a `command` needs to know of its run."""

    prompt: str
    """The task, as the agent is told it."""
    filter: GenerateFilter
    """To be passed to `sandbox_agent_bridge`, by a solver that opens the bridge itself."""
    steps: int
    """Steps that were taken before; more than 0 in a run that is resumed or forked."""
    environment: Mapping[str, str]
    """The variables of the agent."""


Solver = Callable[[Bridge], InspectAgent]
Command = Callable[[Bridge], Sequence[str]]


class BridgedAgent:
    """An agent of another framework that runs in a sandbox of its own.

    Args:
        command: makes the command that starts the agent, a list of words. It ends when the agent is done; an exit status other than 0 is
            a failure of the agent.
        solver: makes an agent of Inspect's that starts the agent and opens the bridge itself, such as those of inspect-swe. Either
            `command` or `solver` is given.
        mounts: files and folders of this machine that the agent can read in its sandbox, such as its program at `/opt/<agent>`.
        path: folders in the sandbox that are searched for programs before the system's.
        environment: variables of the agent.
        home: variables that name folders below the agent's home, by the folders' names: `{"CODEX_HOME": ".codex"}`. The whole home is
            part of the snapshots, so that a run can be resumed and forked, and is never graded.
        prompt: makes the prompt of the task's description; None for the description itself.
    """

    extra = "bridge"
    """The packages that it needs."""
    isolation: Isolation = "bubblewrap"
    """The only sandbox that this agent can run in."""

    def __init__(
        self,
        *,
        command: Command | None = None,
        solver: Solver | None = None,
        mounts: Sequence[Mount] = (),
        path: Sequence[str] = (),
        environment: Mapping[str, str] = {},
        home: Mapping[str, str] = {},
        prompt: Callable[[Environment], str] | None = None,
    ) -> None:
        if (command is None) == (solver is None):
            raise TypeError("give either a command or a solver")
        if missing := next((name for name in PACKAGES if find_spec(name) is None), None):
            raise AgentError(f'an agent behind the bridge needs {missing}; install it with: pip install "mlagentbench[{self.extra}]"')
        self._command = command
        self._solver = solver
        self._setup = BoxSetup(mounts, path, {**environment, **{name: f"{HOME}/{folder}" for name, folder in home.items()}})
        self._folders = [f"{HOME}/{folder}" for folder in home.values()]
        self._prompt = prompt or (lambda environment: environment.description.strip())

    async def __call__(self, environment: Environment) -> None:
        """Run the agent until it ends, and submit its answer."""
        prompt = self._prompt(environment)
        variables = {**dict.fromkeys(KEYS, NO_KEY), **BASE_URLS, **_facts(environment), **self._setup.environment}
        box = await environment.open_box(self._setup._replace(environment=variables))
        recorder = Recorder(environment)
        bridge = Bridge(prompt, recorder, len(environment.steps), variables)
        try:
            await box.write(TASK_FILE, prompt.encode())
            for folder in self._folders:
                await box.execute(("mkdir", "-p", folder))
            attach(box)
            look_often_for_requests(LOOK)
            answer = await recorder.until_over(self._run(bridge, box), box)
        finally:
            box.close()
        await environment.execute(Action(name=FINAL_ANSWER, arguments={"final_answer": answer}), entries=recorder.last_thoughts)

    async def _run(self, bridge: Bridge, box: Box) -> str:
        """Run the agent to its end. Returns the end of what it printed, or its last message."""
        if self._solver is not None:
            state = await self._solver(bridge)(AgentState(messages=[ChatMessageUser(content=bridge.prompt, source="input")]))
            return state.output.completion
        assert self._command is not None
        async with sandbox_agent_bridge(filter=bridge.filter):
            await box.execute(("python", "-I", "-S", "-c", WAIT_FOR_PORT))
            done = await box.execute(self._command(bridge), most=LAST_WORDS)
        if done.code != 0:
            words = " ".join((done.errors or done.output).decode("utf-8", "replace").split())[-300:]
            raise AgentExited(f"the agent's program ended with the exit status {done.code}" + (f": {words}" if words else ""))
        return done.output.decode("utf-8", "replace").strip()


TASK_FILE = "/tmp/task.md"
"""Where the agent finds its task."""


def _facts(environment: Environment) -> dict[str, str]:
    """Return the variables that tell an agent of its task and its limits."""
    return {
        "MLAB_TASK_FILE": TASK_FILE,
        "MLAB_TASK": environment.description.strip(),
        "MLAB_STEPS": str(environment.limits.steps),
        "MLAB_STEPS_DONE": str(len(environment.steps)),
        "MLAB_SECONDS": f"{max(0.0, environment.seconds_left):.0f}",
    }


class Recorder:
    """The filter of a run's bridge: it asks the agent's model, and records the main thread's calls as steps.

    Once the run is over, requests get no reply any more, since an agent would take an error for one that it can try to mend.
    """

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._main = MainThread()
        self._conversation = Conversation(environment)
        self._asking = asyncio.Lock()
        self._last: ModelOutput | None = None
        """The reply whose step has not been recorded yet."""
        self._replied = 0.0
        self._unanswered = 0
        self._over: asyncio.Future[NoReturn] = asyncio.get_running_loop().create_future()

    @property
    def last_thoughts(self) -> Mapping[str, str]:
        """The thoughts of a last reply without tool calls, which is no step of its own."""
        return thoughts_of(self._last.message).entries if self._last is not None else {}

    async def __call__(
        self, model: Model, messages: list[ChatMessage], tools: list[ToolInfo], tool_choice: ToolChoice | None, config: GenerateConfig
    ) -> ModelOutput:
        """Answer a request of the agent's.

        Tools that the model's provider would carry out itself, such as a web search, are not offered, since they lead out of the sandbox.
        """
        self._unanswered += 1
        try:
            if self._unanswered > MOST_AT_ONCE:
                raise AgentExited(f"the agent sent more than {MOST_AT_ONCE} requests to its model at once")
            own = [tool for tool in tools if internal_tool_type(tool) is None]
            if isinstance(tool_choice, ToolFunction) and tool_choice.name not in {tool.name for tool in own}:
                tool_choice = None
            output = await self._answer(InspectRequest(messages, own, tool_choice if own else None, config))
            self._unanswered -= 1
            return output
        except Exception as error:
            if (task := asyncio.current_task()) and task.cancelling():
                raise  # a question that is cancelled while its provider fails says so
            if not self._over.done():
                self._over.set_exception(error)
            await asyncio.get_running_loop().create_future()
            raise AssertionError("nobody sets it") from None

    async def until_over(self, agent: Coroutine[object, None, str], box: Box) -> str:
        """Run the agent until it ends, and return its answer.

        Raises:
            LimitReached: a limit of the run was reached.
            AgentExited: the agent failed.
            whatever else ended it, such as a provider that failed.
        """
        running = asyncio.create_task(agent)
        try:
            done, _ = await asyncio.wait(
                (running, self._over), timeout=max(0.0, self._environment.seconds_left), return_when=asyncio.FIRST_COMPLETED
            )
            if self._over.done():
                self._over.result()
            if not done:
                await self._record("", "limit_time")
                raise self._environment.budget.time_is_up()
            try:
                printed = await running
            except Exception as error:
                await self._record("")
                raise _ended(box, error) from error
            if not self._main.begun:
                raise AgentExited(f"the agent ended without asking its model; it printed: {printed[-300:]!r}")
            if self._last is not None and self._last.message.tool_calls:
                await self._record("")
            return self._last.completion if self._last is not None else printed
        finally:
            box.close()
            running.cancel()
            await asyncio.wait((running,), timeout=LEAVING)
            if self._over.done() and not self._over.cancelled():
                self._over.exception()

    async def _answer(self, request: InspectRequest) -> ModelOutput:
        messages, names = request.messages, [tool.name for tool in request.tools if isinstance(tool, ToolInfo)]
        thread = self._main.of(messages, names, request.tool_choice)
        if thread != "agent":
            return (await Conversation(self._environment).ask(request, purpose=thread)).output
        async with self._asking:
            if self._main.begins(messages, names):
                self._last = None  # what came before, without tools, were side calls
            await self._record(self._main.news(messages))
            output = (await self._conversation.ask(request)).output
            self._main.take(messages, names, output)
            self._last, self._replied = output, time.monotonic()
            return output

    async def _record(self, observation: str, status: StepStatus = "ok") -> None:
        """Record the last reply as a step, with what it brought about; do nothing where it is recorded already."""
        if self._last is None:
            return
        reply, self._last = self._last.message, None
        name, arguments = called(reply)
        seen = Observation(observation, status, script_seconds=time.monotonic() - self._replied)
        await self._environment.record(Action(name=name, arguments=arguments), seen, entries=thoughts_of(reply).entries)


def _ended(box: Box, error: Exception) -> Exception:
    """Return the error that ends the run, for an error that ended the agent."""
    if isinstance(error, MLAgentBenchError) and not isinstance(error, BoxEnded):
        return error
    if box.reason == "disk":
        return LimitReached("limit_storage", "the agent's files were larger than they may be, and its sandbox was ended")
    if not box.running:
        return AgentExited(f"the agent's sandbox has ended ({box.reason or 'by itself'})")
    return error
