"""Shows the progress of runs: for one run, a line for each step and the present activity below them; for several, a table.

If the output is not a terminal, only plain lines are printed.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from rich.console import Console, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from mlagentbench.cli.output.run_table import MARKS, RunStatus, RunTable
from mlagentbench.environment import Listener
from mlagentbench.records import Result, Step
from mlagentbench.report.formatting import duration, tokens, visible
from mlagentbench.report.step_view import last_line
from mlagentbench.report.wording import headline
from mlagentbench.rundir.directory import RunDirectory
from mlagentbench.runner.preflight import ReadyRun

STATUS_STYLES: Mapping[str, str] = {"ok": "green", "error": "red"}
LAST_OUTPUT = 80
"""Characters of a script's last line of output that are shown."""


class ProgressDisplay:
    """A progress display for any number of runs. Use it as a context manager; unless `moving`, it prints plain lines."""

    def __init__(self, console: Console, runs: int, *, moving: bool = True) -> None:
        self.console = console
        self._runs = runs
        self._moving = moving and console.is_terminal and not console.is_dumb_terminal
        self._table = RunTable(runs) if runs > 1 and self._moving else None
        self._one: RunProgress | None = None
        # The console may be on standard error, where output that others print to standard output must not end up.
        own = not console.stderr
        self._live = Live(
            console=console,
            refresh_per_second=8 if runs == 1 else 4,
            transient=True,
            get_renderable=self._render,
            redirect_stdout=own,
            redirect_stderr=not own,
        )

    def __enter__(self) -> ProgressDisplay:
        """Start the display."""
        if self._moving:
            self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        """Stop the display. Printed steps stay on the screen."""
        self._live.stop()

    def listen(self, ready: ReadyRun, number: int) -> Listener:
        """Return the listener of one run."""
        if self._table is not None:
            return self._table.start(ready, number)
        name = f"{ready.task.id} {number}" if self._runs > 1 else ""
        self._one = RunProgress(self.console, name, ready.spec.limits.steps)
        return self._one

    def done(self, ready: ReadyRun, number: int, result: Result) -> None:
        """Show the result of a run that is over."""
        self._one = None
        if self._table is not None:
            self._table.end(ready, number, result)
        elif self._runs > 1:
            info = RunDirectory(ready.log_directory / result.run).info
            self.console.print(Text.assemble((f"{ready.task.id} {number}  ", "bold"), headline(info, result)))

    def stopping(self) -> None:
        """Say that the first interrupt came and what it does."""
        self.console.print("Stopping: each run is graded as it stands. Interrupt again to stop at once.", style="yellow")

    def _render(self) -> RenderableType:
        one = self._one  # read once, since another thread may set it to None
        return self._table or (one.now() if one else Text())


class RunProgress(RunStatus):
    """Prints the steps of one run."""

    def __init__(self, console: Console, name: str, steps: int) -> None:
        super().__init__()
        self._console = console
        self._name = name
        self._steps = steps
        self._spinner = Spinner("dots", style="cyan")

    def on_step(self, step: Step) -> None:
        """Print the line of a step that is done."""
        super().on_step(step)
        style = STATUS_STYLES.get(step.status, "yellow")
        subject = next((str(value) for value in step.action.arguments.values()), "") if step.action.name != "Final Answer" else ""
        name = (f"{self._name}  " if self._name else "", "bold")
        what = ((f"{step.number:>4} ", "dim"), (MARKS.get(step.status, "!") + " ", style), (f"{step.action.name:<21}", "bold"))
        about = (f"{visible(subject).splitlines()[0] if subject.strip() else '':<18.18}", "")
        took, used = (f"{duration(step.seconds):>10}", "cyan"), (f"{tokens(step.usage.tokens):>9} tokens", "dim")
        # On a narrow terminal a column that does not fit is left out whole rather than cut.
        lines = [Text.assemble(name, *what, *rest) for rest in ((about, took, used), (about, took), (took,))]
        fitting = next((line for line in lines if line.cell_len <= self._console.width), lines[-1])
        self._console.print(fitting, overflow="ellipsis", no_wrap=True)
        if line := last_line(step):
            self._console.print(Text(f"       {line}", style=style if step.status != "ok" else "dim"), overflow="ellipsis", no_wrap=True)

    def now(self) -> RenderableType:
        """Return a line that says what is being done now, and for how long."""
        elapsed = duration(time.monotonic() - self.since)
        where = f"{self._name}  " if self._name else ""
        text = Text.assemble(
            (where, "bold"),
            f"step {self.step_count + 1} of at most {self._steps}: {self.doing} ",
            (elapsed, "cyan"),
            (f"  {self.output[-LAST_OUTPUT:]}", "dim"),
        )
        text.no_wrap, text.overflow = True, "ellipsis"
        self._spinner.update(text=text)
        return self._spinner
