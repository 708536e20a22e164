"""Which action a reply asks for, however it is dressed, and what a model is told whose reply holds none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mlagentbench import ResponseFormatError
from mlagentbench.actions import ACTIONS as BUILT
from mlagentbench.actions.base import Parameter
from mlagentbench.agents.reply.response import parse_response
from tests.agents.paper import ACTIONS, DATA, ENTRIES, PAPER, action, read

SHARED = Path(__file__).parents[3] / "shared" / "data"
TRAIN = '{"script_name": "train.py"}'
LIST = '{"dir_path": "."}'
EXECUTE = ("Execute Script", {"script_name": "train.py"})


def refusal(text: str) -> str:
    with pytest.raises(ResponseFormatError) as caught:
        read(text)
    return str(caught.value)


@pytest.mark.parametrize(
    "reply",
    [
        f"Action: Execute Script\nAction Input: {TRAIN}",
        f"**Action:** Execute Script\n**Action Input:** {TRAIN}",
        f"**Action**: Execute Script\n**Action Input**: {TRAIN}",
        f"**Action: Execute Script**\n**Action Input: {TRAIN}**",
        f"### Action: Execute Script\n### Action Input:\n{TRAIN}",
        f"## **Action**\n\n**Execute Script**\n\n## **Action Input**\n\n```json\n{TRAIN}\n```",
        f"5. **Action:** `Execute Script`\n6. **Action Input:** {TRAIN}",
        f"- Action: Execute Script\n- Action Input: {TRAIN}",
        f"> Action: Execute Script\n> Action Input: {TRAIN}",
        f"[Action] Execute Script\n[Action Input] {TRAIN}",
        f"ACTION: EXECUTE SCRIPT\nACTION INPUT: {TRAIN}",
        f"Action：Execute Script\nAction Input：{TRAIN}",  # noqa: RUF001
        f"Action 1: Execute Script\nAction Input 1: {TRAIN}\nObservation 1: done",
        f"Action: Execute\\_Script\nAction\\_Input: {TRAIN}",
        f"Action Execute Script\nAction Input {TRAIN}\nObservation",
        f"Action:\r\nExecute Script\r\n\r\nAction Input:\r\n```json\r\n{TRAIN}\r\n```\r\n",
        f"```\nThought: go\nAction: Execute Script\nAction Input: {TRAIN}\n```",
        f"<|im_start|>assistant\nAction: Execute Script\nAction Input: {TRAIN}<|im_end|>",
    ],
)
def test_labels_may_come_in_any_dress(reply: str) -> None:
    assert read(reply)[1:] == EXECUTE


@pytest.mark.parametrize(
    "name",
    [
        "execute script",
        "Execute_Script",
        "execute-script",
        "ExecuteScript",
        "`Execute Script`",
        '"Execute Script".',
        "[Execute Script]",
    ],
)
def test_a_name_counts_whatever_its_case_and_punctuation(name: str) -> None:
    assert read(f"Action: {name}\nAction Input: {TRAIN}")[1:] == EXECUTE


@pytest.mark.parametrize("name", ["Edit Script", "Edit Script AI", "edit_script_ai", "Edit Script(AI)"])
def test_the_mark_of_an_ai_action_may_be_left_out(name: str) -> None:
    arguments = {"script_name": "a.py", "edit_instruction": "mend it", "save_name": "b.py"}
    assert read(f"Action: {name}\nAction Input: {json.dumps(arguments)}")[1:] == ("Edit Script (AI)", arguments)


@pytest.mark.parametrize(
    "name",
    [
        "Run Script",
        "Execute Script Remotely",
        "Execute Script (to get the baseline)",
        "Undo Execute Script",
        "Execute Script, then List Files",
        "Inspect Line 106",
        "None",
    ],
)
def test_a_name_that_is_not_an_action_is_refused_with_the_names_that_are(name: str) -> None:
    message = refusal(f"Action: {name}\nAction Input: {TRAIN}")
    assert f'There is no action "{name}"' in message
    assert "List Files, Read File," in message and "\nAction Input: " in message


def test_a_refusal_does_not_tell_of_hidden_actions() -> None:
    actions = {"List Files": ACTIONS["List Files"], "Secret": action("Secret", {}, hidden=True)}
    with pytest.raises(ResponseFormatError) as caught:
        parse_response("Action: Dance\nAction Input: {}", (), actions)
    assert "List Files" in str(caught.value) and "Secret" not in str(caught.value)


@pytest.mark.parametrize(
    "reply",
    [
        f"Action: Execute Script Action Input: {TRAIN}",
        f"Action: Execute Script, Action Input: {TRAIN}",
        f"Action: Execute Script\n{TRAIN}",
        f"Action: Execute Script\n```json\n{TRAIN}\n```",
        f"Action: Execute Script({TRAIN})",
        f"Action: Execute Script\nAction Input: Here it is, with {{script_name}} filled in:\n```json\n{TRAIN}\n```\nI wait.",
        f"Action: Execute Script\nAction Input (JSON): {TRAIN}",
        f"Action: Execute Script\nAction Input: [{TRAIN}]",
        f"Action: Execute Script\nAction Input: {TRAIN}}}",
        f"Action: Execute Script\nAction Input: {TRAIN}\n\nNote: {{the output}} should show the accuracy.",
    ],
)
def test_arguments_are_found_where_models_put_them(reply: str) -> None:
    assert read(reply)[1:] == EXECUTE


@pytest.mark.parametrize(
    "reply",
    [
        f'{{"Thought": "go", "Action": "Execute Script", "Action Input": {TRAIN}}}',
        f'<tool_call>\n{{"name": "Execute Script", "arguments": {TRAIN}}}\n</tool_call>',
        f"<execute_script><script_name>train.py</script_name></execute_script>\nExecute Script {TRAIN}",
        f"I think I see. Action: Execute Script Action Input: {TRAIN} and then we wait.",
        f"<think>\nAction: Execute Script\nAction Input: {TRAIN}\n</think>\n",
        f"Well. <think>\nAction: Execute Script\nAction Input: {TRAIN}\n</think>\n",
        f"Well.\n<think>\nAction: Execute Script\nAction Input: {TRAIN}\nOr",
        f"{TRAIN}\nObservation: done\n\nAction: Execute Script\nAction Input: {TRAIN}",
    ],
)
def test_an_action_without_a_label_of_its_own_is_none(reply: str) -> None:
    assert refusal(reply).startswith("The reply holds no action.")


@pytest.mark.parametrize(
    "introduction",
    [
        "Here's an example of how you could use the `Execute Script` tool:\n\n```\n",
        "For example:\n```json\n",
        "**You should not do this:**\n",
        "Don't write:\n\n",
        "Examples:\n\n",
    ],
)
def test_an_action_that_is_only_shown_is_not_done(introduction: str) -> None:
    shown = f"It is done like so.\n\n{introduction}Action: Execute Script\nAction Input: {TRAIN}\n```\n"
    assert refusal(shown).startswith(
        "The action Execute Script is only shown as an example, or as what not to do.\nWrite:\n\nAction: Execute"
    )
    assert read(f"{shown}\nThat is it.\n\nAction: List Files\nAction Input: {LIST}").action == "List Files"


@pytest.mark.parametrize(
    "thought", ["The example script must not fail:", "That did not work, so I try again:", "I follow the examples:", "As in this example."]
)
def test_a_thought_that_speaks_of_examples_introduces_none(thought: str) -> None:
    assert read(f"Thought: {thought}\nAction: Execute Script\nAction Input: {TRAIN}")[1:] == EXECUTE


def test_of_several_actions_the_first_complete_one_counts() -> None:
    assert read(f"Action: Execute Script\nAction Input: {TRAIN}\n\nAction: List Files\nAction Input: {LIST}")[1:] == EXECUTE
    assert read(f'Action: Dance\nAction Input: {{"to": "1"}}\n\nAction: Execute Script\nAction Input: {TRAIN}')[1:] == EXECUTE
    assert read(f"Action: [its name]\nAction Input: {{its input}}\n\nAction: Execute Script\nAction Input: {TRAIN}")[1:] == EXECUTE


def test_an_action_that_a_thought_mentions_does_not_count() -> None:
    thought = "Thought: The log says Action: List Files was done. Its\nAction: read the names\n- Observation: fine\n\n"
    assert read(f"{thought}Action: Execute Script\nAction Input: {TRAIN}")[1:] == EXECUTE


def test_a_hallucinated_observation_ends_the_reply() -> None:
    assert read(f"Action: Execute Script\nAction Input: {TRAIN}\nObservation: 0.9\nAction: List Files\nAction Input: {LIST}")[1:] == EXECUTE
    message = refusal(f"Action: Execute Script\nObservation: it ran\n\nAction: List Files\nAction Input: {LIST}")
    assert "Action Input of Execute Script" in message
    message = refusal(f"Action: Dance\nAction Input: {{}}\nObservation: it danced\n\nAction: List Files\nAction Input: {LIST}")
    assert 'no action "Dance"' in message


@pytest.mark.parametrize("label", ["Action Output", "**Action Result:**", "action_output", "Action Observation", "Action Response"])
def test_what_a_model_writes_for_an_actions_result_is_no_attempt_at_an_action(label: str) -> None:
    said = f"Thought: I look.\n{label}: train.py, data.csv\n"
    assert refusal(said).startswith("The reply holds no action.\n")
    assert read(f"{said}Action: Execute Script\nAction Input: {TRAIN}")[1:] == EXECUTE
    done = f"Action: Execute Script\nAction Input: {TRAIN}\n{label}: 0.9\n"
    assert read(f"{done}Action: List Files\nAction Input: {LIST}")[1:] == EXECUTE
    message = refusal(f"Action: Execute Script\n{label}: it ran\n\nAction: List Files\nAction Input: {LIST}")
    assert "Action Input of Execute Script" in message, "as after an observation that the model invents"


def test_an_observation_before_any_action_is_a_thought() -> None:
    assert read(f"Observation: the files are there.\n\nThought: go\nAction: Execute Script\nAction Input: {TRAIN}")[1:] == EXECUTE


def test_an_action_within_a_broken_text_is_not_taken_for_the_replys_own() -> None:
    content = f'"# Log "of today"\nAction: Execute Script\nAction Input: {TRAIN}\nand so on'
    assert "Write File cannot be read" in refusal(f'Action: Write File\nAction Input: {{"file_name": "log.md", "content": {content}"}}')


def test_thinking_blocks_are_not_the_reply() -> None:
    draft = f"Shall I?\nAction: List Files\nAction Input: {LIST}\nNo."
    real = f"Thought: go\nAction: Execute Script\nAction Input: {TRAIN}"
    for block in (f"<think>\n{draft}\n</think>\n", f"<thinking>{draft}</thinking>", f"{draft}\n</think>\n\n", f"[THINK]{draft}[/THINK]"):
        response = read(block + real)
        assert response[1:] == EXECUTE
        assert response.entries == {"Thought": "go"}


def test_entries_are_found_in_any_order_and_dress_around_the_action() -> None:
    reply = (
        "Sure!\n\n**Thought:** go\non\n\n### Research Plan & Status (updated)\n1. **look**\n\n1) Fact check: none\n\n"
        f"Action: Execute Script\nAction Input: {TRAIN}\n\nReflection: late\n\nAction: List Files\nThought: another step's"
    )
    assert read(reply).entries == {
        "Thought": "go\non",
        "Research Plan and Status": "1. **look**",
        "Fact Check": "none",
        "Reflection": "late",
    }


def test_entries_may_be_missing() -> None:
    reply = f"Reflection: fine\nThought: go\nAction: Execute Script\nAction Input: {TRAIN}"
    assert read(reply).entries == {"Reflection": "fine", "Thought": "go"}


def test_action_labels_among_the_entries_are_passed_over() -> None:
    response = parse_response(f"Action: Execute Script\nAction Input: {TRAIN}", ("Thought", "Action", "Action Input"), ACTIONS)
    assert response == ({}, *EXECUTE)


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ("{}", '"script_name", "edit_instruction", "save_name" are missing'),
        ('{"script_name": "a", "edit_instruction": "b"}', '"save_name" is missing'),
        ('{"script_name": "a", "edit_instruction": "b", "save_name": "c", "why": "d"}', '"why" is not one of its arguments'),
        ('{"script_name": ["a", "b"], "edit_instruction": "b", "save_name": "c"}', '"script_name" must be text in quotes, not a list'),
        ('{"script_name": "a", "Script Name": "x", "edit_instruction": "b", "save_name": "c"}', '"script_name" is given twice'),
        ("a.py", "must be a JSON object in braces, and there is none"),
        ('{"script_name": "a", "edit_instruction": "b', "the reply was cut off"),
        ('{"script_name": "a", "edit_instruction": "b", "save_name": "c"', "it is not finished"),
    ],
)
def test_wrong_arguments_are_refused_with_the_usage(arguments: str, what: str) -> None:
    message = refusal(f"Action: Edit Script (AI)\nAction Input: {arguments}")
    assert what in message.splitlines()[0]
    usage = ACTIONS["Edit Script (AI)"].usage
    assert message.endswith(f"Write:\n\nAction: Edit Script (AI)\nAction Input: {usage}")


@pytest.mark.parametrize("reply", ["", "I need more information.", "Final Answer: done", f"{TRAIN}", "Action:\nAction Input:\n"])
def test_a_reply_without_an_action_is_told_the_whole_form(reply: str) -> None:
    message = refusal(reply)
    assert message.startswith("The reply holds no action.")
    assert "\nFact Check: [your text]\n" in message and "\nAction: [one of: List Files, " in message


def test_types_are_converted_only_where_nothing_is_lost() -> None:
    def lines(first: str, last: str) -> str:
        return (
            f'Action: Inspect Script Lines\nAction Input: {{"script_name": "a", "start_line_number": {first}, "end_line_number": {last}}}'
        )

    assert read(lines('"1"', "10.0")).arguments == {"script_name": "a", "start_line_number": 1, "end_line_number": 10}
    for wrong in ('"the end"', "10.5", "true", "null", '"1e2"', "[1]"):
        assert '"end_line_number" must be a whole number' in refusal(lines("1", wrong))
    answer = 'Action: Final Answer\nAction Input: {"final_answer": %s}'
    assert read(answer % "0.8700").arguments == {"final_answer": "0.8700"}
    assert '"final_answer" must be text' in refusal(answer % "true")


def test_a_list_of_one_text_is_that_text() -> None:
    assert read('Action: Reflection\nAction Input: {"things_to_reflect_on": ["why?"]}').arguments == {"things_to_reflect_on": "why?"}
    for wrong in ("[]", "[1]", '[["why?"]]', '["why?", "how?"]'):
        message = refusal(f'Action: Reflection\nAction Input: {{"things_to_reflect_on": {wrong}}}')
        assert '"things_to_reflect_on" must be text in quotes, not a list' in message


def test_an_optional_argument_may_be_null_or_left_out() -> None:
    actions = {"Wait": action("Wait", {"seconds": Parameter("", float, None, False), "quietly": Parameter("", bool, None, False)})}
    for given, expected in [
        ("{}", {}),
        ('{"seconds": null}', {}),
        ('{"seconds": 2, "quietly": "true"}', {"seconds": 2.0, "quietly": True}),
    ]:
        assert parse_response(f"Action: Wait\nAction Input: {given}", (), actions).arguments == expected


@pytest.mark.parametrize(
    "written", ["", "\nAction Input: {}", "\nAction Input: None", "\nAction Input: N/A\nObservation: done", "\nAction Input:\n"]
)
def test_an_action_without_required_arguments_needs_no_input(written: str) -> None:
    actions = {"Wait": action("Wait", {"seconds": Parameter("", float, None, False)}), "List Files": ACTIONS["List Files"]}
    assert parse_response(f"Thought: go\nAction: Wait{written}", (), actions)[1:] == ("Wait", {})
    with pytest.raises(ResponseFormatError):
        parse_response(f"Thought: go\nAction: List Files{written}", (), actions)


@pytest.mark.parametrize(
    "row", [json.loads(line) for line in (DATA / "real_replies.jsonl").read_text().splitlines()], ids=lambda row: row["name"]
)
def test_real_replies(row: dict[str, object]) -> None:
    text = str(row["reply"])
    if "refused" in row:
        assert str(row["refused"]) in refusal(text)
    else:
        assert read(text)[1:] == (row["action"], row["arguments"])


@pytest.mark.skipif(not SHARED.is_dir(), reason=f"the larger sets of replies are not at {SHARED}")
def test_the_larger_sets_are_read_as_expected() -> None:
    for line in (SHARED / "parse_cases.jsonl").read_text().splitlines():
        case = json.loads(line)
        if case["expected_args"] is None:
            refusal(case["completion"])
        else:
            assert read(case["completion"])[1:] == (case["expected_action"], case["expected_args"]), case["name"]
    outcomes = []
    for line in (SHARED / "real_completions.jsonl").read_text().splitlines():
        try:
            outcomes.append(read(json.loads(line)["text"]).action)
        except ResponseFormatError:
            outcomes.append("")
    assert len(outcomes) - outcomes.count("") == 359, "each of the 133 refused ones was looked at: they hold no complete action"


def test_the_actions_as_built_take_the_papers_arguments() -> None:
    for name in BUILT.keys() & PAPER.keys():
        assert list(BUILT[name].parameters) == list(PAPER[name])
        example = read(f"Action: {name}\nAction Input: {json.dumps({key: '1' for key in PAPER[name]})}")
        assert parse_response(f"Action: {name}\nAction Input: {json.dumps(dict(example.arguments))}", ENTRIES, BUILT).action == name
