"""The commands that README and docs show: each is there, with every option that it is given."""

from __future__ import annotations

import re
from pathlib import Path

import click

from mlagentbench.cli.main import mlab

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))


def commands(page: Path) -> list[str]:
    """The lines of a page's shell blocks that call `mlab`."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    return [line.split(" #")[0].strip() for block in blocks for line in block.replace("\\\n", " ").splitlines() if line.startswith("mlab ")]


def test_every_command_is_there_with_its_options() -> None:
    shown = [(page.name, line) for page in PAGES for line in commands(page)]
    assert len(shown) > 10
    for where, line in shown:
        command: click.Command | None = mlab
        words = line.split()[1:]
        while isinstance(command, click.Group) and words:
            command = command.get_command(click.Context(command), words.pop(0))
        assert command is not None, f"{where}: {line}"
        known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)} | {"--help"}
        for option in re.findall(r"(?<=\s)(--?[a-zA-Z][a-z-]*)", " " + " ".join(words)):
            assert option in known, f"{where}: {line}: no {option}"


def test_no_page_calls_a_command_by_a_path_that_only_a_clone_has() -> None:
    assert [page.name for page in PAGES if ".venv/bin/mlab" in page.read_text()] == []
    assert "source .venv/bin/activate" in PAGES[0].read_text()
