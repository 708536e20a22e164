"""Run a command, and kill all processes that it leaves behind.

    python -I -S supervise.py HARNESS_PID [LAST...] -- COMMAND...

The supervisor is a child subreaper: an orphan of the command, even one that called setsid and forked twice, becomes a child of this
supervisor. The supervisor kills all its descendants when the command has ended, when it gets SIGTERM, and when the harness dies. It exits
with the command's status as in a shell. LAST is a command to run at the end unless COMMAND ended by itself. COMMAND has a temporary folder
of its own as HOME and TMPDIR, which is removed at the end.

Not covered: a command that kills its supervisor, as a process of the same user can unless the sandbox forbids it. The harness then kills
the processes that it can still find.
"""

from __future__ import annotations

import os
import signal
import sys
import time

MARK = "MLAGENTBENCH_CALL"
"""The environment variable that identifies a call's processes. Each call has a value of its own."""
AWAITED = (signal.SIGTERM, signal.SIGCHLD)
STOPPED = 128 + signal.SIGKILL
"""The exit status of a supervisor that was asked to end."""
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


def private_folder(harness: int, mark: str) -> str:
    """Return the path of a call's temporary folder.

    Args:
        harness: the id of the process that made the call.
        mark: the call's value of `MARK`.
    """
    return f"/tmp/mlagentbench-{harness}-{mark}"


def become_subreaper() -> None:
    """Make this process the parent of its descendants' orphans. Does nothing on systems other than Linux."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(number: int) -> None:
    """Have the kernel send this process a signal when the thread that started it ends. Does nothing on systems other than Linux."""
    _prctl(PR_SET_PDEATHSIG, number)


def children(pid: int) -> list[int]:
    """Return the direct children of a process, zombies included; none where it has ended."""
    found: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children", "rb") as file:
                found += map(int, file.read().split())
    except OSError:
        if not os.path.exists(f"/proc/{pid}/task/{pid}/children"):  # a kernel without CONFIG_PROC_CHILDREN, or no such process
            return _parents().get(pid, [])
    return found


def descendants(pid: int) -> list[int]:
    """Return all descendants of a process, parents before their children.

    psutil's `children` reads all processes of the machine; and this file runs with the standard library alone.
    """
    if os.path.exists(f"/proc/self/task/{os.getpid()}/children"):
        below = children
    else:
        parents = _parents()

        def below(pid: int) -> list[int]:
            return parents.get(pid, [])

    found = below(pid)
    for child in found:
        found += below(child)
    return found


def send(pid: int, number: int) -> None:
    """Send a signal to a process, or to a group as -id. Do nothing if it has ended or belongs to another user."""
    try:  # noqa: SIM105 - contextlib would take longer to import than the rest of a supervisor's start
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        pass


def kill(processes: list[int]) -> None:
    """Kill processes, and the process groups that they are in, other than this process's.

    The kernel kills a group at once, so that even a fork bomb cannot start new processes in time. Call it only for descendants of a command
    that has a session of its own, so that no other process is in their groups.
    """
    groups = set()
    for process in processes:
        try:  # noqa: SIM105 - as in `send`
            groups.add(os.getpgid(process))
        except ProcessLookupError:
            pass
    for group in groups - {os.getpgrp(), 0}:
        send(-group, signal.SIGKILL)
    for process in processes:
        send(process, signal.SIGKILL)


def end_descendants(pid: int, seconds: float = 5.0) -> bool:
    """Kill all descendants of a process, but not the process itself. Reaps them where it is the calling one.

    Returns:
        True when none is left, False when some are after `seconds`.
    """
    own = pid == os.getpid()
    deadline = time.monotonic() + seconds
    while True:
        if own:
            _reap()
        left = [process for process in descendants(pid) if own or not is_zombie(process)]
        if not left:
            return True
        if time.monotonic() > deadline:
            return False
        kill(left)
        time.sleep(0.001)


def is_zombie(pid: int) -> bool:
    """Return whether a process has ended, reaped or not."""
    return _stat(pid)[1] in "ZX"


def main(arguments: list[str]) -> int:
    """Run the command and kill the processes that it leaves behind. Returns its exit status."""
    harness, separator = int(arguments[0]), arguments.index("--")
    last, command = arguments[1:separator], arguments[separator + 1 :]
    # Blocked, so that none is lost that comes between a look and the wait that follows.
    signal.pthread_sigmask(signal.SIG_BLOCK, AWAITED)
    signal.signal(signal.SIGCHLD, _nothing)  # other systems may drop a signal that would do nothing, even if it is blocked
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    become_subreaper()
    die_with_parent(signal.SIGTERM)
    home = private_folder(harness, os.environ[MARK])
    try:
        os.mkdir(home, 0o700)
        if os.getppid() != harness:  # the harness died before PR_SET_PDEATHSIG was set
            return STOPPED
        status = _wait(_start(command, home))
        if status < 128:
            last = []
        return status
    finally:
        end_descendants(os.getpid())
        if last:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, AWAITED)
            for stream in (1, 2):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
            os.spawnvp(os.P_WAIT, last[0], last)
        _remove(home)


def _nothing(number: int, frame: object) -> None:
    pass


def _start(command: list[str], home: str) -> int:
    pid = os.fork()
    if pid:
        return pid
    for number in (*AWAITED, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)  # the supervisor's, and the signals that Python ignores
    signal.pthread_sigmask(signal.SIG_UNBLOCK, AWAITED)
    os.setsid()  # so that `kill 0` in the command does not reach the supervisor
    die_with_parent(signal.SIGKILL)
    try:
        os.execvpe(command[0], command, {**os.environ, "HOME": home, "TMPDIR": home})
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
    os._exit(127)


def _wait(command: int) -> int:
    """Wait for the command to end, or for SIGTERM. Returns its status as in a shell."""
    stopped = False
    while True:
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] == command:
                code = os.waitstatus_to_exitcode(ended[1])
                return code if code >= 0 else 128 - code
        if stopped:
            return STOPPED
        stopped = signal.sigwait(AWAITED) == signal.SIGTERM  # and look once more: the command may have ended just before


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def _remove(path: str) -> None:
    try:
        os.rmdir(path)
    except FileNotFoundError:
        pass
    except OSError:
        import shutil  # imported only if the folder is not empty, since the import takes longer than most removals

        for folder, names, _ in os.walk(path):  # os.walk lists a folder after this: its mode may deny it to its owner
            for name in names:
                if not os.path.islink(os.path.join(folder, name)):
                    os.chmod(os.path.join(folder, name), 0o700)
        shutil.rmtree(path, ignore_errors=True)


def _parents() -> dict[int, list[int]]:
    """Return the children of every process of the machine, by the parent's id."""
    found: dict[int, list[int]] = {}
    try:
        names = os.listdir("/proc")
    except OSError:  # systems other than Linux may have no /proc
        return found
    for name in names:
        if name.isdigit():
            parent, _ = _stat(int(name))
            if parent:
                found.setdefault(parent, []).append(int(name))
    return found


def _stat(pid: int) -> tuple[int, str]:
    """Return the parent's id and the state of a process; `(0, "X")` where it has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rsplit(b")", 1)[1].split()
    except (OSError, IndexError):
        return 0, "X"
    return int(fields[1]), fields[0].decode()


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        import ctypes  # not at the top: the harness imports this module too, and importing must do nothing

        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))  # skips the interpreter's clean-up, which takes milliseconds and has nothing to do
