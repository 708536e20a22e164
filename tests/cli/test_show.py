"""`mlab show`: a run as its user meets it, while it goes on, when it is over, and when it was killed."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mlagentbench.cli import main
from mlagentbench.rundir.directory import RunDirectory
from tests import commands
from tests.cli.test_cli import END, LIST, complaint, mlab, script
from tests.example_runs import ExampleStep, write_run
from tests.support import reply

COLOUR = re.compile(r"\x1b\[(\d+;)*3[0-7][;m]")
HOSTILE = "\x1b]0;owned\x07 [bold red]not markup[/] \x1b[31mred\u202eback"
SLOW = "import os, time\nwhile not os.path.exists('go'): time.sleep(0.05)\nprint('epoch', 7)\n"
"""A script that goes on until its workspace has a file `go`."""


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return write_run(tmp_path / "logs", cost=0.01)


def test_a_run_is_told_as_on_the_page(run: RunDirectory) -> None:
    shown = mlab("show", run.path, environment={"COLUMNS": "80"}).stdout
    assert "Success: 363 times faster" in shown
    assert "3.03 ms against 1.10 s for the starter" in shown
    assert "scripted model: The model's replies were written beforehand" in shown
    assert all(len(line) <= 80 for line in shown.splitlines()), "nothing is broken at 80 columns"
    edit = shown[shown.index("   4 ✓ Edit Script (AI)") : shown.index("   5 ✗")]
    assert "no score" in edit and "changed train.py +" in edit
    failed = shown[shown.index("   5 ✗ Execute Script") : shown.index("   6 ✓")]
    assert "failed: exit status 1" in failed
    assert "1 reply before it without an action" in shown[shown.index("   6 ✓") : shown.index("   7 ✓")]


@pytest.mark.parametrize("columns", ["50", "160"])
def test_a_run_is_shown_at_any_width(run: RunDirectory, columns: str) -> None:
    shown = mlab("show", run.path, environment={"COLUMNS": columns}).stdout
    assert all(len(line) <= int(columns) for line in shown.splitlines() if "mlab " not in line)
    assert len(re.findall(r"^ {3}\d ", shown, re.MULTILINE)) == 8, "a line a step"


def test_missing_snapshots_are_not_told_at_every_step(tmp_path: Path) -> None:
    run = write_run(tmp_path / "logs", snapshots=False)
    assert "no snapshot" not in mlab("show", run.path).stdout
    assert "no snapshot of this step" in mlab("show", run.path, "--step", "4").stdout


def test_a_pipe_gets_no_colour_and_a_terminal_does_unless_asked_not_to(run: RunDirectory) -> None:
    assert "\x1b" not in mlab("show", run.path).stdout
    assert COLOUR.search(on_a_terminal("show", str(run.path), TERM="xterm-256color"))
    assert not COLOUR.search(on_a_terminal("show", str(run.path), TERM="xterm-256color", NO_COLOR="1"))


def test_what_an_agent_wrote_is_shown_and_does_nothing(tmp_path: Path) -> None:
    step = ExampleStep(
        HOSTILE, {HOSTILE: HOSTILE}, HOSTILE, HOSTILE, files={"\x1b[2Jname.txt": "\x1b[31m\n"}, status="error", reason=HOSTILE
    )
    run = write_run(tmp_path / "logs", steps=[step], ended="agent_error", verdict="no_submission", reason=HOSTILE)
    for options in ((), ("--step", "1", "--diff", "--files", "--calls")):
        shown = mlab("show", run.path, *options).stdout
        assert not {"\x1b", "\x07", "\u202e"} & set(shown)
        assert "[bold red]not markup[/]" in shown
        assert "␛[2Jname.txt" in shown
    assert json.loads(mlab("show", run.path, "--json").stdout)["steps"][0]["observation"] == HOSTILE


def test_a_step_is_shown_whole(run: RunDirectory) -> None:
    whole = mlab("show", run.path, "--step", "6", "--diff").stdout
    assert "Thought: The weights have to be transposed" in whole
    assert "edit_instruction: Transpose the weights: they are (out_channels, patch), the product needs (patch, out_channels)." in whole
    assert "A reply before it was sent back: Your reply holds no Action. Name one." in whole
    assert "The submission as it left it: 3.03 ms (+99.7 %)" in whole
    assert "\n+        out = patches @ self.weights.reshape(self.out_channels, -1).T + self.biases\n" in whole


def test_a_run_is_one_json_object(run: RunDirectory) -> None:
    told = json.loads(mlab("show", run.path, "--json").stdout)
    assert (told["run"], told["working"], told["info"]["spec"]["task"]) == (run.name, False, "vectorization")
    assert told["result"]["success"] is True
    assert [step["number"] for step in told["steps"]] == list(range(1, 9))
    assert told["steps"][5]["score"]["value"] == 0.00303
    assert told["steps"][5]["changes"] == [{"path": "train.py", "change": "changed", "size_before": 646, "size_after": 648}]
    one = json.loads(mlab("show", run.path, "--json", "--step", "6", "--calls", "--diff", "--files").stdout)
    (step,) = one["steps"]
    assert step["calls"][0]["rejected"] == "Your reply holds no Action. Name one."
    assert "+        out" in step["changes"][0]["text"]
    assert set(step["files"]) == {"train.py", "submission.csv"}


def test_the_replies_that_ended_a_run_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_run(tmp_path / "logs", ended="format_failure", verdict="no_submission")
    (call,) = run.calls(8)
    for number in range(5):
        run.append_call(9, call.model_copy(update={"reply": f"No action, time {number}.", "rejected": "Name an action."}))

    assert (
        main.run(["show", str(run.path)]),
        main.run(["show", str(run.path), "--calls"]),
        main.run(["show", str(run.path), "--calls", "--json"]),
    ) == (0, 0, 0)

    told = capsys.readouterr().out
    brief, whole, parsed = (
        *told[: told.rindex("\n{")].split("5 model calls after the last step, which led to no step")[1:],
        json.loads(told[told.rindex("\n{") :]),
    )
    assert brief.startswith("; --calls shows them\n") and "No action" not in brief
    assert [f"No action, time {number}." in whole for number in range(5)] == [True] * 5 and "sent back: Name an action." in whole
    assert [each["reply"] for each in parsed["calls_after_last"]] == [f"No action, time {number}." for number in range(5)]


def test_a_log_directory_with_one_run_is_that_run_and_with_several_is_told_what_to_do(run: RunDirectory) -> None:
    logs = run.path.parent
    assert run.name in mlab("show", logs).stdout
    write_run(logs, "20260131-111500-vectorization-research-5b7c")
    told = complaint(mlab("show", logs))
    assert "holds 2 runs; name one, such as the newest: mlab show" in told and "5b7c" in told


@pytest.mark.parametrize("command", ["show", "report --no-page", "grade", "resume"])
def test_a_run_is_named_by_its_id(
    run: RunDirectory, command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = run.path.parent.rename(run.path.parent.with_name("runs"))
    write_run(logs, "20260131-111500-vectorization-research-5b7c", task="other")
    monkeypatch.chdir(logs.parent)

    def told(*arguments: str) -> str:
        main.run([*command.split(), *arguments])
        return "".join(capsys.readouterr())

    meant = run.name
    assert meant in told(run.name[:-4]), "the beginning of an id, looked up in runs"
    assert f"name one: {run.name}, 20260131-111500" in told("2026")
    assert "there is no directory '1999', and no run in runs" in told("1999")
    monkeypatch.chdir("/")
    if command in ("show", "resume"):
        assert meant in told(run.name, "--log-dir", str(logs))


def test_a_run_is_followed_until_it_is_graded(tmp_path: Path) -> None:
    with going_on(tmp_path) as (_, directory):
        # Two at once: one that people read, of the log directory, whose only run in progress is meant; and one that programs read.
        people = start("show", directory.path.parent, "--follow")
        programs = start("show", directory.path, "--follow", "--json")
        told, line = wait_for(people, "Write File"), wait_for(programs, "Write File")
        assert len(directory.steps()) == 2, "the run goes on meanwhile"
        (directory.workspace / "go").touch()
        told += people.communicate(timeout=300)[0]
        lines = (line + programs.communicate(timeout=300)[0]).splitlines()
    assert (people.returncode, programs.returncode) == (0, 0)
    at = [
        told.index(words) for words in ("   1 ✓ List Files", "   2 ✓ Write File", "   3 ✓ Execute Script", "epoch 7", "   4 ✓ Final Answer")
    ]
    assert at == sorted(at)
    assert "No submission" in told[at[-1] :], "how it came out stands below"
    steps, last = [json.loads(line) for line in lines[:-1]], json.loads(lines[-1])
    assert [(step["number"], step["action"]["name"]) for step in steps] == [
        (number, step.action.name) for number, step in enumerate(directory.steps(), 1)
    ]
    assert last["result"]["outcome"]["verdict"] == "no_submission"
    over = mlab("show", directory.path, "--follow")
    assert over.returncode == 0 and "   4 ✓ Final Answer" in over.stdout, "a run that is over is shown all the same"


def test_following_ends_when_the_run_is_killed_and_says_how_to_go_on(tmp_path: Path) -> None:
    with going_on(tmp_path) as (process, directory):
        watching = start("show", directory.path, "--follow", columns=60)
        programs = start("show", directory.path, "--follow", "--json")
        assert wait_for(watching, "Write File")
        interrupted = start("show", directory.path, "--follow")
        assert wait_for(interrupted, "Write File")
        interrupted.send_signal(signal.SIGINT)
        rest, complaints = interrupted.communicate(timeout=300)
        assert (interrupted.returncode, complaints) == (130, "") and "Traceback" not in rest
        assert directory.held, "the run goes on"
        process.kill()
        process.wait()
        told = watching.communicate(timeout=300)[0]
        assert watching.returncode == 3
        assert "No process is working on it" in told and f"    mlab resume {directory.path}\n" in told, "whole, however long its path is"
        last = json.loads(programs.communicate(timeout=300)[0].splitlines()[-1])
        assert (last["working"], last["result"], programs.returncode) == (False, None, 3)


def test_one_step_cannot_be_followed(run: RunDirectory) -> None:
    assert "leave --step out" in complaint(mlab("show", run.path, "--follow", "--step", "1"))


def start(*arguments: str | Path, columns: int = 120) -> subprocess.Popen[str]:
    command = [*commands.MLAB, *map(str, arguments)]
    environment = {**os.environ, "COLUMNS": str(columns), "PYTHONUNBUFFERED": "1"}
    return commands.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def wait_for(process: subprocess.Popen[str], words: str) -> str:
    """Return what a process prints until a line has some words; the rest is for `communicate`. Nothing where none has them."""
    assert process.stdout is not None
    lines = []
    for line in iter(process.stdout.readline, ""):
        lines.append(line)
        if words in line:
            return "".join(lines)
    return ""


@contextmanager
def going_on(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], RunDirectory]]:
    """A run whose third step takes a while, from when its second is done."""
    write = reply("Write File", json.dumps({"file_name": "slow.py", "content": SLOW}))
    model = script(tmp_path / "slow.yaml", LIST, write, reply("Execute Script", '{"script_name": "slow.py"}'), END)
    logs = tmp_path / "runs"
    options = ("--variant", "mini", "--baseline", "none", "--no-score-steps", "--log-dir", str(logs))
    command = [*commands.MLAB, "run", "ladder-2", "--model", model, *options]
    said = tmp_path / "said.txt"
    with said.open("w") as file:
        process = commands.Popen(command, stdout=file, stderr=file, start_new_session=True)
    try:
        while not (found := list(logs.glob("*/steps/0002.json"))):
            assert process.poll() is None, said.read_text()
            time.sleep(0.05)
        yield process, RunDirectory(found[0].parents[1])
    finally:
        process.terminate()
        process.wait(timeout=300)


def on_a_terminal(*arguments: str, **environment: str) -> str:
    """What a command writes to a terminal."""
    ours, theirs = pty.openpty()
    command = [*commands.MLAB, *arguments]
    process = commands.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env={**os.environ, "COLUMNS": "100", **environment})
    os.close(theirs)
    parts = []
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the terminal's other end was closed
            break
        if not part:
            break
        parts.append(part)
    process.wait(timeout=300)
    os.close(ours)
    return b"".join(parts).decode()
