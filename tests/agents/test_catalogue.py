"""The agents that are installed, and those of packages of somebody else's, sound or broken."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlagentbench import AgentError
from mlagentbench.agents.base import make_agent
from mlagentbench.agents.catalogue import describe_agent, list_agents
from mlagentbench.cli.main import run

SOUND = '''
raise_if_imported = 1 / 0

class Mine:
    """Does what I want.

    And more.
    """

    extra = "fancy"
'''


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of packages, installed."""
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in [name for name in sys.modules if "_package" in name]:
        del sys.modules[name]


def install(folder: Path, name: str, source: str | None) -> None:
    """Install a package that offers an agent of its name, whose module has some source, or is missing."""
    if source is not None:
        (folder / f"{name}_package").mkdir()
        (folder / f"{name}_package" / "__init__.py").write_text("raise RuntimeError('imported')" if name == "heavy" else "")
        (folder / f"{name}_package" / "agent.py").write_text(source)
    information = folder / f"{name}_package-2.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}-package\nVersion: 2.0\n")
    (information / "entry_points.txt").write_text(f"[mlagentbench.agents]\n{name} = {name}_package.agent:Mine\n")


def test_every_agent_is_listed_with_what_it_is_and_none_is_imported() -> None:
    found = {entry.name: entry for entry in list_agents()}
    assert len(found) >= 13 and all(entry.about and not entry.problem for entry in found.values())
    assert found["langchain"].extra == "langchain"
    assert found["react"].about.startswith("The paper's ReAct")
    code = "import sys; from mlagentbench.cli.main import run; run(['agents', 'list']); assert 'inspect_ai' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize("name", [entry.name for entry in list_agents() if entry.package.startswith("mlagentbench ")])
def test_every_option_says_what_it_means(name: str) -> None:
    entry, options = describe_agent(name)
    assert entry.file is not None and entry.file.is_file()
    assert options and [option.name for option in options if not option.meaning] == []


def test_options_have_the_defaults_of_the_agent_that_is_asked_for() -> None:
    defaults = {name: {option.name: option.default for option in describe_agent(name)[1]} for name in ("research", "act")}
    assert (defaults["research"]["context_steps"], defaults["act"]["entries"]) == (3, ())


def test_an_agent_of_a_file_is_shown_too(tmp_path: Path) -> None:
    file = tmp_path / "agent.py"
    file.write_text('class Mine:\n    """Acts.\n\n    Args:\n        rounds: how often,\n            all together.\n    """\n\n')
    file.write_text(file.read_text() + "    def __init__(self, rounds: int, seed: int = 1) -> None: ...\n")
    entry, (rounds, seed) = describe_agent(f"{file}:Mine")
    assert (entry.about, entry.file) == ("Acts.", file)
    assert (rounds.meaning, seed.default) == ("how often, all together.", 1)


def test_what_other_packages_offer_is_listed_without_importing_it(packages: Path) -> None:
    install(packages, "heavy", SOUND)
    install(packages, "torn", "class Mine:\n    def (self): ...\n")
    install(packages, "gone", None)
    found = {entry.name: entry for entry in list_agents()}
    assert (found["heavy"].about, found["heavy"].extra, found["heavy"].package) == ("Does what I want.", "fancy", "heavy-package 2.0")
    assert f"{packages / 'torn_package' / 'agent.py'}, line 2: invalid syntax" in found["torn"].problem
    assert found["gone"].problem == "there is no module gone_package.agent"


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import json\nimport no_such_thing\n", "ModuleNotFoundError: No module named 'no_such_thing' ({file}, line 2)"),
        ("class Mine:\n    def (self): ...\n", "SyntaxError: invalid syntax (agent.py, line 2) ({file}, line 2)"),
        ("class Other: ...\n", "AttributeError: module 'broken_package.agent' has no attribute 'Mine'"),
        (None, "ModuleNotFoundError: No module named 'broken_package'"),
    ],
)
def test_one_that_cannot_be_imported_is_a_line_with_its_place(
    packages: Path, capsys: pytest.CaptureFixture[str], source: str | None, said: str
) -> None:
    install(packages, "broken", source)
    with pytest.raises(AgentError) as raised:
        make_agent("broken")
    said = said.format(file=packages / "broken_package" / "agent.py")
    assert str(raised.value) == f"the agent 'broken' of the package broken-package cannot be imported: {said}"
    assert run(["agents", "show", "broken"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert run(["agents", "list"]) == 0 and "research" in capsys.readouterr().out
