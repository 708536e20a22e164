"""The command `mlab`: it parses, calls, and prints.

Every error that this package raises on purpose is one line on standard error, and an exit status: 2 for what was asked wrongly, 3 for a
failure that is nobody's fault here, 130 for an interrupt. `--traceback` shows where it came from.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click

from mlagentbench.errors import MLAgentBenchError, UsageError

USAGE, FAILED, INTERRUPTED = 2, 3, 130

COMMANDS = {
    "baseline": "mlagentbench.cli.baseline:baseline",
    "cache": "mlagentbench.cli.cache:cache_group",
    "demo": "mlagentbench.cli.demo:demo",
    "doctor": "mlagentbench.cli.doctor:doctor",
    "prepare": "mlagentbench.cli.prepare:prepare_tasks",
    "grade": "mlagentbench.cli.grade:grade",
    "report": "mlagentbench.cli.report:report",
    "resume": "mlagentbench.cli.resume:resume",
    "run": "mlagentbench.cli.run:run",
    "show": "mlagentbench.cli.show:show",
    "tasks": "mlagentbench.cli.tasks:tasks",
    "view": "mlagentbench.cli.report:view",
}
"""Where each command is. One is imported when it is called, so that listing tasks does not wait for an engine it does not use."""


class LazyGroup(click.Group):
    """A group of commands some of which are imported when they are called.

    Args:
        lazy: where these are, as `module:attribute` by name.
    """

    def __init__(self, *arguments: Any, lazy: Mapping[str, str], **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._lazy = lazy

    def list_commands(self, context: click.Context) -> list[str]:
        """The names of all commands."""
        return [*super().list_commands(context), *self._lazy]

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """A command by name."""
        if name not in self._lazy:
            return super().get_command(context, name)
        module, _, attribute = self._lazy[name].partition(":")
        command = getattr(__import__(module, fromlist=[attribute]), attribute)
        assert isinstance(command, click.Command)
        return command


@click.group(cls=LazyGroup, lazy=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="mlagentbench", prog_name="mlab")
@click.option("--traceback", is_flag=True, help="Show where an error came from.")
def mlab(traceback: bool) -> None:
    r"""Benchmark language agents on machine-learning experiments.

    \b
    mlab demo            the whole loop on a real task, with no key and no network
    mlab tasks list      what there is to run
    mlab run --help      run an agent with a model of yours
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


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
        # The reader of our output has left, as `head` does.
        sys.stdout = None
        return 0
    except MLAgentBenchError as error:
        if "--traceback" in arguments:
            raise
        _complain(str(error))
        return USAGE if isinstance(error, UsageError) else FAILED


def _complain(message: str) -> None:
    click.echo(f"mlab: {' '.join(message.split())}", err=True)
