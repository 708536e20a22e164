"""Prepared data: made once a task and variant, kept in a cache, shared by all runs.

A task's `prepare.py` has `full(public, private)`, which fetches the real data, and `mini(public, private, seed)`, which makes small data of
the same names and schema. What it puts in `public` the agent sees, read-only; what it puts in `private` only the grader does. A task
without `prepare.py` has no data, and its variants differ only in what its grader does.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

import platformdirs

from mlagentbench.errors import TaskError
from mlagentbench.tasks.catalogue import Task
from mlagentbench.tasks.spec import Variant

CACHE_VARIABLE = "MLAB_CACHE"
MINI_SEED = 0


class Prepared(NamedTuple):
    """Where a task's data lies; None for a task without."""

    public: Path | None
    private: Path | None


def cache_directory() -> Path:
    """Where prepared data is kept: `$MLAB_CACHE`, or the platform's place for caches."""
    named = os.environ.get(CACHE_VARIABLE)
    return Path(named) if named else Path(platformdirs.user_cache_dir("mlagentbench"))


def prepared(task: Task, variant: Variant, cache: Path | None = None) -> Prepared:
    """A task's data, prepared now if it is not yet. Safe with several processes at once: one prepares, the others wait.

    Raises:
        TaskError: the task's `prepare.py` lacks the variant, or what it needs is not to be had.
    """
    module = task.module("prepare")
    if module is None:
        return Prepared(None, None)
    prepare = getattr(module, variant, None)
    if prepare is None:
        raise TaskError(f"{task.folder / 'prepare.py'} has no function {variant!r}; choose the other variant with --variant")
    place = (cache or cache_directory()) / task.id / variant
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        with (place.parent / f".{variant}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not place.exists():
                temporary = Path(tempfile.mkdtemp(prefix=f".{variant}-", dir=place.parent))
                try:
                    public, private = temporary / "public", temporary / "private"
                    public.mkdir()
                    private.mkdir()
                    if variant == "mini":
                        prepare(public, private, MINI_SEED)
                    else:
                        prepare(public, private)
                    temporary.rename(place)
                finally:
                    shutil.rmtree(temporary, ignore_errors=True)
    return Prepared(place / "public", place / "private")
