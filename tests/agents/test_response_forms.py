"""Replies in all the forms that models write: hard cases, each with what a careful person would read in it, and any action in each form."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from mlagentbench import ResponseFormatError
from tests.agents.paper import ACTIONS, DATA, read
from tests.agents.test_response_values import FRAGMENTS

SHARED = Path(__file__).parents[3] / "shared" / "data"
HARD = [json.loads(line) for line in (DATA / "hard_replies.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("case", HARD, ids=lambda case: case["name"])
def test_a_hard_reply_is_read_as_a_careful_person_would(case: dict[str, object]) -> None:
    if "refused" in case:
        with pytest.raises(ResponseFormatError) as caught:
            read(str(case["reply"]))
        assert str(case["refused"]) in str(caught.value).splitlines()[0]
        assert "\nAction: " in str(caught.value), "it shows what to write"
    else:
        assert read(str(case["reply"]))[1:] == (case["action"], case["arguments"])


def test_a_reply_that_was_cut_off_is_read_as_the_whole_one_or_refused() -> None:
    chance = random.Random(5)
    whole = [case for case in HARD if "refused" not in case and "<think" not in case["reply"]]  # a draft is all that a cut leaves of some
    assert len(whole) > 110
    for case in whole:
        reply = case["reply"]
        for end in chance.sample(range(len(reply)), min(12, len(reply))):
            try:
                found = read(reply[:end])
            except ResponseFormatError:
                continue
            assert found[1:] == (case["action"], case["arguments"]), reply[:end]


@pytest.mark.skipif(not SHARED.is_dir(), reason=f"the larger sets of replies are not at {SHARED}")
def test_each_value_of_a_real_reply_stands_in_it() -> None:
    accepted = 0
    for line in (SHARED / "real_completions.jsonl").read_text().splitlines():
        text = json.loads(line)["text"]
        try:
            arguments = read(text).arguments
        except ResponseFormatError:
            continue
        accepted += 1
        for value in arguments.values():
            forms = (str(value), json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], str(value).replace("\n", "\\n"))
            assert any(form in text for form in forms), value
    assert accepted == 359


Form = Callable[[str, Mapping[str, object]], str]

EXACT: Mapping[str, Form] = {
    "the paper's": lambda name, given: f"Thought: go\nAction: {name}\nAction Input: {json.dumps(given, indent=4)}\n",
    "bold, fenced": lambda name, given: f"**Action:** {name}\n\n**Action Input:**\n```json\n{json.dumps(given)}\n```\nI wait.",
    "headings": lambda name, given: f"### 4. Action\n{name}\n### 5. Action Input\n{json.dumps(given, ensure_ascii=False)}",
    "thinking before": lambda name, given: f"<think>Or {json.dumps({'a': 1})}?</think>\nAction: {name}\nAction Input: {json.dumps(given)}",
    "observation behind": lambda name, given: (
        f"Action: {name}\nAction Input: {json.dumps(given)}\nObservation: done\nAction: {name}\nAction"
    ),
}
"""Ways to write any arguments so that they mean exactly one thing."""

LOOSE: Mapping[str, Form] = {
    "Python's object": lambda name, given: f"Action: {name}\nAction Input: {dict(given)!r}",
}
"""Ways that leave some arguments in doubt; those are refused."""


def any_action(chance: random.Random) -> tuple[str, dict[str, object]]:
    """An action, with any text and numbers."""
    name = chance.choice(sorted(ACTIONS))
    given: dict[str, object] = {
        key: chance.randrange(10**6) if parameter.type is int else "".join(chance.choices(FRAGMENTS, k=chance.randrange(1, 10)))
        for key, parameter in ACTIONS[name].parameters.items()
    }
    return name, given


@pytest.mark.parametrize("form", EXACT)
def test_any_action_in_a_clear_form_is_read_back_exactly(form: str) -> None:
    chance = random.Random(form)
    for _ in range(300):
        name, given = any_action(chance)
        reply = EXACT[form](name, given)
        assert read(reply)[1:] == (name, given), reply


@pytest.mark.parametrize("form", LOOSE)
def test_any_action_in_a_loose_form_is_read_back_exactly_or_refused(form: str) -> None:
    chance = random.Random(form)
    taken = 0
    for _ in range(400):
        name, given = any_action(chance)
        reply = LOOSE[form](name, given)
        try:
            found = read(reply)
        except ResponseFormatError:
            continue
        assert found[1:] == (name, given), reply
        taken += 1
    assert taken > 10
