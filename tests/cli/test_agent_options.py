"""The paper's agent's options on the command line, and what runs are given of earlier work."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mlagentbench.results.conditions import agent_words
from mlagentbench.rundir.directory import RunDirectory, find_runs
from tests.cli.test_cli import END, complaint, here, mlab, script
from tests.runner.lives import make_task
from tests.support import reply

READ = reply("Read File", '{"file_name": "experience/notes.md"}')


@pytest.fixture
def known(tmp_path: Path) -> Path:
    folder = tmp_path / "known"
    folder.mkdir()
    (folder / "notes.md").write_text("A low rate works.")
    return folder


def run(tmp_path: Path, *arguments: str | Path, replies: tuple[str, ...] = (END,)) -> RunDirectory:
    task = tmp_path / "guess"
    if not task.exists():
        make_task(task)
    model = script(tmp_path / "script.yaml", *replies, {"role": "fast", "reply": "It went well."})
    common = (
        "run",
        "guess",
        "--task-path",
        task,
        "--model",
        model,
        "--log-dir",
        tmp_path / "runs",
        "--sandbox",
        "none",
        "--json",
        "--baseline",
        "paper",
    )
    finished = mlab(*common, *arguments)
    assert finished.returncode == 0, finished.stderr
    (line,) = finished.stdout.splitlines()
    return next(found for found in find_runs(tmp_path / "runs") if found.name == json.loads(line)["run"])


@pytest.mark.slow
def test_they_are_the_agents_options(tmp_path: Path) -> None:
    shortcuts = (
        "--research-log",
        "--context-steps",
        "5",
        "--entries",
        "thought",
        "--actions-add",
        "read-file",
        "--actions-remove",
        "copy-file",
    )
    directory = run(tmp_path, *shortcuts, "-A", "temperature=0.1", replies=(READ, END))
    assert [step.counted for step in directory.steps()] == [True, False, True]
    prompt = directory.calls(1)[0].prompt
    assert "- Read File:" in prompt and "- Copy File:" not in prompt and "\nFact Check:" not in prompt
    assert directory.info.spec.agent_options == {
        "research_log": True,
        "context_steps": "5",
        "entries": "thought",
        "actions_add": "read-file",
        "actions_remove": "copy-file",
        "temperature": 0.1,
    }
    words = "actions_add read-file, actions_remove copy-file, context_steps 5, entries thought, research_log true, temperature 0.1"
    assert agent_words(directory.info) == f"research ({words})"


@pytest.mark.slow
def test_what_is_not_asked_for_is_no_option(tmp_path: Path) -> None:
    assert run(tmp_path).info.spec.agent_options == {}


@pytest.mark.slow
def test_experience_is_given_to_any_agent_and_shown(tmp_path: Path, known: Path) -> None:
    directory = run(tmp_path, "--agent", "act", "--experience", known, replies=(READ, END))
    assert "A low rate works." in directory.steps()[0].observation
    assert directory.info.experience is not None
    assert agent_words(directory.info) == f"act (with experience {directory.info.experience.digest[:8]})"
    assert directory.result is not None and "experience" in directory.result.outcome.flags
    baseline = run(tmp_path, "--agent", "baseline", "--experience", known)
    assert baseline.info.experience == directory.info.experience


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("--agent", "baseline", "--research-log"), "the agent 'baseline' has no option 'research_log'; it has: script"),
        (("--agent", "baseline", "--entries", "thought"), "the agent 'baseline' has no option 'entries'"),
        (("--entries", "thoughts"), "there is no entry 'thoughts'"),
        (("--actions-add", "fly"), "there is no action 'fly'"),
        (("--context-steps", "few"), "context_steps: Input should be a valid integer"),
        (("--context-steps", "5", "-A", "context-steps=6"), "option context_steps is given twice"),
        (("--experience", "nowhere"), "nowhere to take experience from"),
    ],
)
def test_what_an_agent_lacks_is_one_line_and_status_2(arguments: tuple[str, ...], words: str, tmp_path: Path) -> None:
    finished = here("run", "vectorization", "--model", "scripted/demo", "--log-dir", tmp_path / "runs", *arguments)
    assert words in complaint(finished)
    assert finished.returncode == 2
    assert not list((tmp_path / "runs").glob("*/run.json"))
