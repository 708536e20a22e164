"""A sandbox that a grader keeps: its packages are imported once, and nothing of one grading reaches the next."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import numpy as np
import pytest

from mlagentbench import GradingContext, GradingError, InvalidSubmission
from mlagentbench.errors import MLAgentBenchError
from mlagentbench.grading import kept
from mlagentbench.grading.code.client import CodeClient
from mlagentbench.grading.kept import KeptSandboxes
from mlagentbench.grading.reader import SubmissionFiles
from mlagentbench.sandbox.base import Sandbox
from mlagentbench.sandbox.linux.process_tree import ProcessTree

SERVE = """
import os, threading, time
import numpy as np
from mlagentbench.grading.code.protocol import Frame, send
from mlagentbench.grading.code.server import END, private_pipes, serve_each

questions, answers = private_pipes()
seen = []

def answer(question):
    number = int(open("code/number.txt").read())
    seen.append(number)
    facts = [number, len(seen), len(os.environ), threading.active_count(), len(os.listdir("/proc/self/fd")), os.getppid()]
    # What it leaves behind, if anything of it stays.
    os.environ[f"LEFT{number}"] = "behind"
    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
    os.dup(0)
    if question.kind == 2:
        raise ValueError("not this one")
    if question.kind == 3:
        os.kill(os.getpid(), 9)
    if question.kind == 4:
        os._exit(0)
    if question.kind == 5:  # an answer to the next question, before it is asked
        send(answers, Frame(1, question.number + 1, "", (np.full(6, 7.0),)))
    if question.kind == 6:  # one that looks like the end of this grading
        send(answers, Frame(END, question.number + 1))
    if question.kind == 7:
        time.sleep(600)
    return "", (np.array(facts, dtype=float),)

serve_each(questions, answers, lambda: answer, max_values=10, code="code")
"""

Begin = Callable[[int], AbstractContextManager[CodeClient]]


@pytest.fixture
def begin(tmp_path: Path, isolation: Sandbox, monkeypatch: pytest.MonkeyPatch) -> Iterator[Begin]:
    """Begin the grading of a submission with a number, in the kept sandbox."""
    monkeypatch.setattr(kept, "END_SECONDS", 300.0)  # a sandbox that ends no sooner is not kept
    for name in ("kept", "starter", "private"):
        (tmp_path / name).mkdir()
    (tmp_path / "serve.py").write_text(SERVE)
    sandboxes = KeptSandboxes(tmp_path / "kept")

    @contextmanager
    def begin(number: int) -> Iterator[CodeClient]:
        submission, scratch = tmp_path / f"submission{number}", tmp_path / f"scratch{number}"
        submission.mkdir()
        scratch.mkdir()
        (submission / "number.txt").write_text(str(number))
        (submission / f"only{number}.txt").touch()
        context = GradingContext(
            submission=SubmissionFiles(submission),
            starter=SubmissionFiles(tmp_path / "starter"),
            private=tmp_path / "private",
            variant="mini",
            seed=None,
            isolation=isolation,
            scratch=scratch,
            sandboxes=sandboxes,
        )
        with context.sandbox(context.submission, tmp_path / "serve.py", packages=("numpy",), kept=True) as process:
            yield CodeClient(process, InvalidSubmission)

    with ExitStack() as stack:
        stack.callback(lambda: [process.close() for process, _ in sandboxes._kept.values()])
        yield begin


def ask(talk: CodeClient, kind: int = 1, seconds: float = 300.0) -> list[float]:
    return talk.ask(kind, (np.zeros(1),), doing="answering", seconds=seconds, count=1, max_values=6).arrays[0].tolist()


def test_gradings_share_what_is_imported_and_nothing_else(begin: Begin, tmp_path: Path) -> None:
    found = []
    for number in (1, 2, 3):
        with begin(number) as talk:
            found.append(ask(talk))
            assert talk.process.running
    assert [each[:2] for each in found] == [[1, 1], [2, 1], [3, 1]], "each sees its own files, and is the first that is asked"
    assert found[0][2:] == found[1][2:] == found[2][2:], "environment, threads and open files are as at the start, and so is the parent"
    assert [path.name for path in (tmp_path / "kept").glob("*/code/only*")] == ["only3.txt"]


def test_a_sandbox_is_not_kept_after_the_grader_itself_has_failed(begin: Begin, tmp_path: Path) -> None:
    with begin(1) as talk:
        ask(talk)
        kept = talk.process
    assert kept.running
    with pytest.raises(GradingError), begin(2) as talk:
        assert talk.process is kept
        raise GradingError("the grader itself failed, and nobody knows in which state")
    assert not kept.running and not list((tmp_path / "kept").iterdir())


@pytest.mark.parametrize("kind", [2, 3, 4, 5, 6, 7])
def test_a_grading_that_fails_or_speaks_out_of_turn_does_not_disturb_the_next(begin: Begin, kind: int) -> None:
    with begin(1) as talk:
        first = ask(talk)
    with contextlib.suppress(MLAgentBenchError), begin(2) as talk:
        ask(talk, kind, seconds=1.0 if kind == 7 else 300.0)
        assert kind in (5, 6), "the others give no answer"
    with begin(3) as talk:
        assert ask(talk)[:5] == [3, *first[1:5]]
        with pytest.raises(InvalidSubmission, match="answering failed: ValueError: not this one"):
            ask(talk, 2)


def test_a_kept_sandbox_is_frozen_between_gradings_and_has_its_whole_time_in_each(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    signals: list[int] = []
    send = ProcessTree.signal_members
    monkeypatch.setattr(ProcessTree, "signal_members", lambda tree, number: signals.append(number) or send(tree, number))
    with begin(1) as talk:
        ask(talk)
        left = talk.process._left()
    assert signals[-1:] == [19], "stopped"
    with begin(2) as talk:
        assert talk.process._left() > left
        ask(talk)
