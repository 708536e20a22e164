"""Write the documents: one that states the rule of a station, the same of other stations, and some of other matters."""

from __future__ import annotations

import numpy as np

from mlagentbench.tasks.fresh.world import CODES, LETTERS, POWER, PRIME, SHARE, Family, HiddenRule

ABOUT: dict[Family, str] = {
    "table": "A case is a row of `train.csv` or `test.csv`. `heat` and `load` are measurements, and the other columns are whole numbers.",
    "text": "A case is a `text` of `train.csv` or `test.csv`, in the station's own language, which has the letters"
    f" {LETTERS}. The order of the words says nothing.",
    "graph": "A case is a node of a graph, with its `heat` and `charge` in `train.csv` or `test.csv`. `edges.csv` has the edges of all"
    " nodes: `source` and `target` are ids of cases, and `channel` and `grade` are whole numbers."
    " An edge says something of its source alone.",
}

OTHERS = (
    "The canteen of {station} moves to the second floor in spring. {other} lends its cooks until then.",
    "Cases of {station} are counted on the first day of each month. {other} counts on the second day.",
    "In its report of last year, {station} had {number} cases, as many as {other} and half again.",
    "The code of the front door of {station} is changed every week. Ask at the gate; {other} has the old locks still.",
    "{station} will paint its columns in grey, and {other} in green. The weights of the cranes are checked before.",
    "Whether a case of {station} is good is decided by its rule, and by nobody's opinion. Where {other} differs, its own note holds.",
    "The letters of {station} are answered within {number} days, those of {other} within twice as many.",
    "The edges of the roof of {station} were repaired. The workers of {other} did the grading of the yard.",
    "The heat at {station} rose to {number} degrees in summer. This makes cases better, as everybody can see, but not all of them.",
    "{station} and {other} exchange their keepers for {number} weeks. Their rules remain as they are.",
    "A visitor asked {station} for its rule of cases, and was shown the wall of notes. {other} has no wall.",
    "The modulus of the new beams at {station} is higher than at {other}; {number} of them were delivered.",
)
"""Documents of other matters, which name the station and use words of the rules."""


def about(family: Family, station: str) -> str:
    """Return what the agent is told of the data."""
    return f"# The cases\n\nThey come from the station {station}. {ABOUT[family]}\n"


def other(number: int, station: str, elsewhere: str, rng: np.random.Generator) -> str:
    """Return one of the documents of other matters, by its number."""
    return f"# A note\n\n{OTHERS[number].format(station=station, other=elsewhere, number=rng.integers(3, 40))}\n"


def statement(family: Family, station: str, rule: HiddenRule) -> str:
    """Return the document that states a station's rule."""
    return f"# A note\n\nOf the rule at {station}. {_STATED[family](rule)}\n"


def _sum(rule: HiddenRule) -> str:
    parts = [f"`{column}` times {weight}" for column, weight in zip(rule.columns, rule.weights, strict=True)]
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def _code(count: int) -> str:
    power = f"raise the sum to the power of {POWER}, take the remainder after division by {PRIME}"
    return f"{power}, and then the remainder after division by {count}"


def _of_table(rule: HiddenRule) -> str:
    return (
        f"Every case has a code: add {_sum(rule)}, {_code(CODES)}. Each code makes a case better or worse by an amount of its own. The"
        " amounts are nowhere written; past cases tell them."
    )


def _of_text(rule: HiddenRule) -> str:
    numbers = ", ".join(f"{letter} {weight}" for letter, weight in zip(LETTERS, rule.weights, strict=True))
    return (
        f"The letters have numbers: {numbers}. For each word, multiply the number of each letter by its place in the word, from 1, and add"
        f" these; {_code(3)}. A word with 1 makes a case better, a word with 2 worse by as much, and a word with 0 neither."
    )


def _of_graph(rule: HiddenRule) -> str:
    return (
        f"For each edge, add {_sum(rule)}, {_code(SHARE)}. Where 0 is left, the charge of the edge's target is added to its source, and the"
        " larger the sum, the better the case. All other edges pass on nothing."
    )


_STATED = {"table": _of_table, "text": _of_text, "graph": _of_graph}
