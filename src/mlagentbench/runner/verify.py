"""Verify a run: that its files are what they were when it ended, and that its submission still has its score."""

from __future__ import annotations

import asyncio
import math
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from mlagentbench.errors import MLAgentBenchError, RunNotFound, StorageFailed
from mlagentbench.grading.cache import task_digest
from mlagentbench.grading.fork_server import ForkServer
from mlagentbench.records import Direction, Result, StepScore
from mlagentbench.rundir.directory import OBJECTS, RunDirectory
from mlagentbench.rundir.files import numbers_of
from mlagentbench.rundir.provenance import FILE, INFO, RESULT, TASK, Provenance, covered, digest_of, head_after, read_provenance, unsealed
from mlagentbench.runner.given import is_unchanged
from mlagentbench.runner.preflight import task_of
from mlagentbench.runner.regrade import regrade
from mlagentbench.sandbox import isolation
from mlagentbench.util.machine import hardware, versions
from mlagentbench.util.temporary import finish, temporary_folder
from mlagentbench.workspace.snapshots.snapshots import Manifest, SnapshotStore

TIMED = 0.25
"""The fraction by which a timed score, divided by the starter's that was timed beside it, may differ when it is timed again."""
EXACT = 1e-6
"""The same for a score that is not timed."""


class LoggedHead(NamedTuple):
    """The head of a run's chain that an `.eval` log holds."""

    log: Path
    head: str


class Mismatch(NamedTuple):
    """What differs from the run as it was when it ended."""

    file: str
    """The file's path in the run's directory, a file of the log directory, or `task`."""
    problem: str


@dataclass
class Verification:
    """What was found when a run was verified."""

    directory: RunDirectory
    differences: list[Mismatch] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)
    """What could not be verified, and why, a line each."""
    notes: list[str] = field(default_factory=list)
    """What need not be wrong, but may explain a difference, a line each."""
    score: float | None = None
    """The stored score; None if there is none."""
    score_again: float | None = None
    """The score when it was graded again; None if it was not."""


async def verify(
    directory: RunDirectory,
    logged: Sequence[LoggedHead],
    *,
    grade: bool = True,
    every_step: bool = False,
    forks: ForkServer | None = None,
) -> Verification:
    """Recompute a run's chain, check its files and the contents of its snapshots, and grade its submission again. Nothing is written.

    Args:
        directory: the run's directory.
        logged: the heads of its chain that `.eval` logs hold.
        grade: grade its submission again.
        every_step: grade the submission of each step again too.
        forks: the server that forks graders; None to start a Python.
    """
    found = Verification(directory)
    await asyncio.to_thread(_verify_files, found, logged)
    if grade and directory.has_result and not directory.held:
        await _verify_score(found, every_step, forks)
    return found


def _verify_files(found: Verification, logged: Sequence[LoggedHead]) -> None:
    directory = found.directory
    try:
        chain = read_provenance(directory)
    except RunNotFound as error:
        found.differences.append(Mismatch(FILE, str(error)))
        return
    if chain is None and logged:
        found.differences.append(Mismatch(FILE, f"it is missing, and {logged[-1].log.name} holds its head"))
    elif directory.held:
        found.unchecked.append("another process is working on it")
    elif not directory.has_result:
        found.unchecked.append("it has no result.json, so that it is not over; go on with it: mlab resume")
    elif chain is None:
        found.unchecked.append(_unchained(directory))
    else:
        found.differences += _in_chain(chain, logged)
        later = unsealed(directory, chain)
        found.differences += (each for each in _in_files(directory, chain) if each.file not in later)
        if later:
            found.unchecked.append(
                f"{FILE} does not cover {', '.join(later)}: its process was killed before it sealed the run, or somebody added them;"
                f" to seal it as it is: {_seal(directory)}"
            )
        found.differences += _in_snapshots(directory)
        found.notes += _written_again(chain, logged)
        _verify_info(found, chain)


def _unchained(directory: RunDirectory) -> str:
    """Say why a run with a result has no chain."""
    with suppress(RunNotFound):
        if directory.info.imported:
            return f"it has no {FILE}: it was imported before imported runs had one"
    return (
        f"it has no {FILE}: its process was killed before it sealed the run, or made it before runs had one; to seal it: {_seal(directory)}"
    )


def _seal(directory: RunDirectory) -> str:
    return f"mlab resume {directory.path}"


def _in_chain(chain: Provenance, logged: Sequence[LoggedHead]) -> Iterator[Mismatch]:
    head = ""
    for number, link in enumerate(chain.links, 1):
        head = head_after(head, link.name, link.digest)
        if head != link.head:
            yield Mismatch(FILE, f"link {number}, of {link.name}, has another head than the links up to it make")
            break
    heads = {link.head for link in chain.links}
    for log, logged_head in logged:
        if logged_head not in heads:
            yield Mismatch(
                FILE,
                f"it lacks the head that {log.name} holds: files were changed and the chain was made anew, or the log is not this run's",
            )


def _in_files(directory: RunDirectory, chain: Provenance) -> Iterator[Mismatch]:
    known = chain.digests
    for name, digest in known.items():
        if name == TASK:
            continue
        now = digest_of(directory, name)
        if now is None and digest is not None:
            yield Mismatch(name, "it is missing, or cannot be read")
        elif now != digest:
            yield Mismatch(name, "it was changed")
    for name in covered(directory):
        if name not in known:
            yield Mismatch(name, "it was added")


def _in_snapshots(directory: RunDirectory) -> Iterator[Mismatch]:
    store, seen = SnapshotStore(directory.objects), set[str]()
    for number in sorted(numbers_of(directory.snapshots_folder)):
        for manifest in (directory.manifest(number), directory.home_manifest(number)):
            with suppress(RunNotFound):  # a manifest that cannot be read is not the one that was written
                for entry in Manifest.load(manifest).entries.values():
                    if entry.digest is None or entry.digest in seen:
                        continue
                    seen.add(entry.digest)
                    try:
                        store.check(entry)
                    except StorageFailed as error:
                        yield Mismatch(f"{OBJECTS}/{entry.digest[:2]}/{entry.digest[2:]}", f"snapshot {manifest.name} needs it: {error}")


def _written_again(chain: Provenance, logged: Sequence[LoggedHead]) -> Iterator[str]:
    """Yield a note on what was written after the last logged head, which no log vouches for."""
    if not logged:
        yield "no .eval log beside it holds its head, so that a chain that was made anew would not be found"
        return
    heads = [link.head for link in chain.links]
    if logged[-1].head in heads:
        later = dict.fromkeys(link.name for link in chain.links[heads.index(logged[-1].head) + 1 :])
        if later:
            yield f"written after {logged[-1].log.name}, by mlab grade, audit or resume: {', '.join(later)}"


def _verify_info(found: Verification, chain: Provenance) -> None:
    """Compare the task, the experience, the software and the machine with those that the run had."""
    try:
        info = found.directory.info
    except RunNotFound:
        return
    try:
        if chain.digests.get(TASK) is None:
            found.notes.append(f"it was sealed without the task {info.spec.task}, which was not there")
        elif chain.digests[TASK] != task_digest(task_of(info.spec)):
            found.differences.append(Mismatch(TASK, f"the files of {info.spec.task} are not those that the run was graded with"))
    except (MLAgentBenchError, OSError) as error:
        found.unchecked.append(f"its task: {error}")
    for folder, given in ((found.directory.experience, info.experience), (found.directory.documents, info.documents)):
        if given and not is_unchanged(folder, given):
            found.differences.append(Mismatch(folder.name, f"it is not what {INFO} says"))
    if info.imported:
        found.notes.append("it was imported: its chain says nothing of what happened to its logs before")
        return
    here: dict[str, object] = {**versions(), **hardware()}
    with suppress(MLAgentBenchError):  # none here is a difference too
        here["isolation"] = isolation.choose(info.spec.sandbox).isolation
    for name, had in {**info.versions, **info.hardware, "isolation": info.isolation}.items():
        if here.get(name) != had:
            found.notes.append(f"{name}: {_text(had)} in the run, {_text(here.get(name))} here")


def _text(value: object) -> str:
    return ", ".join(map(str, value)) or "none" if isinstance(value, list) else "none" if value is None else str(value)


async def _verify_score(found: Verification, every_step: bool, forks: ForkServer | None) -> None:
    try:
        before = found.directory.result
        if before is None:
            return
        if before.outcome.verdict == "ungraded":
            found.notes.append("it was not graded, so that there is no score to compare")
            return
        async with temporary_folder("mlab-verify-") as folder:
            copy = RunDirectory(folder / found.directory.name)
            await finish(_copy, found.directory, copy)
            after = await regrade(copy, every_step=every_step, again=True, forks=forks)
    except (MLAgentBenchError, OSError) as error:
        found.unchecked.append(f"it could not be graded again: {error}")
        return
    found.score = before.score.value if before.score else None
    found.score_again = after.score.value if after.score else None
    found.differences += _in_results(before, after)
    if every_step:
        found.differences += _in_steps(before, after, found.directory.info.direction)
        if not before.step_scores:
            found.notes.append("it has no scores of its steps to compare with")


def _copy(directory: RunDirectory, copy: RunDirectory) -> None:
    """Copy what grading reads and writes of a run; it reads the contents of snapshots in place."""
    copy.path.mkdir()
    copy.objects.symlink_to(directory.objects.resolve())
    for name in (INFO, RESULT):
        shutil.copyfile(directory.path / name, copy.path / name)
    for folder, target in ((directory.steps_folder, copy.steps_folder), (directory.snapshots_folder, copy.snapshots_folder)):
        shutil.copytree(folder, target)


def _in_results(before: Result, after: Result) -> Iterator[Mismatch]:
    if before.score and after.score:
        timed = after.score.baseline
        values = [before.score.value, after.score.value]
        if timed and before.baseline:
            values = [values[0] / before.baseline.value, values[1] / timed.value]
        if not math.isclose(*values, rel_tol=TIMED if timed else EXACT, abs_tol=0 if timed else EXACT):
            beside = " times the starter's" if timed else ""
            yield Mismatch(RESULT, f"its score is {values[0]:.6g}{beside}, and graded again it is {values[1]:.6g}{beside}")
        elif not timed and before.baseline == after.baseline and before.outcome.verdict != after.outcome.verdict:
            yield _other("verdict", before.outcome.verdict, after.outcome.verdict)
    elif before.outcome.verdict != after.outcome.verdict:
        yield _other("verdict", before.outcome.verdict, after.outcome.verdict)
    for what in ("final_answer", "steps"):
        if getattr(before, what) != getattr(after, what):
            yield _other(what, getattr(before, what), getattr(after, what))


def _in_steps(before: Result, after: Result, direction: Direction) -> Iterator[Mismatch]:
    """Yield the steps whose submission has another score than the stored one. Timed ones are compared as multiples of the starter's."""
    timed = before.baseline is not None and before.baseline.source == "side_by_side"
    again = {score.step: score for score in after.step_scores}
    for score in before.step_scores:
        graded = again.get(score.step)
        if graded is None:
            yield Mismatch(RESULT, f"step {score.step} has a score, and graded again there is no such step")
            continue
        values = [_times_the_starter(each, direction) if timed else each.value for each in (score, graded)]
        if None in values:
            same = values[0] == values[1]
        else:
            same = math.isclose(values[0] or 0, values[1] or 0, rel_tol=TIMED if timed else EXACT, abs_tol=0 if timed else EXACT)
        if not same or score.rung != graded.rung:
            yield Mismatch(RESULT, f"step {score.step} has the score {_score(score)}, and graded again {_score(graded)}")


def _times_the_starter(score: StepScore, direction: Direction) -> float | None:
    """Return a timed score as a multiple of the starter's that was timed beside it; None without one."""
    if score.improvement is None:
        return None
    return 1 + score.improvement if direction == "maximize" else 1 - score.improvement


def _score(score: StepScore) -> str:
    if score.value is None:
        return f"none ({score.reason})"
    return f"{score.value:.6g}" + (f" (rung {score.rung})" if score.rung is not None else "")


def _other(what: str, before: object, after: object) -> Mismatch:
    return Mismatch(RESULT, f"its {what} is {before!r:.80}, and graded again it is {after!r:.80}")
