"""Show the progress of downloads: as bars on a terminal, as lines elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.filesize import decimal
from rich.markup import escape
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from mlagentbench.data.download.transfer import Advance

LARGE = 10_000_000
"""Bytes from which a file gets lines of its own where there is no terminal."""


class Display:
    """A display of the progress of downloads. Several threads may use it at once; without a console it prints nothing."""

    def __init__(self, console: Console | None) -> None:
        self._console = console
        self._lock = threading.Lock()
        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
        self._progress = Progress(*columns, console=console, transient=True)

    def say(self, text: str) -> None:
        """Print a line."""
        if self._console is not None:
            self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    @contextmanager
    def transfer(self, name: str, what: str = "downloading") -> Iterator[Advance]:
        """Show the progress of a download, or of other work measured in bytes, and yield the callback that reports it."""
        if self._console is None:
            yield lambda have, total: None
        elif self._console.is_terminal:
            with self._bar(f"{name}: {what}") as advance:
                yield advance
        else:
            arrived, announced = 0, False

            def count(have: int, total: int | None) -> None:
                nonlocal arrived, announced
                arrived = have
                if not announced and max(have, total or 0) >= LARGE:
                    announced = True
                    self.say(f"{name}: {what}" + (f" {decimal(total)}" if total else ""))

            yield count
            if announced:
                self.say(f"{name}: {decimal(arrived)}, done")

    @contextmanager
    def _bar(self, text: str) -> Iterator[Advance]:
        with self._lock:
            if not self._progress.tasks:
                self._progress.start()
            bar = self._progress.add_task(escape(text), total=None)
        try:
            yield lambda have, total: self._progress.update(bar, completed=have, total=total)
        finally:
            with self._lock:
                self._progress.remove_task(bar)
                if not self._progress.tasks:
                    self._progress.stop()
