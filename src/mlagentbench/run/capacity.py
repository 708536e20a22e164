"""How many runs this machine carries at once.

A run waits for its model most of the time, and needs the machine while a script of its own runs or its submission is graded. Both may
happen to all runs at the same moment, and what a run does must not depend on who runs beside it. So there are at most

- as many runs as there are cores: a script that shares its core takes longer, and hits limits of time that it would not hit alone;
- as many as fit into memory that is free, each with as much as its task's limits let it take: beyond that, the kernel would end the
  scripts of some run, and blame them.

GPUs need no rule here: a run that wants one waits for one.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from mlagentbench.run.preflight import CheckedRun

HARNESS_MB = 1024
"""Left for this process and the system."""

_GROUP = Path("/sys/fs/cgroup")


def runs_at_once(runs: Sequence[CheckedRun]) -> int:
    """Return how many of any of the runs may go on at once; at least 1."""
    most = max(max(run.spec.script_limits.memory_mb, run.task.spec.limits.grading_memory_mb) for run in runs)
    return max(1, min(cores(), (free_memory_mb() - HARNESS_MB) // most))


def cores() -> int:
    """The cores that this process may use: its affinity, and its control group's share where that is less."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    quota, _, period = _read(_GROUP / "cpu.max").partition(" ")
    if quota.isdigit() and period.strip().isdigit():
        usable = min(usable, max(1, int(quota) // int(period)))
    return usable


def free_memory_mb() -> int:
    """Memory that programs could still take: of the machine, and of the control group where that is less."""
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
