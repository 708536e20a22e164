"""Start the first process of one call, and find and kill all that it starts.

Each command has a supervisor of its own (`standalone/supervise.py`), so that two calls of one harness never touch each other's processes.
A pid namespace makes none needless: bubblewrap's first process in one asks the kernel to end it with its parent only when it has set the
namespace up, so that it and the command would outlive a harness that is killed before.

As a second line of defence, the harness is a child subreaper, and the first process of each call has a mark in its environment. Processes
that outlive their launcher or supervisor become children of the harness, which recognizes them by the mark, kills them and waits for them.
All processes in the call's control group, where it has one, are killed too.
"""

from __future__ import annotations

import errno
import functools
import os
import secrets
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence

import psutil

from mlagentbench.errors import ActionError, InfrastructureError
from mlagentbench.sandbox.base import EndReason, Launch, SandboxSpec
from mlagentbench.sandbox.linux.limits import LimitWatch, make_group, prelude
from mlagentbench.sandbox.standalone import supervise

PATIENCE = 60.0
"""Seconds to wait for killed processes: a driver may need some of them to free a GPU's memory, and a busy machine for everything."""
REACTION = 10.0
"""Seconds that a supervisor that was asked to end has to kill its command's processes; then the harness kills them."""
STOPPING = 2.0
"""Seconds to wait for processes to stop after SIGSTOP. One that waits for a disk stops only afterwards."""


class ProcessTree:
    """A command's processes.

    Args:
        launch: how to start it.
        spec: its limits, and the workspace whose size is one of them.
        piped: use pipes for standard input and standard error; False gives no input, and puts errors among the output.
        groups: use a control group where one can be made.
        passed: descriptors that the command inherits, with the same numbers.

    Raises:
        ActionError: no machine can start the command.
        InfrastructureError: the launcher cannot be started.
    """

    def __init__(self, launch: Launch, spec: SandboxSpec, *, piped: bool, groups: bool, passed: Sequence[int] = ()) -> None:
        _adopt_orphans(os.getpid())
        self._launch = launch
        self._mark = secrets.token_hex(8)
        self._lock = threading.Lock()
        self._ended_by_itself: bool | None = None
        self._over = False
        self._orphans: set[int] = set()
        self._group = make_group(spec.limits) if groups and not launch.control else None
        at_the_end = launch.control(signal.SIGKILL) if launch.control else ()
        supervisor = (sys.executable, "-I", "-S", supervise.__file__, str(os.getpid()), *at_the_end, "--")
        try:
            self.popen = subprocess.Popen(
                (*prelude(spec.limits, self._group, launch.namespace), *supervisor, *launch.command),
                stdin=subprocess.PIPE if piped else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE if piped else subprocess.STDOUT,
                cwd=launch.directory,
                env={**launch.environment, supervise.MARK: self._mark},
                start_new_session=True,
                pass_fds=tuple(passed),
            )
        except (OSError, ValueError) as error:
            if self._group is not None:
                self._group.end()
            if isinstance(error, ValueError) or error.errno == errno.E2BIG:
                raise ActionError(f"the command cannot be started: {error}; it is too long, or holds a NUL byte") from None
            raise InfrastructureError(f"cannot start a sandbox in {launch.directory}: {error}") from None
        self.watch = LimitWatch(spec.limits, self.popen.pid, spec.workspace, self._group, spec.home)

    @property
    def exit_code(self) -> int:
        """As in a shell: 128 + the signal for a killed process. Waits for the first process to end."""
        code = self.popen.wait()
        return code if code >= 0 else 128 - code

    def signal_members(self, number: int) -> None:
        """Send a signal to all processes but the harness's own: the supervisor, and what makes a namespace from outside it.

        SIGSTOP is waited for: a process that has no core when it comes, or is in a system call, stops only later.
        """
        if self._launch.control:
            subprocess.run(self._launch.control(number), env=dict(self._launch.environment), stdin=subprocess.DEVNULL, capture_output=True)
            return
        signalled: set[int] = set()
        for _ in range(5):  # repeat, for processes that were started meanwhile
            found = [pid for pid in supervise.descendants(self.popen.pid) if not self._launch.namespace or len(_ids(pid)) > 1]
            new = set(found) - signalled
            # Children are continued before their parents, which could otherwise notice that a child is stopped, as shells do.
            for pid in sorted(new, key=found.index, reverse=number == signal.SIGCONT):
                supervise.send(pid, number)
            if number == signal.SIGSTOP:
                _wait_until_stopped(new)
            signalled |= new
            if not new:
                break

    def verdict(self, last_words: str) -> EndReason:
        """Return why a command ended, where no check found a limit reached."""
        if not self._ended_by_itself:
            return "cancelled"
        if self._launch.control and self.exit_code == 128 + signal.SIGKILL:
            return "memory"  # nobody but the kernel sends SIGKILL in a container, when memory runs out
        return self.watch.verdict(self.exit_code, last_words[-4000:])

    def end(self) -> None:
        """Kill all processes, and wait until they have ended. Can be called again, and from any thread.

        Raises:
            InfrastructureError: a process could not be killed.
        """
        with self._lock:
            for pause in self.ending():
                time.sleep(pause)

    def ending(self) -> Iterator[float]:
        """Do the same in steps, and yield the seconds to wait after each.

        Raises:
            InfrastructureError: a process could not be killed.
        """
        if self._over:
            return
        if self._ended_by_itself is None:
            self._ended_by_itself = self.popen.poll() is not None
        if self.popen.poll() is None:
            yield from self._end_first()
        if self._unsupervised():
            yield 0.05  # a process that was being started when its supervisor was killed shows its mark by then
        yield from self._until(self._no_orphans)
        self.watch.close()
        if self._group is not None:
            yield from self._until(self._group.end)
        if self._unsupervised():
            shutil.rmtree(supervise.private_folder(os.getpid(), self._mark), ignore_errors=True)
        self._over = True

    def _unsupervised(self) -> bool:
        """Return whether the command had a supervisor that was killed before it could kill the command's processes. Waits for it."""
        return self.popen.wait() < 0

    def _end_first(self) -> Iterator[float]:
        self.popen.terminate()  # the supervisor kills the other processes and then exits
        self.popen.send_signal(signal.SIGCONT)
        try:
            yield from self._until(lambda: self.popen.poll() is not None, REACTION)
        except InfrastructureError:  # the command keeps its supervisor from working, for example by stopping it
            supervise.end_descendants(self.popen.pid)
            self.popen.kill()
            yield from self._until(lambda: self.popen.poll() is not None)

    def _until(self, done: Callable[[], bool], patience: float = PATIENCE) -> Iterator[float]:
        begin = time.monotonic()
        pause = 0.0002
        waited = 0.0
        while not done():
            if waited > patience:  # before this last look: this process may have had no core in between
                raise InfrastructureError(
                    f"a process of {self._launch.command[0]} cannot be ended; find it with `ps -ef`, and restart the machine"
                )
            waited = time.monotonic() - begin
            if waited < 0.002:
                time.sleep(pause)  # most processes end within a millisecond, and an event loop would wait for several
            else:
                yield pause
                pause = min(pause * 2, 0.1)

    def _no_orphans(self) -> bool:
        """Kill the call's processes that became children of the harness. Returns True when none is left."""
        variable = f"{supervise.MARK}={self._mark}".encode()
        # Without a supervisor the call's processes can be below others that are ending and show no environment any more.
        for pid in (supervise.descendants if self._unsupervised() else supervise.children)(os.getpid()):
            if pid == self.popen.pid:
                continue
            environment = _environment(pid)
            leads = _ids(pid)[1:][-1:] == [b"1"]
            # The first process of a namespace leads it: when it ends, the kernel first ends all others in it, and until then it shows no
            # environment any more; it is an orphan if it is our child.
            if variable in environment or (leads and not environment):
                self._orphans.update([pid] if leads else [*supervise.descendants(pid), pid])
        supervise.kill(list(self._orphans))
        self._orphans = {pid for pid in self._orphans if not _gone(pid)}
        return not self._orphans


@functools.cache
def _adopt_orphans(pid: int) -> None:
    supervise.become_subreaper()  # once per process id: a forked process does not inherit it


def _environment(pid: int) -> list[bytes]:
    """Return the variables a process was started with; none where it has ended or is ending.

    psutil's `environ` reads only up to the first empty variable, behind which a process could hide its mark.
    """
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        return []


def _ids(pid: int) -> list[bytes]:
    """Return a process's id in this pid namespace and in each one below that it is in; none where it has ended.

    psutil does not know namespaces.
    """
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            return next((line.split()[1:] for line in file if line.startswith(b"NSpid:")), [])
    except OSError:
        return []


def _wait_until_stopped(pids: set[int]) -> None:
    deadline = time.monotonic() + STOPPING
    left, late = set(pids), False
    while left and not late:
        late = time.monotonic() > deadline
        left = {pid for pid in left if not _is_stopped(pid)}
        if left:
            time.sleep(0.0005)


def _is_stopped(pid: int) -> bool:
    """Return whether every thread of a process is stopped or has ended. psutil knows the state of the first thread only."""
    try:
        return all(_state(f"/proc/{pid}/task/{thread}/stat") in "TtZX" for thread in os.listdir(f"/proc/{pid}/task"))
    except OSError:  # it has ended
        return True


def _state(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read().rpartition(b")")[2].split()[0].decode()
    except OSError:
        return "X"


def _gone(pid: int) -> bool:
    """Return whether a process has ended and been waited for. Waits for it without blocking where it is our child."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return not psutil.pid_exists(pid)
