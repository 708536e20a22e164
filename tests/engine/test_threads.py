"""Which requests of an agent are its steps: its main thread, whatever it asks beside it."""

from __future__ import annotations

import pytest
from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageSystem, ChatMessageTool, ChatMessageUser, ModelOutput
from inspect_ai.tool import ToolCall, ToolFunction

from mlagentbench.engine.agents.threads import MainThread, called

TASK = ChatMessageUser(content="Improve train.py.")
TOOLS = ["Bash", "Task"]


def reply(text: str, *calls: tuple[str, str]) -> ChatMessageAssistant:
    """A reply that calls tools, each by its name and its id."""
    return ChatMessageAssistant(
        content=text, tool_calls=[ToolCall(id=id, function=name, arguments={"x": id}) for name, id in calls] or None
    )


def result(id: str, text: str) -> ChatMessageTool:
    return ChatMessageTool(content=text, tool_call_id=id)


def asked(thread: MainThread, messages: list[ChatMessage], answer: ChatMessageAssistant, tools: list[str] = TOOLS) -> str:
    """A request and its reply: what it belongs to."""
    found = thread.of(messages, tools, None)
    if found == "agent":
        thread.take(messages, tools, ModelOutput.from_message(answer))
    return found


def test_a_conversation_that_goes_on_is_the_main_thread_and_its_news_are_the_observation() -> None:
    thread = MainThread()
    first = reply("Look.", ("Bash", "a"))
    assert asked(thread, [TASK], first) == "agent"
    more: list[ChatMessage] = [
        ChatMessageSystem(content="You code."),
        TASK,
        first,
        result("a", "train.py"),
        ChatMessageUser(content="Go on."),
    ]
    assert thread.of(more, TOOLS, None) == "agent"
    assert thread.news(more) == "train.py\nGo on."


@pytest.mark.parametrize("tools", [[], ["answer"]])
def test_a_question_without_tools_or_with_a_set_answer_is_a_side_call(tools: list[str]) -> None:
    thread = MainThread()
    asked(thread, [TASK], reply("Look.", ("Bash", "a")))
    choice = ToolFunction(name="answer") if tools else None
    assert thread.of([ChatMessageUser(content="Give this a title.")], tools, choice) == "side call"


def test_a_question_before_the_tools_are_known_is_found_to_be_none_of_the_main_thread() -> None:
    thread = MainThread()
    title = reply("A title")
    asked(thread, [ChatMessageUser(content="Give this a title.")], title, [])
    assert thread.begins([TASK], TOOLS)
    assert not thread.begins([TASK, title, ChatMessageUser(content="Now do it.")], TOOLS)


def test_a_sub_agent_has_a_task_of_its_own_while_the_main_thread_waits_for_it() -> None:
    thread = MainThread()
    start = reply("", ("Task", "a"))
    asked(thread, [TASK], start)
    own: list[ChatMessage] = [ChatMessageUser(content="Read the data.")]
    assert thread.of(own, ["Bash"], None) == "sub-agent"
    assert thread.of([*own, reply("", ("Bash", "b")), result("b", "rows")], ["Bash"], None) == "sub-agent"
    assert thread.of([TASK, start, result("a", "It has rows.")], TOOLS, None) == "agent"


def test_a_request_that_is_sent_again_is_the_main_thread_s() -> None:
    thread = MainThread()
    asked(thread, [TASK], reply("", ("Bash", "a")))
    assert thread.of([TASK], TOOLS, None) == "agent"
    assert thread.news([TASK]) == ""


def test_a_conversation_that_was_made_shorter_goes_on() -> None:
    thread = MainThread()
    asked(thread, [TASK], reply("", ("Bash", "a")))
    summary = reply("I have looked at train.py.")
    asked(thread, [TASK, reply("", ("Bash", "a")), result("a", "train.py"), ChatMessageUser(content="Sum it up.")], summary)
    assert thread.of([ChatMessageUser(content="Go on from: I have looked at train.py.")], TOOLS, None) == "agent"


def test_an_agent_that_begins_anew_with_every_request_has_one_thread() -> None:
    thread = MainThread()
    for number in range(3):
        assert asked(thread, [ChatMessageUser(content=f"Write solution {number}.")], reply(f"print({number})"), []) == "agent"
    assert thread.of([ChatMessageUser(content="Judge it.")], ["review"], ToolFunction(name="review")) == "side call"


def test_the_calls_of_a_reply_are_one_action() -> None:
    assert called(reply("Hm.")) == ("Reply", {})
    assert called(reply("", ("Bash", "a"))) == ("Bash", {"x": "a"})
    name, arguments = called(reply("", ("Bash", "a"), ("Read", "b"), ("Bash", "c")))
    assert (name, len(arguments["calls"])) == ("Bash + Read", 3)  # type: ignore[arg-type]
