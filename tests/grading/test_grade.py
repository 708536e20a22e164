"""A grader in its process: scores, reasons, bugs and limits, each told apart."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mlagentbench import GradingError, InfrastructureError, SandboxUnavailable, Task
from mlagentbench.grading.grade import Graded, Grader, grade, grade_all, missing
from mlagentbench.grading.lock import timing
from mlagentbench.task.catalogue import load_task
from tests.tiny_task import tiny_task

GRADE = """
import os, subprocess, sys, time
from mlagentbench import GradingContext, InvalidSubmission, Score

def grade(context: GradingContext) -> Score:
"""

MakeTask = Callable[..., Task]


@pytest.fixture
def make_task(tmp_path: Path) -> MakeTask:
    """A task whose grader has this body."""

    def make(body: str, *, mode: str = "file", seconds: float = 300.0) -> Task:
        code = GRADE + textwrap.indent(textwrap.dedent(body), "    ")
        keys = {"limits": f"{{ grading_time = {seconds}, grading_memory_mb = 1024 }}"}
        return load_task(tiny_task(tmp_path / "guess", file="guess.txt", submitted=["*.txt"], mode=mode, grade=code, keys=keys))

    return make


@pytest.fixture
def submission(tmp_path: Path) -> Path:
    folder = tmp_path / "submission"
    folder.mkdir()
    (folder / "guess.txt").write_text("40")
    return folder


def graded(task: Task, submission: Path, **more: Any) -> Graded:
    return asyncio.run(grade(task, submission, **more))


def test_a_score_comes_back_with_its_details(make_task: MakeTask, submission: Path, tmp_path: Path) -> None:
    task = make_task("""
        guess = float(context.submission.read_text("guess.txt"))
        answer = float((context.private / "answer.txt").read_text())
        return Score(value=abs(guess - answer), details={"variant": context.variant, "seed": context.seed})
    """)
    (tmp_path / "answer.txt").write_text("42")
    found = graded(task, submission, variant="mini", private=tmp_path, seed=7)
    assert found.score is not None and found.reason is None and not found.failed
    assert found.score.value == 2.0
    assert found.score.details == {"variant": "mini", "seed": 7}
    assert found.seconds > 0


def test_what_the_submission_is_at_fault_for_is_a_reason_on_one_safe_line(make_task: MakeTask, submission: Path) -> None:
    task = make_task(r"""raise InvalidSubmission("guess.txt holds\n\x1b[31mno\x07 number" + " really" * 1000)""")
    found = graded(task, submission)
    assert found.score is None
    assert found.reason is not None and found.reason.startswith("guess.txt holds [31mno number really") and len(found.reason) <= 500


def test_a_graders_bug_raises_and_shows_its_traceback(make_task: MakeTask, submission: Path) -> None:
    task = make_task("return Score(value=1 / 0)")
    with pytest.raises(GradingError, match=r"the grader of guess failed at guess/grade\.py, line \d+: ZeroDivisionError") as caught:
        graded(task, submission)
    assert isinstance(caught.value, InfrastructureError)
    assert "grade.py" in caught.value.__notes__[0]


@pytest.mark.parametrize(
    "body",
    ["return None", "return 0.5", "return Score(value=float('nan'))", "return Score(value=float('inf'))", "return Score(value=1e200)"],
)
def test_a_grader_that_gives_no_finite_score_has_a_bug(make_task: MakeTask, submission: Path, body: str) -> None:
    with pytest.raises(GradingError, match=r"grade\(\) returned (None|0\.5), which is no Score|as a score; it must be a finite number"):
        graded(make_task(body), submission)


def test_what_a_grader_prints_does_not_disturb(make_task: MakeTask, submission: Path) -> None:
    task = make_task("""
        print("{}")
        os.write(1, b"noise" * 100_000)
        subprocess.run(["echo", "more"])
        return Score(value=0.5)
    """)
    found = graded(task, submission)
    assert found.score is not None and found.score.value == 0.5


def test_a_grader_that_takes_too_long_is_ended_with_all_it_started(make_task: MakeTask, submission: Path, tmp_path: Path) -> None:
    mark = tmp_path / "alive"
    body = f"""
        subprocess.Popen(["sh", "-c", "while :; do date >> {mark}; sleep 0.05; done"], start_new_session=True)
        time.sleep(600)
        """
    for seconds in (4, 16, 64):  # until its process has come so far, which takes a busy machine longer
        task = make_task(body, seconds=seconds)
        with pytest.raises(GradingError, match=rf"longer than {seconds} seconds \(limits.grading_time in its task.toml\)"):
            graded(task, submission)
        if mark.exists():
            break
    before = mark.read_text()
    assert before
    time.sleep(0.3)
    assert mark.read_text() == before


def test_a_grader_that_takes_too_much_memory_fails(make_task: MakeTask, submission: Path) -> None:
    with pytest.raises(GradingError, match="MemoryError"):
        graded(make_task("return Score(value=float(len(bytearray(2 * 2**30))))"), submission)


def test_a_grader_that_is_killed_says_by_what(make_task: MakeTask, submission: Path) -> None:
    with pytest.raises(GradingError, match="signal 9"):
        graded(make_task("os.kill(os.getpid(), 9)"), submission)


def test_a_grader_whose_answer_is_too_long_fails(make_task: MakeTask, submission: Path) -> None:
    with pytest.raises(GradingError, match="gave no score that can be read"):
        graded(make_task("return Score(value=1.0, details={'log': 'x' * 2**26})"), submission)


def test_a_grader_that_closes_its_answers_and_stays_is_ended_at_its_time_limit(make_task: MakeTask, submission: Path) -> None:
    """As code does that a grader imports; its end cannot be waited for."""
    with pytest.raises(GradingError, match="longer than 1 seconds"):
        graded(make_task("os.closerange(3, 100); time.sleep(600)", seconds=1), submission)


def test_a_cancelled_grading_leaves_nothing_alive(make_task: MakeTask, submission: Path, tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    task = make_task(f"open({str(mark)!r}, 'w').write(str(os.getpid())); time.sleep(600)")

    async def scene() -> None:
        async with asyncio.timeout(300):
            grading = asyncio.create_task(grade(task, submission))
            while not (mark.exists() and mark.read_text()):
                await asyncio.sleep(0.02)
            grading.cancel()
            await asyncio.wait([grading])
            assert grading.cancelled()

    asyncio.run(scene())
    assert not Path("/proc", mark.read_text()).exists()


def test_a_grading_whose_asker_is_killed_ends_too(make_task: MakeTask, submission: Path, tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    task = make_task(f"open({str(mark)!r}, 'w').write(str(os.getpid())); time.sleep(600)")
    asker = f"""
        import asyncio
        from pathlib import Path
        from mlagentbench.grading.grade import grade
        from mlagentbench.task.catalogue import load_task
        asyncio.run(grade(load_task(Path({str(task.folder)!r})), Path({str(submission)!r})))
    """
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(asker)])
    try:
        until(lambda: mark.exists() and mark.read_text() != "")
    finally:
        process.kill()
        process.wait()
    until(lambda: has_ended(mark.read_text()))


def has_ended(pid: str) -> bool:
    """Whether a process is gone, or is a zombie that its adopter has not yet fetched."""
    try:
        return Path("/proc", pid, "stat").read_text().rpartition(") ")[2].startswith("Z")
    except (FileNotFoundError, ProcessLookupError):
        return True


def until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 300
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_required_path_that_is_no_file_is_a_reason_and_a_missing_one_is_no_submission(make_task: MakeTask, submission: Path) -> None:
    task = make_task("return Score(value=0.0)")
    assert missing(task.spec, submission) == ()
    (submission / "guess.txt").unlink()
    assert missing(task.spec, submission) == ("guess.txt",)
    (submission / "guess.txt").symlink_to("/etc/passwd")
    assert missing(task.spec, submission) == ()
    assert graded(task, submission).reason == "guess.txt is a link; leave a regular file"


def test_a_sandbox_that_is_not_to_be_had_is_said_so(make_task: MakeTask, submission: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SandboxUnavailable, match="bwrap is not installed"):
        graded(make_task("return Score(value=0.0)"), submission, sandbox="bubblewrap")


@pytest.mark.parametrize(("mode", "waits"), [("code", True), ("file", False)])
def test_only_timed_gradings_wait_for_the_machine(make_task: MakeTask, submission: Path, mode: str, waits: bool) -> None:
    task = make_task("return Score(value=0.0)", mode=mode)

    async def scene() -> bool:
        started = time.monotonic()
        async with timing():
            grading = asyncio.create_task(grade(task, submission))
            await asyncio.wait([grading], timeout=300 if not waits else 2)
            waited = not grading.done()
        found = await grading
        assert found.score is not None
        assert not waited or time.monotonic() - started - found.seconds >= 2, "the wait is not in it"
        return waited

    assert asyncio.run(scene()) is waits


def test_many_submissions_share_a_process_and_a_crash_costs_only_its_own(make_task: MakeTask, tmp_path: Path) -> None:
    task = make_task("""
        guess = int(context.submission.read_text("guess.txt"))
        if guess == 1:
            os._exit(7)
        if guess == 2:
            raise InvalidSubmission("2 is no guess")
        assert not list(context.scratch.iterdir())
        (context.scratch / "mine").touch()
        return Score(value=float(guess), details={"process": os.getpid()})
    """)
    submissions = [tmp_path / str(guess) for guess in (5, 0, 2, 6, 1, 7, 8)]
    for folder in submissions:
        folder.mkdir()
        (folder / "guess.txt").write_text(folder.name)

    async def scene() -> list[Graded]:
        async with Grader(task) as grader:
            return await grade_all(grader, submissions)

    found = asyncio.run(scene())
    assert [each.score and each.score.value for each in found] == [5.0, 0.0, None, 6.0, None, 7.0, 8.0]
    assert found[2].reason == "2 is no guess" and not found[2].failed
    assert found[4].failed and "failed" in str(found[4].reason)
    processes = [each.score.details["process"] for each in found if each.score]
    assert len(set(processes[:3])) == 1 and len(set(processes[3:])) == 1 and processes[0] != processes[3]
    assert all(has_ended(str(process)) for process in processes)
