"""The command `mlab`, its list of subcommands, and its exit statuses.

Every error that this package raises on purpose becomes one line on standard error and an exit status: 2 for a usage error, 3 for any other
failure, 130 for an interrupt. `--traceback` shows where the error came from.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

import click

from mlagentbench.cli.lazy import LazyCommand, LazyGroup
from mlagentbench.errors import MLAgentBenchError, UsageError
from mlagentbench.util import interrupts

USAGE, FAILED = 2, 3
INTERRUPTED = interrupts.INTERRUPTED

COMMANDS: Mapping[str, Mapping[str, LazyCommand]] = {
    "Runs": {
        "demo": LazyCommand("mlagentbench.cli.demo:demo", "Run a real task end to end, without a key or network."),
        "run": LazyCommand("mlagentbench.cli.run:run", "Run an agent on tasks, and grade what it leaves."),
        "experiment": LazyCommand(
            "mlagentbench.cli.experiment:experiment", "Run a matrix of tasks, agents and models, here or on a cluster."
        ),
        "resume": LazyCommand("mlagentbench.cli.resume:resume", "Continue a run, or fork a new one from a step."),
    },
    "Results": {
        "show": LazyCommand("mlagentbench.cli.show:show", "Show a run, or one step of it."),
        "report": LazyCommand("mlagentbench.cli.report:report", "Compare runs: tables here, and pages to open in a browser."),
        "view": LazyCommand("mlagentbench.cli.report:view", "Open Inspect's viewer on a log directory."),
        "audit": LazyCommand("mlagentbench.cli.audit:audit", "Check what agents said against what they had seen, and say how runs failed."),
        "grade": LazyCommand("mlagentbench.cli.grade:grade", "Grade finished runs again, from their snapshots."),
        "verify": LazyCommand(
            "mlagentbench.cli.verify:verify_runs",
            "Check that the files of runs are what they were, and that their submissions still have their scores.",
        ),
        "import": LazyCommand("mlagentbench.cli.import_logs:import_runs", "Import logs of the original MLAgentBench."),
    },
    "Agents": {
        "agents": LazyCommand(
            "mlagentbench.cli.agents:agents", "List and describe agents; install and remove those that are programs of their own."
        ),
    },
    "Tasks": {
        "tasks": LazyCommand("mlagentbench.cli.tasks.group:tasks", "List, describe, check and create tasks."),
        "prepare": LazyCommand("mlagentbench.cli.prepare:prepare_tasks", "Prepare the data of tasks before a run."),
        "cache": LazyCommand("mlagentbench.cli.cache:cache_group", "List and clear what was prepared and downloaded."),
        "baseline": LazyCommand("mlagentbench.cli.baseline:baseline", "Measure the starter's own score and its spread."),
    },
    "This machine": {
        "doctor": LazyCommand("mlagentbench.cli.doctor:doctor", "Show what this machine provides: isolation, GPUs, disk, keys."),
    },
}


@click.group(cls=LazyGroup, lazy=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="mlagentbench", prog_name="mlab")
@click.option("--traceback", is_flag=True, help="Show where an error came from.")
def mlab(traceback: bool) -> None:
    """Benchmark language agents on machine-learning experiments.

    Start with mlab demo. Every command explains its options with --help.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line, and exit with its status."""
    interrupts.install()
    try:
        status = run(sys.argv[1:] if arguments is None else arguments)
    finally:
        interrupts.close()
    sys.exit(status)


def run(arguments: Sequence[str]) -> int:
    """Run the command line.

    Returns:
        The exit status.
    """
    try:
        status = mlab.main(list(arguments), prog_name="mlab", standalone_mode=False)
        return status if isinstance(status, int) else 0
    except click.exceptions.Exit as exit:
        return exit.exit_code
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else "mlab"
        _complain(f"{error.format_message()} See: {command} --help")
        return USAGE
    except click.ClickException as error:
        _complain(error.format_message())
        return USAGE
    except (click.Abort, KeyboardInterrupt):
        _complain("interrupted; every finished step is kept")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of the output has closed it, as `head` does.
        sys.stdout = None
        return 0
    except MLAgentBenchError as error:
        if "--traceback" in arguments:
            raise
        _complain(str(error))
        return USAGE if isinstance(error, UsageError) else FAILED


def _complain(message: str) -> None:
    click.echo(f"mlab: {' '.join(message.split())}", err=True)
