"""Graders forked from one process: as good as started ones, each on its own, and gone when nobody asks any more."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from mlagentbench import GradingError, Task
from mlagentbench.grading.fork_server import Forked, fork_server
from mlagentbench.grading.grade import Graded, Grader
from mlagentbench.task.catalogue import load_task
from tests.grading.test_grade import GRADE, has_ended, until
from tests.support import HANGING
from tests.tiny_task import tiny_task

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="graders are forked on Linux only")

BODY = """
    import random, threading
    guess = context.submission.read_text("guess.txt")
    if guess == "bug":
        raise KeyError("a bug of the grader")
    if guess == "kill":
        os.kill(os.getpid(), 9)
    if guess == "invalid":
        raise InvalidSubmission("no such guess")
    if guess == "sleep":
        (context.private / "pid").write_text(str(os.getpid()))
        time.sleep(600)
    print("noise")
    facts = {"process": os.getpid(), "parent": os.getppid(), "threads": threading.active_count(), "random": random.random()}
    open_files = [f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd")]
    facts |= {"descriptors": [os.readlink(path) for path in open_files if os.path.exists(path)]}
    facts |= {"one": os.environ["OMP_NUM_THREADS"], "group": os.getpgrp()}
    return Score(value=float(guess), details=facts)
"""


@pytest.fixture
def task(tmp_path: Path) -> Task:
    return load_task(tiny_task(tmp_path / "guess", file="guess.txt", grade=GRADE + textwrap.indent(textwrap.dedent(BODY), "    ")))


def leave(tmp_path: Path, *guesses: str) -> list[Path]:
    folders = [tmp_path / f"{number}-{guess}" for number, guess in enumerate(guesses)]
    for folder, guess in zip(folders, guesses, strict=True):
        folder.mkdir()
        (folder / "guess.txt").write_text(guess)
    return folders


async def one_each(task: Task, submissions: list[Path], private: Path | None = None) -> list[Graded | GradingError]:
    """Each by a grader of its own, all at once."""

    async def one(submission: Path) -> Graded | GradingError:
        async with Grader(task, forks=forks, private=private) as grader:
            try:
                return await grader.grade(submission)
            except GradingError as error:
                return error

    async with fork_server() as forks:
        assert forks is not None
        return list(await asyncio.gather(*map(one, submissions)))


def test_graders_are_forked_from_one_process_and_know_nothing_of_each_other(task: Task, tmp_path: Path) -> None:
    found = asyncio.run(one_each(task, leave(tmp_path, "1", "2", "3", "4")))
    scores = [each.score for each in found if isinstance(each, Graded) and each.score]
    assert [score.value for score in scores] == [1.0, 2.0, 3.0, 4.0]
    for name in ("process", "random"):
        assert len({score.details[name] for score in scores}) == 4, name
    assert len({score.details["parent"] for score in scores}) == 1
    for score in scores:
        assert score.details["group"] == score.details["process"] and score.details["one"] == "1"
        open_files = str(score.details["descriptors"])
        assert open_files.count("pipe:") == 2 and "socket:" not in open_files, "no pipe of another grader's, nor the server's own"
        assert has_ended(str(score.details["process"])) and has_ended(str(score.details["parent"]))


def test_a_forked_grader_fails_as_a_started_one_does(task: Task, tmp_path: Path) -> None:
    bug, killed, invalid, good = asyncio.run(one_each(task, leave(tmp_path, "bug", "kill", "invalid", "5")))
    assert isinstance(bug, GradingError) and "failed at guess/grade.py, line 10: KeyError: 'a bug of the grader'" in str(bug)
    assert "grade.py" in bug.__notes__[0]
    assert isinstance(killed, GradingError) and "was ended by signal 9" in str(killed)
    assert isinstance(invalid, Graded) and invalid.reason == "no such guess"
    assert isinstance(good, Graded) and good.score is not None and good.score.value == 5.0


def test_a_grader_that_is_cancelled_is_gone_and_the_next_is_forked(task: Task, tmp_path: Path) -> None:
    asleep, good = leave(tmp_path, "sleep", "7")
    mark = tmp_path / "pid"

    async def scene() -> Graded:
        async with fork_server() as forks, Grader(task, forks=forks, private=tmp_path) as grader:
            grading = asyncio.create_task(grader.grade(asleep))
            while not (mark.exists() and mark.read_text()):
                await asyncio.sleep(0.02)
            grading.cancel()
            await asyncio.wait([grading])
            assert grading.cancelled() and has_ended(mark.read_text())
            return await grader.grade(good)

    found = asyncio.run(asyncio.wait_for(scene(), 300))
    assert found.score is not None and found.score.value == 7.0


def test_every_exit_is_reported_though_the_server_forks_another_grader_meanwhile() -> None:
    """A signal that comes just before the server waits for a request is not lost. Where it was, 1 exit of 1,000 was never reported."""

    async def scene() -> None:
        dice = random.Random(0)
        async with fork_server() as forks:
            assert forks is not None

            def fork() -> tuple[Forked, int]:
                reading, writing = os.pipe()
                with os.fdopen(reading, "rb"), open(os.devnull, "wb") as sink:
                    return forks.fork(reading, sink.fileno(), sink.fileno()), writing

            grader, questions = fork()
            for _ in range(300):
                killing = threading.Timer(dice.uniform(0, 0.002), os.kill, (grader.pid, signal.SIGKILL))
                killing.start()
                following = fork()
                assert await asyncio.wait_for(asyncio.to_thread(grader.wait), HANGING) == -signal.SIGKILL
                grader.status.close()
                os.close(questions)
                grader, questions = following
            os.close(questions)  # it ends by itself
            assert await asyncio.wait_for(asyncio.to_thread(grader.wait), HANGING) == 1
            grader.status.close()

    asyncio.run(scene())


def test_a_server_that_was_killed_is_a_failure_and_no_wait(task: Task, tmp_path: Path) -> None:
    first, second = leave(tmp_path, "1", "2")

    async def scene() -> None:
        async with fork_server() as forks, Grader(task, forks=forks) as grader:
            found = await grader.grade(first)
            assert found.score is not None
            os.kill(int(str(found.score.details["parent"])), signal.SIGKILL)
            async with Grader(task, forks=forks) as other:
                with pytest.raises(GradingError, match="the process that graders are forked from is gone"):
                    await other.grade(second)
            os.kill(grader_pid := int(str(found.score.details["process"])), 0)
            assert not has_ended(str(grader_pid)), "who was forked before goes on"
            again = await grader.grade(second)
            assert again.score is not None and again.score.value == 2.0

    asyncio.run(asyncio.wait_for(scene(), 300))


def test_when_the_asker_is_killed_everything_ends(task: Task, tmp_path: Path) -> None:
    (asleep,) = leave(tmp_path, "sleep")
    script = f"""
        import asyncio
        from pathlib import Path
        from mlagentbench.grading.fork_server import fork_server
        from mlagentbench.grading.grade import Grader
        from mlagentbench.task.catalogue import load_task

        async def main():
            task, private = load_task(Path({str(task.folder)!r})), Path({str(tmp_path)!r})
            async with fork_server() as forks, Grader(task, forks=forks, private=private) as grader:
                await grader.grade(Path({str(asleep)!r}))

        asyncio.run(main())
    """
    mark = tmp_path / "pid"
    asker = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)])
    try:
        until(lambda: mark.exists() and mark.read_text() != "")
        server = Path("/proc", mark.read_text(), "stat").read_text().rpartition(") ")[2].split()[1]
    finally:
        asker.kill()
        asker.wait()
    until(lambda: has_ended(mark.read_text()) and has_ended(server))
