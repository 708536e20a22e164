"""What becomes of the requests that come over the bridge, without the bridge."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence

import pytest
from inspect_ai.model import ChatMessage, ChatMessageTool, ChatMessageUser, GenerateConfig, ModelOutput, ModelUsage, get_model
from inspect_ai.tool import INTERNAL_TOOL_TYPE, ToolFunction, ToolInfo

from mlagentbench import Environment, RunLimits
from mlagentbench.engine.agents import bridged
from mlagentbench.engine.agents.bridged import BridgedAgent, Recorder
from mlagentbench.engine.models.model import RoleModel
from mlagentbench.environment import BoxSetup
from mlagentbench.errors import AgentExited, LimitReached
from mlagentbench.model import Models
from tests.support import HANGING, MakeEnvironment

pytestmark = pytest.mark.filterwarnings("ignore:The 'initial' parameter is deprecated:DeprecationWarning")

SHELL = ToolInfo(name="shell", description="Run a command.")
SEARCH = ToolInfo(name="web_search", description="Search the web.", options={INTERNAL_TOOL_TYPE: "web_search"})
CALL = "a call of shell"
TASK = ChatMessageUser(content="Improve train.py.")


class Watched:
    """A model that gives replies and remembers what it was offered."""

    def __init__(self, *replies: str) -> None:
        self.replies = list(replies)
        self.offered: list[tuple[list[str], object]] = []
        self.waits = asyncio.Event()
        self.waits.set()

    async def __call__(self, messages: list[ChatMessage], tools: list[ToolInfo], choice: object, config: GenerateConfig) -> ModelOutput:
        self.offered.append(([tool.name for tool in tools], choice))
        await self.waits.wait()
        text = self.replies.pop(0)
        output = ModelOutput.from_content("mockllm/m", text)
        if text == CALL:
            output = ModelOutput.for_tool_call("mockllm/m", "shell", {"command": "ls"}, tool_call_id=f"call{len(self.offered)}")
        output.usage = ModelUsage(input_tokens=10, output_tokens=1, total_tokens=11)  # else it would be counted, by a file of the network
        return output

    def models(self) -> Models:
        model = RoleModel(get_model("mockllm/m", custom_outputs=self, memoize=False), "agent")
        return Models(model, model, model)


def tell(environment: Environment, story: Callable[[Recorder], Awaitable[None]]) -> None:
    async def started() -> None:
        await environment.start()
        async with asyncio.timeout(HANGING):
            await story(Recorder(environment))

    asyncio.run(started())


async def send(
    recorder: Recorder, *messages: ChatMessage, tools: Sequence[ToolInfo] = (SHELL,), choice: ToolFunction | None = None
) -> ModelOutput:
    """Send a request over the bridge."""
    return await recorder(get_model("mockllm/m"), list(messages), list(tools), choice, GenerateConfig())


def test_tools_that_lead_out_of_the_sandbox_are_not_offered(make_environment: MakeEnvironment) -> None:
    model = Watched("Hello.", "Hello.", "Hello.")

    async def story(recorder: Recorder) -> None:
        await send(recorder, TASK, tools=[SEARCH, SHELL])
        await send(recorder, TASK, tools=[SEARCH, SHELL], choice=ToolFunction(name="web_search"))
        await send(recorder, TASK, tools=[SEARCH])

    environment = make_environment(models=model.models())
    tell(environment, story)
    assert [names for names, _ in model.offered] == [["shell"], ["shell"], []]
    assert not any(isinstance(choice, ToolFunction) for _, choice in model.offered)
    recorded = [json.loads(call.prompt).get("tools") for number in (1, 2, 3) for call in environment.directory.calls(number)]
    assert recorded == [["shell"], None, None], "what the model was offered is recorded"


def test_sub_agents_and_side_calls_are_recorded_and_are_no_steps(make_environment: MakeEnvironment) -> None:
    model = Watched(CALL, "A title", CALL, CALL, "Rows.", "It is done.")

    async def story(recorder: Recorder) -> None:
        first = await send(recorder, TASK)
        assert (await send(recorder, ChatMessageUser(content="Give this a title."), tools=[])).completion == "A title"
        own = [ChatMessageUser(content=f"Read the data {number}.") for number in (1, 2)]
        for answer in await asyncio.gather(*(send(recorder, each) for each in own)):
            assert answer.message.tool_calls
        await send(recorder, own[0])
        result = ChatMessageTool(content="It has rows.", tool_call_id=(first.message.tool_calls or [])[0].id)
        await send(recorder, TASK, first.message, result)

    environment = make_environment(models=model.models())
    tell(environment, story)
    (step,) = environment.steps
    assert (step.action.name, step.observation) == ("shell", "It has rows.")
    purposes = [call.purpose for number in (1, 2) for call in environment.directory.calls(number)]
    assert purposes == ["agent", "side call", "sub-agent", "sub-agent", "sub-agent", "agent"]


def test_a_request_after_the_last_step_gets_no_reply_and_ends_the_run(make_environment: MakeEnvironment) -> None:
    model = Watched(CALL, CALL)
    answered: list[ModelOutput] = []

    async def story(recorder: Recorder) -> None:
        async def agent() -> str:
            messages: list[ChatMessage] = [TASK]
            while True:
                answered.append(await send(recorder, *messages))
                call = (answered[-1].message.tool_calls or [])[0]
                messages += [answered[-1].message, ChatMessageTool(content="train.py", tool_call_id=call.id)]

        box = await environment.open_box(BoxSetup())
        with pytest.raises(LimitReached, match="1 steps are used up"):
            await recorder.until_over(agent(), box)
        assert not box.running

    environment = make_environment(models=model.models(), limits=RunLimits(steps=1), sandboxed=True)
    tell(environment, story)
    assert (len(answered), len(environment.steps)) == (1, 1)


def test_an_agent_cannot_fill_the_memory_with_requests(make_environment: MakeEnvironment) -> None:
    model = Watched()
    model.waits.clear()

    async def story(recorder: Recorder) -> None:
        async def agent() -> str:
            await asyncio.gather(*(send(recorder, TASK) for _ in range(bridged.MOST_AT_ONCE + 1)))
            return ""

        box = await environment.open_box(BoxSetup())
        with pytest.raises(AgentExited, match="more than 32 requests"):
            await recorder.until_over(agent(), box)

    environment = make_environment(models=model.models(), sandboxed=True)
    tell(environment, story)


def test_it_is_made_of_a_command_or_a_solver() -> None:
    with pytest.raises(TypeError, match="either a command or a solver"):
        BridgedAgent()
