"""Start a command in a sandbox, stream its output, enforce its limits, and kill all its processes at the end.

Scripts of agents go through `run`; a grader that exchanges data with the agent's code over pipes uses `start`.

Call both on a thread that outlives the command, in an asyncio program on the main thread: the kernel kills a command when the thread that
started it ends (PR_SET_PDEATHSIG).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import IO, BinaryIO, Self, cast

from mlagentbench.sandbox.base import EndReason, Execution, Sandbox, SandboxSpec
from mlagentbench.sandbox.linux.process_tree import ProcessTree
from mlagentbench.sandbox.output import Transcript

GRACE = 1.0
"""Seconds between SIGTERM and SIGKILL for a command at its time limit."""
ENDING = 10.0
"""Seconds that a command's supervisor may take to end when it has closed its output."""
TICK = 0.2
"""Seconds between two checks of a running command's limits."""
FLOOD = 1 << 30
"""Bytes of output after which a command is ended. Up to there output is read and discarded, but for its head and tail."""
CHUNK = 1 << 18
STDERR_KB = 64
"""KB of a piped command's standard error that are stored."""


async def run(
    sandbox: Sandbox, command: tuple[str, ...], spec: SandboxSpec, on_output: Callable[[str], None] | None = None, *, groups: bool = True
) -> Execution:
    """Run a command to its end or its limits.

    Args:
        sandbox: where to run it.
        command: its words; `python` as the first is the interpreter `spec.python`.
        spec: what it may see and use.
        on_output: called with the output while it comes, safe for a terminal. Parts are left out where the command prints too fast.
        groups: use control groups where they can be made; False enforces the limits as on a machine without them.

    Raises:
        SandboxUnavailable: this machine cannot provide what `spec` asks for.
        ActionError: no machine can start the command, for example because it is too long.
        InfrastructureError: a process that it started could not be killed.
    """
    started = time.monotonic()
    tree = ProcessTree(sandbox.launch(command, spec), spec, piped=False, groups=groups)
    transcript = Transcript(spec.limits.output_kb << 10)
    output = cast(IO[bytes], tree.popen.stdout)
    os.set_blocking(output.fileno(), False)
    pump = _Pump(output.fileno(), transcript, on_output or (lambda text: None))
    try:
        reason = await _follow(tree, pump, started + spec.limits.seconds)
        if reason == "time":
            tree.signal_members(signal.SIGTERM)  # the command may save or print something before it is killed
            await _follow(tree, pump, time.monotonic() + GRACE)
    finally:
        try:
            await _end(tree)
            pump.drain()
        finally:
            output.close()
    pump.show(transcript.finish())
    return Execution(
        output=transcript.text(),
        exit_code=tree.exit_code,
        reason=reason or tree.verdict(transcript.text()),
        seconds=time.monotonic() - started,
        output_bytes=transcript.total,
    )


def start(
    sandbox: Sandbox,
    command: tuple[str, ...],
    spec: SandboxSpec,
    *,
    groups: bool = True,
    passed: Sequence[int] = (),
    spare: bool = False,
) -> SandboxProcess:
    """Start a command with pipes for its standard streams. Use the result as a context manager: on exit all its processes are killed.

    Args:
        sandbox: where to run it.
        command: its words; `python` as the first is the interpreter `spec.python`.
        spec: what it may see and use.
        groups: use control groups where they can be made.
        passed: descriptors that the command inherits, with the same numbers; other than 0 to 2, and 9.
        spare: at the memory limit, kill only the largest process.

    Raises:
        SandboxUnavailable: this machine cannot provide what `spec` asks for.
        ActionError: no machine can start the command, for example because it is too long.
    """
    return SandboxProcess(ProcessTree(sandbox.launch(command, spec), spec, piped=True, groups=groups, passed=passed), spec, spare)


class SandboxProcess:
    """A running command and its pipes. A thread enforces its limits: at a limit the command is killed, so that its pipes close."""

    def __init__(self, tree: ProcessTree, spec: SandboxSpec, spare: bool = False) -> None:
        self._tree = tree
        self._check = tree.watch.spare if spare else tree.watch.check
        self._spec = spec
        self._errors = Transcript(STDERR_KB << 10)
        self._time_left = spec.limits.seconds
        self._since: float | None = time.monotonic()
        """When the time left began to count, by the monotonic clock; None while frozen."""
        self._closed = threading.Event()
        self.reason: EndReason | None = None
        """Why it ended; None while it runs."""
        self.stdin: BinaryIO = cast(BinaryIO, tree.popen.stdin)
        self.stdout: BinaryIO = cast(BinaryIO, tree.popen.stdout)
        self._thread = threading.Thread(target=self._supervise, name=f"sandbox-{self.pid}", daemon=True)
        self._thread.start()

    @property
    def pid(self) -> int:
        """The first process's id on the host."""
        return self._tree.popen.pid

    @property
    def running(self) -> bool:
        """Whether the first process has not ended."""
        return self._tree.popen.poll() is None

    @property
    def exit_code(self) -> int | None:
        """As in a shell: 128 + the signal for a killed process; None while it runs."""
        return None if self.running else self._tree.exit_code

    def wait(self, seconds: float) -> int | None:
        """Wait for the first process to end. Returns its exit code, or None if it still runs after `seconds`."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._tree.popen.wait(seconds)
        return self.exit_code

    def stderr_tail(self) -> str:
        """Return its standard error so far, safe for a terminal; only head and tail of more than 64 KB."""
        return self._errors.text()

    def freeze(self) -> None:
        """Pause all its processes (SIGSTOP); the time until `thaw` does not count against its limit."""
        # In this order: the thread may look in between, and would count the same time twice.
        left, self._since = self._left(), None
        self._time_left = left
        self._tree.signal_members(signal.SIGSTOP)

    def renew(self) -> None:
        """Give it all the time of its limit anew; call it while it is frozen."""
        self._time_left = self._spec.limits.seconds

    def thaw(self) -> None:
        """Continue its processes after `freeze`."""
        self._tree.signal_members(signal.SIGCONT)
        self._since = time.monotonic()

    def kill(self) -> None:
        """Kill all its processes. What was written to its pipes before can still be read."""
        if self.reason is None and self._hung_up():
            self.wait(ENDING)  # its supervisor is exiting too, and its exit code decides `reason`
        self._tree.end()
        self.reason = self.reason or self._tree.verdict(self._errors.text())

    def close(self) -> None:
        """Kill all its processes and close the pipes."""
        try:
            self.kill()
        finally:
            self._closed.set()
            self._thread.join()
            for pipe in (self.stdin, self.stdout):
                with contextlib.suppress(BrokenPipeError):  # input that was not yet flushed has no reader any more
                    pipe.close()

    def _hung_up(self) -> bool:
        """Return whether every process that could write to its standard output has closed it."""
        if self.stdout.closed:
            return False
        poll = select.poll()
        poll.register(self.stdout, 0)
        return bool(poll.poll(0))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    def _supervise(self) -> None:
        errors = cast(IO[bytes], self._tree.popen.stderr)
        os.set_blocking(errors.fileno(), False)
        pump = _Pump(errors.fileno(), self._errors, lambda text: None)
        try:
            while self.running and not self._closed.is_set():
                pump.drain()
                pump.wait(5 * TICK if self._since is None else max(min(TICK, self._left()), 0.0), self._closed)
                reason = None if self._since is None else self._broken_limit()
                if reason is not None:
                    self.reason = reason
                    self._tree.end()
            pump.drain()
            self._tree.end()
            pump.drain()
            self.reason = self.reason or self._tree.verdict(self._errors.text())
        finally:
            errors.close()

    def _left(self) -> float:
        since = self._since
        return self._time_left if since is None else self._time_left - (time.monotonic() - since)

    def _broken_limit(self) -> EndReason | None:
        if self._left() <= 0:
            return "time"
        if self._errors.total > FLOOD:
            return "output"
        disk = self._tree.watch.disk
        return self._check() or ("disk" if disk.due() and disk.broken() else None)


class _Pump:
    """Reads a pipe without blocking."""

    def __init__(self, pipe: int, transcript: Transcript, show: Callable[[str], None]) -> None:
        self._pipe = pipe
        self._transcript = transcript
        self._show = show
        self._open = True
        self._loop: asyncio.AbstractEventLoop | None = None

    def attach(self, wake: Callable[[], None]) -> None:
        """Call `wake` in the running event loop whenever there is something to read."""
        if self._open:
            self._loop = asyncio.get_running_loop()
            self._loop.add_reader(self._pipe, wake)

    def detach(self) -> None:
        """Stop calling `wake`."""
        if self._loop is not None:
            self._loop.remove_reader(self._pipe)
            self._loop = None

    def drain(self, most: int = 1 << 24) -> None:
        """Read what the pipe holds now, about `most` bytes at most."""
        while self._open and most > 0:
            try:
                data = os.read(self._pipe, CHUNK)
            except BlockingIOError:
                return
            most -= len(data)
            if not data:
                self.detach()
                self._open = False
            self.show(self._transcript.feed(data))

    def wait(self, seconds: float, closed: threading.Event) -> None:
        """Wait until there is something to read, or `seconds` have passed, or, where the pipe has ended, `closed` is set."""
        if self._open:
            # Not select.select, which knows no descriptor above 1,023.
            poll = select.poll()
            poll.register(self._pipe, select.POLLIN)
            poll.poll(seconds * 1000)
        else:
            closed.wait(seconds)

    def show(self, text: str) -> None:
        """Pass text on unless it is empty."""
        if text:
            self._show(text)

    @property
    def total(self) -> int:
        """Bytes read so far."""
        return self._transcript.total


async def _end(tree: ProcessTree) -> None:
    try:
        for pause in tree.ending():
            await asyncio.sleep(pause)
    except asyncio.CancelledError:  # cancelled while the processes are being killed: finish that without yielding to the event loop
        tree.end()
        raise


async def _follow(tree: ProcessTree, pump: _Pump, deadline: float) -> EndReason | None:
    """Read a command's output until the command ends, or a limit is reached. Returns the limit, or None where the command ended."""
    loop = asyncio.get_running_loop()
    wake = asyncio.Event()
    end = _end_descriptor(tree.popen.pid)
    if end is not None:
        loop.add_reader(end, wake.set)
    pump.attach(wake.set)
    next_check = time.monotonic() + TICK
    try:
        while tree.popen.poll() is None:
            now = time.monotonic()
            if now >= deadline:
                return "time"
            if pump.total > FLOOD:
                return "output"
            if now >= next_check:
                reason = tree.watch.check()
                if reason is None and tree.watch.disk.due() and await asyncio.to_thread(tree.watch.disk.broken):
                    reason = "disk"
                if reason is not None:
                    return reason
                next_check = time.monotonic() + TICK
            timer = loop.call_later(max(min(deadline, next_check) - now, 0.0), wake.set)
            try:
                await wake.wait()
            finally:
                timer.cancel()
            wake.clear()
            pump.drain(1 << 20)
        return None
    finally:
        pump.detach()
        if end is not None:
            loop.remove_reader(end)
            os.close(end)


def _end_descriptor(pid: int) -> int | None:
    """Open a descriptor that becomes readable when a child process ends. None where the kernel has none: the next check then sees it."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None
