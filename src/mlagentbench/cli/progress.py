"""What a person sees while runs go on: of one run a line a step, and below them what is being done now; of several a table.

Where the output is no terminal, both are plain lines.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from rich.console import Console, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from mlagentbench.cli.table import MARKS, RunTable
from mlagentbench.environment import Listener
from mlagentbench.records import Result, Step
from mlagentbench.report.text import duration, tokens, visible
from mlagentbench.report.words import headline
from mlagentbench.run.preflight import ReadyRun
from mlagentbench.store.run_directory import RunDirectory

STATUS_STYLES: Mapping[str, str] = {"ok": "green", "error": "red"}
LAST_OUTPUT = 80
"""Characters of a script's newest line that are shown."""


class Progress:
    """A display of any number of runs. Use it as a context.

    Args:
        console: where to.
        runs: how many there will be.
        moving: False for plain lines on a terminal too.
    """

    def __init__(self, console: Console, runs: int, *, moving: bool = True) -> None:
        self.console = console
        self._runs = runs
        self._moving = moving and console.is_terminal and not console.is_dumb_terminal
        self._table = RunTable(runs) if runs > 1 and self._moving else None
        self._one: RunProgress | None = None
        # What is printed on standard output meanwhile must not end up on standard error, where a console may be.
        own = not console.stderr
        self._live = Live(
            console=console,
            refresh_per_second=8 if runs == 1 else 4,
            transient=True,
            get_renderable=self._render,
            redirect_stdout=own,
            redirect_stderr=not own,
        )

    def __enter__(self) -> Progress:
        """Start to display."""
        if self._moving:
            self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        """Leave the steps on the screen, and take the rest away."""
        self._live.stop()

    def listen(self, ready: ReadyRun, number: int) -> Listener:
        """The listener of one run."""
        if self._table is not None:
            return self._table.start(ready, number)
        name = f"{ready.task.id} {number}" if self._runs > 1 else ""
        self._one = RunProgress(self.console, name, ready.spec.limits.steps)
        return self._one

    def done(self, ready: ReadyRun, number: int, result: Result) -> None:
        """A run is over."""
        self._one = None
        if self._table is not None:
            self._table.end(ready, number, result)
        elif self._runs > 1:
            info = RunDirectory(ready.log_directory / result.run).info
            self.console.print(Text.assemble((f"{ready.task.id} {number}  ", "bold"), headline(info, result)))

    def stopping(self) -> None:
        """The first interrupt has come."""
        self.console.print("Stopping: each run is graded as it stands. Interrupt again to stop at once.", style="yellow")

    def _render(self) -> RenderableType:
        one = self._one  # another thread may take it away
        return self._table or (one.now() if one else Text())


class RunProgress:
    """The listener of one run."""

    def __init__(self, console: Console, name: str, steps: int) -> None:
        self._console = console
        self._name = name
        self._steps = steps
        self._count = 0
        self._activity = "starting"
        self._since = time.monotonic()
        self._output = ""
        self._spinner = Spinner("dots", style="cyan")

    def activity(self, text: str) -> None:
        """What is being done now."""
        self._activity, self._since, self._output = visible(text), time.monotonic(), ""

    def output(self, text: str) -> None:
        """The newest line of a script's output."""
        lines = (self._output + text).rstrip("\n").rsplit("\n", 1)
        self._output = visible(lines[-1])[-LAST_OUTPUT:]

    def step(self, step: Step) -> None:
        """A line for a step that is done."""
        self._count = step.number
        style = STATUS_STYLES.get(step.status, "yellow")
        subject = next((str(value) for value in step.action.arguments.values()), "") if step.action.name != "Final Answer" else ""
        name = (f"{self._name}  " if self._name else "", "bold")
        what = ((f"{step.number:>4} ", "dim"), (MARKS.get(step.status, "!") + " ", style), (f"{step.action.name:<21}", "bold"))
        about = (f"{visible(subject).splitlines()[0] if subject.strip() else '':<18.18}", "")
        took, used = (f"{duration(step.seconds):>10}", "cyan"), (f"{tokens(step.usage.tokens):>9} tokens", "dim")
        # What a narrow terminal has no room for is left out whole, rather than cut.
        lines = [Text.assemble(name, *what, *rest) for rest in ((about, took, used), (about, took), (took,))]
        line = next((line for line in lines if line.cell_len <= self._console.width), lines[-1])
        self._console.print(line, overflow="ellipsis", no_wrap=True)
        if told := _told(step):
            self._console.print(Text(f"       {told}", style=style if step.status != "ok" else "dim"), overflow="ellipsis", no_wrap=True)

    def now(self) -> RenderableType:
        """What is being done now, with the time it has taken."""
        elapsed = duration(time.monotonic() - self._since)
        where = f"{self._name}  " if self._name else ""
        text = Text.assemble(
            (where, "bold"),
            f"step {self._count + 1} of at most {self._steps}: {self._activity} ",
            (elapsed, "cyan"),
            (f"  {self._output}", "dim"),
        )
        text.no_wrap, text.overflow = True, "ellipsis"
        self._spinner.update(text=text)
        return self._spinner


def _told(step: Step) -> str:
    """The line of an observation that says most in a glance: a script's or an error's last, else nothing."""
    lines = [line for line in visible(step.observation).splitlines() if line.strip()]
    return lines[-1].strip() if lines and (step.action.name == "Execute Script" or step.status != "ok") else ""
