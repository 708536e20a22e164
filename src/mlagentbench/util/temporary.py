"""Provide temporary folders that are removed when the work in them ends, even if it is cancelled.

A thread cannot be stopped: work that it does for a cancelled task goes on, and would write into a folder that is being removed. Work that
no thread has started yet would be dropped with its task, and so would the removal itself.
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
    """Run a function in a thread, as `asyncio.to_thread` does, and wait for its end even if the task is cancelled meanwhile."""
    work = asyncio.get_running_loop().run_in_executor(None, partial(function, *arguments, **keywords))
    cancelled: asyncio.CancelledError | None = None
    while not work.done():
        try:
            await asyncio.wait([work])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        work.exception()  # retrieved, since asyncio would report an exception that nobody has retrieved
        raise cancelled
    return work.result()


@asynccontextmanager
async def temporary_folder(prefix: str) -> AsyncIterator[Path]:
    """Yield a new temporary folder, and remove it at the end. Write into it through `finish`."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    try:
        yield folder
    finally:
        await finish(shutil.rmtree, folder, ignore_errors=True)
