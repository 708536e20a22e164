"""Grade a run from its snapshots and write its result.

The last snapshot decides the outcome; the others give the curve of scores over steps. Steps whose submissions are equal share one grading.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path
from typing import NamedTuple

from mlagentbench.errors import RunNotFound, SandboxUnavailable
from mlagentbench.grading.cache import Gradings
from mlagentbench.grading.control import FAILURES, Control
from mlagentbench.grading.fork_server import ForkServer
from mlagentbench.grading.grade import Graded, Grader, missing
from mlagentbench.grading.submissions import unusable
from mlagentbench.limits import SandboxChoice
from mlagentbench.records import (
    Baseline,
    Flag,
    GradeStatus,
    ModelCall,
    Outcome,
    Result,
    Role,
    Score,
    Step,
    StepScore,
    Termination,
    Usage,
    Variant,
)
from mlagentbench.rundir.directory import RunDirectory
from mlagentbench.task.catalogue import Task
from mlagentbench.task.spec import UNGRADED, TaskSpec
from mlagentbench.task.success import gain_error, is_near_zero, is_success, within_noise
from mlagentbench.util.temporary import finish, temporary_folder
from mlagentbench.util.text import one_line
from mlagentbench.workspace.snapshots.snapshots import Manifest, SnapshotStore

NOT_GRADED = Graded(seconds=0.0, failed=True)
"""The grading of a task whose metric is none: its submissions have no score, and that is no error."""


class Scoring(NamedTuple):
    """What grading needs besides the run itself."""

    task: Task
    variant: Variant
    private: Path
    sandbox: SandboxChoice
    baseline: Baseline | None = None
    """What scores are compared with; None to use what the grader measures beside the submission, if anything."""
    gradings: AbstractAsyncContextManager[object] = nullcontext()
    """Held during each grading."""
    forks: ForkServer | None = None
    """The server that forks graders; None to start a Python for each."""

    def grader(self) -> Grader:
        """Return a new grader for the submissions of one run."""
        return Grader(self.task, variant=self.variant, private=self.private, sandbox=self.sandbox, forks=self.forks)

    def against(self, score: Score) -> Baseline | None:
        """Return what to compare a score with; None for nothing."""
        return self.baseline or score.baseline


class Ending(NamedTuple):
    """How an agent's part of a run ended."""

    ended: Termination
    reason: str | None = None


async def score_run(
    directory: RunDirectory, scoring: Scoring, ending: Ending, usage: Mapping[Role, Usage], *, steps_too: bool = True, again: bool = False
) -> Result:
    """Grade a run's last snapshot, and with `steps_too` each step's, and write the result; with `again` use no grading from the cache.

    Raises:
        StorageFailed: the result could not be written.
        SandboxUnavailable: the grader needs a sandbox that this machine cannot give.
    """
    started = time.monotonic()
    steps = await asyncio.to_thread(directory.steps)
    if scoring.task.spec.metric.name == UNGRADED:
        result = _result(directory, scoring, ending, steps, usage, NOT_GRADED, 0.0)
        await asyncio.to_thread(directory.write_result, result)
        return result
    # One grader process may serve the whole run, since all its submissions are one agent's.
    async with scoring.grader() as worker:
        grader = _SubmissionGrader(directory, scoring, worker, again=again)
        last = await grader.grade(len(steps))
        result = _result(directory, scoring, ending, steps, usage, last, time.monotonic() - started)
        await asyncio.to_thread(directory.write_result, result)
        if steps_too and steps:
            scores = tuple([await grader.step_score(step.number) for step in steps])
            result = result.model_copy(update={"step_scores": scores, "grading_seconds": time.monotonic() - started})
            await asyncio.to_thread(directory.write_result, result)
    return result


class _SubmissionGrader:
    """Grades a run's snapshots, each distinct submission of the log directory's runs once."""

    def __init__(self, directory: RunDirectory, scoring: Scoring, worker: Grader, *, again: bool) -> None:
        self._directory = directory
        self._scoring = scoring
        self._worker = worker
        self._store = SnapshotStore(directory.objects)
        self._gradings = Gradings(directory.gradings, scoring.task, scoring.private, again=again)
        self._control = Control(scoring.task, scoring.variant, scoring.private, scoring.sandbox, worker)
        self._graded: dict[str, Graded | None] = {}

    async def grade(self, step: int) -> Graded | None:
        """Grade the submission as it stood after a step; return None if there is none."""
        submission = await asyncio.to_thread(self._submission, step)
        return None if submission is None else await self._grade(submission)

    async def _grade(self, submission: Manifest) -> Graded | None:
        if submission.digest not in self._graded:
            self._graded[submission.digest] = self._gradings.get(submission.digest) or await self._restored(submission)
        return self._graded[submission.digest]

    async def _restored(self, submission: Manifest) -> Graded | None:
        if reason := unusable(self._scoring.task.spec, submission):
            return Graded(reason=reason, seconds=0.0)
        try:
            return await self._graded_now(submission)
        except FAILURES as failure:
            async with self._scoring.gradings:
                works = await self._control.works()
            if not works:
                if isinstance(failure, SandboxUnavailable):
                    raise
                return Graded(reason=one_line(str(failure)), seconds=0.0, failed=True)
        try:
            return await self._graded_now(submission)  # a failure that does not recur was the machine's
        except FAILURES as failure:
            return Graded(reason=one_line(f"the grader fails on this submission and not on the task's own: {failure}"), seconds=0.0)

    async def _graded_now(self, submission: Manifest) -> Graded | None:
        """Restore a submission and grade it; return None if it lacks a file that the task requires.

        Raises:
            GradingError, SandboxUnavailable, OSError: it cannot be restored, or the grader fails.
        """
        async with temporary_folder("mlab-submission-") as folder:
            await finish(self._store.restore, submission, folder)
            if missing(self._scoring.task.spec, folder):
                return None
            async with self._scoring.gradings:
                graded = await self._worker.grade(folder)
        await asyncio.to_thread(self._gradings.put, submission.digest, graded)
        return graded

    def _submission(self, step: int) -> Manifest | None:
        path = self._directory.manifest(step)
        return Manifest.load(path).select(self._scoring.task.spec.submission.files) if path.exists() else None

    async def step_score(self, step: int) -> StepScore:
        """Grade the submission after a step, as a point of the curve of scores over steps."""
        try:
            submission = await asyncio.to_thread(self._submission, step)
        except RunNotFound as error:
            return StepScore(step=step, reason=str(error))
        graded = None if submission is None else await self._grade(submission)
        if graded is None:
            return StepScore(step=step, reason="no submission")
        if graded.score is None:
            return StepScore(step=step, reason=graded.reason)
        score, baseline = graded.score, self._scoring.against(graded.score)
        return StepScore(
            step=step,
            value=score.value,
            standard_error=score.standard_error,
            gain_error=gain_error(score, baseline) if baseline else None,
            improvement=self._scoring.task.spec.metric.improvement(score.value, baseline.value) if baseline else None,
            success=score.success,
            rung=score.rung,
            note=score.note,
        )


def _result(
    directory: RunDirectory,
    scoring: Scoring,
    ending: Ending,
    steps: Sequence[Step],
    usage: Mapping[Role, Usage],
    last: Graded | None,
    grading_seconds: float,
) -> Result:
    score = last.score if last else None
    task = scoring.task
    baseline = scoring.against(score) if score else None
    improvement = task.spec.metric.improvement(score.value, baseline.value) if score and baseline else None
    success = bool(score and baseline and is_success(task.spec.metric, score.value, baseline.value))
    if score and score.success is not None:
        success = score.success
    verdict, reason = _verdict(last, success)
    if directory.info.imported and score is None:
        # Imported logs may lack files, and their data and submissions may have another form: a missing score says nothing of the run.
        verdict = "ungraded"
    # Replies that led to no step took time too. For an imported run, that time is in its own log.
    last_words = () if directory.info.imported else directory.calls(len(steps) + 1)
    span = _span(last_words)
    return Result(
        run=directory.name,
        outcome=Outcome(
            ended=ending.ended,
            verdict=verdict,
            flags=tuple(_flags(directory, task, score, baseline)),
            reason=ending.reason or reason,
        ),
        final_answer=next((str(step.details["final_answer"]) for step in steps if "final_answer" in step.details), None),
        score=score.model_copy(update={"resampled": ()}) if score else None,
        baseline=baseline.model_copy(update={"resampled": ()}) if baseline else None,
        gain_error=gain_error(score, baseline) if score and baseline else None,
        improvement=improvement,
        success=success,
        steps=sum(step.counted for step in steps),
        seconds=sum(step.seconds for step in steps) + span,
        model_seconds=sum(step.model_seconds for step in steps) + min(span, sum(call.seconds for call in last_words)),
        waited_seconds=sum(step.waited_seconds for step in steps),
        script_seconds=sum(step.script_seconds for step in steps),
        grading_seconds=grading_seconds,
        usage=usage,
    )


def _span(calls: Sequence[ModelCall]) -> float:
    """Return the seconds from the first of some calls to the end of the last. Several may have been under way at once."""
    starts = [call.started for call in calls if call.started]
    if len(starts) < len(calls) or not starts:
        return sum(call.seconds for call in calls)  # older records do not say when they were made
    return max(call.started + call.seconds for call in calls) - min(starts)


def _verdict(graded: Graded | None, success: bool) -> tuple[GradeStatus, str | None]:
    if graded is None:
        return "no_submission", "nothing was submitted"
    if graded.score is None:
        return ("ungraded" if graded.failed else "invalid_submission"), graded.reason
    return ("success" if success else "no_improvement"), None


def paper_baseline(spec: TaskSpec) -> Baseline | None:
    """Return the baseline that the paper gives for a task; None if it gives none."""
    paper = spec.paper
    return Baseline(value=paper.baseline, source="paper") if paper and paper.baseline is not None else None


def _flags(directory: RunDirectory, task: Task, score: Score | None, baseline: Baseline | None) -> list[Flag]:
    info = directory.info
    found: dict[Flag, bool] = {
        "unsandboxed": info.isolation == "none",
        "weak_isolation": info.isolation == "landlock",
        "scripted_model": any(name.startswith("scripted/") for name in info.spec.model_names.values()),
        "experience": info.experience is not None,
        "examples": bool(info.examples),
        "documents": info.spec.documents is not None,
        "within_noise": bool(score and baseline and within_noise(task.spec.metric, score.value, baseline, gain_error(score, baseline))),
        "near_zero_baseline": bool(baseline and is_near_zero(baseline.value)),
        "paper_baseline": bool(baseline and baseline.source == "paper"),
        "answers_visible": task.spec.answers_visible,
        "imported": info.imported is not None,
    }
    return [flag for flag, holds in found.items() if holds]
