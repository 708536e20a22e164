"""What a run is given of earlier work: read-only, its own copy, and named in the prompt."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

import mlagentbench
from mlagentbench import UsageError
from mlagentbench.data.cache import cache_directory
from mlagentbench.limits import SandboxChoice
from mlagentbench.rundir.directory import RunDirectory
from mlagentbench.runner import given as given_folders
from mlagentbench.runner.given import Given, check_experience, describe
from mlagentbench.sandbox import isolation
from mlagentbench.task.catalogue import load_task
from mlagentbench.workspace.snapshots.snapshots import Manifest
from tests.plans import Plan, make_plan, resumed
from tests.runner.lives import content_of, make_task, models, scripted, write_file
from tests.support import finish, reply

LIST = reply("List Files", '{"dir_path": "experience/runs"}')
READ = reply("Read File", '{"file_name": "experience/notes.md"}')
OVERWRITE = write_file("experience/notes.md", "Lies.")
SCRIPT = write_file(
    "look.py",
    "print(open('experience/runs/a.txt').read())\n"
    "try:\n    open('experience/notes.md', 'w')\nexcept OSError as error:\n    print('refused:', error.strerror)\n",
)
EXECUTE = reply("Execute Script", '{"script_name": "look.py"}')
REPL = reply("Python REPL", '{"command": "len(open(\\"experience/notes.md\\").read())"}')
END = reply("Final Answer", '{"final_answer": "done"}')
REPLIES = (LIST, READ, OVERWRITE, SCRIPT, EXECUTE, REPL, write_file("submission.txt", "12"), END)

SANDBOXES: list[SandboxChoice] = ["bubblewrap", "landlock", "none"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Notes, and a file of an earlier run."""
    folder = tmp_path / "known"
    (folder / "runs").mkdir(parents=True)
    (folder / "notes.md").write_text("A low rate works.")
    (folder / "runs" / "a.txt").write_text("It was 0.7.")
    (folder / "runs" / "never.txt").write_text("Nobody reads this.")
    (folder / "link").symlink_to("/etc/passwd")
    return folder


@pytest.fixture
def plan(tmp_path: Path, folder: Path) -> Plan:
    """A run that is given experience."""
    task = load_task(make_task(tmp_path / "guess"))
    return make_plan(task, tmp_path / "logs", experience=folder)


def carry_out(plan: Plan, replies: Sequence[str] = REPLIES) -> RunDirectory:
    had = plan.continues.replies() if plan.continues else {}
    return RunDirectory(plan.log_directory / finish(plan.conduct(models(scripted(replies), had))).run)


def go_on(run: RunDirectory, step: int | None = None) -> RunDirectory:
    with resumed(run.path, step) as again:
        return carry_out(again)


def refusal(plan: Plan, folder: Path) -> str:
    with pytest.raises(UsageError) as refused:
        check_experience(folder, plan.task, plan.log_directory)
    assert "\n" not in str(refused.value)
    return str(refused.value)


@pytest.mark.parametrize("sandbox", SANDBOXES)
def test_actions_scripts_and_sessions_read_it_in_any_sandbox(plan: Plan, sandbox: SandboxChoice) -> None:
    try:
        isolation.choose(sandbox)
    except UsageError as unavailable:
        pytest.skip(str(unavailable))
    run = carry_out(plan.but(sandbox=sandbox))
    listed, read, overwritten, _, executed, typed, *_ = run.steps()
    assert listed.observation == "a.txt\nnever.txt"
    assert "A low rate works." in read.observation
    assert overwritten.status == "error" and "read-only" in overwritten.observation
    assert "It was 0.7." in executed.observation
    if sandbox == "bubblewrap":
        assert "refused: Read-only file system" in executed.observation
        assert typed.observation == "17"


def test_the_agent_is_told_of_it_and_the_run_says_so(plan: Plan, folder: Path) -> None:
    run = carry_out(plan)
    first = run.calls(1)[0].prompt
    assert "The folder experience of the working directory" in first and "3 files" in first
    facts = run.info.experience
    assert facts is not None and (facts.folder, facts.files, facts.bytes) == (str(folder), 3, 17 + 11 + 18)
    assert run.result is not None and "experience" in run.result.outcome.flags
    assert run.result.outcome.verdict == "success"


def test_a_run_without_it_is_as_before(plan: Plan) -> None:
    run = carry_out(plan.but(experience=None), [END])
    assert run.info.experience is None
    assert "experience" not in run.info.description
    assert not run.experience.exists()
    assert run.result is not None and "experience" not in run.result.outcome.flags


def test_it_is_no_part_of_snapshots(plan: Plan) -> None:
    run = carry_out(plan)
    last = Manifest.load(run.manifest(len(run.steps())))
    assert not any(path.startswith("experience") for path in last.entries)


def test_links_in_it_are_left_out(plan: Plan) -> None:
    run = carry_out(plan)
    assert sorted(path.name for path in run.experience.rglob("*")) == ["a.txt", "never.txt", "notes.md", "runs"]


def test_a_run_that_goes_on_or_is_forked_has_what_it_began_with(plan: Plan, folder: Path) -> None:
    whole = content_of(carry_out(plan))
    run = carry_out(plan, REPLIES[:4])
    shutil.rmtree(folder)
    fork = go_on(run, 2)
    assert content_of(fork) == whole
    assert fork.info.experience == run.info.experience
    assert content_of(go_on(run)) == whole
    shutil.rmtree(run.path)
    assert content_of(go_on(fork, 1)) == whole, "a fork has a copy of its own"


def test_a_copy_that_was_not_finished_is_made_anew(plan: Plan, folder: Path) -> None:
    run = carry_out(plan, REPLIES[:4])
    # As if the process had been killed while it copied.
    for path in (run.experience, run.path / "snapshots", run.steps_folder):
        shutil.rmtree(path)
        path.mkdir()
    run.experience.rename(run.path / ".experience")
    (run.path / ".experience" / "half").write_text("x")
    assert len(go_on(run).steps()) == len(REPLIES)
    assert not (run.experience / "half").exists()


def test_a_folder_that_changed_before_the_run_had_its_copy_is_not_taken(plan: Plan, folder: Path) -> None:
    run = carry_out(plan, [])
    shutil.rmtree(run.experience)
    (folder / "notes.md").write_text("Something else.")
    with pytest.raises(UsageError, match="has changed since the run was made"):
        go_on(run)
    shutil.rmtree(folder)
    with pytest.raises(UsageError, match="has changed since the run was made"):
        go_on(run)


def test_nothing_that_holds_answers_is_given(plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLAB_CACHE", str(tmp_path / "cache"))
    cache_directory().mkdir()
    for folder in (plan.task.folder, plan.task.folder.parent, plan.task.starter, cache_directory(), Path(mlagentbench.__file__).parent):
        assert "the answers" in refusal(plan, folder)
    disguised = tmp_path / "disguised"
    disguised.symlink_to(plan.task.folder)
    assert "the answers" in refusal(plan, disguised)


def test_a_folder_that_cannot_be_given_is_one_clear_line(plan: Plan, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "there is no folder" in refusal(plan, tmp_path / "nowhere")
    assert "there is no folder" in refusal(plan, folder / "notes.md")
    assert "this run would be in it" in refusal(plan.but(log_directory=folder / "logs"), folder)
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "holds no files" in refusal(plan, empty)
    monkeypatch.setitem(given_folders.MOST_MB, "experience", 0)
    assert "at most 0" in refusal(plan, folder)
    (plan.task.starter / "experience").mkdir()
    assert "of its own" in refusal(plan, folder)


def test_an_earlier_run_is_experience_for_a_later_one(plan: Plan) -> None:
    earlier = carry_out(plan.but(experience=None))
    replies = [reply("Read File", '{"file_name": "experience/steps/0001.json"}'), END]
    run = carry_out(plan.but(experience=earlier.path), replies)
    assert "List Files" in run.steps()[0].observation


def test_special_files_are_not_waited_for(plan: Plan, folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    assert check_experience(folder, plan.task, plan.log_directory).files == 3


def test_without_it_nothing_is_told() -> None:
    assert describe("Do it.", Given()) == "Do it."
