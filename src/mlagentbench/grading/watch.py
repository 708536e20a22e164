"""What can be seen from outside of a sandbox's processes: which there are, the processor time they use, the native code they map.

The kernel's accounts, read from `/proc` and from the processes' own clocks; nothing that runs inside has a say in them. Linux only, and
only where the sandbox's processes are descendants of its first one (a container's are not).
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import NamedTuple

from mlagentbench.sandbox.standalone.supervise import descendants

PROC = Path("/proc")


class Sight(NamedTuple):
    """A look at a process and all it started."""

    processes: frozenset[int]
    seconds: float
    """Processor time that all of them have used, all threads, also those that have ended."""
    code: frozenset[str] | None
    """Files whose content they can execute; memory that belongs to no file is named by its kind. None where the kernel does not show it."""


def look(root: int) -> Sight:
    """Look at a process and its descendants; empty where they are gone, or not to be seen on this system."""
    processes = frozenset((root, *descendants(root)))
    return Sight(processes, sum(processor_seconds(process) for process in processes), _code(processes))


def processor_seconds(process: int) -> float:
    """Processor time of a process, of all its threads, to the nanosecond; 0 where it is gone."""
    try:
        # The id of another process's clock, as clock_getcpuclockid(3) makes it; Python offers that call for threads only.
        return time.clock_gettime((~process << 3) | 2)
    except OSError:
        return 0.0


def served_by(root: int) -> int:
    """The process that a sandbox's first one was started for: the last of the line."""
    return (descendants(root) or [root])[-1]


class Meter(NamedTuple):
    """How long a conversation with a process takes when the machine is free, whatever else it does.

    A busy machine makes a process wait for a core, and lets an honest timing grow by as much. The kernel counts that wait; it is taken off,
    for the process's main thread and for ours that waits for it. Never more than leaves the processor time that the process has used in all
    its threads: one that lets its own threads wait for each other gains nothing.
    """

    process: int
    used: float
    waited: float

    @staticmethod
    def start(process: int) -> Meter:
        """Begin to measure."""
        return Meter(process, processor_seconds(process), _waited(process))

    def stop(self, seconds: float) -> float:
        """What remains of so many seconds that have passed since."""
        end = Meter.start(self.process)
        return max(end.used - self.used, seconds - (end.waited - self.waited))


def _waited(process: int) -> float:
    """Seconds that a process's main thread and our own have waited for a core; 0 where the kernel does not tell."""
    total = 0
    for path in (PROC / str(process) / "schedstat", PROC / "thread-self" / "schedstat"):
        try:
            total += int(path.read_bytes().split()[1])
        except (OSError, IndexError):
            continue
    return total / 1e9


def _code(processes: frozenset[int]) -> frozenset[str] | None:
    found = set()
    for process in processes:
        try:
            lines = (PROC / str(process) / "maps").read_bytes().splitlines()
        except FileNotFoundError:
            continue
        except (PermissionError, ProcessLookupError):
            return None
        for line in lines:
            fields = line.split(None, 5)
            if b"x" in fields[1]:
                found.add(os.fsdecode(fields[5]) if len(fields) > 5 else "memory of no file")
    return frozenset(found)
