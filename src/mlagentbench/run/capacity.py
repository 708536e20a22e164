"""Choose how many runs this machine can carry at once.

A run waits for its model most of the time. It needs the machine while a script runs or its submission is graded, which may happen to all
runs at the same moment. A run's result must not depend on the runs beside it, so there are at most

- as many runs as cores: a script that shares its core takes longer, and hits time limits that it would not hit alone;
- as many as fit into free memory, each with all the memory that its task's limits allow: with more, the kernel would kill some run's
  scripts for lack of memory, which would count as their own failure.

GPUs need no rule here: a run that needs one waits for it (`slots.py`).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from mlagentbench.run.preflight import CheckedRun

HARNESS_MB = 1024
"""Memory left to this process and the system, in megabytes (2^20 bytes)."""

_GROUP = Path("/sys/fs/cgroup")


def runs_at_once(runs: Sequence[CheckedRun]) -> int:
    """Return how many of these runs may go on at once, whichever they are; at least 1."""
    most = max(max(run.spec.script_limits.memory_mb, run.task.spec.limits.grading_memory_mb) for run in runs)
    return max(1, min(cores(), (free_memory_mb() - HARNESS_MB) // most))


def cores() -> int:
    """Return how many cores this process may use: the lesser of its affinity and its control group's quota; at least 1."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    quota, _, period = _read(_GROUP / "cpu.max").partition(" ")
    if quota.isdigit() and period.strip().isdigit():
        usable = min(usable, max(1, int(quota) // int(period)))
    return usable


def free_memory_mb() -> int:
    """Return the free memory in megabytes (2^20 bytes): the lesser of the machine's and the control group's."""
    free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for line in _read(Path("/proc/meminfo")).splitlines():
        if line.startswith("MemAvailable:"):
            free = int(line.split()[1]) << 10
    limit, used = _read(_GROUP / "memory.max").strip(), _read(_GROUP / "memory.current").strip()
    if limit.isdigit() and used.isdigit():
        free = min(free, int(limit) - int(used))
    return free >> 20


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
