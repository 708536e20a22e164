"""The limits of one command: set before it starts, and watched while it runs.

Covered: memory, processes and threads by a control group where one can be made (version 1 or 2); otherwise memory by RLIMIT_DATA and by
watching, processes and threads by RLIMIT_NPROC, and by watching for root, for whom that does not count; core dumps and file size by
rlimits; the size and the files of the workspace by watching. The file size limit holds for each file, the others for the whole command.

Not covered: CPU seconds, since a limit of wall time holds already; use of a disk outside the workspace, since sandboxes with a file
system of their own have none.
"""

from __future__ import annotations

import contextlib
import functools
import os
import secrets
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

from mlagentbench.run_spec import ScriptLimits
from mlagentbench.sandbox.access import Measured, measure
from mlagentbench.sandbox.base import EndReason
from mlagentbench.sandbox.standalone.supervise import descendants, send

RESERVED_MB = 2048
"""What allocators reserve and never touch, allowed on top of the memory limit where only RLIMIT_DATA holds it."""
MEMORY_ERRORS = ("MemoryError", "std::bad_alloc", "an't allocate memory", "annot allocate memory")
"""The last words of a program whose allocation failed."""

_ROOT = Path("/sys/fs/cgroup")


class Group(NamedTuple):
    """A control group of one command: one folder in version 2, one a controller in version 1."""

    folders: tuple[Path, ...]

    @property
    def entrances(self) -> tuple[str, ...]:
        """Files into which a process writes `0` to join."""
        return tuple(str(folder / "cgroup.procs") for folder in self.folders)

    def processes(self) -> list[int]:
        """Who is in it."""
        return [int(line) for line in _read(self.folders[0] / "cgroup.procs").split()]

    def hit(self, limit: str) -> bool:
        """Whether a limit, `memory` or `pids`, stopped something."""
        names = {"memory": ("memory.events", "memory.oom_control"), "pids": ("pids.events",)}[limit]
        words = {"memory": "oom_kill", "pids": "max"}
        for folder in self.folders:
            for name in names:
                for line in _read(folder / name).splitlines():
                    key, _, value = line.partition(" ")
                    if key == words[limit] and value != "0":
                        return True
        return False

    def end(self) -> bool:
        """Kill whoever is in it, and remove it. False while it is not empty: call it again."""
        for folder in self.folders:
            for pid in _read(folder / "cgroup.procs").split():
                send(int(pid), 9)
            with contextlib.suppress(OSError):  # busy, or removed before
                folder.rmdir()
        return not any(folder.exists() for folder in self.folders)


def make_group(limits: ScriptLimits) -> Group | None:
    """A control group with a command's limits; None where this machine lets us make none."""
    group = None
    parents = _parents()
    try:
        group = _make(parents, limits) if parents else None
    except OSError:  # the parent went away, or a quota of groups is used up
        return None
    return group


def prelude(limits: ScriptLimits, group: Group | None, namespace: bool) -> tuple[str, ...]:
    """The start of an argument list: it sets the limits on itself, then becomes the command that follows.

    A shell rather than code between fork and exec, which deadlocks in a process with threads.
    """
    script = [f"ulimit -c 0 2>/dev/null; ulimit -f {limits.file_mb * 2048} 2>/dev/null"]
    entrances: tuple[str, ...] = ()
    if group is None:
        script.append(f"ulimit -d {(limits.memory_mb + RESERVED_MB) * 1024} 2>/dev/null")
        if not namespace and os.getuid() != 0:  # root has no such limit, and a user namespace counts for itself
            script.append(set_tasks(limits.processes + _tasks_of_user()))
    else:
        entrances = group.entrances
        script += [f'echo 0 >"${number}" || exit 126' for number in range(1, len(entrances) + 1)]
        script.append(f"shift {len(entrances)}")
    script.append('exec "$@"')
    return ("/bin/sh", "-c", "; ".join(script), "sh", *entrances)


def set_tasks(most: int) -> str:
    """The shell command for RLIMIT_NPROC, in the spellings of bash and of dash."""
    return f"ulimit -u {most} 2>/dev/null || ulimit -p {most} 2>/dev/null"


class Watch:
    """Looks after a running command's limits.

    Args:
        limits: what it may use.
        pid: its first process.
        workspace: the folder whose size is watched.
        group: the control group it is in.
    """

    def __init__(self, limits: ScriptLimits, pid: int, workspace: Path, group: Group | None) -> None:
        self._limits = limits
        self._pid = pid
        self._group = group
        self._hit: frozenset[str] = frozenset()
        self.disk = DiskWatch(workspace, Measured(limits.workspace_mb << 20, limits.workspace_files))

    def check(self) -> EndReason | None:
        """The limit that is broken now, of those that take no time to check."""
        if self._group is not None:
            # the kernel holds these: it has refused a process or killed one, and the others may wait for it
            return "processes" if self._group.hit("pids") else "memory" if self._group.hit("memory") else None
        members = self.members()
        if sum(map(_tasks, members)) >= self._limits.processes:
            return "processes"
        return "memory" if _memory(members, self._limits.memory_mb << 20) > self._limits.memory_mb << 20 else None

    def members(self) -> list[int]:
        """The command's processes, its first one and our own helpers included."""
        return self._group.processes() if self._group else [self._pid, *descendants(self._pid)]

    def close(self) -> None:
        """Remember what the control group can tell, before it is removed."""
        if self._group is not None:
            self._hit = frozenset(limit for limit in ("memory", "pids") if self._group.hit(limit))

    def verdict(self, exit_code: int, last_words: str) -> EndReason:
        """Why a command that ended by itself did so."""
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
    """Looks at what a folder holds, seldom where the disk's free space shows that it cannot have grown much.

    Args:
        folder: what to watch. Symbolic links are not followed.
        most: the bytes and the files that it may hold.
    """

    LONGEST = 5.0
    """Seconds after which it looks in any case: what another process freed can hide what this one wrote."""
    SHARE = 0.05
    """Of the time at most that goes into looking."""

    def __init__(self, folder: Path, most: Measured) -> None:
        self._folder = folder
        self._most = most
        self._held = Measured(0, 0)
        self._free = _free(folder)
        self._looked = time.monotonic() - self.LONGEST + 1  # the first look is after a second: most commands are shorter
        self._next = 0.0

    def due(self) -> bool:
        """Whether it is time to look. Takes microseconds."""
        now = time.monotonic()
        grown = [before - free for before, free in zip(self._free, _free(self._folder), strict=True)]
        room = [most - held for most, held in zip(self._most, self._held, strict=True)]
        if any(more > some for more, some in zip(grown, room, strict=True)):
            return True
        if now < self._next:
            return False
        return any(more > some / 2 for more, some in zip(grown, room, strict=True)) or now - self._looked > self.LONGEST

    def broken(self) -> bool:
        """Look. True when the folder holds more than it may."""
        started = time.monotonic()
        self._free = _free(self._folder)
        self._held = measure(self._folder, self._most)
        self._looked = time.monotonic()
        self._next = self._looked + (self._looked - started) / self.SHARE
        return self._held.bytes > self._most.bytes or self._held.files > self._most.files


@functools.cache
def _parents() -> tuple[Path, ...]:
    """Folders of the control group file system in which groups can be made and entered, as a trial shows."""
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
    """Remove the empty groups of harnesses that were killed."""
    for parent in parents:
        for folder in parent.glob("mlagentbench-*-*"):
            if not os.path.exists(f"/proc/{folder.name.split('-')[1]}"):
                with contextlib.suppress(OSError):
                    folder.rmdir()


def _candidates() -> list[tuple[Path, ...]]:
    own: dict[str, Path] = {}
    for line in _read(Path("/proc/self/cgroup")).splitlines():
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


def _make(parents: tuple[Path, ...], limits: ScriptLimits) -> Group:
    name = f"mlagentbench-{os.getpid()}-{secrets.token_hex(4)}"
    group = Group(tuple(parent / name for parent in parents))
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
    """Bytes of memory that processes hold of their own, exact only where a cheap upper bound is over the limit."""
    page = os.sysconf("SC_PAGE_SIZE")
    bound = 0
    for pid in pids:
        fields = _read(Path(f"/proc/{pid}/statm")).split()
        bound += (int(fields[1]) - int(fields[2])) * page if fields else 0
    if bound <= limit:
        return bound
    return sum(_shared_fairly(pid) for pid in pids)  # forked workers share what the bound counts for each


def _shared_fairly(pid: int) -> int:
    for line in _read(Path(f"/proc/{pid}/smaps_rollup")).splitlines():
        if line.startswith("Pss_Anon:"):
            return int(line.split()[1]) << 10
    return 0


def _tasks(pid: int) -> int:
    """How many threads a process has; none where it is gone."""
    try:
        return len(os.listdir(f"/proc/{pid}/task"))
    except OSError:
        return 0


def _tasks_of_user() -> int:
    """How many tasks RLIMIT_NPROC counts for us already."""
    tasks = 0
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if path.stat().st_uid == os.getuid():
                tasks += len(os.listdir(path / "task"))
        except OSError:
            continue
    return tasks


def _free(folder: Path) -> Measured:
    """What the disk of a folder can still take. File systems that make files as they are needed have no number of them, and say 0."""
    try:
        disk = os.statvfs(folder)
    except OSError:
        return Measured(0, 0)
    return Measured(disk.f_bavail * disk.f_frsize, disk.f_favail)


def _read(path: Path) -> str:
    return _bytes(path).decode("utf-8", "replace")


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _write(path: Path, value: int) -> None:
    path.write_text(str(value))


def _write_if_there(path: Path, value: int) -> None:
    with contextlib.suppress(OSError):  # swap is not accounted for here
        _write(path, value)
