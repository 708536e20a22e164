"""Editing scripts, and taking edits back."""

from __future__ import annotations

import pytest

from mlagentbench.actions.edit import script_in
from mlagentbench.environment import Environment
from mlagentbench.model import ScriptedReply
from mlagentbench.records import Action, Step
from tests.support import MakeEnvironment, finish


def edited(text: str) -> ScriptedReply:
    return ScriptedReply(role="editor", reply=f"```python\n{text}```\n")


async def do(environment: Environment, name: str, **arguments: object) -> Step:
    return await environment.execute(Action(name=name, arguments=arguments))  # type: ignore[arg-type]


def test_an_edit_is_saved_and_shown_as_a_diff(make_environment: MakeEnvironment) -> None:
    environment = make_environment([edited('print("accuracy 0.9")\n')])

    async def story() -> None:
        await environment.start()
        step = await do(environment, "Edit Script (AI)", script_name="train.py", edit_instruction="better", save_name="deep/er/train2.py")
        assert step.status == "ok"
        assert '-print("accuracy 0.5")\n+print("accuracy 0.9")' in step.observation
        assert environment.workspace.read_text("deep/er/train2.py") == 'print("accuracy 0.9")\n'
        assert environment.workspace.read_text("train.py") == 'print("accuracy 0.5")\n'

    finish(story())


def test_edits_are_undone_one_at_a_time_though_they_were_made_within_a_second(make_environment: MakeEnvironment) -> None:
    environment = make_environment([edited(f"x = {number}\n") for number in range(3)])

    async def story() -> None:
        await environment.start()
        for _ in range(3):
            await do(environment, "Edit Script (AI)", script_name="train.py", edit_instruction="more", save_name="./train.py")
        seen = []
        for _ in range(3):
            await do(environment, "Undo Edit Script", script_name="train.py")
            seen.append(environment.workspace.read_text("train.py"))
        assert seen == ["x = 1\n", "x = 0\n", 'print("accuracy 0.5")\n']
        last = await do(environment, "Undo Edit Script", script_name="train.py")
        assert last.status == "error"
        assert "left to undo" in last.observation

    finish(story())


def test_undoing_the_edit_that_made_a_file_removes_it(make_environment: MakeEnvironment) -> None:
    environment = make_environment([edited("x = 1\n")])

    async def story() -> None:
        await environment.start()
        await do(environment, "Edit Script (AI)", script_name="new.py", edit_instruction="make it", save_name="new.py")
        await do(environment, "Undo Edit Script", script_name="new.py")
        assert environment.workspace.kind("new.py") is None

    finish(story())


def test_an_edit_that_the_model_could_not_finish_changes_nothing(make_environment: MakeEnvironment) -> None:
    environment = make_environment([ScriptedReply(role="editor", reply="```python\nx = ", truncated=True)])

    async def story() -> None:
        await environment.start()
        step = await do(environment, "Edit Script (AI)", script_name="train.py", edit_instruction="grow", save_name="train.py")
        assert step.status == "error"
        assert environment.workspace.read_text("train.py") == 'print("accuracy 0.5")\n'

    finish(story())


@pytest.mark.parametrize(
    "start, end, expected",
    [
        (1, 2, "   1 line 1\n   2 line 2"),
        (149, 200, " 149 line 149\n 150 line 150"),
        (1, 101, "At most 100 lines"),
        (0, 5, "no range"),
        (5, 4, "no range"),
        (151, 160, "has 150 lines"),
        ("1", "1", "   1 line 1"),
    ],
)
def test_lines_are_shown_with_their_numbers(make_environment: MakeEnvironment, start: int, end: int, expected: str) -> None:
    environment = make_environment(files={"long.py": "".join(f"line {number}\n" for number in range(1, 151))})

    async def story() -> None:
        await environment.start()
        step = await do(environment, "Inspect Script Lines", script_name="long.py", start_line_number=start, end_line_number=end)
        assert expected in step.observation

    finish(story())


@pytest.mark.parametrize(
    "reply, script",
    [
        ("```python\nx = 1\n```", "x = 1\n"),
        ("Here it is:\n```py\nx = 1\n```\nRun it with:\n```bash\npython x.py now\n```\n", "x = 1\n"),
        ('```python\nDOC = """\n```\nshell\n```\n"""\n```\nDone.', 'DOC = """\n```\nshell\n```\n"""\n'),
        ("x = 1\n\n", "x = 1\n"),
        ("```python\nx = 1\n", "x = 1\n"),
        ("```python\nx = (\n```\nprose ```", "x = (\n"),
        ("```\r\nx = 1\r\n```", "x = 1\n"),
    ],
)
def test_the_script_is_found_in_what_editors_reply(reply: str, script: str) -> None:
    assert script_in(reply) == script
