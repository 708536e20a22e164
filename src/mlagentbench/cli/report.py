"""`mlab report` and `mlab view`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from mlagentbench.report.page import write_report
from mlagentbench.store.run_directory import find_runs

logs_argument = click.argument("logs", type=click.Path(path_type=Path, exists=True, file_okay=False), default=Path("runs"))


@click.command()
@logs_argument
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="The page's file; by default report.html in LOGS.")
def report(logs: Path, output: Path | None) -> None:
    """Write the report of runs as one page."""
    click.echo(write_report(logs, output or logs / "report.html"))


@click.command()
@logs_argument
@click.option(
    "--port", default=7575, show_default=True, type=click.IntRange(1, 65535), help="Where the viewer listens, on this machine only."
)
def view(logs: Path, port: int) -> None:
    """Open Inspect's viewer on a log directory."""
    find_runs(logs)
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "inspect_ai", "view", "start", "--log-dir", str(logs), "--port", str(port)])
