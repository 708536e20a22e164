"""The command `mlab demo`."""

from __future__ import annotations

from pathlib import Path

import click

from mlagentbench.cli.options import log_directory_option
from mlagentbench.cli.run import carry_out, check_runs, print_results, status
from mlagentbench.errors import SandboxUnavailable
from mlagentbench.report.console import command_console, unbroken
from mlagentbench.runner.preflight import make_spec
from mlagentbench.sandbox import isolation
from mlagentbench.task.catalogue import find_task

TASK, AGENT, MODEL = "vectorization", "research", "scripted/demo"

OPENING = (
    f"The task [bold]{TASK}[/]: make a convolution layer in Python loops faster, with numpy. The [bold]{AGENT}[/] agent does it.\n"
    "[yellow]The model's replies are scripted[/]: they were written beforehand, so that no key is needed. Everything else is real: the "
    "scripts run in the sandbox, the edits are made, and the hidden grader times the layer on inputs of its own.\n"
)

CLOSING = (
    "source .venv/bin/activate",
    "pip install openai",
    "export OPENAI_API_KEY=...",
    f"mlab run {TASK} --agent {AGENT} --model openai/gpt-4o --runs 8",
)


@click.command()
@log_directory_option
def demo(log_directory: Path) -> int:
    """Run a real task end to end, without a key or network.

    The model's replies are scripted; all else is real.
    """
    console = command_console()
    console.print(OPENING)
    try:
        sandbox = isolation.choose("auto").isolation
    except SandboxUnavailable as error:
        console.print(f"{error}\nThe demo goes on without one, since its scripts are our own.", style="yellow", markup=False)
        sandbox = "none"
    spec = make_spec(find_task(TASK), {"agent": AGENT, "models": {"agent": MODEL}, "variant": "mini", "sandbox": sandbox})
    evaluation, directories = carry_out(check_runs([spec], log_directory, console), console)
    print_results(console, directories, evaluation)
    console.print("\nWith a real model, for example:")
    unbroken(console, *(("", command) for command in CLOSING))
    return status(directories, evaluation)
