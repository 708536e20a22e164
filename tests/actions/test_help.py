"""Help is had from a person, where there is one."""

from __future__ import annotations

from mlagentbench.records import Action
from tests.support import MakeEnvironment, finish

ASK = Action(name="Request Help", arguments={"request": "Which metric?"})


def test_a_person_is_asked_and_answers(make_environment: MakeEnvironment) -> None:
    async def person(request: str) -> str:
        return f"You asked: {request}"

    environment = make_environment(person=person)

    async def story() -> None:
        await environment.start()
        assert (await environment.execute(ASK)).observation == "You asked: Which metric?"

    finish(story())


def test_where_nobody_watches_the_agent_is_told(make_environment: MakeEnvironment) -> None:
    environment = make_environment()

    async def story() -> None:
        await environment.start()
        step = await environment.execute(ASK)
        assert step.status == "error"
        assert "Nobody watches" in step.observation

    finish(story())
