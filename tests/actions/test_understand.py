"""Having models read long files and look through the research log."""

from __future__ import annotations

import pytest

from mlagentbench.actions.understand import split
from mlagentbench.environment import Environment
from mlagentbench.environment.environment import UNKNOWN_CONTEXT
from mlagentbench.model import ScriptedReply
from mlagentbench.records import Action, Step
from tests.support import MakeEnvironment, finish


def fast(text: str, *expect: str) -> ScriptedReply:
    return ScriptedReply(role="fast", reply=text, expect=expect)


async def do(environment: Environment, name: str, **arguments: object) -> Step:
    return await environment.execute(Action(name=name, arguments=arguments))  # type: ignore[arg-type]


def test_a_short_file_is_read_in_one_question(make_environment: MakeEnvironment) -> None:
    environment = make_environment([fast("The accuracy is 0.5.", "the accuracy", 'print("accuracy 0.5")')])

    async def story() -> None:
        await environment.start()
        step = await do(environment, "Understand File", file_name="train.py", things_to_look_for="the accuracy")
        assert step.observation == "The accuracy is 0.5."
        assert step.usage.calls == 1

    finish(story())


def test_a_long_file_is_read_in_parts_that_are_joined(make_environment: MakeEnvironment) -> None:
    line = "x" * 99 + "\n"
    count = 3 * (UNKNOWN_CONTEXT * 3 // 2) // len(line)
    replies = [fast(f"part {number}", f"part {number} of 3") for number in (1, 2, 3)]
    environment = make_environment([*replies, fast("joined", "part 1", "part 2", "part 3")], files={"long.txt": line * count})

    async def story() -> None:
        await environment.start()
        step = await do(environment, "Understand File", file_name="long.txt", things_to_look_for="x")
        assert step.observation == "joined"
        assert step.usage.calls == 4

    finish(story())
    prompts = [call.prompt for call in environment.directory.calls(1)[:3]]
    assert sum(prompt.count(line) for prompt in prompts) == count, "every line is read once"


@pytest.mark.parametrize(
    "text, most, parts",
    [
        ("", 4, [""]),
        ("abcd", 4, ["abcd"]),
        ("abcdefghij", 4, ["abcd", "efgh", "ij"]),
        ("ab\ncd\nef\n", 6, ["ab\ncd\n", "ef\n"]),
        ("ab\ncdefgh", 4, ["ab\n", "cdef", "gh"]),
    ],
)
def test_a_text_is_cut_between_lines_where_it_can_be(text: str, most: int, parts: list[str]) -> None:
    assert split(text, most) == parts


def test_the_research_log_is_written_to_and_asked(make_environment: MakeEnvironment) -> None:
    environment = make_environment([fast("All is well.", "first found", "second found"), fast("The first.", "second found", "my plan")])

    async def story() -> None:
        await environment.start()
        empty = await do(environment, "Reflection", things_to_reflect_on="what is done")
        assert empty.status == "error"
        assert "research log is empty" in empty.observation
        await do(environment, "Append Summary to Research Log", content="first found: 0.5")
        await do(environment, "Append Summary to Research Log", content="second found: 0.6")
        assert (await do(environment, "Reflection", things_to_reflect_on="what is done")).observation == "All is well."
        assert (await do(environment, "Retrieval from Research Log", current_plan="my plan")).observation == "The first."
        assert environment.workspace.list() == ["train.py"], "the log is no file of the agent's"

    finish(story())


def test_a_segment_is_edited_and_the_rest_stays_byte_for_byte(make_environment: MakeEnvironment) -> None:
    before = "def f():\n    a = 1\n    b = 2\n    return a\x0c + b\r\n\nprint(f())"
    edited = ScriptedReply(role="editor", reply="```python\n    a = 10\n    b = 20\n```", expect=("    a = 1\n    b = 2\n", "lines 2 to 3"))
    environment = make_environment([edited], files={"train.py": before})

    async def story() -> None:
        await environment.start()
        step = await do(
            environment,
            "Edit Script Segment (AI)",
            script_name="train.py",
            start_line_number=2,
            end_line_number=3,
            edit_instruction="times ten",
            save_name="train.py",
        )
        assert step.status == "ok", step.observation
        after = environment.workspace.read_bytes("train.py").decode()
        assert after == before.replace("a = 1\n", "a = 10\n").replace("b = 2\n", "b = 20\n")

    finish(story())


def test_a_script_that_is_no_text_is_not_sent_to_an_editor(make_environment: MakeEnvironment) -> None:
    environment = make_environment(files={"train.py": b"x = '\xff\xfe'\n"})

    async def story() -> None:
        await environment.start()
        step = await do(environment, "Edit Script (AI)", script_name="train.py", edit_instruction="x", save_name="train.py")
        assert step.status == "error"
        assert "no UTF-8" in step.observation
        assert environment.workspace.read_bytes("train.py") == b"x = '\xff\xfe'\n"

    finish(story())
