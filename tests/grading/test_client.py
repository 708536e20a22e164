"""A grader's talk with code in a sandbox: what the code can do to it, and what it cannot see there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from mlagentbench import GradingContext, GradingError, InvalidSubmission
from mlagentbench.grading.code.client import CodeClient
from mlagentbench.grading.reader import SubmissionFiles
from mlagentbench.sandbox.base import Sandbox

DOUBLE = """
import os, sys
import numpy as np
from mlagentbench.grading.code.protocol import Frame, receive, send
sys.path.append("code")
import theirs
while True:
    question = receive(0, 10**6)
    theirs.before()
    send(1, Frame(question.kind, question.number, "", tuple(2 * array for array in question.arrays)))
"""

Start = Callable[..., CodeClient]


@pytest.fixture
def start(tmp_path: Path, isolation: Sandbox) -> Iterator[Start]:
    """Start a server that doubles arrays, after it has called the agent's `before`."""
    for name in ("starter", "scratch", "private"):
        (tmp_path / name).mkdir()
    (tmp_path / "serve.py").write_text(DOUBLE)
    (tmp_path / "private" / "answers.csv").write_text("42")

    with ExitStack() as stack:

        def start(before: str = "pass", blame: type[InvalidSubmission] | type[GradingError] = InvalidSubmission) -> CodeClient:
            submission = tmp_path / "submission"
            submission.mkdir()
            (submission / "theirs.py").write_text(f"import os, sys, time\ndef before():\n    {before}\n")
            context = GradingContext(
                submission=SubmissionFiles(submission),
                starter=SubmissionFiles(tmp_path / "starter"),
                private=tmp_path / "private",
                variant="mini",
                seed=None,
                isolation=isolation,
                scratch=tmp_path / "scratch",
            )
            process = context.sandbox(context.submission, tmp_path / "serve.py", packages=("numpy",))
            return CodeClient(stack.enter_context(process), blame)

        yield start


def ask(talk: CodeClient, seconds: float = 300.0) -> np.ndarray:
    return talk.ask(1, (np.arange(6.0).reshape(2, 3),), doing="doubling", seconds=seconds, count=1, max_values=6).arrays[0]


def test_arrays_go_in_and_come_out(start: Start) -> None:
    talk = start()
    assert ask(talk).tolist() == [[0, 2, 4], [6, 8, 10]]
    assert ask(talk).tolist() == [[0, 2, 4], [6, 8, 10]]


def test_the_clock_runs_while_the_code_does(start: Start) -> None:
    talk = start("time.sleep(0.3)")
    ask(talk)
    answer = talk.ask(1, (np.zeros(3),), doing="doubling", seconds=300, count=1, max_values=3)
    assert answer.seconds >= 0.3


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        ("os._exit(3)", r"without an answer \(exit status 3"),
        ("raise KeyError('weights')", "it last wrote: KeyError: 'weights'"),
        ("os.kill(os.getpid(), 9)", "the process"),
        ("print('speed: 100x', flush=True)", "no answer; only its own code"),
        ("os.write(1, b'MLAB' + bytes(20))", "a question that was not asked"),
        ("os.write(1, b'MLAB' + b'\\xff' * 20)", "no answer; only its own code"),
    ],
)
def test_code_that_breaks_off_or_talks_for_itself_is_an_invalid_submission(start: Start, before: str, reason: str) -> None:
    with pytest.raises(InvalidSubmission, match=f"^doubling.*{reason}"):
        ask(start(before))


def test_code_that_does_not_end_is_ended(start: Start) -> None:
    talk = start("while True: pass")
    with pytest.raises(InvalidSubmission, match="doubling took longer than 1 seconds"):
        ask(talk, seconds=1)
    assert talk.process.wait(300) is not None


def test_a_flood_of_errors_neither_blocks_nor_fills_the_memory(start: Start) -> None:
    assert ask(start("sys.stderr.write('x' * 2**24)"))[0, 1] == 2


def test_our_own_code_is_blamed_on_the_grader(start: Start) -> None:
    with pytest.raises(GradingError):
        ask(start("os._exit(3)", GradingError))


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        ("open('code/theirs.py', 'a')", "Read-only file system"),
        ("open('harness/serve.py', 'a')", "Read-only file system"),
        ("import mlagentbench.tasks", "No module named 'mlagentbench.tasks'"),
        ("import scipy", "No module named 'scipy'"),
        ("import socket; socket.create_connection(('127.0.0.1', 22))", "Connection refused|unreachable"),
        ("assert os.path.exists({private!r}), 'nothing there'", "nothing there"),
    ],
)
def test_the_code_sees_itself_and_what_serves_it_and_can_change_neither(
    start: Start, isolation: Sandbox, tmp_path: Path, before: str, reason: str
) -> None:
    if isolation.isolation == "none":
        pytest.skip("nothing is isolated here")
    with pytest.raises(InvalidSubmission, match=reason):
        ask(start(before.format(private=str(tmp_path / "private"))))
