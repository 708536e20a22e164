"""What a person sees while something is fetched: a bar on a terminal, a line elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.filesize import decimal
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from mlagentbench.tasks.transfer import Advance


class Display:
    """Where fetching is shown.

    Args:
        console: where to; None for nowhere.
    """

    def __init__(self, console: Console | None) -> None:
        self._console = console

    def say(self, text: str) -> None:
        """Print a line."""
        if self._console is not None:
            self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    @contextmanager
    def transfer(self, name: str) -> Iterator[Advance]:
        """Show one transfer."""
        if self._console is None:
            yield lambda have, total: None
            return
        if not self._console.is_terminal:
            arrived = 0

            def count(have: int, total: int | None) -> None:
                nonlocal arrived
                arrived = have

            self.say(f"{name}: downloading")
            yield count
            self.say(f"{name}: {decimal(arrived)}")
            return
        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
        with Progress(*columns, console=self._console, transient=True) as progress:
            bar = progress.add_task(name, total=None)
            yield lambda have, total: progress.update(bar, completed=have, total=total)

    @contextmanager
    def other(self, name: str) -> Iterator[bool]:
        """A transfer by a program that shows itself; whether it may."""
        if self._console is not None:
            self.say(f"{name}: downloading")
        yield self._console is not None and self._console.is_terminal
