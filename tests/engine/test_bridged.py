"""An agent of no framework runs in a sandbox of its own, through the real command, against a scripted model."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from mlagentbench.agents.base import make_agent
from mlagentbench.errors import AgentError
from mlagentbench.rundir.directory import RunDirectory, find_runs
from tests.cli.test_cli import mlab
from tests.sandbox.processes import available
from tests.tiny_task import tiny_task

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif("bubblewrap" not in available(), reason="needs bubblewrap"),
    pytest.mark.usefixtures("providers"),
]

AGENT = Path(__file__).parent / "bridged_agent.py"
SUBMIT = "echo 12 > submission.txt"


def shell(command: str, text: str = "") -> str:
    """A reply that runs a command."""
    return json.dumps({"text": text, "tool_calls": [{"name": "shell", "arguments": {"command": command}}]})


class World:
    """Where runs of the agent are carried out: a task, and a log directory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.logs = folder / "runs"
        tiny_task(folder / "tasks" / "guess")
        shutil.copy(AGENT, folder / "my_agent.py")

    def script(self, *replies: str) -> Path:
        path = self.folder / "replies.jsonl"
        path.write_text("".join(json.dumps({"reply": reply}) + "\n" for reply in replies))
        return path

    def words(self, replies: Sequence[str], *options: str, agent: str = "cmd:python my_agent.py") -> list[str]:
        model = f"scripted/{self.script(*replies)}"
        words = ["run", "guess", "--task-path", str(self.folder / "tasks"), "--agent", agent, "--model", model, "--variant", "mini"]
        return [*words, "--baseline", "paper", "--log-dir", str(self.logs), "--json", *options]

    def run(self, replies: Sequence[str], *options: str, agent: str = "cmd:python my_agent.py") -> dict[str, object]:
        """Carry a run out. Returns the line that the command prints."""
        done = mlab(*self.words(replies, *options, agent=agent), folder=self.folder)
        assert done.returncode == 0, done.stderr
        line: dict[str, object] = json.loads(done.stdout)
        return line

    @property
    def last(self) -> RunDirectory:
        return find_runs(self.logs)[-1]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_it_comes_to_a_graded_success_with_every_call_recorded(world: World) -> None:
    look = shell("ls; cat train.py; env; cat /tmp/task.md", "Look first.")
    ended = world.run(["A title", look, shell(SUBMIT), "It is done."], agent="cmd:python my_agent.py TITLE")

    assert (ended["ended"], ended["verdict"], ended["score"], ended["steps"]) == ("final_answer", "success", 12.0, 3)
    first, second, last = world.last.steps()
    assert (first.action.name, first.entries, first.action.arguments["command"]) == (
        "shell",
        {"Thought": "Look first."},
        json.loads(look)["tool_calls"][0]["arguments"]["command"],
    )
    assert "print('hello')" in first.observation and "Write a large number" in first.observation
    assert "OPENAI_BASE_URL=http://localhost:13131/v1" in first.observation and "API_KEY=none-is-needed" in first.observation
    assert (second.action.arguments, second.observation, last.details["final_answer"]) == ({"command": SUBMIT}, "", "It is done.")
    calls = [call for number in (1, 2, 3) for call in world.last.calls(number)]
    assert [json.loads(call.reply)["content"] for call in calls] == ["A title", "Look first.", "", "It is done."]
    assert sum(step.usage.calls for step in world.last.steps()) == 4
    assert world.last.manifest(2).exists()


def test_a_command_is_one_that_can_be_started() -> None:
    with pytest.raises(AgentError, match="the command is empty"):
        make_agent("cmd:")
    with pytest.raises(AgentError, match="there is no folder"):
        make_agent("cmd:python a.py", {"folder": "/no/such/folder"})
