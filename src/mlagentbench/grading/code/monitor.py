"""Observe a sandbox's processes from outside: which there are, the processor time they use, the native code they map.

The numbers are the kernel's, read from `/proc` and the processes' clocks, so that nothing that runs inside can change them. Linux only, and
only where the sandbox's processes are descendants of its first one (a container's are not).

psutil rounds processor time to 10 ms, does not know the wait for a core, and takes 40 times as long for the maps, since it
reads their sizes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from mlagentbench.sandbox.standalone.supervise import descendants

PROC = Path("/proc")


class ProcessUsage(NamedTuple):
    """The state of a process and of all that it started."""

    processes: frozenset[int]
    seconds: float
    """Processor time that all of them have used in all threads, ended ones included."""
    code: frozenset[str] | None
    """Files whose content they can execute; memory that belongs to no file is named by its kind. None where the kernel does not show it."""


def measure_processes(root: int) -> ProcessUsage:
    """Inspect a process and its descendants. Where they are gone or this system does not show them, there are no seconds and no code."""
    processes = frozenset((root, *descendants(root)))
    return ProcessUsage(processes, sum(processor_seconds(process) for process in processes), _code(processes))


def processor_seconds(process: int) -> float:
    """Return a process's processor time over all its threads, to the nanosecond; 0 where it is gone."""
    try:
        # The id of another process's clock, as clock_getcpuclockid(3) makes it; Python offers that call for threads only.
        return time.clock_gettime((~process << 3) | 2)
    except OSError:
        return 0.0


def runnable(processes: Iterable[int]) -> bool:
    """Return whether a thread of one of the processes computes or waits for a core. Where this system does not say, none does."""
    for process in processes:
        for thread in (PROC / str(process) / "task").glob("*/stat"):
            with suppress(OSError):  # it has ended
                if thread.read_bytes().rpartition(b") ")[2].startswith(b"R"):
                    return True
    return False


def served_by(root: int) -> int:
    """Return the process that runs the code in a sandbox: the last descendant of the sandbox's first process, or that one itself."""
    return (descendants(root) or [root])[-1]


class Meter(NamedTuple):
    """Measures how long a question to a process would take on a machine that does nothing else.

    On a busy machine a process waits for a core, which lengthens an honest timing. The kernel counts that wait; it is subtracted, for the
    process's main thread and for ours that waits for it. The result is never less than the processor time that the process has used in all
    its threads, so that one whose own threads wait for each other gains nothing.
    """

    process: int
    started: float
    used: float
    waited: float

    @staticmethod
    def start(process: int) -> Meter:
        """Start to measure a process."""
        return Meter(process, time.perf_counter(), processor_seconds(process), _waited(process))

    def stop(self, seconds: float) -> float:
        """Return the `seconds` that a question took since `start`, less the wait for a core."""
        used, waited = processor_seconds(self.process) - self.used, _waited(self.process) - self.waited
        # A wait before the question or after it, in which this process was to call us, is in the whole time only.
        whole = time.perf_counter() - self.started
        return max(used, min(seconds, whole - waited))


def _waited(process: int) -> float:
    """Return the seconds that a process's main thread and ours have waited for a core; 0 where the kernel does not say."""
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
