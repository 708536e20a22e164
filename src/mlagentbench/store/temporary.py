"""Temporary folders that are gone when the work in them ends, cancelled or not.

A thread cannot be stopped: what it does for a cancelled task goes on, and would write into a folder that is being removed; and work that no
thread has taken up yet would be dropped with the task, the removal itself among it.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def finish(function: Callable[P, T], *arguments: P.args, **keywords: P.kwargs) -> T:
    """Do something in a thread, as `asyncio.to_thread` does, and to its end: a cancellation waits for it, however often it is asked."""
    work = asyncio.get_running_loop().run_in_executor(None, partial(function, *arguments, **keywords))
    cancelled: asyncio.CancelledError | None = None
    while not work.done():
        try:
            await asyncio.wait([work])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        work.exception()  # looked at, so that nobody reports it
        raise cancelled
    return work.result()


@asynccontextmanager
async def temporary_folder(prefix: str) -> AsyncIterator[Path]:
    """A new folder among the system's temporary ones. What writes into it should do so through `finish`."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    try:
        yield folder
    finally:
        await finish(shutil.rmtree, folder, ignore_errors=True)
