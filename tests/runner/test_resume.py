"""After each step a run can be continued from exactly there, and forked from any; its directory is all that is needed."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from mlagentbench import RunLimits, RunNotFound, StorageFailed, Usage, UsageError
from mlagentbench.records import ModelCall
from mlagentbench.rundir.directory import RunDirectory, find_runs
from mlagentbench.task.catalogue import load_task
from mlagentbench.workspace.snapshots.snapshots import Manifest
from tests.plans import Plan, make_plan, resumed
from tests.runner.lives import EXECUTE, REPLIES, content_of, make_task, models, scripted, workspace_digest, write_file
from tests.support import finish, reply, set_at

FINAL = len(REPLIES)


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    """A run of a small task that is in no catalogue, by the research agent, without a sandbox."""
    task = load_task(make_task(tmp_path / "guess"))
    return make_plan(task, tmp_path / "runs", agent="research", sandbox="none")


def begin(plan: Plan, replies: Sequence[str] = REPLIES) -> RunDirectory:
    """A new run; one whose replies do not end with an answer ends by a failure of its model."""
    result = finish(plan.conduct(models(scripted(replies), {})))
    return RunDirectory(plan.log_directory / result.run)


def go_on(directory: RunDirectory, replies: Sequence[str] = REPLIES, stop_at: str | None = None, **how: int | str) -> RunDirectory:
    """Go on with a run, or with a fork of it; with `stop_at`, it is stopped once its workspace has such a file."""

    async def story(plan: Plan) -> None:
        stop = asyncio.Event()
        if stop_at is not None:
            set_at(stop, directory.path.parent, stop_at)
        assert plan.continues is not None
        await plan.conduct(models(scripted(replies), plan.continues.replies()), stop=stop)

    with resumed(directory.path, **how) as plan:  # type: ignore[arg-type]
        finish(story(plan))
        assert plan.continues is not None
        return plan.continues


def refusal(directory: RunDirectory, **how: int | str) -> str:
    """Why a run cannot go on, in a line."""
    with pytest.raises(UsageError) as refused, resumed(directory.path, **how):  # type: ignore[arg-type]
        raise AssertionError("it goes on")
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_a_run_whose_model_failed_goes_on_as_if_it_had_not(plan: Plan) -> None:
    whole = content_of(begin(plan))
    for done in (0, 1, 4, FINAL - 1):
        run = begin(plan, REPLIES[:done])
        assert run.result is not None and run.result.outcome.ended == "infrastructure"
        assert len(run.steps()) == done
        assert content_of(go_on(run)) == whole, f"after {done} steps"


def test_an_interrupted_step_leaves_nothing_and_is_done_again(plan: Plan) -> None:
    messy = (
        "import os, time\nopen('junk', 'w').write('x')\nos.remove('notes.txt')\nprint('begun', flush=True)\nopen('begun', 'w')\n"
        "time.sleep({})\nprint('done')\n"
    )
    replies = [
        write_file("notes.txt", "kept"),
        write_file("messy.py", messy.format(600)),
        reply("Execute Script", '{"script_name": "messy.py"}'),
    ]
    run = begin(plan, replies[:2])
    interrupted = go_on(run, replies, stop_at="begun")
    assert interrupted.result is not None and interrupted.result.outcome.ended == "cancelled"
    assert len(run.steps()) == 2
    assert (run.workspace / "junk").exists(), "what the step did is still there"
    listed = go_on(run, [*replies[:2], reply("List Files", '{"dir_path": "."}'), REPLIES[-1]])
    observation = listed.steps()[2].observation
    assert "notes.txt" in observation and "junk" not in observation
    assert "begun" in (run.steps_folder / "0003.lost1.output.txt").read_text(), "what it printed can still be read"


@pytest.mark.parametrize("step", [0, 5, FINAL - 1])
def test_a_fork_is_what_the_run_would_have_become(plan: Plan, step: int) -> None:
    run = begin(plan)
    before = {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file() and not path.is_symlink()}
    fork = go_on(run, step=step)
    assert fork.info.parent == f"{run.name}/{step}"
    assert fork.name != run.name
    assert content_of(fork) == content_of(run), "the prompts too"
    assert [taken.number for taken in fork.steps()] == list(range(1, FINAL + 1))
    assert fork.steps()[:step] == run.steps()[:step]
    assert workspace_digest(fork) == workspace_digest(run)
    after = {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file() and not path.is_symlink()}
    assert after == before, "the run itself stays as it is"


def test_a_fork_can_be_forked_and_outlives_its_parent(plan: Plan) -> None:
    run = begin(plan)
    child = go_on(run, step=4)
    shutil.rmtree(run.path)
    grandchild = go_on(child, step=2)
    assert grandchild.info.parent == f"{child.name}/2"
    assert [directory.name for directory in find_runs(plan.log_directory)] == sorted([child.name, grandchild.name])
    assert content_of(grandchild) == content_of(child)


def test_a_fork_may_go_another_way_with_what_the_run_had(plan: Plan) -> None:
    """The undo history and the research log of the steps before the fork are there; those of the steps after it are not."""
    run = begin(plan, [*REPLIES[:5], reply("Append Summary to Research Log", '{"content": "Only here."}')])
    undo = reply("Undo Edit Script", '{"script_name": "train.py"}')
    recall = reply("Retrieval from Research Log", '{"current_plan": "train"}')
    fork = go_on(run, [*REPLIES[:5], undo, recall, undo, REPLIES[-1]], step=5)
    undone, recalled, again = fork.steps()[5:8]
    starter = (plan.task.starter / "train.py").read_text()
    assert undone.status == "ok" and (fork.workspace / "train.py").read_text() == starter
    assert again.status == "error" and "No change to train.py is left to undo" in again.observation
    (question,) = [call.prompt for call in fork.calls(recalled.number) if call.role == "fast"]
    assert "It trained once." in question and "Only here." not in question


def test_the_workspace_is_what_the_step_left_to_the_last_mode(plan: Plan) -> None:
    run = begin(plan, REPLIES[:3])
    kept = Manifest.load(run.manifest(3))
    assert workspace_digest(run) == kept.digest
    workspace = run.workspace
    (workspace / "junk").mkdir()
    (workspace / "junk" / "deep").write_text("x")
    (workspace / "junk").chmod(0o555)
    (workspace / "train.py").unlink()
    (workspace / "train.py").mkdir()
    (workspace / "kept" / "3").chmod(0o777)
    (workspace / "link").unlink()
    (workspace / "link").symlink_to("/etc/passwd")
    (workspace / "kept" / "5").write_text("changed")
    os.mkfifo(workspace / "pipe")
    assert workspace_digest(run) != kept.digest
    go_on(run, REPLIES[:3])
    assert workspace_digest(run) == kept.digest
    assert (workspace / "kept" / "3").stat().st_mode & 0o777 == 0o600
    assert (workspace / "link").readlink() == Path("kept/3")
    assert not (workspace / "kept" / "7").exists()
    shutil.rmtree(workspace)
    go_on(run, REPLIES[:3])
    assert workspace_digest(run) == kept.digest


def test_what_was_used_of_the_limits_stays_used(plan: Plan) -> None:
    run = begin(plan, REPLIES[:4])
    used = run.usage()
    spent = sum(step.seconds for step in run.steps())
    go_on(run, steps=6)
    assert run.result is not None
    assert (run.result.outcome.ended, run.result.steps) == ("limit_steps", 6)
    assert run.result.seconds > spent
    assert run.result.usage["agent"].calls == 6
    assert run.result.usage["agent"].tokens > used["agent"].tokens
    assert run.info.spec.limits.steps == 6, "the limit is the run's from now on"
    assert "has ended: the run's 6 steps are used up; give it more with --steps or --time" in refusal(run)
    go_on(run, steps=50)
    assert run.result is not None and run.result.outcome.ended == "final_answer"

    tight = RunLimits(tokens=used["agent"].tokens)
    ended = begin(plan.but(limits=tight))
    assert ended.result is not None and ended.result.outcome.ended == "limit_tokens"
    assert "tokens are used up" in refusal(ended)
    fork = go_on(ended, step=1)
    assert fork.result is not None and len(fork.steps()) == len(ended.steps()), "a fork has used what its steps have"

    short = begin(plan.but(limits=RunLimits(time=3600)), REPLIES[:2])
    go_on(short, seconds=sum(step.seconds for step in short.steps()) / 2)
    assert short.result is not None and short.result.outcome.ended == "limit_time"
    assert len(short.steps()) == 2


def test_a_run_without_its_grade_is_graded_and_asks_nothing(plan: Plan) -> None:
    run = begin(plan)
    expected = content_of(run)
    questions = run.usage()
    (run.path / "result.json").unlink()
    go_on(run, [])
    assert content_of(run) == expected
    assert run.usage() == questions


def test_a_step_after_a_result_takes_the_result_away(plan: Plan) -> None:
    run = begin(plan, REPLIES[:2])
    assert run.result is not None
    last = run.steps()[-1]
    run.publish_step(last.model_copy(update={"number": 3}))
    assert run.result is None


def test_what_cannot_go_on_says_why_in_a_line(plan: Plan, tmp_path: Path) -> None:
    run = begin(plan)
    assert f"ended by its final answer; fork it from an earlier step with --step, from 0 to {FINAL - 1}" in refusal(run)
    for step in (FINAL, 99, -1):
        assert f"can be forked from the steps 0 to {FINAL - 1}, not from {step}" in refusal(run, step=step)
    part = begin(plan, REPLIES[:4])
    assert "fork it with --step to go on with another" in refusal(part, model="scripted/other.yaml")
    assert "holds no run" in refusal(RunDirectory(tmp_path))
    with RunDirectory(part.path).lock():
        assert "another process is working on" in refusal(part)
        assert len(go_on(part, step=2).steps()) == FINAL, "a run that goes on can be forked meanwhile"
    info = part.info
    part.write_info(info.model_copy(update={"isolation": "docker"}))
    assert "ran in docker, and this machine gives none" in refusal(part)
    part.write_info(info.model_copy(update={"spec": info.spec.replace(task_folder=tmp_path / "gone")}))
    assert str(tmp_path / "gone") in refusal(part)
    part.write_info(info)
    forks = len(find_runs(plan.log_directory))
    part.manifest(3).write_bytes(b"\x00")
    assert "snapshots/0003 is damaged" in refusal(part, step=3)
    part.manifest(1).unlink()
    assert "it has no snapshots/0001" in refusal(part, step=2)
    (part.steps_folder / "0002.json").unlink()
    assert "it has no step 2, and has later ones" in refusal(part)
    assert len(find_runs(plan.log_directory)) == forks, "a fork that is refused leaves no run"


def test_a_model_is_changed_by_a_fork_that_says_so(plan: Plan) -> None:
    fork = go_on(begin(plan), step=2, model="scripted/other.yaml")
    assert set(fork.info.spec.model_names.values()) == {"scripted/other.yaml"}


def test_a_task_that_changed_since_does_not_change_the_run(plan: Plan) -> None:
    run = begin(plan, REPLIES[:3])
    (plan.task.folder / "problem.md").write_text("Do something else.\n")
    (plan.task.starter / "train.py").write_text("print('other')\n")
    for directory in (go_on(run), go_on(run, step=0)):
        assert directory.info.description.startswith("Write a large number to submission.txt.\n\nOne script may run for at most ")
        assert all("Write a large number" in directory.calls(number)[0].prompt for number in range(1, FINAL + 1))
        assert "other" not in (directory.workspace / "train.py").read_text()


def test_a_run_keeps_the_data_it_began_on(plan: Plan) -> None:
    prepare = plan.task.folder / "prepare.py"
    prepare.write_text("def mini(public, private, seed):\n    (public / 'numbers.txt').write_text('first')\n")
    run = begin(plan, REPLIES[:3])
    prepare.write_text(prepare.read_text().replace("first", "second"))
    for directory in (go_on(run), go_on(run, step=2)):
        assert (directory.workspace / "numbers.txt").read_text() == "first"
        assert directory.info.data == run.info.data
    assert (begin(plan).workspace / "numbers.txt").read_text() == "second"


def test_what_a_killed_process_left_half_done_is_set_aside(plan: Plan) -> None:
    expected = content_of(begin(plan))
    run = begin(plan, REPLIES[:3])
    (run.path / "result.json").unlink()
    for place in (
        run.path / ".result.json.123.abcdef",
        run.steps_folder / ".0004.json.123.abcdef",
        run.path / "snapshots" / ".0004.123.abcdef",
    ):
        place.write_text('{"half')
    shutil.copy(run.manifest(0), run.manifest(4))  # a snapshot whose step was not published
    call = ModelCall(role="agent", model="m", purpose="agent", prompt="p", reply="r", usage=Usage(calls=1, output_tokens=7), seconds=0.5)
    for number in (4, 5):
        (run.steps_folder / f"{number:04d}.calls.jsonl").write_text(call.model_dump_json() + '\n{"role": "agent", "mod')
    before = run.usage()["agent"]
    go_on(run)
    assert content_of(run) == expected
    assert not [path for path in run.path.rglob(".*") if path.is_file()]
    assert run.usage()["agent"].calls == before.calls + FINAL - 3, "what was spent in vain counts"
    assert run.result is not None and run.result.usage["agent"].calls == FINAL + 2


def test_a_disk_that_is_full_loses_no_step_and_no_fork(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    run = begin(plan, REPLIES[:4])

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "copyfile", full)
        with pytest.raises(StorageFailed, match="No space left"), resumed(run.path, 2):
            pass
    assert {path.name for path in plan.log_directory.iterdir()} == {"objects", run.name}
    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", full)
        with pytest.raises(StorageFailed):
            go_on(run)
    assert len(run.steps()) == 4
    assert len(go_on(run).steps()) == FINAL


def test_an_agents_session_is_gone_after_a_fork_and_it_is_told(plan: Plan) -> None:
    remember = reply("Python REPL", json.dumps({"command": "number = 41"}))
    ask = reply("Python REPL", json.dumps({"command": "'number' in globals()"}))
    run = begin(plan, [remember, ask])
    assert run.steps()[1].observation == "True"
    asked = go_on(run, [remember, ask, REPLIES[-1]], step=1).steps()[1].observation
    assert "variables of the one before are gone" in asked and "False" in asked


def test_a_directory_that_holds_no_whole_run_is_not_found(plan: Plan) -> None:
    run = begin(plan, [EXECUTE])
    half = plan.log_directory / "a-fork-that-was-killed"
    shutil.copytree(run.steps_folder, half / "steps")
    assert run.name in [found.name for found in find_runs(plan.log_directory)]
    with pytest.raises(RunNotFound), resumed(half):
        pass
