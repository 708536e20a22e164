"""Handles interrupts: Ctrl-C, and in the same way SIGTERM and SIGHUP, which schedulers and closing terminals send.

During `run`, an interrupt cancels the work, so that it can clean up; elsewhere it raises KeyboardInterrupt. Further interrupts within
`IMPATIENCE` seconds are ignored, so that they cannot disturb the cleanup.
"""

from __future__ import annotations

import asyncio
import errno
import math
import os
import signal
import socket
import sys
import termios
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

T = TypeVar("T")

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
IMPATIENCE = 3.0
"""Seconds after an interrupt during which further ones are ignored."""
INTERRUPTED = 130
"""The exit status of a command that was interrupted."""
LEAVING = 5.0
"""Seconds that remaining asyncio tasks have to end when the work in an event loop is over."""
TWICE = 1.0
"""Seconds within which two SIGHUP count as one: a closing terminal and the shell in it each send one."""


class _State:
    """The state that determines what the next interrupt does."""

    def __init__(self) -> None:
        self.obeyed = self.hung_up = -math.inf
        """Times (of `time.monotonic`) of the last interrupt that was not ignored, and of the last SIGHUP."""
        self.closed: float | None = None
        """The time at which the process began to exit; None before."""
        self.cancel: Callable[[], None] | None = None
        """Cancels the work in progress; None outside `run`."""
        self.instead: Callable[[], object] | None = None
        """Called by the next interrupt instead of cancelling; None if it is to cancel."""


_state = _State()


def install() -> None:
    """Install the signal handlers. A signal that the process inherited as ignored, as from `nohup`, stays ignored."""
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _handle)
    sys.unraisablehook = _unraisable


def close() -> None:
    """Ignore interrupts while the process exits. An interrupt after more than `IMPATIENCE` seconds ends it at once."""
    _state.closed = time.monotonic()


def run(work: Coroutine[object, None, T]) -> T:
    """Run a coroutine in a new event loop, as `asyncio.run` does, and return its result.

    Tasks that ignore for `LEAVING` seconds that they are cancelled at the end are left behind; `asyncio.run` would wait for them for ever.

    Raises:
        KeyboardInterrupt: an interrupt cancelled it, even if it returned or raised something else.
    """
    if threading.current_thread() is not threading.main_thread():
        return _run(work)
    interrupted = False

    async def whole() -> T:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None

        def cancel() -> None:
            nonlocal interrupted
            interrupted = True
            with suppress(RuntimeError):  # the loop may be closed already
                loop.call_soon_threadsafe(task.cancel)

        _state.cancel = cancel
        return await work

    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, _handle)
    try:
        result = _run(whole())
    except BaseException:
        if interrupted:
            raise KeyboardInterrupt from None
        raise
    finally:
        _state.cancel = None
        if before is signal.default_int_handler:
            signal.signal(signal.SIGINT, before)
    if interrupted:
        raise KeyboardInterrupt
    return result


@contextmanager
def first(act: Callable[[], None]) -> Iterator[None]:
    """Make the first interrupt call a function in the event loop instead of cancelling the work. Use it within `run`."""
    loop = asyncio.get_running_loop()
    _state.instead = lambda: loop.call_soon_threadsafe(act)
    try:
        yield
    finally:
        _state.instead = None


def _run(work: Coroutine[object, None, T]) -> T:
    loop = asyncio.new_event_loop()
    try:
        with _woken_by_signals(loop):
            try:
                return loop.run_until_complete(work)
            finally:
                loop.run_until_complete(_cancel_tasks())
                loop.run_until_complete(loop.shutdown_asyncgens())
                loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        loop.close()


@contextmanager
def _woken_by_signals(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Make a signal end an event loop's wait. Otherwise one that comes just before a wait is handled only after it, minutes later."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    reader, writer = socket.socketpair()
    with reader, writer:
        reader.setblocking(False)
        writer.setblocking(False)
        loop.add_reader(reader, reader.recv, 4096)
        before = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(before)
            loop.remove_reader(reader)


async def _cancel_tasks() -> None:
    """Cancel all other tasks, wait for them, and leave those behind that do not end."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    for _ in range(50):  # a process that gets no core for seconds loses one part of the time, and not all of it
        if tasks:
            tasks = (await asyncio.wait(tasks, timeout=LEAVING / 50))[1]
    if tasks:
        # The frame of a daemon thread keeps them from being freed: that would raise GeneratorExit in them, and wait for what they do then.
        threading.Thread(target=lambda _: threading.Event().wait(), args=(tasks,), daemon=True).start()


def _handle(number: int, frame: object) -> None:
    now = time.monotonic()
    if number == signal.SIGHUP:
        _leave_closed_terminal()
        if now - _state.hung_up < TWICE:
            return
        _state.hung_up = now
    if _state.closed is not None:
        if now - _state.closed > IMPATIENCE:
            os._exit(INTERRUPTED)
        return
    if _state.instead is not None:
        act, _state.instead = _state.instead, None
        act()
        return
    if now - _state.obeyed < IMPATIENCE:
        return
    _state.obeyed = now
    if _state.cancel is None:
        raise KeyboardInterrupt
    _state.cancel()


def _unraisable(error: sys.UnraisableHookArgs) -> None:
    """Interrupt again a moment later if Python could not raise KeyboardInterrupt, as in the finalizer of an object."""
    if isinstance(error.exc_value, KeyboardInterrupt):
        _state.obeyed = -math.inf
        threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGINT)).start()
    else:
        sys.__unraisablehook__(error)


def _leave_closed_terminal() -> None:
    """Redirect standard output and error to /dev/null if their terminal is gone, since writing to it is an error."""
    for descriptor in (1, 2):
        try:
            termios.tcgetattr(descriptor)
        except termios.error as error:
            if error.args[0] == errno.EIO:
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, descriptor)
                os.close(nowhere)
