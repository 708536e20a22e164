"""Editing scripts, and taking edits back."""

from __future__ import annotations

import pytest

from mlagentbench import Action, ScriptedReply
from mlagentbench.actions.edit import script_in
from tests.support import MakeEnvironment, do, perform


def edited(text: str) -> ScriptedReply:
    return ScriptedReply(role="editor", reply=f"```python\n{text}```\n")


def edit(script: str = "train.py", save: str | None = None) -> Action:
    return do("Edit Script (AI)", script_name=script, edit_instruction="better", save_name=save or script)


def test_an_edit_is_saved_and_shown_as_a_diff(make_environment: MakeEnvironment) -> None:
    environment = make_environment([edited('print("accuracy 0.9")\n')])

    (step,) = perform(environment, edit(save="deep/er/train2.py"))

    assert step.status == "ok"
    assert '-print("accuracy 0.5")\n+print("accuracy 0.9")' in step.observation
    assert environment.workspace.read_text("deep/er/train2.py") == 'print("accuracy 0.9")\n'
    assert environment.workspace.read_text("train.py") == 'print("accuracy 0.5")\n'


def test_edits_are_undone_one_at_a_time_though_they_were_made_within_a_second(make_environment: MakeEnvironment) -> None:
    environment = make_environment([edited(f"x = {number}\n") for number in range(3)])

    *_, third, second, first, left = perform(
        environment, *[edit(save="./train.py")] * 3, *[do("Undo Edit Script", script_name="train.py")] * 4
    )

    undone = [step.observation.partition("\n")[2] for step in (third, second, first)]
    assert undone == ["x = 1\n", "x = 0\n", 'print("accuracy 0.5")\n']
    assert environment.workspace.read_text("train.py") == undone[-1]
    assert left.status == "error" and "left to undo" in left.observation


def test_undoing_the_edit_that_made_a_file_removes_it(make_environment: MakeEnvironment) -> None:
    environment = make_environment([edited("x = 1\n")])

    perform(environment, edit("new.py"), do("Undo Edit Script", script_name="new.py"))

    assert environment.workspace.kind("new.py") is None


def test_an_edit_that_the_model_could_not_finish_changes_nothing(make_environment: MakeEnvironment) -> None:
    environment = make_environment([ScriptedReply(role="editor", reply="```python\nx = ", truncated=True)])

    (step,) = perform(environment, edit())

    assert step.status == "error"
    assert environment.workspace.read_text("train.py") == 'print("accuracy 0.5")\n'


def test_a_segment_is_edited_and_the_rest_stays_byte_for_byte(make_environment: MakeEnvironment) -> None:
    before = "def f():\n    a = 1\n    b = 2\n    return a\x0c + b\r\n\nprint(f())"
    ten = ScriptedReply(role="editor", reply="```python\n    a = 10\n    b = 20\n```", expect=("    a = 1\n    b = 2\n", "lines 2 to 3"))
    environment = make_environment([ten], files={"train.py": before})
    segment = {"start_line_number": 2, "end_line_number": 3, "edit_instruction": "times ten", "save_name": "train.py"}

    (step,) = perform(environment, do("Edit Script Segment (AI)", script_name="train.py", **segment))

    assert step.status == "ok", step.observation
    after = environment.workspace.read_bytes("train.py").decode()
    assert after == before.replace("a = 1\n", "a = 10\n").replace("b = 2\n", "b = 20\n")


def test_a_script_that_is_no_text_is_not_sent_to_an_editor(make_environment: MakeEnvironment) -> None:
    environment = make_environment(files={"train.py": b"x = '\xff\xfe'\n"})

    (step,) = perform(environment, edit())

    assert step.status == "error" and "no UTF-8" in step.observation
    assert environment.workspace.read_bytes("train.py") == b"x = '\xff\xfe'\n"


def test_lines_are_shown_with_their_numbers(make_environment: MakeEnvironment) -> None:
    environment = make_environment(files={"long.py": "".join(f"line {number}\n" for number in range(1, 151))})
    expected = {
        (1, 2): "   1 line 1\n   2 line 2",
        (149, 200): " 149 line 149\n 150 line 150",
        (1, 101): "At most 100 lines",
        (0, 5): "no range",
        (5, 4): "no range",
        (151, 160): "has 150 lines",
        ("1", "1"): "   1 line 1",
    }

    steps = perform(
        environment,
        *(do("Inspect Script Lines", script_name="long.py", start_line_number=start, end_line_number=end) for start, end in expected),
    )

    for step, text in zip(steps, expected.values(), strict=True):
        assert text in step.observation


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
