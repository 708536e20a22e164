"""What agents may leave in the place of a submission, through a whole run and graded again: it is invalid, for a reason to act on."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from mlagentbench import Action, Environment, Result, Task
from mlagentbench.model import Models, Script
from mlagentbench.rundir.directory import RunDirectory, find_runs
from mlagentbench.runner.regrade import regrade_all
from mlagentbench.task.catalogue import find_task, load_task
from tests.plans import make_plan
from tests.runner.hostile import SPECIAL, remove, sparse
from tests.tiny_task import GRADE_TABLE, tiny_task

Leave = Callable[[Path], object]
Cases = Mapping[str, tuple[Leave, str]]

ROWS = 300
PREPARE = f"""
def mini(public, private, seed):
    (private / "answers.csv").write_text("id,value\\n" + "".join(f"{{number}},0\\n" for number in range({ROWS})))
"""
AGENT = """
from tests.runner.test_hostile import act

class Hostile:
    needs_model = False

    async def __call__(self, environment):
        await act(environment)
"""
GOOD = b"id,value\n" + b"".join(b"%d,0.5\n" % number for number in range(ROWS))

_leave: tuple[str, list[Leave]] = ("", [])
"""What the agent leaves, and where: one thing a step."""


async def act(environment: Environment) -> None:
    name, leaves = _leave
    path = environment.workspace.root / name
    for leave in leaves:
        await environment.settle()  # the snapshot of the step before is taken
        remove(path)
        leave(path)
        await environment.execute(Action(name="List Files", arguments={"dir_path": "."}))
    await environment.execute(Action(name="Final Answer", arguments={"final_answer": "done"}))


def _bytes(content: bytes) -> Leave:
    return lambda path: path.write_bytes(content)


def _cell(text: str) -> Leave:
    """A good table with one cell of another text."""
    return _bytes(GOOD.replace(b"7,0.5\n", f"7,{text}\n".encode(), 1))


def _unreadable(path: Path) -> None:
    path.write_bytes(GOOD)
    path.chmod(0)


def _with_odd_names(path: Path) -> None:
    for name in (b"a\nb.csv", b"\x1b[31mred", b"\xff\xfe", b"-rf", b" "):
        (path.parent / name.decode(errors="surrogateescape")).write_bytes(b"x")
    path.write_bytes(b"id\n")


MOST_KB = 600 << 10
"""What a grader of tables may take: the bound that is stated in docs/grading.md, with what Python and its libraries take."""
FINITE = "write a finite number"
TABLES: Cases = {
    "64 MB of nothing": (sparse(64 * 2**20), "has 64.0 MB, more than 1.0 MB; write one line for each of 300 rows, of the columns id,value"),
    "65 MB of nothing": (sparse(65 * 2**20), "more than 64.0 MB"),
    "a number that is none": (_cell("NaN"), f"value is 'NaN' in the row of 7; {FINITE}"),
    "infinity": (_cell("-inf"), FINITE),
    "a number beyond all": (_cell("1e400"), f"'1e400' in the row of 7; {FINITE}"),
    "a blank": (_cell(""), FINITE),
    "an id twice": (_bytes(GOOD + b"7,1\n"), "has the id '7' more than once"),
    "an id that is missing": (_bytes(GOOD.replace(b"7,0.5\n", b"", 1)), "there is no id '7'"),
    "an id too many": (_bytes(GOOD + b"999,1\n"), "1 row too many: the id '999'"),
    "another header": (_bytes(GOOD.replace(b"id,value", b"Id,Value")), "its header must be: id,value"),
    "UTF-16": (_bytes(GOOD.decode().encode("utf-16")), "write it as UTF-8"),
    "Latin-1": (_bytes(GOOD + b"\xe9,1\n"), "is no UTF-8; write it as UTF-8"),
    "nothing": (_bytes(b""), "is empty"),
    "a byte order mark and nothing else": (_bytes(b"\xef\xbb\xbf"), "is empty"),
    "blanks": (_bytes(b" \n" * 1000), "is empty"),
    "zero bytes at the end": (_bytes(GOOD + b"\0" * 9000), "write it as UTF-8"),
    "a million quotes": (_bytes(b"id,value\n0," + b'"' * 1_000_001 + b"\n"), "do not come in pairs"),
    "a million quotes in pairs": (_bytes(b"id,value\n0," + b'"' * 1_000_000 + b"\n"), "there is no id"),
    "a line of 1 MB": (_bytes(b"7" * 2**20), "a first line of 1,048,576 bytes"),
    "a million fields": (_bytes(b"id,value\n" + b"," * 1_000_000), "line 2 has 1,000,001 fields, more than the 2 of the first"),
    "half a million lines": (_bytes(b"id,value\n" + b"0\n" * 500_000), "has 500,001 lines"),
    "odd names beside it": (_with_odd_names, "has no column 'value'"),
}


def leave(task: Task, name: str, cases: Cases, folder: Path) -> tuple[RunDirectory, Result]:
    """A run whose agent leaves one thing a step, all of them graded."""
    global _leave
    _leave = (name, [each for each, _ in cases.values()])
    (folder / "agent.py").write_text(AGENT)
    plan = make_plan(task, folder / "runs", agent=f"{folder / 'agent.py'}:Hostile", score_steps=True)
    result = asyncio.run(plan.conduct(Models.scripted(Script([]))))
    (directory,) = find_runs(folder / "runs")
    return directory, result


def regraded(directory: RunDirectory) -> Result:
    (found,) = asyncio.run(regrade_all([directory], every_step=True, again=True))
    assert found.after is not None, found.reason
    return found.after


def check(result: Result, cases: Cases, name: str) -> None:
    """Each step says of the submission what is wrong with it; the last stands for the run."""
    assert len(result.step_scores) == len(cases) + 1
    for (what, (_, reason)), score in zip(cases.items(), result.step_scores, strict=False):
        assert score.value is None and score.reason is not None, what
        assert reason in score.reason and name in score.reason, (what, score.reason)
        assert len(score.reason) <= 500 and score.reason.isprintable(), what
    assert result.outcome.verdict == "invalid_submission" and result.outcome.ended == "final_answer"
    assert result.outcome.reason == result.step_scores[-1].reason


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLAB_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def table(tmp_path: Path) -> Task:
    keys = {"limits": "{ grading_time = 300, grading_memory_mb = 1024 }", "paper": "{ baseline = 1.0 }"}
    how = {"file": "submission.csv", "direction": "minimize", "train": "", "prepare": PREPARE, "grade": GRADE_TABLE}
    return load_task(tiny_task(tmp_path / "table", keys=keys, **how))


def test_whatever_lies_in_the_place_of_a_table_is_an_invalid_submission_also_when_it_is_graded_again(table: Task, tmp_path: Path) -> None:
    cases = {**SPECIAL, **TABLES}
    largest_before = _largest_child()
    directory, result = leave(table, "submission.csv", cases, tmp_path)
    check(result, cases, "submission.csv")
    again = regraded(directory)
    assert again.step_scores == result.step_scores and again.outcome == result.outcome
    # Of all that this process ever started, in other tests too; and until a child runs its own program it counts as large as this one.
    assert _largest_child() <= max(MOST_KB, largest_before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def _largest_child() -> int:
    """In kilobytes."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss


def test_a_table_that_only_looks_odd_is_read(table: Task, tmp_path: Path) -> None:
    lines = GOOD.splitlines(keepends=True)
    cases: Cases = {
        "a byte order mark": (_bytes(b"\xef\xbb\xbf" + GOOD), ""),
        "lines as Windows ends them": (_bytes(GOOD.replace(b"\n", b"\r\n")), ""),
        "another order": (_bytes(lines[0] + b"".join(reversed(lines[1:]))), ""),
        "quotes": (_bytes(GOOD.replace(b"7,0.5\n", b'"7"," 0.5 "\n', 1)), ""),
        "no newline at the end": (_bytes(GOOD.rstrip()), ""),
        "a file that nobody may read": (_unreadable, ""),
        "odd names beside it": (lambda path: (_with_odd_names(path), path.write_bytes(GOOD)), ""),
    }
    directory, result = leave(table, "submission.csv", cases, tmp_path)
    assert [score.value for score in result.step_scores] == [0.5] * (len(cases) + 1), result.step_scores
    assert regraded(directory).step_scores == result.step_scores


CODE: Cases = {
    "zero bytes": (_bytes(b"\0" * 1000), "null bytes"),
    "brackets without end": (_bytes(b"(" * 100_000), "importing"),
    "what ends the process": (_bytes(b"import os\nos._exit(0)\n"), "importing"),
    "65 MB of nothing": (sparse(65 * 2**20), "has 65.0 MB, more than 64.0 MB"),
}


@pytest.mark.parametrize(("task", "name"), [("vectorization", "train.py"), ("pydoc-lm", "model.py")])
def test_whatever_lies_in_the_place_of_code_is_an_invalid_submission_too(task: str, name: str, tmp_path: Path) -> None:
    """A task graded as code, and one graded by its checkpoint."""
    cases = {**SPECIAL, **CODE}
    if task == "pydoc-lm":
        del cases["65 MB of nothing"]
    directory, result = leave(find_task(task), name, cases, tmp_path)
    check(result, cases, "")
    again = regraded(directory)
    assert again.step_scores == result.step_scores and again.outcome == result.outcome
