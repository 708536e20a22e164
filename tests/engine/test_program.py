"""An agent that an `agent.toml` describes runs in a sandbox of its own, through the real command, against a scripted model."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine.test_bridged import AGENT, SUBMIT, World, shell
from tests.sandbox.processes import available

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif("bubblewrap" not in available(), reason="needs bubblewrap"),
    pytest.mark.usefixtures("providers"),
]

DEFINITION = """\
about = "Mine."
command = ["python", "/opt/mine/main.py"]
start = ["{greeting}", "{steps}"]
resume = ["again"]
[environment]
LONGEST = "{script_seconds}000"
[home]
MINE_STATE = ".mine"
[options.greeting]
default = "hello"
meaning = "its first word"
"""


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "agent.toml").write_text(DEFINITION)
    (tmp_path / "mine" / "main.py").write_text(AGENT.read_text())
    return made


def test_it_is_started_as_its_file_says_and_its_files_are_read_only(world: World) -> None:
    look = shell("tr '\\0' ' ' < /proc/$PPID/cmdline; echo; ls -d $MINE_STATE; echo $LONGEST; touch /opt/mine/x; ls /opt/mine")
    ended = world.run([look, shell(SUBMIT), "It is done."], "-A", "greeting=Good day", "--steps", "7", agent=str(world.folder / "mine"))
    assert (ended["verdict"], ended["agent"], ended["steps"]) == ("success", str(world.folder / "mine"), 3)
    seen = world.last.steps()[0].observation
    assert "main.py Good day 7" in seen and "/home/agent/.mine" in seen and "Read-only file system" in seen and "agent.toml" in seen
    assert f"{round(world.last.info.spec.script_limits.seconds)}000" in seen
    assert world.last.info.agent_package is None and world.last.info.spec.agent_options == {"greeting": "Good day"}
