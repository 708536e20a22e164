"""Writes pages and charts of runs, and turns a failure to do so into one line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.text import Text

from mlagentbench.errors import MLAgentBenchError, ReportFailed
from mlagentbench.report.console import unbroken
from mlagentbench.report.formatting import visible
from mlagentbench.report.step_view import shown_path
from mlagentbench.results.load import Loaded, scan
from mlagentbench.rundir.directory import RunDirectory

OVERVIEW = "report.html"
"""The page of all runs of a log directory, written there by `mlab report`."""
PAGES = "pages"
"""The folder of a log directory that holds a page for each command that carried out runs, named by its first run."""


def write_page(loaded: Loaded, output: Path, compare: Sequence[str] = ()) -> Path:
    """Write the page of runs.

    Returns:
        `output`.

    Raises:
        UsageError: the file cannot be written.
        ReportFailed: the page cannot be made of these runs.
    """
    with drawing("the page"):
        # Imported here, since the charts' library takes a second to import, which neither --help nor a run should wait for.
        from mlagentbench.report.page import write_report

        return write_report(loaded, output, compare)


def print_own_page(console: Console, directories: Sequence[RunDirectory]) -> None:
    """Write the page of the runs that a command has carried out, and print its path, or one line that says why there is none."""
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
    """Raise ReportFailed for any unexpected error while a page or charts are made.

    Raises:
        ReportFailed: an error occurred that is not one of this package's own.
    """
    try:
        yield
    except MLAgentBenchError:
        raise
    except Exception as error:
        words = " ".join(str(error).split())[:300]
        raise ReportFailed(f"{what} could not be made: {type(error).__name__}: {words}; the runs are as they were") from error
