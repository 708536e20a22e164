"""The page that shows how to add a task: every command is run, every snippet is the template's, and every message comes."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from mlagentbench.task.new import TEMPLATE
from tests import commands

PAGE = Path(__file__).parents[2] / "docs" / "adding-a-task.md"


class Block(NamedTuple):
    language: str
    text: str


BLOCKS = [Block(*found) for found in re.findall(r"^```(\w+)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)]


def test_every_snippet_is_a_part_of_a_new_task() -> None:
    files = [path.read_text() for path in TEMPLATE.rglob("*") if path.suffix in (".py", ".toml", ".md")]
    snippets = [block for block in BLOCKS if block.language in ("python", "toml")]
    assert snippets
    for block in snippets:
        assert any(block.text in text for text in files), block.text


@pytest.mark.slow
def test_every_command_does_what_the_page_says(tmp_path: Path) -> None:
    environment = {**os.environ, "MLAB_CACHE": str(tmp_path / "cache")}
    output = ""
    tried = 0
    for block in BLOCKS:
        if block.language == "sh":
            for line in block.text.splitlines():
                program, *words = shlex.split(line, comments=True)
                run, command = (commands.run, commands.MLAB) if program == "mlab" else (subprocess.run, (program,))
                finished = run([*command, *words], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=900)
                output = finished.stdout + finished.stderr
                assert (finished.returncode != 0) is line.endswith("# fails"), f"{line}\n{output}"
                tried += 1
        if block.language == "text":
            for line in block.text.splitlines():
                assert line in output, output
    assert tried == 7
