"""An `agent.toml` describes an agent, and whatever is wrong with one is said with its file and key."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlagentbench.agents.base import find_agent, make_agent
from mlagentbench.agents.catalogue import describe_agent, list_agents
from mlagentbench.agents.programs.definition import GIVEN, AgentDefinition, Package, built_in, filled, find_program, read_program
from mlagentbench.errors import AgentError

SOUND = 'about = "Mine."\ncommand = ["python", "/opt/mine/main.py", "{task}"]\n'


def folder_with(folder: Path, text: str) -> Path:
    (folder / "mine").mkdir()
    (folder / "mine" / "agent.toml").write_text(text)
    return folder / "mine"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (SOUND + "comand = []", "unknown key 'comand'; the keys are: about, command, "),
        (SOUND + '[package]\nregistry = "npm"\nname = "a"\nversion = "1"\nchecksum = "b"', "unknown key 'package.checksum'"),
        (SOUND + "[options.depth]\ndefault = 3\nmeans = 1", "unknown key 'options.depth."),
        ('about = "Mine."', "command: Field required"),
        ('about = "Mine."\ncommand = []', "command: "),
        (SOUND.replace("{task}", "{tasks}"), "command: nothing fills in {tasks}; there are: task, steps"),
        (SOUND + '[environment]\nDEPTH = "{depth}"', "environment.DEPTH: nothing fills in {depth}"),
        (SOUND + '[mounts]\n"agent.toml" = "opt/x"', "mounts: 'opt/x' is no absolute path"),
        (SOUND + '[mounts]\n"lost.py" = "/opt/x/lost.py"', "mounts: there is no "),
        (SOUND + '[home]\nSTATE = "../elsewhere"', "home.STATE: '../elsewhere' is no path below its folder"),
        (SOUND + '[options.task]\ndefault = 1\nmeaning = "a"', "options: 'task' cannot be an option's name"),
        (SOUND + '[package]\nregistry = "conda"\nname = "a"\nversion = "1"', "package.registry: "),
        ("about = ", "is no TOML"),
    ],
)
def test_what_is_wrong_is_said_with_file_and_key(tmp_path: Path, text: str, fault: str) -> None:
    folder = folder_with(tmp_path, text)
    with pytest.raises(AgentError) as error:
        make_agent(str(folder))
    assert str(error.value).startswith(str(folder / "agent.toml")) and fault in str(error.value) and "\n" not in str(error.value)


def test_a_folder_without_one_is_no_agent(tmp_path: Path) -> None:
    with pytest.raises(AgentError, match=r"is no agent: it has no agent\.toml"):
        find_agent(str(tmp_path))


def test_placeholders_are_filled_in_and_other_braces_stay() -> None:
    assert filled('{task} {deep} {"a": 1} ${HOME}', {"task": "Do {deep}.", "deep": True}) == 'Do {deep}. true {"a": 1} ${HOME}'


def test_its_options_are_those_of_the_agent(tmp_path: Path) -> None:
    text = SOUND.replace("{task}", "{depth}") + '[options.depth]\ndefault = 3\nmeaning = "how deep"\n'
    folder = str(folder_with(tmp_path, text))
    entry, (depth,) = describe_agent(folder)
    assert (entry.about, entry.installs, entry.installed) == ("Mine.", None, None)
    assert (depth.name, depth.default, depth.meaning) == ("depth", 3, "how deep")
    with pytest.raises(AgentError, match="has no option 'width'; it has: depth"):
        make_agent(folder, {"width": 1})
    with pytest.raises(AgentError, match="depth='deep' is not like its default, 3"):
        make_agent(folder, {"depth": "deep"})


def test_the_programs_of_this_package_are_sound_and_listed() -> None:
    listed = {entry.name: entry for entry in list_agents()}
    assert set(built_in()) == {"aide", "claude-code", "codex", "mini-swe-agent"} <= set(listed)
    for name, folder in built_in().items():
        program = read_program(folder)
        assert program == find_program(name) and program.inside == f"/opt/{name}"
        assert listed[name].installs and program.definition.package and program.definition.package.version in str(listed[name].installs)


def test_a_run_without_the_package_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLAB_CACHE", str(tmp_path))
    with pytest.raises(AgentError, match=r"@openai/codex 0\.\S+ is not installed; run `mlab agents install codex`"):
        make_agent("codex")
    with pytest.raises(AgentError, match=r"codex 9\.9\.9 is not installed; run `mlab agents install codex --version 9\.9\.9`"):
        make_agent("codex", {"version": "9.9.9"})


def test_web_search_is_off_and_the_names_are_those_that_the_agents_need() -> None:
    claude, codex, mini, aide = (find_program(name).definition for name in ("claude-code", "codex", "mini-swe-agent", "aide"))
    assert "WebSearch,WebFetch" in claude.command and "web_search=disabled" in codex.command
    assert (mini.environment["MSWEA_MODEL_NAME"], mini.environment["MSWEA_COST_TRACKING"]) == ("openai/inspect", "ignore_errors")
    assert mini.environment["LITELLM_LOCAL_MODEL_COST_MAP"] == "True" and mini.package and "mcp" in (mini.package.dependencies or ())
    script = (find_program("aide").folder / "start.sh").read_text()
    assert script.count("model=inspect") == 3  # with a name like gpt-4 it would ask OpenAI, whatever its base URL is
    assert aide.package and not any(name.startswith("torch") for name in aide.package.dependencies or ())


def test_the_example_of_the_documentation_is_one_and_its_keys_are_all(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "agents.md").read_text()
    definition = read_program(folder_with(tmp_path, page.split("```toml\n")[1].split("```")[0])).definition
    assert definition.options["depth"].default == 2
    rows = page.split("| key | meaning |")[1].split("\n\n")[0]
    assert [key for key in AgentDefinition.model_fields if f"`{key}`" not in rows] == []
    assert [key for key in Package.model_fields if f"`{key}`" not in rows] == []
    assert [name for name in GIVEN if f"`{{{name}}}`" not in page] == []
