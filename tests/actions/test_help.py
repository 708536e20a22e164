"""Help is had from a person, where there is one."""

from __future__ import annotations

from tests.support import MakeEnvironment, do, perform

ASK = do("Request Help", request="Which metric?")


def test_a_person_is_asked_and_answers(make_environment: MakeEnvironment) -> None:
    async def person(request: str) -> str:
        return f"You asked: {request}"

    (step,) = perform(make_environment(person=person), ASK)

    assert step.observation == "You asked: Which metric?"


def test_where_nobody_watches_the_agent_is_told(make_environment: MakeEnvironment) -> None:
    (step,) = perform(make_environment(), ASK)

    assert step.status == "error" and "Nobody watches" in step.observation
