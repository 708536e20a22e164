"""Run a task's own code for a check, in a process of its own: `python -m mlagentbench.checks.task_code`.

- `prepare FOLDER [SEED PUBLIC PRIVATE]...` prepares the mini variant once for each seed.
- `prove FOLDER PUBLIC PRIVATE OUT` writes every submission of `proof.py` to a folder below OUT, runs the leak lint, and writes a list of
  both to OUT/proofs.json.
- `oracle FOLDER PUBLIC PRIVATE OUT` writes the first oracle submission to OUT.

Errors of the task's code are not caught: their traceback goes to standard error.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from mlagentbench.checks.findings import Finding
from mlagentbench.data.metadata import level
from mlagentbench.data.prepare import Prepared
from mlagentbench.records import Record
from mlagentbench.task.catalogue import Task, load_task
from mlagentbench.task.proofs import Files, Invalid, shuffled

PROOFS = "proofs.json"


class WrittenSubmission(Record):
    """A submission of `proof.py` that was written to a folder."""

    name: str
    folder: Path
    reason: str = ""
    """Words that the reason for refusing it must contain; empty for a submission that must not be refused."""


class Proofs(Record):
    """The submissions of `proof.py`, and the findings of the leak lint."""

    oracle: tuple[WrittenSubmission, ...]
    naive: tuple[WrittenSubmission, ...]
    invalid: tuple[WrittenSubmission, ...]
    solution: Path | None
    """A folder with the files that a good agent writes over the starter; None if `proof.py` has no `solution()`."""
    ineffective: Path | None
    reordered: Path | None = None
    """A folder with the first oracle table, its rows reversed; None if rows have no ids."""
    moved: Path | None = None
    """A folder with the first oracle table, each answer under another's id; None if rows have no ids."""
    leaks: tuple[Finding, ...]


def main(arguments: Sequence[str]) -> None:
    """Run one of the module's commands."""
    command, folder, *rest = arguments
    task = load_task(Path(folder))
    if command == "prepare":
        _prepare(task, rest)
        return
    public, private, out = rest
    data = Prepared(Path(public), Path(private))
    if command == "prove":
        _prove(task, data, Path(out))
    else:
        proof = task.module("proof")
        assert proof is not None
        _write(Path(out), next(iter(proof.oracle(data).values())))


def _prepare(task: Task, rest: Sequence[str]) -> None:
    module = task.module("prepare")
    assert module is not None
    for place, (seed, public, private) in enumerate(zip(rest[::3], rest[1::3], rest[2::3], strict=True)):
        for folder in (public, private):
            Path(folder).mkdir(parents=True)
        module.mini(Path(public), Path(private), int(seed))
        if place:
            # A run's data is levelled too, which fails if there are links. The first is left as made: its metadata are checked.
            level(Path(public))
            level(Path(private))


def _prove(task: Task, data: Prepared, out: Path) -> None:
    # Imported here, since a preparation need not wait for them.
    from mlagentbench.checks.leaks import lint
    from mlagentbench.checks.public_files import SEPARATORS, read_tables
    from mlagentbench.checks.public_tables import read_answers

    proof = task.module("proof")
    assert proof is not None
    oracle: Mapping[str, Files] = proof.oracle(data)
    tables, grids = read_tables(data.public)
    names = [path.relative_to(data.public).as_posix() for path in data.public.rglob("*")]
    name, first = task.spec.submission.required[0], next(iter(oracle.values()))
    answers = None
    if task.spec.submission.mode == "file" and name in first:
        answers = read_answers(name, _bytes(first[name]), tables, names)
    proofs = Proofs(
        oracle=tuple(_write_all(out / "oracle", oracle)),
        naive=tuple(_write_all(out / "naive", proof.naive(data))),
        invalid=tuple(_write_all(out / "invalid", proof.invalid(data))),
        solution=_write(out / "solution", proof.solution()) if hasattr(proof, "solution") else None,
        ineffective=_write(out / "ineffective", proof.ineffective()) if hasattr(proof, "ineffective") else None,
        leaks=tuple(lint(task, data, answers, tables, grids)),
    )
    if answers is not None and answers.id_column is not None:
        separator = SEPARATORS[Path(name).suffix]
        reordered = answers.frame.reverse().write_csv(separator=separator)
        moved = shuffled(answers.frame, answers.id_column, seed=1).write_csv(separator=separator)
        written = {each: _write(out / each, {**first, name: text}) for each, text in (("reordered", reordered), ("moved", moved))}
        proofs = proofs.model_copy(update=written)
    (out / PROOFS).write_text(proofs.model_dump_json(), encoding="utf-8")


def _write_all(folder: Path, submissions: Mapping[str, Files | Invalid]) -> Iterator[WrittenSubmission]:
    """Write submissions to a folder each."""
    for number, (name, submission) in enumerate(submissions.items()):
        files, reason = submission if isinstance(submission, Invalid) else (submission, "")
        yield WrittenSubmission(name=name, folder=_write(folder / f"{number:03}", files), reason=reason)


def _write(folder: Path, files: Files) -> Path:
    from mlagentbench.grading.baseline import write_files

    folder.mkdir(parents=True)
    write_files(folder, files)
    return folder


def _bytes(content: str | bytes) -> bytes:
    return content.encode() if isinstance(content, str) else content


if __name__ == "__main__":
    main(sys.argv[1:])
