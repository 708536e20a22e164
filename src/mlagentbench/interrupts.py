"""How a process is stopped: by Ctrl-C, and alike by SIGTERM and SIGHUP, which schedulers and terminals that close send.

In work that was begun by `run`, an interrupt cancels that work, which cleans up behind itself; elsewhere it raises KeyboardInterrupt. Those
that follow within `IMPATIENCE` seconds do nothing, so that they cannot break into the cleaning up.
"""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import sys
import termios
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

T = TypeVar("T")

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
IMPATIENCE = 3.0
"""Seconds for which an interrupt that is obeyed is not followed by another."""
INTERRUPTED = 130
"""The exit status of a command that was interrupted."""
TWICE = 1.0
"""Seconds within which two SIGHUP are one: a terminal that closes and the shell in it each send one."""


class _State:
    """What an interrupt does now."""

    def __init__(self) -> None:
        self.obeyed = self.hung_up = -IMPATIENCE
        """When an interrupt was obeyed, and when SIGHUP came, last."""
        self.closed: float | None = None
        """When the process began to end; None while it works."""
        self.cancel: Callable[[], None] | None = None
        """Cancels the work in progress; None outside of `run`."""
        self.instead: Callable[[], object] | None = None
        """What the next interrupt does in place of cancelling."""


_state = _State()


def install() -> None:
    """Have this process obey interrupts. One that was told to ignore a signal, as by `nohup`, goes on ignoring it."""
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _handle)
    sys.unraisablehook = _unraisable


def close() -> None:
    """Ignore interrupts from now on: the process ends. Where that takes longer than `IMPATIENCE`, the next one ends it at once."""
    _state.closed = time.monotonic()


def run(work: Coroutine[Any, Any, T]) -> T:
    """Do asynchronous work in an event loop of its own, as `asyncio.run` does.

    Raises:
        KeyboardInterrupt: an interrupt cancelled it, whatever it made of that.
    """
    if threading.current_thread() is not threading.main_thread():
        return asyncio.run(work)
    interrupted = False

    async def whole() -> T:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None

        def cancel() -> None:
            nonlocal interrupted
            interrupted = True
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(task.cancel)

        _state.cancel = cancel
        return await work

    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, _handle)
    try:
        result = asyncio.run(whole())
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
    """Have the first interrupt call a function, in the event loop, in place of cancelling the work. Use it in what `run` does."""
    loop = asyncio.get_running_loop()
    _state.instead = lambda: loop.call_soon_threadsafe(act)
    try:
        yield
    finally:
        _state.instead = None


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


def _unraisable(error: Any) -> None:
    """Interrupt again, a moment later, where Python could not raise the exception, such as in the removal of an object."""
    if isinstance(error.exc_value, KeyboardInterrupt):
        _state.obeyed = -IMPATIENCE
        threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGINT)).start()
    else:
        sys.__unraisablehook__(error)


def _leave_closed_terminal() -> None:
    """Write to nowhere what would be written to a terminal that is gone, which is an error."""
    for descriptor in (1, 2):
        try:
            termios.tcgetattr(descriptor)
        except termios.error as error:
            if error.args[0] == errno.EIO:
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, descriptor)
                os.close(nowhere)
