"""What a reply's arguments say: never another text than was written, and never slowly."""

from __future__ import annotations

import ast
import contextlib
import json
import random
import textwrap
import time
from pathlib import Path

import pytest

from mlagentbench import ResponseFormatError
from tests.agents.paper import read

FRAGMENTS = (
    *(
        '"',
        "'",
        "{",
        "}",
        "[",
        ":",
        ",",
        "\\",
        "\\n",
        "\\d",
        '\\"',
        "\n",
        "\r\n",
        "\t",
        " ",
        "#",
        "//",
        "```",
        "`",
        "\u201c",
        "\u2028",
        "é",
        "\b",
    ),
    *(
        "save_name",
        '"save_name": ',
        '"}',
        '"}\n',
        '", "',
        "Action: List Files\n",
        'Action Input: {"dir_path": "."}\n',
        "Observation:",
        "\n</think>\n",
    ),
    *("Thought: go\n", "```json\n", "it's", "\U0001f600", "C:\\new", "\\u00e9", "\\/", '"""', "${x}", "def f():\n    return {'a': 1}\n"),
)


def answer(value: str) -> str:
    """A reply whose only argument is written as given, quotes and all."""
    return f'Thought: go\nAction: Final Answer\nAction Input: {{"final_answer": {value}}}\n'


def edit(value: str, quote: str = '"') -> str:
    """A reply whose argument stands between two others."""
    pairs = ", ".join(
        f"{quote}{key}{quote}: {text}"
        for key, text in [("script_name", f"{quote}a.py{quote}"), ("edit_instruction", value), ("save_name", f"{quote}b.py{quote}")]
    )
    return f"Action: Edit Script (AI)\nAction Input: {{{pairs}}}"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (r'"a \"b\" \\ \/ \n \u00e9 \ud83d\ude00"', 'a "b" \\ / \n é \U0001f600'),
        ('"two\nlines\tand a tab"', "two\nlines\tand a tab"),
        ('"1. print \\"acc\\"\n2. save it"', '1. print "acc"\n2. save it'),
        (r'"the pattern \d+\.csv"', r"the pattern \d+\.csv"),
        (r'''"import re\np = re.compile(r'\d+')\n"''', "import re\np = re.compile(r'\\d+')\n"),
        (r'''"re \d\n'x' and 'y'\n"''', "re \\d\n'x' and 'y'\n"),
        (r'"if x:\n\tre.match(\"\d\")"', 'if x:\n\tre.match("\\d")'),
        ("""'say "hi"'""", 'say "hi"'),
        ("\u201csay it\u201d", "say it"),
        ('"say \u201chi\u201d"', "say \u201chi\u201d"),
        ('"""import os\nprint("hi")\n"""', 'import os\nprint("hi")\n'),
        ('"The flag "--fast" halves the time."', 'The flag "--fast" halves the time.'),
        ('"x = "a"\nprint("hi")\n"', 'x = "a"\nprint("hi")\n'),
        (r'"set "lr" to 0.1\nand run"', 'set "lr" to 0.1\nand run'),
        ('"write {"save_name": "x.py", "n": 1} to the log"', 'write {"save_name": "x.py", "n": 1} to the log'),
    ],
)
def test_a_text_is_read_as_it_was_meant(written: str, meant: str) -> None:
    assert read(answer(written)).arguments == {"final_answer": meant}
    assert read(edit(written)).arguments["edit_instruction"] == meant


@pytest.mark.parametrize(
    "written",
    [
        r'"use \alpha and \beta"',
        r'"open C:\data\new"',
        r'"match \d+\b"',
        r'''"match '\d+\n'"''',
        r'"\d and \\d"',
        r'"it\'s"',
        r'"train\_new.py"',
        r"""'re.compile(r"\d+")'""",
        r"""'it\'s'""",
        "`x = 1\ny = 2\n`",
        r'"\ud83d"',
        '"""print("a\\n")"""',
        '"print(\\"a\\n\\")\nprint(1)"',
        '"print("a\\n")"',
        "'print(\"a\\n\")\nprint(1)'",
        "'a\\/b'",
        '"a" "b"',
        '"a" + "b"',
        '"a"\n  "b"',
        '"x = "# a "b"\n',
        '"the 5" disk"',
        '"say "a", "why": "b""',
        '"print("}")"',
        "\u201csay \u201chi\u201d now\u201d",
        "```\nx = 1\n```",
        "train.py",
    ],
)
def test_a_text_that_can_be_read_in_two_ways_is_refused(written: str) -> None:
    for reply in (answer(written), edit(written)):
        with pytest.raises(ResponseFormatError, match="cannot be read"):
            read(reply)


@pytest.mark.parametrize(
    "written",
    [
        '{"file_name": "a.py", "content": "x",}',
        "{'file_name': 'a.py', 'content': 'x'}",
        '{"file_name" : "a.py" ,\n"content" : "x" }',
        '{"file_name": "a.py", # where\n "content": "x" // what\n}',
        '{"File Name": "a.py", "Content": "x"}',
        '{"file\\_name": "a.py", "content": "x"}',
        '{"content": "y", "file_name": "a.py", "content": "x"}',
        "{\u201cfile_name\u201d: \u201ca.py\u201d, \u201ccontent\u201d: \u201cx\u201d}",
    ],
)
def test_an_object_may_be_nearly_json(written: str) -> None:
    assert read(f"Action: Write File\nAction Input: {written}").arguments == {"file_name": "a.py", "content": "x"}


def test_apostrophes_in_single_quotes_are_text_where_the_keys_leave_no_doubt() -> None:
    assert read("Action: Final Answer\nAction Input: {'final_answer': 'it's fine, isn't it'}").arguments == {
        "final_answer": "it's fine, isn't it"
    }


def test_an_unknown_key_is_not_swallowed_by_the_text_before_it() -> None:
    with pytest.raises(ResponseFormatError):
        read('Action: Execute Script\nAction Input: {"script_name": "the "new" one", "extra": "x"}')


def test_valid_json_is_read_as_json_whatever_it_holds_and_whatever_surrounds_it() -> None:
    chance = random.Random(7)
    dresses = (
        "Thought: go\nAction: %s\nAction Input: %s",
        "**Action:** %s\n**Action Input:** ```json\n%s\n```\nI wait.",
        '5. Action: `%s`\n6. Action Input:\n%s\n\nObservation: x\nAction: List Files\nAction Input: {"dir_path": "/"}',
        "<think>hm</think>\n### Action\n%s\n### Action Input\n%s\n\nNote: {the output}.",
        "Action: %s %s",
    )
    for _ in range(3000):
        arguments = {
            "script_name": "a.py",
            "edit_instruction": "".join(chance.choices(FRAGMENTS, k=chance.randrange(12))),
            "save_name": "b.py",
        }
        written = json.dumps(arguments, ensure_ascii=chance.random() < 0.5, indent=chance.choice([None, 4]))
        reply = chance.choice(dresses) % ("Edit Script (AI)", written)
        assert read(reply)[1:] == ("Edit Script (AI)", arguments), reply


@pytest.mark.parametrize("escape", [str, lambda code: code.replace("\n", "\\n"), lambda code: code.replace('"', '\\"')])
@pytest.mark.parametrize("quote", ['"', "'"])
def test_code_pasted_without_care_comes_out_as_it_was_or_not_at_all(escape: type[str], quote: str) -> None:
    sources = [Path(str(module.__file__)).read_text() for module in (textwrap, random, json)]
    lines = [line for source in sources for line in source.splitlines() if "\\\\" not in line]  # doubled, they would look like care
    chance = random.Random(11)
    taken = 0
    for _ in range(1500):
        start = chance.randrange(len(lines))
        code = "\n".join(lines[start : start + chance.choice([1, 1, 2, 5, 20])])
        reply = edit(f"{quote}{escape(code)}{quote}", quote)
        try:
            found = read(reply).arguments["edit_instruction"]
        except ResponseFormatError:
            continue
        taken += 1
        try:  # what is valid means what it says, even if its author meant something else
            meant = (json.loads if quote == '"' else ast.literal_eval)(reply[reply.index("{") :])["edit_instruction"]
        except (ValueError, SyntaxError):
            meant = code
        assert found == meant, reply
    assert taken > 500


UNITS = (
    *("Action: ", "Action:\n", "Action: List Files\n", "Action: List Files\nAction Input: {\n", "Action: List Files\nAction Input: {}\n"),
    *(
        "Action Input:",
        "Action Input:\n",
        'Action: X\nAction Input: {"a": 1}\n',
        "Reflection:\n",
        "Reflection:\nAction:\n",
        "Observation:\n",
    ),
    *(
        "<think>",
        "</think>\n",
        '{"action": ',
        '{"name": "List Files", "arguments": ',
        "{",
        "}",
        "[",
        '{"a":',
        '"',
        "'",
        '"""',
        "`",
        "\\",
        '\\"',
    ),
    *(
        "(",
        "Execute Script(",
        "Action: ```\n",
        "Execute Script\n{\n",
        "<a><b>",
        "dir_path: x\n",
        "Action: List Files\nAction Input: x.y\n",
        "{{",
    ),
    *("\\n", "\n", " ", "# \n", "**\n", "a", '", "script_name": "', '"}\n', '" }'),
)


@pytest.mark.parametrize("unit", UNITS)
def test_a_long_reply_of_one_thing_is_read_in_a_time_that_its_length_does_not_square(unit: str) -> None:
    for head in ("", "Action: Execute Script\nAction Input: ", 'Action: Execute Script\nAction Input: {"script_name": "'):
        reply = head + unit * (200_000 // len(unit)) + '"}'
        # It takes less than 0.1 s, on a slow machine some times as much; with a step for each pair of characters it would take hours.
        assert any(seconds(reply) < 1.0 for _ in range(5))


def seconds(reply: str) -> float:
    """The processor's time that reading a reply takes."""
    started = time.process_time()
    with contextlib.suppress(ResponseFormatError):
        read(reply)
    return time.process_time() - started
