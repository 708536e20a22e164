"""Texts that can be written, whatever a model's JSON held."""

from __future__ import annotations

import pytest

from mlagentbench.util.text import encodable


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("plain", "plain"),
        ("schön 🙂 \\ud800", "schön 🙂 \\ud800"),
        ("a\ud800b", "a\\ud800b"),
        ("\udfff", "\\udfff"),
        ("\ud83d\ude42", "🙂"),
        ("\ude42\ud83d", "\\ude42\\ud83d"),
        ("\ud83d\ud83d\ude42", "\\ud83d🙂"),
    ],
)
def test_half_a_character_becomes_its_escape_and_two_that_belong_together_the_character(text: str, written: str) -> None:
    assert encodable(text) == written
    assert encodable(written) == written


def test_what_holds_texts_keeps_its_shape() -> None:
    value = {"\ud800": ["a\ud800", 1, None, {"b": (True, "\udc00")}], "c": 0.5}
    assert encodable(value) == {"\\ud800": ["a\\ud800", 1, None, {"b": [True, "\\udc00"]}], "c": 0.5}
