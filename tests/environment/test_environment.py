"""The environment: every action recorded, limited and snapshotted."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from mlagentbench import (
    ActionError,
    FormatFailure,
    GenerateOptions,
    LimitReached,
    Reply,
    ResponseFormatError,
    RunLimits,
    ScriptedReply,
    ScriptLimits,
    StorageFailed,
    Usage,
)
from mlagentbench.model import Models
from mlagentbench.workspace.snapshots.snapshots import Manifest, SnapshotStore
from tests.sandbox.processes import Clock
from tests.support import HANGING, MakeEnvironment, do, finish, perform

LIST = do("List Files", dir_path=".")
RUN = do("Execute Script", script_name="train.py")


def test_a_step_is_on_disk_with_its_snapshot(make_environment: MakeEnvironment, tmp_path: Path) -> None:
    environment = make_environment()
    write = do("Write File", file_name="notes.txt", content="hello")

    async def story() -> None:
        await environment.start()
        await environment.execute(LIST, entries={"Thought": "Look."}, memory={"mood": "calm"})
        await environment.execute(write)
        await environment.execute(RUN)
        await environment.settle()

    finish(story())
    directory = environment.directory
    first, second, third = directory.steps()
    assert (first.number, first.action, first.entries, first.memory) == (1, LIST, {"Thought": "Look."}, {"mood": "calm"})
    assert first.observation == "train.py"
    assert "accuracy 0.5" in third.observation
    assert third.script_seconds > 0
    assert third.details["exit_code"] == 0
    store = SnapshotStore(directory.objects)
    assert "notes.txt" not in Manifest.load(directory.manifest(1)).entries
    assert store.read_bytes(Manifest.load(directory.manifest(second.number)), "notes.txt") == b"hello"


def test_what_cannot_be_done_is_an_observation(make_environment: MakeEnvironment) -> None:
    actions = (do("Fly"), do("Execute Script"), do("Execute Script", script_name="nothing.py"))

    unknown, lacking, missing = perform(make_environment(), *actions)

    assert unknown.status == "error" and "There is no action 'Fly'" in unknown.observation
    assert "lacks 'script_name'" in lacking.observation
    assert "no script nothing.py" in missing.observation


def test_a_failing_script_tells_its_error_and_its_exit_code(make_environment: MakeEnvironment) -> None:
    (step,) = perform(make_environment(files={"train.py": 'print("before")\nraise ValueError("broken")\n'}), RUN)

    assert step.status == "error"
    for text in ("exit code 1", "before", "ValueError: broken"):
        assert text in step.observation


def test_a_script_whose_name_looks_like_an_option_runs(make_environment: MakeEnvironment) -> None:
    name = "-c 'x' \n.py"

    (step,) = perform(make_environment(files={name: 'print("ran")\n'}), do("Execute Script", script_name=name))

    assert "ran" in step.observation.splitlines()


def test_the_step_limit_ends_the_run_before_a_model_is_asked(make_environment: MakeEnvironment) -> None:
    environment = make_environment(["never given"], limits=RunLimits(steps=2))

    async def story() -> None:
        await environment.start()
        await environment.execute(LIST)
        await environment.execute(LIST, counted=False)
        await environment.execute(LIST)
        with pytest.raises(LimitReached) as limit:
            await environment.ask_agent("What next?", str)
        assert limit.value.ended == "limit_steps"

    finish(story())
    assert environment.directory.calls(4) == []


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of a run's time limits."""
    clock = Clock()
    for module in ("sandbox.process", "environment.limits", "environment.environment"):
        monkeypatch.setattr(f"mlagentbench.{module}.time", clock)
    return clock


def test_the_time_limit_ends_a_script_and_keeps_its_output(make_environment: MakeEnvironment, clock: Clock) -> None:
    script = 'import time\nprint("started", flush=True)\ntime.sleep(600)\n'
    environment = make_environment(files={"train.py": script}, limits=RunLimits(time=1000), box_limits=ScriptLimits(seconds=3000))

    async def story() -> None:
        await environment.start()
        step, _ = await asyncio.gather(environment.execute(RUN), time_passes())
        assert step.status == "limit_time"
        assert "started" in step.observation

    async def time_passes() -> None:
        output = environment.directory.steps_folder / "0001.output.txt"
        async with asyncio.timeout(HANGING):
            while not (output.exists() and "started" in output.read_text()):
                await asyncio.sleep(0.02)
        clock.ahead = 2000
        with pytest.raises(LimitReached) as limit:
            await environment.execute(LIST)
        assert limit.value.ended == "limit_time"

    finish(story())


def test_the_token_limit_counts_all_roles(make_environment: MakeEnvironment) -> None:
    environment = make_environment([ScriptedReply(reply="x" * 400), ScriptedReply(reply="y", role="fast")], limits=RunLimits(tokens=100))

    async def story() -> None:
        await environment.start()
        await environment.ask_agent("Say much.", str)
        with pytest.raises(LimitReached) as limit:
            await environment.ask("And more.", role="fast", purpose="a test")
        assert limit.value.ended == "limit_tokens"

    finish(story())


def test_every_prompt_and_reply_is_kept_malformed_ones_too(make_environment: MakeEnvironment) -> None:
    def parse(text: str) -> str:
        if text != "good":
            raise ResponseFormatError("Write good.")
        return text

    environment = make_environment(["bad", "good"])

    async def story() -> None:
        await environment.start()
        with pytest.raises(ResponseFormatError):
            await environment.ask_agent("First?", parse)
        assert await environment.ask_agent("Second?", parse) == "good"
        step = await environment.execute(LIST)
        assert step.malformed == 1
        assert step.usage.calls == 2

    finish(story())
    bad, good = environment.directory.calls(1)
    assert (bad.prompt, bad.reply, bad.rejected) == ("First?", "bad", "Write good.")
    assert (good.prompt, good.reply, good.rejected) == ("Second?", "good", None)


def test_the_fifth_malformed_reply_in_a_row_ends_the_run(make_environment: MakeEnvironment) -> None:
    def parse(text: str) -> str:
        raise ResponseFormatError("No action.")

    environment = make_environment(["bad"] * 5)

    async def story() -> None:
        await environment.start()
        for _ in range(4):
            with pytest.raises(ResponseFormatError):
                await environment.ask_agent("?", parse)
        with pytest.raises(FormatFailure, match="5 replies in a row"):
            await environment.ask_agent("?", parse)

    finish(story())
    assert len(environment.directory.calls(1)) == 5


def test_a_final_answer_ends_it(make_environment: MakeEnvironment) -> None:
    environment = make_environment()

    perform(environment, do("Final Answer", final_answer="Done."))

    assert environment.ended
    with pytest.raises(ActionError, match="ended by its final answer"):
        finish(environment.execute(LIST))


@pytest.mark.skipif(os.geteuid() == 0 and not Path("/proc/self/ns").exists(), reason="needs a disk that can refuse")
def test_a_disk_that_takes_no_more_loses_no_finished_step(make_environment: MakeEnvironment) -> None:
    environment = make_environment()

    async def story() -> None:
        await environment.start()
        await environment.execute(LIST)
        await environment.settle()
        # A folder in the next step's place refuses the write as a full disk would, also for root.
        (environment.directory.steps_folder / "0002.json").mkdir()
        await environment.execute(LIST)
        with pytest.raises(StorageFailed, match="mlab resume"):
            await environment.settle()

    finish(story())
    assert json.loads((environment.directory.steps_folder / "0001.json").read_text())["number"] == 1


class Waits:
    """A model whose provider lets it wait."""

    name = "waits"
    context_tokens = None

    def __init__(self, clock: Clock) -> None:
        self.clock = clock

    async def generate(self, prompt: str, options: GenerateOptions = GenerateOptions()) -> Reply:
        self.clock.ahead += 500
        return Reply("reply", Usage(calls=1), "waits", waited=500)


def test_waiting_for_a_rate_limit_is_no_working_time(make_environment: MakeEnvironment, clock: Clock) -> None:
    environment = make_environment(models=Models(Waits(clock), Waits(clock), Waits(clock)), limits=RunLimits(working_time=600))

    async def story() -> None:
        await environment.start()
        for _ in range(3):
            await environment.ask_agent("?", str)
            step = await environment.execute(LIST)
            assert step.waited_seconds == 500 <= step.model_seconds
        clock.ahead += 600
        with pytest.raises(LimitReached, match="working time"):
            await environment.ask_agent("?", str)

    finish(story())


def test_what_an_action_does_on_its_way_is_recorded_under_it(make_environment: MakeEnvironment) -> None:
    environment = make_environment([ScriptedReply(role="fast", reply="It prints.")])

    read, ran = perform(environment, do("Understand File", file_name="train.py", things_to_look_for="what it does"), RUN)

    assert [(inner.did, inner.what) for inner in read.inside] == [("read", "train.py"), ("ask", "fast")]
    assert [(inner.did, inner.what) for inner in ran.inside] == [("run", "python -u train.py")]
    assert (environment.directory.steps_folder / "0002.output.txt").read_text() == "accuracy 0.5\n"
