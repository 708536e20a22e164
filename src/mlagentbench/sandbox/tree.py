"""The processes of one call: its first one, and how all that it starts is found again and ended.

A command in a pid namespace dies with the namespace. Any other has a supervisor of its own (`standalone/supervise.py`), so that two calls
of one harness never meet each other's processes. Behind both, this process is a child subreaper, and the first process of each call carries
a mark in its environment: what an ended launcher or a killed supervisor leaves becomes our child, is known by the mark, killed and waited
for. A control group, where one can be made, is emptied too.
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
from collections.abc import Callable, Iterator

from mlagentbench.errors import ActionError, InfrastructureError
from mlagentbench.sandbox.base import Box, EndReason, Launch
from mlagentbench.sandbox.limits import Watch, make_group, prelude
from mlagentbench.sandbox.standalone import supervise

PATIENCE = 10.0
"""Seconds that killed processes have to be gone: a driver may take some of them to free a GPU's memory."""


class Tree:
    """A command's processes.

    Args:
        launch: how to start it.
        box: its limits, and the workspace whose size is one of them.
        piped: with pipes for its input and its errors, rather than no input and errors among the output.
        groups: use a control group where one can be made.

    Raises:
        ActionError: the command can be started nowhere.
        InfrastructureError: the launcher cannot be started.
    """

    def __init__(self, launch: Launch, box: Box, *, piped: bool, groups: bool) -> None:
        _adopt_orphans(os.getpid())
        self._launch = launch
        self._mark = secrets.token_hex(8)
        self._lock = threading.Lock()
        self._ended_by_itself: bool | None = None
        self._over = False
        self._orphans: set[int] = set()
        self._group = make_group(box.limits) if groups and not launch.control else None
        command = launch.command
        if not launch.namespace:
            at_the_end = launch.control(signal.SIGKILL) if launch.control else ()
            command = (sys.executable, "-I", "-S", supervise.__file__, str(os.getpid()), *at_the_end, "--", *command)
        try:
            self.popen = subprocess.Popen(
                (*prelude(box.limits, self._group, launch.namespace), *command),
                stdin=subprocess.PIPE if piped else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE if piped else subprocess.STDOUT,
                cwd=launch.directory,
                env={**launch.environment, supervise.MARK: self._mark},
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            if self._group is not None:
                self._group.end()
            if isinstance(error, ValueError) or error.errno == errno.E2BIG:
                raise ActionError(f"the command cannot be started: {error}; it is too long, or holds a NUL byte") from None
            raise InfrastructureError(f"cannot start a sandbox in {launch.directory}: {error}") from None
        self.watch = Watch(box.limits, self.popen.pid, box.workspace, self._group)

    @property
    def exit_code(self) -> int:
        """As a shell gives it. Waits for the first process to end."""
        code = self.popen.wait()
        return code if code >= 0 else 128 - code

    def signal_members(self, number: int) -> None:
        """Send a signal to all processes but the first, which is ours."""
        if self._launch.control:
            subprocess.run(self._launch.control(number), env=dict(self._launch.environment), stdin=subprocess.DEVNULL, capture_output=True)
            return
        told: set[int] = set()
        for _ in range(5):  # again, for those that were started meanwhile
            new = set(supervise.descendants(self.popen.pid)) - told
            for pid in new:
                supervise.send(pid, number)
            told |= new
            if not new:
                break

    def verdict(self, last_words: str) -> EndReason:
        """Why an ended command ended, where no limit that we watch was broken.

        Args:
            last_words: the end of what it wrote.
        """
        if not self._ended_by_itself:
            return "cancelled"
        if self._launch.control and self.exit_code == 128 + signal.SIGKILL:
            return "memory"  # nobody but the engine's kernel kills in a container
        return self.watch.verdict(self.exit_code, last_words[-4000:])

    def end(self) -> None:
        """Leave nothing alive. Can be called again, and from any thread.

        Raises:
            InfrastructureError: a process could not be ended.
        """
        with self._lock:
            for pause in self.ending():
                time.sleep(pause)

    def ending(self) -> Iterator[float]:
        """Do the same in steps, with the seconds to wait after each.

        Raises:
            InfrastructureError: a process could not be ended.
        """
        if self._over:
            return
        if self._ended_by_itself is None:
            self._ended_by_itself = self.popen.poll() is not None
        if self.popen.poll() is None:
            yield from self._end_first()
        if self._unsupervised():
            yield 0.05  # what was being started when its supervisor was killed shows its mark by then
        yield from self._until(self._no_orphans)
        self.watch.close()
        if self._group is not None:
            yield from self._until(self._group.end)
        if self._unsupervised():
            shutil.rmtree(supervise.private_folder(os.getpid(), self._mark), ignore_errors=True)
        self._over = True

    def _unsupervised(self) -> bool:
        """Whether the supervisor was killed rather than left its tree ended."""
        return not self._launch.namespace and self.popen.wait() < 0

    def _end_first(self) -> Iterator[float]:
        if self._launch.namespace:
            self.popen.kill()
        else:
            self.popen.terminate()  # the supervisor ends the tree and then itself
            self.popen.send_signal(signal.SIGCONT)
        try:
            yield from self._until(lambda: self.popen.poll() is not None)
        except InfrastructureError:  # the command keeps its supervisor from it
            supervise.end_descendants(self.popen.pid)
            self.popen.kill()
            yield from self._until(lambda: self.popen.poll() is not None)

    def _until(self, done: Callable[[], bool]) -> Iterator[float]:
        begin = time.monotonic()
        pause = 0.0002
        while not done():
            waited = time.monotonic() - begin
            if waited > PATIENCE:
                raise InfrastructureError(
                    f"a process of {self._launch.command[0]} cannot be ended; find it with `ps -ef`, and restart the machine"
                )
            if waited < 0.002:
                time.sleep(pause)  # most often it is a millisecond, and an event loop would make it several
            else:
                yield pause
                pause = min(pause * 2, 0.1)

    def _no_orphans(self) -> bool:
        """Kill what became our child. True when none of it is left."""
        variable = f"{supervise.MARK}={self._mark}".encode()
        # without their supervisor processes are found one by one, below others that are ending and show no environment any more
        for pid in (supervise.descendants if self._unsupervised() else supervise.children)(os.getpid()):
            if pid == self.popen.pid:
                continue
            environment = _environment(pid)
            leads = _leads_namespace(pid)
            # the leader of a namespace that is about to end shows no environment any more, and only an orphan can be our child
            if variable in environment or (leads and not environment):
                self._orphans.update([pid] if leads else [*supervise.descendants(pid), pid])
        supervise.kill(list(self._orphans))
        self._orphans = {pid for pid in self._orphans if not _gone(pid)}
        return not self._orphans


@functools.cache
def _adopt_orphans(pid: int) -> None:
    supervise.become_subreaper()  # once a process: one forked from this one is none


def _environment(pid: int) -> list[bytes]:
    """What a process was started with; nothing where it has ended or is about to."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        return []


def _leads_namespace(pid: int) -> bool:
    """Whether a process is the first of a pid namespace below ours: its end waits for the end of all in it."""
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            numbers = next((line.split()[1:] for line in file if line.startswith(b"NSpid:")), [])
    except OSError:
        return False
    return len(numbers) > 1 and numbers[-1] == b"1"


def _gone(pid: int) -> bool:
    """Whether a process has ended and been waited for, by us where it is our child."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return not os.path.exists(f"/proc/{pid}")
