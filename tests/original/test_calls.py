"""Logs of model calls are taken apart into prompts and replies, whatever stands in them."""

from __future__ import annotations

from mlagentbench.original.calls import read_calls
from mlagentbench.original.own_agents import reads

PROMPT = "\n===================prompt=====================\n"
REPLY = "\n===================gpt-4 response (2000)=====================\n"
TOKENS = "\n===================tokens=====================\nNumber of prompt tokens: {}\nNumber of sampled tokens: {}\n\n\n"


def logged(prompt: str, reply: str, sent: int = 7, sampled: int = 3) -> str:
    """A call as the original logs it."""
    return PROMPT + prompt + REPLY + reply + TOKENS.format(sent, sampled)


def test_calls_come_apart_as_they_were_written() -> None:
    found = read_calls(logged("One?\n", "\nOne.\n\n", 12, 5) + logged("Two?", ""))
    assert [(call.prompt, call.reply, call.model, call.input_tokens, call.output_tokens, call.whole) for call in found] == [
        ("One?\n", "\nOne.\n\n", "gpt-4", 12, 5, True),
        ("Two?", "", "gpt-4", 7, 3, True),
    ]
    assert read_calls("") == read_calls("Nothing of the kind.") == []


def test_a_prompt_that_quotes_a_log_is_one_prompt() -> None:
    quoted = "Look at this:" + logged("An inner prompt.", "An inner reply.").rstrip("\n") + "\nWhat is wrong with it?"
    (found,) = read_calls(logged(quoted, "Nothing."))
    assert (found.prompt, found.reply) == (quoted, "Nothing.")


def test_a_call_that_breaks_off_does_not_take_the_next_one_with_it() -> None:
    whole = logged("Two?", "Two.")
    for torn, prompt, reply in (
        (PROMPT + "One", "One", ""),
        (PROMPT + "One?" + REPLY + "On", "One?", "On"),
        (PROMPT + "One?" + REPLY + "One." + TOKENS[:52], "One?", "One."),
    ):
        first, second = read_calls(torn + whole)
        assert (first.prompt, first.reply, first.input_tokens, first.whole) == (prompt, reply, 0, False)
        assert (second.prompt, second.reply, second.whole) == ("Two?", "Two.", True)
        (last,) = read_calls(torn)
        assert (last.prompt, last.reply, last.whole) == (prompt, reply, False)


def test_an_object_in_the_place_of_a_models_name_is_no_name() -> None:
    (found,) = read_calls(logged("One?", "One.").replace("gpt-4", "<GenerativeModel object at 0x7f>"))
    assert found.as_call("fast", "summary", {"agent": "gemini-pro", "fast": "gemini-pro-vision"}).model == "gemini-pro-vision"


def test_replies_are_read_as_the_original_reads_them() -> None:
    entries = ("Thought", "Action", "Action Input")
    reply = "Well. Thought: I quote 'Action: no'.\nAction: List Files\nAction Input: {}\nObservation: x"
    assert reads(reply, entries) == {
        "Thought": " I quote 'Action: no'.\n",
        "Action": " List Files\n",
        "Action Input": " {}\nObservation: x",
    }
    assert reads(reply.replace("List Files", "Look Around"), entries) is None
    assert reads(reply.replace("Thought", "Idea"), entries) is None
    assert reads("Action Input: {}\nAction: List Files\nThought: All is there, in another order.", entries) is None
