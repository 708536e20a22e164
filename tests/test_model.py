"""Scripted replies: read strictly, given in order, failing clearly."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from mlagentbench.errors import ScriptFailed, UsageError
from mlagentbench.model import GenerateOptions, Models, Reply, Script, all_replies
from mlagentbench.records import Usage
from tests.support import finish

YAML = """
- expect: train.py
  reply: one
- role: editor
  reply: edited
- expect: [a, b]
  reply: "two Observation: three"
  usage: {input_tokens: 7, output_tokens: 3}
"""
JSONL = '{"reply": "one", "expect": "train.py"}\n\n{"reply": "two\u2028more"}\n'


def write(path: Path, text: str) -> Script:
    path.write_text(text, encoding="utf-8")
    return Script.load(path)


def test_each_role_gets_its_own_replies_in_order(tmp_path: Path) -> None:
    models = Models.scripted(write(tmp_path / "replies.yaml", YAML))

    async def story() -> None:
        assert (await models.agent.generate("see train.py")).text == "one"
        assert (await models.editor.generate("anything")).text == "edited"
        second = await models.agent.generate("a and b", GenerateOptions(stop=("Observation:",)))
        assert second.text == "two "
        assert second.usage == Usage(input_tokens=7, output_tokens=3, calls=1)

    finish(story())


def test_jsonl_is_read_too(tmp_path: Path) -> None:
    script = write(tmp_path / "replies.jsonl", JSONL)
    assert script.reply("agent", 1, "").text == "two\u2028more"


def test_running_out_says_how_many_there_were(tmp_path: Path) -> None:
    script = write(tmp_path / "replies.yaml", YAML)
    with pytest.raises(ScriptFailed, match="has 2 replies for the role 'agent' and was asked for one more"):
        script.reply("agent", 2, "")


def test_an_expectation_that_does_not_hold_shows_the_prompt(tmp_path: Path) -> None:
    script = write(tmp_path / "replies.yaml", YAML)
    with pytest.raises(ScriptFailed, match=r"reply 1 .* expects 'train.py' in the prompt, which ends …'something else'"):
        script.reply("agent", 0, "something else")


@pytest.mark.parametrize(
    "name, text, complaint",
    [
        ("a.yaml", "reply: one", "must be a list"),
        ("a.yaml", "[]", "at least one"),
        ("a.yaml", "- just text", "reply 1 is not a mapping"),
        ("a.yaml", "- replay: one", "reply 1: reply: Field required"),
        ("a.yaml", "- {reply: one, roll: agent}", "roll: there is no such key"),
        ("a.yaml", "- {reply: one, role: chef}", "role: Input should be"),
        ("a.yaml", "- [", "no file of scripted replies"),
        ("a.jsonl", "{not json}", "no file of scripted replies"),
    ],
)
def test_a_bad_file_is_one_line(tmp_path: Path, name: str, text: str, complaint: str) -> None:
    with pytest.raises(UsageError) as error:
        write(tmp_path / name, text)
    assert complaint in str(error.value)
    assert "\n" not in str(error.value)


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read the scripted replies"):
        Script.named(str(tmp_path / "nowhere.yaml"))


def test_where_one_question_fails_the_others_are_given_up() -> None:
    ended = []

    async def asks(seconds: float, fails: bool) -> Reply:
        try:
            await asyncio.sleep(seconds)
        finally:
            ended.append(seconds)
        if fails:
            raise ScriptFailed("no reply")
        return Reply("reply", Usage(), "model")

    async def story() -> None:
        assert [reply.text for reply in await all_replies([asks(0.01, False), asks(0, False)])] == ["reply", "reply"]
        with pytest.raises(ScriptFailed):
            await all_replies([asks(60, False), asks(0.02, True)])

    finish(story())
    assert sorted(ended) == [0, 0.01, 0.02, 60], "none is left running"
