"""The command `mlab doctor`."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import click
from rich.table import Table

from mlagentbench.data.cache import cache_directory
from mlagentbench.report.console import command_console, unbroken
from mlagentbench.report.formatting import size
from mlagentbench.sandbox import isolation
from mlagentbench.util.machine import hardware, versions

KEYS = (
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "GOOGLE_API_KEY",
    "MISTRAL_API_KEY",
    "OPENROUTER_API_KEY",
    "TOGETHER_API_KEY",
    "HF_TOKEN",
    "KAGGLE_API_TOKEN",
    "KAGGLE_KEY",
)
"""Environment variables that are reported as set or not, never with their values."""


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def doctor(as_json: bool) -> None:
    """Show what this machine provides: isolation, GPUs, disk, keys.

    Keys are listed by name if they are set; their values are never shown.
    """
    capabilities = isolation.probe()
    keys = [name for name in KEYS if os.environ.get(name)]
    free = shutil.disk_usage(Path.cwd()).free
    facts = {
        "isolation": [
            {"name": found.name, "available": found.available, "detail": found.detail, "how_to_get": found.how_to_get}
            for found in capabilities
        ],
        "hardware": dict(hardware()),
        "versions": dict(versions()),
        "disk_free": free,
        "cache": str(cache_directory()),
        "keys": keys,
    }
    if as_json:
        click.echo(json.dumps(facts, indent=1))
        return
    table = Table.grid(padding=(0, 2))
    for found in capabilities:
        table.add_row("[green]✓[/]" if found.available else "[red]✗[/]", found.name, found.detail if found.available else found.how_to_get)
    console = command_console()
    console.print(table)
    rows = Table.grid(padding=(0, 2))
    rows.add_column(style="dim")
    machine = hardware()
    gpus = machine["gpus"]
    rows.add_row("machine", f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gb']} GB, {machine['system']}")
    rows.add_row("GPUs", ", ".join(map(str, gpus)) if isinstance(gpus, list) and gpus else "none found")
    rows.add_row("disk", f"{size(free)} free here")
    rows.add_row("keys", ", ".join(keys) or "none set; a model of a provider needs one, such as OPENAI_API_KEY")
    rows.add_row("versions", ", ".join(f"{name} {number}" for name, number in versions().items()))
    console.print()
    console.print(rows)
    unbroken(console, ("cache   ", str(cache_directory())))
