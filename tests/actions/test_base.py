"""An action is one typed function; its prompt text and its argument check come from it."""

from __future__ import annotations

import json
from typing import Annotated

import pytest

from mlagentbench import ActionContext, ActionError, action
from mlagentbench.actions import ACTIONS
from mlagentbench.actions.base import ActionDefinition


@action("Measure (twice)", returns="Two numbers.")
async def measure(
    context: ActionContext,
    what: Annotated[str, "a thing"],
    times: Annotated[int, "how often"] = 2,
    scale: Annotated[float, "a factor"] = 1.0,
    loud: Annotated[bool, "say it"] = False,
) -> str:
    """Measure a thing."""
    return what * times


def test_a_definition_says_what_its_function_says() -> None:
    assert (measure.name, measure.tool_name, measure.description) == ("Measure (twice)", "measure_twice", "Measure a thing.")
    assert json.loads(measure.usage) == {"what": "[a thing]", "times": "[how often]", "scale": "[a factor]", "loud": "[say it]"}
    assert [parameter.required for parameter in measure.parameters.values()] == [True, False, False, False]


def test_defaults_fill_in() -> None:
    assert measure.check({"what": "x"}) == {"what": "x", "times": 2, "scale": 1.0, "loud": False}


@pytest.mark.parametrize("given, meant", [("3", 3), (3.0, 3), ("3.0", 3), (3, 3)])
def test_a_whole_number_may_come_as_text(given: str | float, meant: int) -> None:
    assert measure.check({"what": "x", "times": given})["times"] == meant


@pytest.mark.parametrize(
    "arguments, complaint",
    [
        ({}, "lacks 'what'"),
        ({"what": "x", "when": "now"}, "does not take 'when'"),
        ({"what": 3}, "what must be text"),
        ({"what": "x", "times": "many"}, "times must be a whole number"),
        ({"what": "x", "times": 2.5}, "times must be a whole number"),
        ({"what": "x", "times": True}, "times must be a whole number"),
        ({"what": "x", "times": "inf"}, "times must be a whole number"),
        ({"what": "x", "loud": "yes"}, "loud must be true or false"),
        ({"what": None}, "what must be text"),
    ],
)
def test_a_wrong_argument_is_answered_with_the_usage(arguments: dict[str, object], complaint: str) -> None:
    with pytest.raises(ActionError) as error:
        measure.check(arguments)  # type: ignore[arg-type]
    assert complaint in str(error.value)
    assert measure.usage in str(error.value)


def test_the_papers_actions_are_found_by_its_names() -> None:
    names = {"List Files", "Read File", "Inspect Script Lines", "Edit Script (AI)", "Undo Edit Script", "Execute Script", "Final Answer"}
    assert names <= set(ACTIONS)
    assert all(
        isinstance(definition, ActionDefinition) and definition.description and definition.returns for definition in ACTIONS.values()
    )
