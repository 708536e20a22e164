"""Find out whether a failed grading is the submission's fault or the grader's.

A grader that crashes, or runs out of memory or time, on a submission is given one of the task's own. If it grades that, the grader works,
and the agent's submission is invalid. If it fails again, the task or the machine is at fault, and the agent's submission stays ungraded.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
import time
from dataclasses import replace
from pathlib import Path

from mlagentbench.data.prepare import Prepared
from mlagentbench.errors import GradingError, MLAgentBenchError, SandboxUnavailable
from mlagentbench.grading.baseline import ScriptSettings, run_starter, script_limits, write_files
from mlagentbench.grading.grade import Grader
from mlagentbench.limits import SandboxChoice
from mlagentbench.records import Variant
from mlagentbench.task.catalogue import Task
from mlagentbench.util.temporary import finish, temporary_folder

FAILURES = (GradingError, SandboxUnavailable, OSError)
"""The errors of a failed grading; OSError includes a full disk."""
FRESH = 60.0
"""Seconds for which `Control.works` repeats its last answer."""
ORACLE_SECONDS = 300.0
"""Seconds after which `proof.py` is killed."""


class Control:
    """Tells whether a task's grader works, by giving it a submission of the task's own.

    That is the first oracle submission of `proof.py`, or the sample submission of a competition. For a task without one, it is the
    starter's submission, after a run no longer than a grading may take; if that has no score, it is empty files, which a grader must score
    or refuse.
    """

    def __init__(self, task: Task, variant: Variant, private: Path, sandbox: SandboxChoice, grader: Grader) -> None:
        self._task = task
        self._variant: Variant = variant
        self._data = Prepared(private.parent / "public", private)
        self._sandbox: SandboxChoice = sandbox
        self._grader = grader
        self._works = False
        self._asked = -FRESH

    async def works(self) -> bool:
        """Return whether the grader grades the task's own submission, tried now or in the last `FRESH` seconds."""
        if time.monotonic() - self._asked >= FRESH:
            try:
                self._works = await self._grades_its_own()
            except (MLAgentBenchError, OSError):
                self._works = False
            self._asked = time.monotonic()
        return self._works

    async def _grades_its_own(self) -> bool:
        async with temporary_folder("mlab-control-") as folder:
            if await self._write_oracle(folder / "own") or await self._copy_sample(folder / "own"):
                return (await self._grader.grade(folder / "own")).score is not None
            if await self._starter_has_a_score():
                return True
            await finish(write_files, folder / "empty", dict.fromkeys(self._task.spec.submission.required, ""))
            await self._grader.grade(folder / "empty")
            return True

    async def _write_oracle(self, folder: Path) -> bool:
        """Write the first oracle submission, in a process of its own since `proof.py` may fail; return whether it was written."""
        if not (self._task.folder / "proof.py").is_file():
            return False
        process = await asyncio.create_subprocess_exec(
            *(
                sys.executable,
                "-P",
                "-m",
                "mlagentbench.checks.task_code",
                "oracle",
                str(self._task.path),
                *map(str, (*self._data, folder)),
            ),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            return await asyncio.wait_for(process.wait(), ORACLE_SECONDS) == 0
        except TimeoutError:
            return False
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()

    async def _copy_sample(self, folder: Path) -> bool:
        """Copy the sample submission that the task names; return whether it names one."""
        sample = self._task.sample(self._data.public)
        if sample is None:
            return False
        (name,) = self._task.spec.submission.required
        folder.mkdir()
        await finish(shutil.copy2, sample, folder / name)
        return True

    async def _starter_has_a_score(self) -> bool:
        limits = script_limits(self._task.spec)
        limits = replace(limits, seconds=min(limits.seconds, self._task.spec.limits.grading_time))
        run = await run_starter(self._task, self._variant, self._data, settings=ScriptSettings(self._sandbox, limits=limits))
        return run.score is not None
