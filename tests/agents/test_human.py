"""A person does a task at a terminal: what is shown, what can be written, and how the run ends and goes on."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from mlagentbench import Environment, LimitReached, RunLimits, RunStopped
from mlagentbench.agents.base import make_agent
from mlagentbench.agents.human import HumanAgent, HumanSession
from mlagentbench.agents.terminal import Terminal, visible
from mlagentbench.rundir.directory import find_runs
from tests.agents.person import CTRL_C, CTRL_D, Person
from tests.runner.lives import make_task
from tests.support import MakeEnvironment, finish

RUN = ("run", "guess", "--task-path", "guess", "--agent", "human", "--variant", "mini", "--sandbox", "none", "--baseline", "none")


def work(environment: Environment, written: str, tmp_path: Path) -> str:
    """A person whose writing is a pipe; gives what was shown."""
    shown = tmp_path / "shown"
    source, other = os.pipe()
    os.write(other, written.encode())
    os.close(other)
    sink = os.open(shown, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)

    async def story() -> None:
        await environment.start()
        try:
            await HumanSession(environment, HumanAgent().offered(environment), Terminal(source, sink)).act()
        finally:
            await environment.settle()

    try:
        finish(story())
    finally:
        os.close(source)
        os.close(sink)
    return shown.read_text()


ANSWER = "final\nIt is done.\n"


def test_the_task_the_actions_and_what_is_left_are_shown(make_environment: MakeEnvironment, tmp_path: Path) -> None:
    shown = work(make_environment(limits=RunLimits(steps=7, time=7260)), ANSWER, tmp_path)
    assert "Make train.py better." in shown
    assert "Step 1 of 7. 2 h 00 min left." in shown
    assert "List the files and folders in a folder." in shown
    for name in ("Understand File", "Edit Script (AI)", "Request Help", "Reflection"):
        assert name not in shown, "there is no model, and the person is the help"


def test_actions_are_recorded_as_any_agents(make_environment: MakeEnvironment, tmp_path: Path) -> None:
    environment = make_environment()
    lines = ["list files", ".", "WRITE_FILE", "train.py", "print('a')", "", "print('b')", "EOF", "exec", "train.py"]
    shown = work(environment, "\n".join(lines) + "\n" + ANSWER, tmp_path)
    listed, written, executed, answered = environment.steps
    assert listed.observation == "train.py"
    assert written.action.arguments == {"file_name": "train.py", "content": "print('a')\n\nprint('b')\n"}
    assert executed.status == "ok" and executed.observation.endswith("a\nb")
    assert answered.details["final_answer"] == "It is done."
    assert shown.count("a\nb\n") == 1, "what a script prints is shown as it comes, and once"


def test_an_action_can_be_named_by_its_number_and_given_up(make_environment: MakeEnvironment, tmp_path: Path) -> None:
    environment = make_environment()
    number = list(HumanAgent().offered(environment)).index("Read File") + 1
    shown = work(environment, f"{number}\n:c\n{number}\ntrain.py\n{ANSWER}", tmp_path)
    assert [step.action.name for step in environment.steps] == ["Read File", "Final Answer"]
    assert "Read File is given up." in shown


def test_what_is_not_understood_costs_no_step_and_says_what_is_meant(make_environment: MakeEnvironment, tmp_path: Path) -> None:
    environment = make_environment()
    shown = work(environment, f"Red File\ninspect\ntrain.py\nfew\n1\n2\n\nhelp\ntask\n99\n!\n{ANSWER}", tmp_path)
    assert "There is no action Red File. Did you mean Read File?" in shown
    assert 'must be a whole number, not "few"' in shown
    assert "There is no action 99." in shown and "There is no action !." in shown
    assert shown.count("Make train.py better.") == 2
    assert [step.action.name for step in environment.steps] == ["Inspect Script Lines", "Final Answer"]


def test_a_mistake_is_told_as_to_any_agent(make_environment: MakeEnvironment, tmp_path: Path) -> None:
    environment = make_environment()
    shown = work(environment, f"read\n../../etc/passwd\n{ANSWER}", tmp_path)
    assert environment.steps[0].status == "error"
    assert "outside" in shown


def test_a_script_cannot_steer_the_terminal(make_environment: MakeEnvironment, tmp_path: Path) -> None:
    environment = make_environment(files={"train.py": r"print('\x1b]0;title\x07 \x1b[2J 10%\r20%')"})
    shown = work(environment, f"exec\ntrain.py\n{ANSWER}", tmp_path)
    assert "\x1b" not in shown and "\x07" not in shown
    assert "10%\n20%" in shown
    assert visible("a\tb\r\nc\u202e") == "a\tb\nc\\u202e"


def test_limits_hold_for_a_person(make_environment: MakeEnvironment, tmp_path: Path) -> None:
    with pytest.raises(LimitReached, match="1 steps are used up"):
        work(make_environment(limits=RunLimits(steps=1)), "list\n.\nlist\n.\n", tmp_path)


@pytest.mark.parametrize("written", ["", "quit\n", "list\n", "write\nnew.py\nprint(1)\n", "list"])
def test_the_end_of_the_input_stops_the_run(make_environment: MakeEnvironment, tmp_path: Path, written: str) -> None:
    environment = make_environment()
    with pytest.raises(RunStopped):
        work(environment, written, tmp_path)
    assert not environment.steps and not environment.ended


def test_input_from_a_file_is_read_too(tmp_path: Path) -> None:
    (tmp_path / "lines").write_text("one\r\ntwo\n")
    source, sink = os.open(tmp_path / "lines", os.O_RDONLY), os.open(os.devnull, os.O_WRONLY)
    terminal = Terminal(source, sink)

    async def story() -> list[str]:
        return [await terminal.line(""), await terminal.line("")]

    assert finish(story()) == ["one", "two"]
    os.close(source)
    os.close(sink)


def test_waiting_for_a_person_can_be_given_up(tmp_path: Path) -> None:
    source, other = os.pipe()
    terminal = Terminal(source, other)

    async def story() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await Terminal(source, os.open(os.devnull, os.O_WRONLY)).line("")

    finish(story())
    assert terminal.editor is None
    os.close(source)
    os.close(other)


def test_a_person_needs_no_model_unless_assisted() -> None:
    assert not make_agent("human").needs_model  # type: ignore[attr-defined]
    assert make_agent("human", {"assisted": True}).needs_model  # type: ignore[attr-defined]


# At a real terminal.


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_task(tmp_path / "guess")
    return tmp_path


@pytest.mark.slow
def test_a_person_does_a_task_at_a_terminal_stops_and_goes_on(folder: Path) -> None:
    editor = folder / "editor.py"
    editor.write_text(
        "import sys\npath = sys.argv[1]\nassert path.endswith('.txt')\nopen(path, 'a').write(open(path).read() + '7')\n", encoding="utf-8"
    )
    variables = {"EDITOR": f"python3 {editor}"}
    person = Person(RUN, folder, variables)
    person.sees("Write a large number to submission.txt.")
    person.sees("action> ")
    person.writes("write")
    person.sees("file_name")
    person.writes("submission.txt")
    person.sees("[Enter for your editor]> ")
    person.writes("<<", "4", "EOF")
    person.sees("submission.txt has been written.")
    person.sees("action> ")
    person.presses(CTRL_D)
    assert person.leaves() == 130
    run = find_runs(folder / "runs")[0]
    assert run.result is not None and run.result.outcome.ended == "cancelled"
    assert run.result.score is not None and run.result.score.value == 4, "it is graded as it stands"

    person = Person(("resume", str(run.path)), folder, variables)
    person.sees("1 steps are done already.")
    person.sees("action> ")
    person.writes("write", "submission.txt", "")
    person.sees("submission.txt has been written.")
    person.sees("action> ")
    person.writes("exec", "train.py")
    person.sees("trained")
    person.sees("action> ")
    person.writes("final", "done")
    assert person.leaves() == 0
    assert run.result is not None and run.result.outcome.ended == "final_answer"
    assert (run.workspace / "submission.txt").read_text() == "4\n4\n7", "the editor began with what the file held"


@pytest.mark.slow
def test_ctrl_c_at_the_prompt_stops_the_run_at_once(folder: Path) -> None:
    person = Person(RUN, folder)
    person.sees("action> ")
    person.presses(CTRL_C)
    assert person.leaves() == 130
    assert find_runs(folder / "runs")[0].result is not None


@pytest.mark.slow
def test_a_person_who_is_silent_is_stopped_by_the_limit_of_time(folder: Path) -> None:
    person = Person((*RUN, "--time", "2s", "--json"), folder)
    person.sees("action> ")
    person.sees("The time is up.")
    assert person.leaves() == 0
    assert json.loads(person.screen.splitlines()[-1])["ended"] == "limit_time"
