"""Pages and pictures of runs: where they lie, and how a fault in making them is told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.text import Text

from mlagentbench.errors import MLAgentBenchError, ReportFailed
from mlagentbench.report.layout import unbroken
from mlagentbench.report.step_view import shown_path
from mlagentbench.report.text import visible
from mlagentbench.results.load import Loaded, scan
from mlagentbench.store.run_directory import RunDirectory

OVERVIEW = "report.html"
"""The page of all runs of a log directory, which `mlab report` writes there."""
PAGES = "pages"
"""The folder of a log directory with a page for each command that carried out runs, named by the first of them."""


def write_page(loaded: Loaded, output: Path) -> Path:
    """Write the page of runs.

    Returns:
        `output`.

    Raises:
        UsageError: the file cannot be written.
        ReportFailed: the page cannot be made of these runs.
    """
    with drawing("the page"):
        # Imported here, since its charts take a second, which neither --help nor a run should wait for.
        from mlagentbench.report.page import write_report

        return write_report(loaded, output)


def print_own_page(console: Console, directories: Sequence[RunDirectory]) -> None:
    """Write the page of the runs that a command has carried out, and say where it is, or in a line why there is none."""
    first = directories[0]
    logs = first.path.parent
    try:
        with drawing("the page"):
            loaded = scan(logs, only=directories)
        page = write_page(loaded, logs / PAGES / f"{first.name}.html")
    except MLAgentBenchError as error:
        console.print(Text(f"No page of the runs was written: {visible(str(error))}", style="red"), soft_wrap=True)
    else:
        unbroken(console, ("page       ", str(shown_path(page))))


@contextmanager
def drawing(what: str) -> Iterator[None]:
    """Turn whatever fails in making a page or pictures into one line.

    Raises:
        ReportFailed: something failed that no other error of this package tells of.
    """
    try:
        yield
    except MLAgentBenchError:
        raise
    except Exception as error:
        words = " ".join(str(error).split())[:300]
        raise ReportFailed(f"{what} could not be made: {type(error).__name__}: {words}; the runs are as they were") from error
