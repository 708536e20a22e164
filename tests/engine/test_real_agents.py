"""The real agents, installed from their registries, run through the real command: killed, interrupted, resumed and forked.

They are not part of a usual run of the tests: `pytest -m real_agents`. A new version of an agent, or of Inspect, that breaks what a run
relies on fails here by the name of what it broke.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Iterable
from pathlib import Path

import pytest
from benchmarks.real_agents import SHELLS, shell_replies

from mlagentbench.agents.programs.definition import find_program
from mlagentbench.data.cache import cache_directory
from mlagentbench.rundir.directory import RunDirectory
from tests.cli.test_cli import here, mlab
from tests.engine.test_bridged import World, long_sleep, wait_for_the_end_of
from tests.sandbox.processes import available
from tests.support import HANGING

pytestmark = [
    pytest.mark.real_agents,
    pytest.mark.skipif("bubblewrap" not in available(), reason="needs bubblewrap"),
    pytest.mark.usefixtures("providers"),
]

AGENTS = cache_directory() / "agents"
"""The usual cache, where what is installed stays for the next time."""
SEARCHES = {"WebSearch", "WebFetch", "web_search", "web_search_preview", "web_fetch"}


@pytest.fixture
def world(tmp_path: Path) -> World:
    AGENTS.mkdir(parents=True, exist_ok=True)
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "agents").symlink_to(AGENTS)
    return World(tmp_path)


def install(agent: str) -> None:
    """Install an agent, or skip the test with the reason."""
    done = here("agents", "install", agent)
    if done.returncode:
        pytest.skip(done.stderr.strip().splitlines()[-1])


def prompts(run: RunDirectory, steps: Iterable[int]) -> list[dict[str, object]]:
    """The questions of some steps of a run."""
    return [json.loads(call.prompt) for step in steps for call in run.calls(step)]


def check_records(agent: str, run: RunDirectory) -> None:
    """Check what every run of a real agent must hold: its package, no web search, and all that its model was asked."""
    package = find_program(agent).definition.package
    found = run.info.agent_package
    assert package and found and (found.name, found.version) == (package.name, package.version) and found.checksum.startswith("sha256:")
    asked = prompts(run, range(1, len(run.steps()) + 1))
    assert asked, "no question was recorded"
    assert not SEARCHES & {tool for question in asked for tool in question.get("tools", [])}, "the agent offers web search"


@pytest.mark.parametrize("agent", SHELLS)
def test_it_is_killed_interrupted_resumed_and_forked_with_its_conversation(agent: str, world: World) -> None:
    install(agent)
    mark = long_sleep()
    first = shell_replies(agent, "echo 12 > submission.txt; echo it-was-first", f"touch hanging; {mark}")
    with world.start(world.words(first, agent=agent)) as process:
        world.wait_for("workspace/hanging")
        process.kill()
    wait_for_the_end_of(mark)
    run = world.last
    assert [step.action.name for step in run.steps()] == [SHELLS[agent][0]], "its shell tool has another name, or its steps are others"

    world.script(*shell_replies(agent, "true", f"touch waiting; {mark}"))
    with world.start(["resume", str(run.path), "--json"]) as process:
        world.wait_for("workspace/waiting")
        process.send_signal(signal.SIGINT)
        assert process.wait(HANGING) != 0
    wait_for_the_end_of(mark)
    assert run.result and run.result.score
    assert (run.result.outcome.ended, run.result.score.value) == ("cancelled", 12.0), "an interrupted run is not graded as it stands"

    again = shell_replies(agent, "true", "echo 14 > submission.txt; echo it-was-second; env", "id")
    world.script(*again)
    resumed = mlab("resume", run.path, "--json", folder=world.folder)
    assert resumed.returncode == 0, resumed.stderr
    line = json.loads(resumed.stdout)
    assert (line["ended"], line["verdict"], line["score"]) == ("final_answer", "success", 14.0)
    assert "it-was-first" in str(prompts(run, [2])), "it does not go on with its conversation"
    second = run.steps()[1].observation
    assert "it-was-second" in second and "=none-is-needed" in second and "sk-" not in second
    check_records(agent, run)

    forked = mlab("resume", run.path, "--step", "2", "--json", folder=world.folder)
    assert forked.returncode == 0, forked.stderr
    assert (world.last.info.parent, json.loads(forked.stdout)["verdict"]) == (f"{run.name}/2", "success")
    assert "it-was-second" in str(prompts(world.last, [3])), "the fork does not go on with the conversation of its parent"


def test_aide_searches_and_leaves_the_submission_of_its_best_script(world: World) -> None:
    install("aide")

    def script(number: int) -> str:
        return f"I write {number}.\n\n```python\nopen('/workspace/submission.txt', 'w').write('{number}')\nprint({number})\n```\n"

    def review(metric: float) -> str:
        arguments = {"is_bug": False, "summary": "It works.", "metric": metric, "lower_is_better": False}
        return json.dumps({"tool_calls": [{"name": "submit_review", "arguments": arguments}]})

    ended = world.run([script(14), review(0.9), script(11), review(0.1)], "--steps", "2", "-A", "drafts=2", agent="aide")
    assert (ended["verdict"], ended["score"], ended["steps"]) == ("success", 14.0, 2)
    assert "14" in str(prompts(world.last, [1])) or "14" in str(prompts(world.last, [2]))
    check_records("aide", world.last)
