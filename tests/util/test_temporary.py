"""Temporary folders when the work in them is cancelled."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mlagentbench.util.temporary import finish, temporary_folder
from tests.support import HANGING


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_a_folder_is_there_for_the_work_and_gone_after_it(temporary: Path) -> None:
    async def work() -> None:
        async with temporary_folder("mlab-test-") as folder:
            assert folder.parent == temporary and folder.name.startswith("mlab-test-")
            (folder / "file").write_text("content")
            raise ValueError("what the work raised")

    with pytest.raises(ValueError, match="what the work raised"):
        asyncio.run(work())
    assert list(temporary.iterdir()) == []


def test_its_removal_is_not_dropped_with_a_task_that_is_cancelled_again(temporary: Path) -> None:
    """As when an interrupt ends a program: once for the task, and once more for all that is left."""
    busy = threading.Event()

    async def work() -> None:
        async with temporary_folder("mlab-test-"):
            await asyncio.sleep(600)

    async def program() -> None:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        task = asyncio.create_task(work())
        await asyncio.sleep(0)
        loop.run_in_executor(None, busy.wait, 0.5)  # so that no thread takes the removal up
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0.01)

    asyncio.run(program())
    assert list(temporary.iterdir()) == []


def test_what_a_thread_writes_for_a_cancelled_task_is_removed_too(temporary: Path) -> None:
    begun, cancelled = threading.Event(), threading.Event()

    def write(folder: Path) -> None:
        begun.set()
        cancelled.wait(HANGING)
        for number in range(20):
            time.sleep(0.01)
            (folder / "sub").mkdir(exist_ok=True)
            (folder / "sub" / str(number)).touch()

    async def work() -> None:
        async with temporary_folder("mlab-test-") as folder:
            await finish(write, folder)

    async def program() -> None:
        task = asyncio.create_task(work())
        while not begun.is_set():
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.sleep(0)
        cancelled.set()
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled()

    asyncio.run(program())
    assert list(temporary.iterdir()) == []


def test_what_a_thread_raises_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        asyncio.run(finish(divmod, 1, 0))
    assert asyncio.run(finish(divmod, 7, 2)) == (3, 1)
