"""An agent of no framework runs in a sandbox of its own, through the real command, against a scripted model."""

from __future__ import annotations

import gc
import json
import shutil
import signal
import subprocess
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

import pytest

import mlagentbench
from mlagentbench.agents.base import make_agent
from mlagentbench.errors import AgentError
from mlagentbench.records import Price
from mlagentbench.rundir.directory import RunDirectory, find_runs
from mlagentbench.runner.preflight import make_spec
from mlagentbench.task.catalogue import load_task
from mlagentbench.workspace.snapshots.snapshots import Manifest
from tests import commands
from tests.cli.test_cli import mlab
from tests.sandbox.processes import available
from tests.support import HANGING, wait_until
from tests.tiny_task import tiny_task

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif("bubblewrap" not in available(), reason="needs bubblewrap"),
    pytest.mark.usefixtures("providers"),
    pytest.mark.filterwarnings("ignore:The 'initial' parameter is deprecated:DeprecationWarning"),
]

AGENT = Path(__file__).parent / "bridged_agent.py"
SUBMIT = "echo 12 > submission.txt"
ATTACK = """
import glob, os, socket, struct
hidden = ("{folder}/runs", "{folder}/tasks", "{folder}/secret.txt", "{source}/tasks/vectorization/grade.py")
found = [path for path in hidden if os.path.exists(path)]
for address in (("127.0.0.1", 22), ("1.1.1.1", 53), ("169.254.169.254", 80)):
    with socket.socket() as attempt:
        attempt.settimeout(2)
        if attempt.connect_ex(address) == 0:
            found.append(address)
for path in glob.glob("/proc/[0-9]*/environ"):
    try:
        if b"sk-the-host" in open(path, "rb").read():
            found.append(path)
    except OSError:
        pass
header = b'{{"id": 1, "code": 0, "output": 0}}'
for path in ("/proc/1/fd/1", "/proc/1/fd/2", "/proc/2/fd/20"):
    try:
        with open(path, "wb", buffering=0) as pipe:
            pipe.write(struct.pack(">II", len(header), 0) + header)
    except OSError:
        pass
print(found or "nothing is lost")
"""
"""Looks for the network, keys, other runs and graders, and writes forged replies into what can be opened."""


def long_sleep() -> str:
    """A command that no other test has started."""
    return f"sleep {time.time_ns() % 10**9 + 10**6}"


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

    def start(self, words: Sequence[str]) -> subprocess.Popen[bytes]:
        """Start a command."""
        return commands.Popen([*commands.MLAB, *words], cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def wait_for(self, file: str) -> None:
        """Wait until the last run has a file."""
        wait_until(lambda: any((path / file).exists() for path in self.logs.glob("2*")))

    @property
    def last(self) -> RunDirectory:
        return max(find_runs(self.logs), key=lambda run: run.info.started)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_it_comes_to_a_graded_success_whatever_it_tries(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    (world.folder / "secret.txt").write_text("THE-ANSWERS")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-the-host-s-own")
    look = shell("ls; cat train.py; env; cat /tmp/task.md", "Look first.")
    attack = shell(f"{SUBMIT}; python - <<'END'\n{ATTACK.format(folder=world.folder, source=Path(mlagentbench.__file__).parent)}\nEND")
    ended = world.run(["A title", look, attack, "It is done."], agent="cmd:python my_agent.py TITLE")

    assert (ended["ended"], ended["verdict"], ended["score"], ended["steps"]) == ("final_answer", "success", 12.0, 3)
    first, second, last = world.last.steps()
    assert (first.action.name, first.entries, first.action.arguments["command"]) == (
        "shell",
        {"Thought": "Look first."},
        json.loads(look)["tool_calls"][0]["arguments"]["command"],
    )
    assert "print('hello')" in first.observation and "Write a large number" in first.observation
    assert "OPENAI_BASE_URL=http://localhost:13131/v1" in first.observation and "API_KEY=none-is-needed" in first.observation
    assert (second.observation, last.details["final_answer"]) == ("nothing is lost", "It is done.")
    assert "sk-the-host-s-own" not in "".join(step.observation for step in world.last.steps())
    calls = [call for number in (1, 2, 3) for call in world.last.calls(number)]
    assert [json.loads(call.reply)["content"] for call in calls] == ["A title", "Look first.", "", "It is done."]
    assert sum(step.usage.calls for step in world.last.steps()) == 4
    assert world.last.manifest(2).exists()


def test_whatever_ends_it_it_goes_on_from_its_last_step_with_its_home(world: World) -> None:
    mark = long_sleep()
    hanging = [shell("echo 12 > submission.txt; echo first"), shell(f"echo 14 > submission.txt; touch hanging; {mark}")]
    with world.start(world.words(hanging)) as process:
        world.wait_for("steps/0001.json")
        process.kill()
    wait_for_the_end_of(mark)
    wait_for_the_end_of(str(world.folder))  # of the sandbox, which is still starting that command, or ends some time after us
    shutil.rmtree(world.last.home)  # it comes back from the snapshot
    (world.last.workspace / "hanging").unlink(missing_ok=True)  # the killed command may have made it

    with world.start(["resume", str(world.last.path), "--json"]) as process:
        world.wait_for("workspace/hanging")
        process.send_signal(signal.SIGINT)
        assert process.wait(HANGING) != 0
    wait_for_the_end_of(mark)
    result = world.last.result
    assert result is not None
    assert (result.outcome.ended, result.outcome.verdict, result.score and result.score.value) == ("cancelled", "success", 12.0)

    world.script(hanging[0], shell("echo $MLAB_STEPS_DONE > submission.txt; echo second"), "It is done.")
    resumed = mlab("resume", world.last.path, "--json", folder=world.folder)
    assert resumed.returncode == 0, resumed.stderr
    line = json.loads(resumed.stdout)
    assert (line["ended"], line["score"], line["steps"]) == ("final_answer", 1.0, 3)
    asked = json.loads(world.last.calls(2)[-1].prompt)["messages"]
    assert [message["role"] for message in asked] == ["user", "assistant", "tool"] and "first" in str(asked[-1])

    parent = world.last
    forked = mlab("resume", parent.path, "--step", "2", "--json", folder=world.folder)
    assert forked.returncode == 0, forked.stderr
    assert (world.last.info.parent, json.loads(forked.stdout)["steps"]) == (f"{parent.name}/2", 3)
    assert "second" in str(json.loads(world.last.calls(3)[-1].prompt)["messages"])
    for number in (0, 1, 2, 3):
        assert not any("messages.json" in name for name in Manifest.load(parent.manifest(number)).entries), "its home is never graded"
    verified = mlab("verify", parent.path, folder=world.folder)
    assert verified.returncode == 0, verified.stdout


def test_each_limit_ends_it_as_does_a_failure_and_its_last_snapshot_is_graded(world: World) -> None:
    mark = long_sleep()
    hang = f"[ $MLAB_SECONDS -gt 200 ] || {{ echo 16 > submission.txt; {mark}; }}"
    replies = [shell(f"echo 1{number} > submission.txt; {hang}") for number in range(4)]
    model = f"scripted/{world.script(*replies, 'It is done.')}"
    (world.folder / "broken.py").write_text("import sys\nsys.exit('no such thing')\n")
    price = Price(input=1.0, output=1.0, cache_read=1.0, cache_write=1.0, source="a test")
    limits: dict[str, dict[str, float]] = {
        "limit_steps": {"steps": 2},
        "limit_time": {"time": 25.0},
        "limit_tokens": {"tokens": 150},
        "limit_cost": {"cost": 0.0001},
        "agent_error": {},
    }
    common = {"models": {"agent": model}, "prices": {model: price}, "variant": "mini", "baseline": "paper", "score_steps": False}
    task = load_task(world.folder / "tasks" / "guess")
    agents = {name: f"cmd:python {world.folder}/{'broken' if name == 'agent_error' else 'my_agent'}.py" for name in limits}
    specs = [make_spec(task, {**common, "agent": agents[name], "limits": limits[name]}) for name in limits]
    with warnings.catch_warnings():
        # Inspect leaves streams to the garbage collector.
        warnings.simplefilter("ignore", ResourceWarning)
        runs = mlagentbench.run(*specs, log_directory=world.logs, parallel=len(specs))
        ended = {run.result.outcome.ended: run for run in runs.runs if run.result}
        if not any(run.info.spec.limits.time < 200 and run.steps for run in runs.runs):
            # This machine let it stand still until its time was up.
            late = make_spec(task, {**common, "agent": agents["limit_time"], "limits": {"time": 100.0}})
            (ended["limit_time"],) = mlagentbench.run(late, log_directory=world.folder / "later").runs
        gc.collect()

    assert ended.keys() == limits.keys(), [run.result and run.result.outcome for run in runs.runs]
    scores = {name: run.result.score.value for name, run in ended.items() if run.result and run.result.score}
    assert scores == {"limit_steps": 11.0, "limit_time": 16.0, "limit_tokens": scores["limit_tokens"], "limit_cost": scores["limit_cost"]}
    assert len(ended["limit_steps"].steps) == 2
    assert ended["limit_time"].steps[-1].status == "limit_time"
    failed = ended["agent_error"].result
    assert failed is not None and str(failed.outcome.reason).endswith("ended with the exit status 1: no such thing")
    wait_for_the_end_of(mark)


def wait_for_the_end_of(command: str) -> None:
    """Wait until no process has such a command."""
    wait_until(lambda: command not in subprocess.run(["ps", "ax", "-o", "args"], capture_output=True, text=True).stdout)


def test_it_runs_in_bubblewrap_only(world: World) -> None:
    refused = mlab(*world.words(["Hello."], "--sandbox", "none"), folder=world.folder)
    assert refused.returncode == 2 and "runs in bubblewrap only, and this run has none" in refused.stderr
    assert not list(world.logs.glob("2*"))


def test_a_command_is_one_that_can_be_started() -> None:
    with pytest.raises(AgentError, match="the command is empty"):
        make_agent("cmd:")
    with pytest.raises(AgentError, match="there is no folder"):
        make_agent("cmd:python a.py", {"folder": "/no/such/folder"})
