"""A run in progress, read as it goes on, from another process than the one that does it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from mlagentbench.errors import RunNotFound
from mlagentbench.records import Step
from mlagentbench.store.run_directory import RunDirectory

EVERY = 0.3
"""Seconds between two looks."""
BEGINNING = 3.0
"""Seconds for which a run may stand in its log directory before its process takes its lock."""


def follow(directory: RunDirectory, *, idle: Callable[[], None] | None = None) -> Iterator[Step]:
    """The steps of a run, those there are and then each when it is published, until no process works on the run.

    Then it is over and has a result, or its process was killed; a run that is graded is still worked on. A run that was killed is not
    waited for, since nobody knows whether it will be resumed.

    Args:
        directory: the run.
        idle: is called at every look that finds no step.

    Raises:
        RunNotFound: a step cannot be read.
    """
    number = 1
    while True:
        # Asked before looking, since the last steps may come between the two.
        over = not directory.held and not _begins(directory)
        while (step := directory.step(number)) is not None:
            yield step
            number += 1
        if over:
            return
        if idle is not None:
            idle()
        time.sleep(EVERY)


def _begins(directory: RunDirectory) -> bool:
    """Whether the run is so young that its process may not have taken its lock yet."""
    try:
        made = (directory.path / "run.json").stat().st_mtime
    except OSError:
        raise RunNotFound(f"{directory.path} is gone") from None
    return not (directory.path / "lock").exists() and time.time() - made < BEGINNING
