"""Enforce the limits of one command: set them before it starts, and check them while it runs.

Memory, processes and threads are limited by a control group where one can be made (version 1 or 2). Otherwise memory is limited by
RLIMIT_DATA and by checks, and processes and threads by RLIMIT_NPROC and by checks, since RLIMIT_NPROC does not apply to root. Core
dumps and file size are limited by rlimits, the bytes and the files of the workspace by checks. The file size limit holds for each file, the
others for the whole command.

Not covered: CPU seconds, since wall time is limited already; use of a disk outside the workspace, since sandboxes with a file system of
their own show none.
"""

from __future__ import annotations

import contextlib
import functools
import os
import secrets
import subprocess
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple, TypeVar

import psutil

from mlagentbench.limits import ScriptLimits
from mlagentbench.sandbox.access import FolderSize, measure
from mlagentbench.sandbox.base import EndReason
from mlagentbench.sandbox.standalone.supervise import descendants, send
from mlagentbench.util.machine import read_text

RESERVED_MB = 2048
"""MB on top of the memory limit where RLIMIT_DATA enforces it: allocators reserve memory that they never touch, and it counts that too."""
MEMORY_ERRORS = ("MemoryError", "std::bad_alloc", "an't allocate memory", "annot allocate memory")
"""What programs print when an allocation fails. A first letter that may be a capital is left out."""

_ROOT = Path("/sys/fs/cgroup")
T = TypeVar("T")


class ControlGroup(NamedTuple):
    """A control group of one command: one folder in version 2, one per controller in version 1."""

    folders: tuple[Path, ...]

    @property
    def entrances(self) -> tuple[str, ...]:
        """Files into which a process writes `0` to join."""
        return tuple(str(folder / "cgroup.procs") for folder in self.folders)

    def processes(self) -> list[int]:
        """Return the ids of its processes."""
        return [int(line) for line in read_text(self.folders[0] / "cgroup.procs").split()]

    def hit(self, limit: str) -> bool:
        """Return whether the kernel has enforced a limit: killed a process for `memory`, or refused a new one for `pids`."""
        names = {"memory": ("memory.events", "memory.oom_control"), "pids": ("pids.events",)}[limit]
        words = {"memory": "oom_kill", "pids": "max"}
        for folder in self.folders:
            for name in names:
                for line in read_text(folder / name).splitlines():
                    key, _, value = line.partition(" ")
                    if key == words[limit] and value != "0":
                        return True
        return False

    def end(self) -> bool:
        """Kill its processes, and remove the group. Returns False while it is not empty: call it again then."""
        for folder in self.folders:
            for pid in read_text(folder / "cgroup.procs").split():
                send(int(pid), 9)
            with contextlib.suppress(OSError):  # busy, or removed before
                folder.rmdir()
        return not any(folder.exists() for folder in self.folders)


def make_group(limits: ScriptLimits) -> ControlGroup | None:
    """Make a control group with a command's limits; None where this machine does not allow it."""
    group = None
    parents = _parents()
    try:
        group = _make(parents, limits) if parents else None
    except OSError:  # the parent was removed, or a quota of groups is used up
        return None
    return group


def prelude(limits: ScriptLimits, group: ControlGroup | None, namespace: bool) -> tuple[str, ...]:
    """Return the start of an argument list: a shell that sets the limits on itself, then executes the command that follows.

    Code between fork and exec (`preexec_fn`) could deadlock in a process with threads.
    """
    script = [f"ulimit -c 0 2>/dev/null; ulimit -f {limits.file_mb * 2048} 2>/dev/null"]
    entrances: tuple[str, ...] = ()
    if group is None:
        script.append(f"ulimit -d {(limits.memory_mb + RESERVED_MB) * 1024} 2>/dev/null")
        if not namespace and os.getuid() != 0:  # the limit does not apply to root, and is set inside a user namespace by the sandbox
            script.append(set_tasks(limits.processes + _tasks_of_user()))
    else:
        entrances = group.entrances
        script += [f'echo 0 >"${number}" || exit 126' for number in range(1, len(entrances) + 1)]
        script.append(f"shift {len(entrances)}")
    script.append('exec "$@"')
    return ("/bin/sh", "-c", "; ".join(script), "sh", *entrances)


def set_tasks(most: int) -> str:
    """Return the shell command that sets RLIMIT_NPROC, in the spellings of bash and of dash."""
    return f"ulimit -u {most} 2>/dev/null || ulimit -p {most} 2>/dev/null"


class LimitWatch:
    """Checks a running command's limits.

    Args:
        limits: what it may use.
        pid: its first process.
        workspace: the folder whose size is limited.
        group: its control group, if it has one.
        home: a second folder, whose size counts with the workspace's.
    """

    def __init__(self, limits: ScriptLimits, pid: int, workspace: Path, group: ControlGroup | None, home: Path | None = None) -> None:
        self._limits = limits
        self._pid = pid
        self._group = group
        self._hit: frozenset[str] = frozenset()
        self.disk = DiskWatch(workspace, FolderSize(limits.workspace_mb << 20, limits.workspace_files), home)

    def check(self) -> EndReason | None:
        """Return the limit of memory or processes that is reached; None where neither is. Takes little time."""
        if self._group is not None:
            # The kernel enforces these limits, but the remaining processes may wait forever for one that it refused or killed.
            return "processes" if self._group.hit("pids") else "memory" if self._group.hit("memory") else None
        members = self.members()
        if sum(_measure_each(members, lambda process: process.num_threads())) >= self._limits.processes:
            return "processes"
        return "memory" if _memory(members, self._limits.memory_mb << 20) > self._limits.memory_mb << 20 else None

    def spare(self) -> EndReason | None:
        """Do as `check`, but where memory is over its limit, kill only the largest process, as the kernel does in a control group."""
        if self._group is not None:
            return None  # the kernel enforces these limits
        reason = self.check()
        if reason != "memory":
            return reason
        largest = max(self.members(), key=lambda pid: _memory([pid], 0))
        send(largest, 9)
        return None

    def members(self) -> list[int]:
        """Return the ids of the command's processes, its first one and the harness's helpers included."""
        return self._group.processes() if self._group else [self._pid, *descendants(self._pid)]

    def close(self) -> None:
        """Store which limits the control group has enforced, before it is removed."""
        if self._group is not None:
            self._hit = frozenset(limit for limit in ("memory", "pids") if self._group.hit(limit))

    def verdict(self, exit_code: int, last_words: str) -> EndReason:
        """Return why a command ended that was not ended by the harness.

        Args:
            exit_code: as in a shell.
            last_words: the end of its output, where an allocation that failed is reported.
        """
        if exit_code == 0:
            return "exit"
        if "memory" in self._hit:
            return "memory"
        if "pids" in self._hit:
            return "processes"
        if self._group is None and any(words in last_words for words in MEMORY_ERRORS):
            return "memory"
        return "disk" if exit_code == 128 + 25 else "exit"  # SIGXFSZ: a file grew over its limit


class DiskWatch:
    """Checks the size of a folder, less often where the disk's free space shows that it cannot have grown much.

    Args:
        folder: the folder. Symbolic links are not followed.
        most: the bytes and the files that it may hold.
        home: a second folder, whose size is added.
    """

    LONGEST = 5.0
    """Seconds after which the folder is measured in any case: space that another process freed can hide what this one wrote."""
    SHARE = 0.05
    """The fraction of the time that measuring takes at most."""

    def __init__(self, folder: Path, most: FolderSize, home: Path | None = None) -> None:
        self._folder = folder
        self._folders = [folder, *([home] if home else [])]
        self._most = most
        self._held = FolderSize(0, 0)
        self._free = _free(folder)
        self._measured = time.monotonic() - self.LONGEST + 1  # measure first after a second: most commands are shorter
        self._next = 0.0

    def due(self) -> bool:
        """Return whether it is time to measure the folder. Takes microseconds."""
        now = time.monotonic()
        grown = [before - free for before, free in zip(self._free, _free(self._folder), strict=True)]
        room = [most - held for most, held in zip(self._most, self._held, strict=True)]
        if any(more > some for more, some in zip(grown, room, strict=True)):
            return True
        if now < self._next:
            return False
        return any(more > some / 2 for more, some in zip(grown, room, strict=True)) or now - self._measured > self.LONGEST

    def broken(self) -> bool:
        """Measure the folder. Returns True if it holds more than it may."""
        started = time.monotonic()
        self._free = _free(self._folder)
        sizes = [measure(folder, self._most) for folder in self._folders]
        self._held = FolderSize(sum(size.bytes for size in sizes), sum(size.files for size in sizes))
        self._measured = time.monotonic()
        self._next = self._measured + (self._measured - started) / self.SHARE
        return self._held.bytes > self._most.bytes or self._held.files > self._most.files


@functools.cache
def _parents() -> tuple[Path, ...]:
    """Find by trial the folders of the control group file system in which groups can be made and joined; empty where there are none."""
    for candidate in _candidates():
        try:
            group = _make(candidate, ScriptLimits())
        except OSError:
            continue
        command = (*prelude(ScriptLimits(), group, True), "/bin/sh", "-c", ":")
        entered = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True).returncode == 0
        group.end()
        _tidy(candidate)
        if entered:
            return candidate
    return ()


def _tidy(parents: tuple[Path, ...]) -> None:
    """Remove the empty groups of harness processes that were killed."""
    for parent in parents:
        for folder in parent.glob("mlagentbench-*-*"):
            if not psutil.pid_exists(int(folder.name.split("-")[1])):
                with contextlib.suppress(OSError):
                    folder.rmdir()


def _candidates() -> list[tuple[Path, ...]]:
    own: dict[str, Path] = {}
    for line in read_text(Path("/proc/self/cgroup")).splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            own[controller] = Path(path.lstrip("/"))
    found: list[tuple[Path, ...]] = []
    if (_ROOT / "memory").is_dir() and (_ROOT / "pids").is_dir() and {"memory", "pids"} <= own.keys():
        found.append((_ROOT / "memory" / own["memory"], _ROOT / "pids" / own["pids"]))
    if (_ROOT / "cgroup.controllers").exists() and "" in own:
        here = _ROOT / own[""]
        found += [(here,), (here.parent,)] if here != _ROOT else [(here,)]
    return found


def _make(parents: tuple[Path, ...], limits: ScriptLimits) -> ControlGroup:
    name = f"mlagentbench-{os.getpid()}-{secrets.token_hex(4)}"
    group = ControlGroup(tuple(parent / name for parent in parents))
    memory, tasks = limits.memory_mb << 20, limits.processes
    try:
        for folder in group.folders:
            folder.mkdir()
        if len(parents) == 2:
            _write(group.folders[0] / "memory.limit_in_bytes", memory)
            _write_if_there(group.folders[0] / "memory.memsw.limit_in_bytes", memory)
            _write(group.folders[1] / "pids.max", tasks)
        else:
            _write(group.folders[0] / "memory.max", memory)
            _write_if_there(group.folders[0] / "memory.swap.max", 0)
            _write(group.folders[0] / "pids.max", tasks)
    except OSError:
        group.end()
        raise
    return group


def _memory(pids: list[int], limit: int) -> int:
    """Return the bytes of anonymous memory of processes: a cheap upper bound, or the exact number where the bound is over the limit."""
    bound: int = sum(info.rss - info.shared for info in _measure_each(pids, lambda process: process.memory_info()))
    if bound <= limit:
        return bound
    return sum(_shared_fairly(pid) for pid in pids)  # the bound counts memory that forked workers share once per worker


def _shared_fairly(pid: int) -> int:
    """Return a process's share of anonymous memory, in bytes. psutil gives that of all memory only, which counts mapped files too."""
    for line in read_text(Path(f"/proc/{pid}/smaps_rollup")).splitlines():
        if line.startswith("Pss_Anon:"):
            return int(line.split()[1]) << 10
    return 0


def _tasks_of_user() -> int:
    """Count the processes and threads of this user, which RLIMIT_NPROC counts together with the command's."""
    own = os.getuid()
    return sum(_measure_each(psutil.pids(), lambda process: process.num_threads() if process.uids().real == own else 0))


def _measure_each(pids: Iterable[int], measure: Callable[[psutil.Process], T]) -> list[T]:
    """Measure processes, without those that have ended."""
    found = []
    for pid in pids:
        with contextlib.suppress(psutil.Error, OSError):
            found.append(measure(psutil.Process(pid)))
    return found


def _free(folder: Path) -> FolderSize:
    """Return the free bytes and the free inodes of a folder's disk. File systems that create inodes as needed report 0 of them."""
    try:
        disk = os.statvfs(folder)
    except OSError:
        return FolderSize(0, 0)
    return FolderSize(disk.f_bavail * disk.f_frsize, disk.f_favail)


def _write(path: Path, value: int) -> None:
    path.write_text(str(value))


def _write_if_there(path: Path, value: int) -> None:
    with contextlib.suppress(OSError):  # kernels without swap accounting have no such file
        _write(path, value)
