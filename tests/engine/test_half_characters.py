"""Half a character, a lone surrogate as broken JSON has it, in what models and agents say: recorded, logged, shown and gone on with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from inspect_ai.log import read_eval_log

from mlagentbench.cli.main import run as mlab
from mlagentbench.report.page import write_report
from mlagentbench.results.load import scan
from tests.engine.server import Provider, calling
from tests.engine.whole import MODELS, Ended, carry_on, carry_out, make_plan
from tests.support import reply

pytestmark = pytest.mark.filterwarnings("ignore:The 'initial' parameter is deprecated:DeprecationWarning")

WRITE = ("write_file", '{"file_name": "x\\ud800", "content": "a\\ud83d\\ude42b\\ud800"}')
END = ("final_answer", '{"final_answer": "It is \\ud83d"}')
LIST = ("list_files", '{"dir_path": "."}')


def autogpt(command: str, **arguments: str) -> str:
    thoughts = {"text": "\ud800", "reasoning": "r", "plan": "- p", "criticism": "c", "speak": "s"}
    return json.dumps({"thoughts": thoughts, "command": {"name": command, "args": arguments}}, ensure_ascii=command == "final_answer")


def check(ended: Ended, capsys: pytest.CaptureFixture[str]) -> None:
    """See that a run ended well, and can be read in all ways there are."""
    assert ended.result.outcome.ended == "final_answer"
    (log,) = ended.directory.path.parent.glob("*.eval")
    read = read_eval_log(str(log))
    assert read.status == "success" and read.samples is not None and read.samples[0].error is None
    json.loads(read.model_dump_json())
    page = write_report(scan(ended.directory.path.parent), log.with_name("report.html")).read_text(encoding="utf-8")
    assert "\\ud8" in page
    capsys.readouterr()
    assert mlab(("show", str(ended.directory.path))) == 0
    assert "\\ud8" in capsys.readouterr().out


@pytest.mark.parametrize("agent", ["tool-calling", "langchain"])
def test_in_calls_of_tools(server: Provider, tmp_path: Path, capsys: pytest.CaptureFixture[str], agent: str) -> None:
    if agent == "langchain":
        pytest.importorskip("langchain")
    server.behave(calling(WRITE, text="th\ud800"), calling(LIST), calling(END))
    ended = carry_out(make_plan(tmp_path, agent, actions=["Write File", "List Files"]))
    first = ended.directory.steps()[0]
    assert first.action.arguments == {"file_name": "x\\ud800", "content": "a🙂b\\ud800"}
    assert (ended.directory.workspace / "x\\ud800").read_text(encoding="utf-8") == "a🙂b\\ud800"
    assert "th\\\\ud800" in server.requests[1].prompt, "the model is told what was made of it"
    check(ended, capsys)
    server.behave(calling(LIST), calling(END))
    again = carry_on(ended, 1)
    assert again.actions == ["Write File", "List Files", "Final Answer"]


@pytest.mark.parametrize("wire", ["openai", "anthropic"])
def test_in_thoughts_and_in_arguments(server: Provider, tmp_path: Path, capsys: pytest.CaptureFixture[str], wire: str) -> None:
    listed = '{"dir_path": "\ud800"}'
    server.behave(
        reply("List Files", '{"dir_path": "."}', "th\ud800"), reply("List Files", listed), reply("Final Answer", '{"final_answer": "x"}')
    )
    ended = carry_out(make_plan(tmp_path, "research"), MODELS[wire])  # type: ignore[index]
    assert ended.directory.steps()[0].entries["Thought"] == "th\\ud800"
    refused, _ = ended.directory.calls(2)
    assert "half a character" in (refused.rejected or "") and listed.replace("\ud800", "\\ud800") in refused.reply
    check(ended, capsys)


def test_in_json_that_an_agent_reads(server: Provider, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server.behave(autogpt("list_files", dir_path="\ud800"), autogpt("final_answer", final_answer="\ud800"))
    ended = carry_out(make_plan(tmp_path, "autogpt"))
    assert [step.action.arguments for step in ended.directory.steps()] == [{"dir_path": "\\ud800"}, {"final_answer": "\\ud800"}]
    check(ended, capsys)


AGENT = """
from mlagentbench.records import Action


class Odd:
    async def __call__(self, environment):
        said = await environment.ask_agent("Say \\ud800.", str)
        await environment.ask("And \\udfff?", role="fast", purpose="p\\ud800")
        write = Action(name="Write File", arguments={"file_name": "s.txt", "content": said + "\\ud800"})
        await environment.execute(write, entries={"Thought": "\\ud800"}, memory={"m": ["\\ud800"]})
        await environment.execute(Action(name="No\\ud800", arguments={"\\ud800": 1}))
        await environment.execute(Action(name="Final Answer", arguments={"final_answer": "\\ud800"}))
"""


def test_in_what_an_agent_of_ones_own_says_and_does(server: Provider, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "odd.py").write_text(AGENT)
    plan = make_plan(tmp_path, f"{tmp_path / 'odd.py'}:Odd")
    ended = carry_out(plan.but(score_steps=True))
    assert "Say \\ud800." in server.requests[0].body["messages"][0]["content"]
    written, unknown, _ = ended.directory.steps()
    assert (written.entries, written.memory) == ({"Thought": "\\ud800"}, {"m": ["\\ud800"]})
    assert written.action.arguments["content"] == "Hello.\\ud800"
    assert unknown.status == "error"
    check(ended, capsys)
