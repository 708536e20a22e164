"""Agents from a file: good ones act, and bad ones are one clear line before anything runs, or a typed outcome where only a run shows it."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from mlagentbench import AgentError, Result, RunLimits
from mlagentbench.agents.base import make_agent
from mlagentbench.cli.main import run
from mlagentbench.rundir.directory import RunDirectory
from mlagentbench.task.catalogue import load_task
from tests.plans import make_plan
from tests.runner.lives import make_task, models, scripted
from tests.support import finish

GOOD = """
from __future__ import annotations
from dataclasses import dataclass
from mlagentbench import Action

@dataclass(frozen=True)
class Good:
    number: float = 3.0
    needs_model = False

    async def __call__(self, environment):
        await environment.execute(Action(name="Write File", arguments={"file_name": "submission.txt", "content": str(self.number)}))
        await environment.execute(Action(name="Final Answer", arguments={"final_answer": "done"}))
"""


def written(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "agent.py"
    file.write_text(textwrap.dedent(text))
    return file


def live(tmp_path: Path, text: str, name: str = "Mine", **more: object) -> tuple[Result, RunDirectory]:
    if not (tmp_path / "guess").exists():
        make_task(tmp_path / "guess")
    plan = make_plan(load_task(tmp_path / "guess"), tmp_path / "runs", agent=f"{written(tmp_path, text)}:{name}", sandbox="none", **more)
    result = finish(plan.conduct(models(scripted(["not a word of use"] * 9), {})))
    return result, RunDirectory(plan.log_directory / result.run)


def test_an_agent_in_a_file_acts_and_takes_options(tmp_path: Path) -> None:
    result, _ = live(tmp_path, GOOD, "Good", agent_options={"number": 12})
    assert result.outcome.ended == "final_answer"
    assert result.score is not None and result.score.value == 12


def test_options_that_a_class_takes_by_any_name_are_given(tmp_path: Path) -> None:
    file = written(
        tmp_path, "class Any:\n    def __init__(self, **options): self.options = options\n    async def __call__(self, e): ...\n"
    )
    assert make_agent(f"{file}:Any", {"x": 1}).options == {"x": 1}  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("raise RuntimeError('no\\nluck')", "cannot be imported: RuntimeError: no"),
        ("import sys\n\nsys.exit(3)", r"cannot be imported: SystemExit: 3 \(line 3\)"),
        ("import nothing_of_the_kind", r"ModuleNotFoundError: .* \(line 1\)"),
        ("class Mine(:", "SyntaxError"),
        ("class Other:\n    pass", "has no class or function 'Mine'; its classes are: Other"),
        ("Mine = 3", "has no class or function 'Mine'; its classes are: none"),
        ("class Mine:\n    pass", "cannot be called: give its class a method async def __call__"),
        ("class Mine:\n    async def __call__(self): ...", "cannot be called with an environment"),
        ("class Mine:\n    async def __call__(self, environment, more): ...", "cannot be called with an environment"),
        ("async def Mine(environment): ...", "is an async function, and an agent is a class"),
        ("class Mine:\n    def __init__(self): raise KeyError('x')", r"cannot be made: KeyError: 'x' \(line 2\)"),
        ("class Mine:\n    def __init__(self, must): ...", "cannot be made with these options"),
        ("def Mine(): return None", "cannot be called"),
    ],
)
def test_what_can_be_known_before_is_one_clear_line_and_nothing_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], text: str, fault: str
) -> None:
    file = written(tmp_path, text)
    with pytest.raises(AgentError, match=fault):
        make_agent(f"{file}:Mine")
    monkeypatch.chdir(tmp_path)
    assert run(("run", "vectorization", "--agent", "agent.py:Mine", "--model", "scripted/demo")) == 2
    told = capfd.readouterr().err
    assert told.startswith("mlab: ") and told.count("\n") == 1
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("name", ["agent.py", "nowhere.py:Mine", ".py:Mine", "agent.py:", "folder.py:Mine"])
def test_a_name_that_names_nothing_is_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    written(tmp_path, GOOD)
    (tmp_path / "folder.py").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AgentError) as refused:
        make_agent(name)
    assert "\n" not in str(refused.value)


BODY = """
from mlagentbench import Action, ResponseFormatError

class Mine:
    {keyword} __call__(self, environment):
        {body}
"""


def outcome(tmp_path: Path, body: str, keyword: str = "async def", **more: object) -> tuple[str, str, RunDirectory]:
    result, directory = live(tmp_path, BODY.format(keyword=keyword, body=body), **more)
    return result.outcome.ended, result.outcome.reason or "", directory


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("raise RuntimeError('my bug')", "RuntimeError: my bug"),
        ("return 42", "returned without a final answer"),
        ("await environment.execute('List Files')", "AttributeError"),
        ("await environment.execute(Action(name='List Files', arguments={'dir_path': object()}))", "ValidationError"),
        ("raise SystemError('deep')", "SystemError: deep"),
    ],
)
def test_what_only_a_run_shows_is_the_agents_error(tmp_path: Path, body: str, reason: str) -> None:
    ended, told, _ = outcome(tmp_path, body)
    assert ended == "agent_error"
    assert reason in told


def test_a_plain_function_is_told_to_be_async(tmp_path: Path) -> None:
    ended, told, _ = outcome(tmp_path, "return 'rubbish'", keyword="def")
    assert ended == "agent_error"
    assert "gave 'rubbish'" in told and "async def" in told


def test_an_action_that_is_not_offered_is_told_so_and_the_run_goes_on(tmp_path: Path) -> None:
    ended, _, directory = outcome(
        tmp_path,
        "await environment.execute(Action(name='Fly'))\n        "
        "await environment.execute(Action(name='Final Answer', arguments={'final_answer': 'x'}))",
    )
    assert ended == "final_answer"
    step = directory.steps()[0]
    assert step.status == "error" and "There is no action 'Fly'" in step.observation


def test_replies_that_an_agent_never_takes_end_the_run(tmp_path: Path) -> None:
    body = (
        "def never(text): raise ResponseFormatError('not that')\n        while True:\n            try:\n                "
        "await environment.ask_agent('?', never)\n            except ResponseFormatError:\n                pass"
    )
    ended, told, _ = outcome(tmp_path, body)
    assert ended == "format_failure" and "not that" in told


def test_an_agent_that_never_acts_is_stopped_by_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlagentbench.runner.run_once.GRACE", 0.2)
    sleeps = "import asyncio\n        await asyncio.sleep(3600)"
    ended, _, _ = outcome(tmp_path, sleeps, limits=RunLimits(time=0.3))
    assert ended == "limit_time"


def test_what_an_agent_does_after_its_answer_counts_for_nothing(tmp_path: Path) -> None:
    ended, _, directory = outcome(
        tmp_path,
        "await environment.execute(Action(name='Final Answer', arguments={'final_answer': 'x'}))\n        "
        "await environment.execute(Action(name='Write File', arguments={'file_name': 'submission.txt', 'content': '99'}))",
    )
    assert ended == "final_answer"
    assert [step.action.name for step in directory.steps()] == ["Final Answer"]
    assert not (directory.workspace / "submission.txt").exists()
