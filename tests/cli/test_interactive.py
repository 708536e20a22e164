"""`mlab run --interactive`: at a real terminal, and what is refused in one line."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from mlagentbench.cli.main import run
from mlagentbench.rundir.directory import find_runs
from tests.agents.person import CTRL_D, Person
from tests.support import reply


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A person's folder `mine`, and a script of an agent that asks for help and changes a file."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "train.py").write_text("print(1)\n")
    (tmp_path / "mine" / "notes.txt").write_text("mine\n")
    replies = [
        reply("Request Help", '{"request": "What should it print?"}'),
        reply("Write File", json.dumps({"file_name": "train.py", "content": "print(2)\n"})),
        reply("Execute Script", '{"script_name": "train.py"}'),
        reply("Final Answer", '{"final_answer": "done"}'),
    ]
    (tmp_path / "replies.jsonl").write_text("".join(json.dumps({"reply": text}) + "\n" for text in replies))
    return tmp_path


SESSION = ("run", "--interactive", "mine", "--model", "scripted/replies.jsonl")


@pytest.mark.slow
def test_a_person_works_with_an_agent_on_a_folder(place: Path) -> None:
    person = Person(SESSION, place, {"MLAB_CACHE": str(place / "cache")})
    person.sees("What is to be done? ")
    person.writes("Print something else")
    person.sees("In mine: notes.txt, train.py")
    person.writes("train.py")
    person.sees("What should it print?")
    person.sees("your answer")
    assert (place / "mine" / "train.py").read_text() == "print(1)\n"
    person.writes("two")
    person.sees("1 file changed")
    person.sees("to apply them:")
    assert person.leaves() == 0
    assert (place / "mine" / "train.py").read_text() == "print(1)\n"
    command = next(line for line in person.screen.splitlines() if line.startswith("  git -C "))
    subprocess.run(command, shell=True, cwd=place, check=True)
    assert (place / "mine" / "train.py").read_text() == "print(2)\n"
    assert find_runs(place / "runs")[0].steps()[0].observation == "two"


@pytest.mark.slow
def test_a_session_that_is_stopped_goes_on_and_never_writes_to_the_folder(place: Path) -> None:
    variables = {"MLAB_CACHE": str(place / "cache")}
    person = Person((*SESSION, "--say", "Print something else", "--allow", "all"), place, variables)
    person.sees("your answer")
    person.presses(CTRL_D)
    assert person.leaves() == 130
    session = find_runs(place / "runs")[0]
    assert session.result is not None and session.result.outcome.ended == "cancelled" and not session.steps()

    person = Person(("resume", str(session.path), "--interactive"), place, variables)
    person.sees("your answer")
    person.writes("<<", "two", "or three", "EOF")
    person.sees("to apply them:")
    assert person.leaves() == 0
    assert session.steps()[0].observation == "two\nor three\n"
    assert (place / "mine" / "train.py").read_text() == "print(1)\n"


@pytest.mark.slow
def test_what_cannot_be_meant_is_asked_again_and_a_session_is_not_graded_and_can_be_run_again(place: Path) -> None:
    variables = {"MLAB_CACHE": str(place / "cache")}
    (place / "mine").rename(place / "mäin folder")
    (place / "mäin folder" / "two words.txt").write_text("2")
    person = Person((*SESSION[:2], "mäin folder", *SESSION[3:]), place, variables)
    for said in ("", "  "):
        person.sees("What is to be done? ")
        person.writes(said)
    person.sees("What is to be done? ")
    person.writes("Zähl hinauf")
    person.sees("In mäin folder: notes.txt, train.py, two words.txt")
    person.sees("Which of them may be changed?")
    person.writes("tarin.py")
    person.sees("no 'tarin.py' in mäin folder")
    person.writes('"two words.txt')
    person.sees("quotation")
    person.writes('"two words.txt"')
    person.sees("your answer")
    person.writes("")
    person.sees("not graded")
    person.sees("Nothing that may be changed has changed")
    assert person.leaves() == 0
    assert "grader" not in person.screen and "success" not in person.screen
    (session,) = (place / "runs" / "sessions").iterdir()
    assert session.name == "session-zahl-hinauf"
    assert sorted(path.name for path in (session / "starter").iterdir()) == ["two words.txt"]
    run = find_runs(place / "runs")[0]
    assert run.steps()[1].status == "error", "what was not allowed is read-only"
    again = Person(("resume", str(run.path)), place, variables)
    again.sees("has ended by its final answer")
    assert again.leaves() == 2
    again = Person(("run", session.name, "--task-path", str(session), "--variant", "mini", *SESSION[3:], "--json"), place, variables)
    again.sees('"verdict": "ungraded"')
    assert again.leaves() == 0


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (("--interactive", "nowhere", "--say", "x"), "nowhere is neither a folder nor a task"),
        (("--interactive", "replies.jsonl", "--say", "x"), "replies.jsonl is a file"),
        (("--interactive", "mine", "--say", " "), "say in a sentence"),
        (("--interactive", "mine", "mine", "--say", "x"), "one folder or task, not 2"),
        (("--interactive", "mine", "--say", "x", "--allow", "other.py"), "no 'other.py' in mine"),
        (("--interactive", "mine", "--say", "x", "--runs", "2"), "is one run"),
        (("--interactive", "vectorization", "--say", "x"), "says itself what is to be done"),
        (("vectorization", "--say", "x"), "add --interactive"),
        (("vectorization", "--allow", "all"), "add --interactive"),
        ((), "Missing argument"),
    ],
)
def test_bad_input_is_one_clear_line_and_leaves_nothing(
    place: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], arguments: tuple[str, ...], fault: str
) -> None:
    monkeypatch.chdir(place)
    assert run(("run", *arguments, "--model", "scripted/replies.jsonl")) == 2
    told = capfd.readouterr().err
    assert fault in told and told.startswith("mlab: ") and told.count("\n") == 1
    assert not (place / "runs" / "sessions").exists()
