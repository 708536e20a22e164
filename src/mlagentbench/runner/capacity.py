"""Choose how many runs this machine can carry at once.

A run waits for its model most of the time. It needs the machine while a script runs or its submission is graded, which may happen to all
runs at the same moment. A run's result must not depend on the runs beside it, so there are at most

- as many runs as cores: a script that shares its core takes longer, and hits time limits that it would not hit alone;
- as many as fit into free memory, each with all the memory that its task's limits allow: with more, the kernel would kill some run's
  scripts for lack of memory, which would count as their own failure.

GPUs need no rule here: a run that needs one waits for it (`slots.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from mlagentbench.runner.preflight import ReadyRun
from mlagentbench.util.machine import cores, free_memory_mb

HARNESS_MB = 1024
"""Memory left to this process and the system, in megabytes (2^20 bytes)."""


def runs_at_once(runs: Sequence[ReadyRun]) -> int:
    """Return how many of these runs may go on at once, whichever they are; at least 1."""
    most = max(max(run.spec.script_limits.memory_mb, run.task.spec.limits.grading_memory_mb) for run in runs)
    return max(1, min(cores(), (free_memory_mb() - HARNESS_MB) // most))
