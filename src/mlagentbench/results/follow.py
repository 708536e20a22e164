"""Follow a run in progress from another process."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from mlagentbench.errors import RunNotFound
from mlagentbench.records import Step
from mlagentbench.rundir.directory import RunDirectory

EVERY = 0.3
"""Seconds between two checks for a new step."""
BEGINNING = 10.0
"""Seconds that a new run's process may need to take the run's lock, on a machine that is busy."""


def follow(directory: RunDirectory, *, idle: Callable[[], None] | None = None) -> Iterator[Step]:
    """Yield the steps of a run, first the published ones, then each new one, until no process works on the run.

    Then the run is over and has a result, or its process was killed. A run that is being graded is still worked on. A killed run is not
    waited for, since it may never be resumed. `idle` is called after every check for new steps.

    Raises:
        RunNotFound: a step cannot be read.
    """
    number = 1
    while True:
        # The lock is checked first: the last steps may be published between the two checks.
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
    """Return whether the run is so new that its process may not have taken its lock yet."""
    try:
        made = (directory.path / "run.json").stat().st_mtime
    except OSError:
        raise RunNotFound(f"{directory.path} is gone") from None
    return not (directory.path / "lock").exists() and time.time() - made < BEGINNING
