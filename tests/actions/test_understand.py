"""Having models read long files and look through the research log."""

from __future__ import annotations

import pytest

from mlagentbench import ScriptedReply
from mlagentbench.actions.understand import split
from mlagentbench.environment.environment import UNKNOWN_CONTEXT
from tests.support import MakeEnvironment, do, perform


def fast(text: str, *expect: str) -> ScriptedReply:
    return ScriptedReply(role="fast", reply=text, expect=expect)


def test_a_short_file_is_read_in_one_question(make_environment: MakeEnvironment) -> None:
    environment = make_environment([fast("The accuracy is 0.5.", "the accuracy", 'print("accuracy 0.5")')])

    (step,) = perform(environment, do("Understand File", file_name="train.py", things_to_look_for="the accuracy"))

    assert (step.observation, step.usage.calls) == ("The accuracy is 0.5.", 1)


def test_a_long_file_is_read_in_parts_that_are_joined(make_environment: MakeEnvironment) -> None:
    line = "x" * 99 + "\n"
    count = 3 * (UNKNOWN_CONTEXT * 3 // 2) // len(line)
    replies = [fast(f"part {number}", f"part {number} of 3") for number in (1, 2, 3)]
    environment = make_environment([*replies, fast("joined", "part 1", "part 2", "part 3")], files={"long.txt": line * count})

    (step,) = perform(environment, do("Understand File", file_name="long.txt", things_to_look_for="x"))

    assert (step.observation, step.usage.calls) == ("joined", 4)
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
    reflect = do("Reflection", things_to_reflect_on="what is done")

    empty, _, _, reflected, retrieved = perform(
        environment,
        reflect,
        do("Append Summary to Research Log", content="first found: 0.5"),
        do("Append Summary to Research Log", content="second found: 0.6"),
        reflect,
        do("Retrieval from Research Log", current_plan="my plan"),
    )

    assert empty.status == "error" and "research log is empty" in empty.observation
    assert (reflected.observation, retrieved.observation) == ("All is well.", "The first.")
    assert environment.workspace.list() == ["train.py"], "the log is no file of the agent's"
