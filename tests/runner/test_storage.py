"""What a run may store: an agent that takes more is at its limit, is graded, and takes neither the disk nor a failure with it."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlagentbench import Result, RunLimits, StorageFailed, UsageError
from mlagentbench.model import Models, Script
from mlagentbench.rundir.directory import RunDirectory
from mlagentbench.task.catalogue import load_task
from tests.plans import Plan, make_plan, resumed
from tests.runner.lives import make_task

AGENT = """
from mlagentbench import Action

class Filling:
    needs_model = False

    async def __call__(self, environment):
        await environment.execute(Action(name="Write File", arguments={"file_name": "submission.txt", "content": "12.5"}))
        for number in range(6):
            await environment.execute(Action(name="Execute Script", arguments={"script_name": "train.py"}))
        await environment.execute(Action(name="Final Answer", arguments={"final_answer": "done"}))
"""
NEW_BYTES = "import os; open('model.bin', 'wb').write(os.urandom(6 << 20))"
FULL_DISK = "import os; f = open('all', 'wb')\nwhile True: f.write(os.urandom(1 << 20)); f.flush()"
MANY_FILES = "import os\nfor number in range(3000): os.close(os.open(f'{number}', os.O_CREAT))"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 60 megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=60m", "none", folder], capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"this machine does not let the test mount a small disk: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    task = make_task(tmp_path / "guess")
    (tmp_path / "agent.py").write_text(AGENT)
    logs = tmp_path / "runs"
    logs.mkdir()
    return make_plan(load_task(task), logs, agent=f"{tmp_path / 'agent.py'}:Filling", sandbox="none")


def carry_out(plan: Plan, script: str) -> tuple[RunDirectory, Result]:
    (plan.task.starter / "train.py").write_text(script)
    result = asyncio.run(plan.conduct(Models.scripted(Script([]))))
    directory = RunDirectory(plan.log_directory / result.run)
    assert directory.result == result
    return directory, result


def go_on(directory: RunDirectory, **more: int) -> Result:
    with resumed(directory.path, **more) as plan:  # type: ignore[arg-type]
        return asyncio.run(plan.conduct(Models.scripted(Script([]))))


def test_new_bytes_at_each_step_end_the_run_at_its_limit_and_it_can_go_on_with_more(plan: Plan) -> None:
    directory, result = carry_out(plan.but(limits=RunLimits(storage_mb=20)), NEW_BYTES)

    assert (result.outcome.ended, result.outcome.verdict) == ("limit_storage", "success")
    assert "may store 20 MB" in (result.outcome.reason or "")
    assert [step.status for step in directory.steps()] == ["ok"] * 5
    with pytest.raises(UsageError, match="--storage"):
        go_on(directory)
    again = go_on(directory, storage_mb=30)
    assert (again.outcome.ended, len(directory.steps())) == ("limit_storage", 7), "what was stored before counts"
    assert go_on(directory, storage_mb=1000).outcome.ended == "final_answer"


def test_a_small_disk_is_a_smaller_limit(plan: Plan, disk: Path) -> None:
    directory, result = carry_out(plan.but(log_directory=disk), NEW_BYTES)

    assert (result.outcome.ended, result.outcome.verdict) == ("limit_storage", "success")
    assert directory.info.disk_share_mb in (59, 60)
    assert RunLimits().within(60).storage_mb == 36


def test_a_fork_counts_what_it_was_given(plan: Plan) -> None:
    directory, _ = carry_out(plan.but(limits=RunLimits(storage_mb=20)), NEW_BYTES)
    with resumed(directory.path, 4) as forked:
        assert forked.spec.limits.storage_mb == 20
        result = asyncio.run(forked.conduct(Models.scripted(Script([]))))
    assert (result.outcome.ended, result.steps) == ("limit_storage", 6)


def test_who_fills_the_disk_at_once_is_at_a_limit_and_the_last_good_snapshot_is_graded(plan: Plan, disk: Path) -> None:
    directory, result = carry_out(plan.but(log_directory=disk), FULL_DISK)

    assert (result.outcome.ended, result.outcome.verdict) == ("limit_storage", "success")
    assert directory.steps()[0].action.name == "Write File"


def test_whose_disk_others_fill_is_not_to_blame(plan: Plan, disk: Path) -> None:
    fill = "disk = os.statvfs('.'); open('../../others', 'wb').write(b'x' * disk.f_bavail * disk.f_frsize)"
    others = f"import os\ntry: {fill}\nexcept OSError: pass"
    with pytest.raises(StorageFailed, match="No space left"):
        carry_out(plan.but(log_directory=disk), others)


def test_too_many_files_end_the_run_with_the_snapshot_before_them(plan: Plan) -> None:
    directory, result = carry_out(plan.but(limits=RunLimits(files=1000)), MANY_FILES)

    assert (result.outcome.ended, result.outcome.verdict, len(directory.steps())) == ("limit_storage", "success", 1)
    assert "more than 1,000 files" in (result.outcome.reason or "")


def test_runs_that_share_a_disk_have_a_share_each(plan: Plan, disk: Path) -> None:
    _, result = carry_out(plan.but(log_directory=disk, parallel=2), NEW_BYTES)

    assert result.outcome.ended == "limit_storage"
    assert sum(path.stat().st_size for path in disk.rglob("*") if path.is_file()) < 40 << 20
