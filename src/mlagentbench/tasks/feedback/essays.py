"""Make up essays with the columns of Kaggle's table, whose texts reflect their scores.

A writer has six correlated skills. They decide about connectives (cohesion), clauses in a sentence (syntax), rare words (vocabulary),
idioms (phraseology), verb forms and articles (grammar), and spelling, capitals and full stops (conventions).
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from typing import TypeVar

import polars as pl

SCORES = ("cohesion", "syntax", "vocabulary", "phraseology", "grammar", "conventions")
GENERAL_SPREAD, OWN_SPREAD = 0.8, 0.55
"""Standard deviations of a writer's general skill, and of each of the six skills around it."""
MEAN, SLOPE, NOISE = 3.1, 0.62, 0.22
"""A score's mean, its slope by skill and its noise, before it is rounded to a half."""
SENTENCES = (8, 17)

CONNECTIVES = ("However,", "Therefore,", "For example,", "In addition,", "On the other hand,", "As a result,", "First of all,", "Finally,")
CONJUNCTIONS = ("because", "although", "so that", "while", "since")
IDIOMS = ("in the long run", "from time to time", "at the same time", "in my point of view", "on a daily basis", "once in a lifetime")
CLUMSY = ("in the time very long", "in some of times", "to the finish of all", "by the view of me")
SUBJECTS = (
    ("people", "students", "my friends", "kids", "we", "teachers"),
    ("adolescents", "individuals", "communities", "educators", "citizens"),
)
VERBS = (
    (("need", "needs"), ("like", "likes"), ("make", "makes"), ("want", "wants"), ("get", "gots"), ("see", "seen"), ("find", "finded")),
    (("demonstrate", "demonstrates"), ("acquire", "acquired"), ("appreciate", "appreciates"), ("encounter", "encounting")),
)
"""Common and rare verbs, each with a right and a wrong form."""
ADJECTIVES = (("good", "bad", "big", "nice", "new", "hard"), ("beneficial", "significant", "challenging", "essential", "remarkable"))
NOUNS = (
    ("school", "work", "thing", "time", "phone", "place", "job", "class", "home", "food"),
    ("opportunity", "environment", "responsibility", "perspective", "technology", "experience", "consequence"),
)
NAMES = ("LOCATION_NAME", "PROPER_NAME", "SCHOOL_NAME", "TEACHER_NAME")
"""Placeholders for names that were removed."""

Skill = Mapping[str, float]
T = TypeVar("T")


def essays(count: int, seed: int) -> pl.DataFrame:
    """Make up essays.

    Returns:
        `count` rows, sorted by `text_id`, with `full_text` and the six scores as text.
    """
    rng = random.Random(seed)
    rows = []
    for number in sorted(rng.sample(range(16**12), count)):
        skills = _skills(rng)
        scores = {name: str(_score(skill, rng)) for name, skill in skills.items()}
        shown = {name: 1 / (1 + math.exp(-1.4 * skill)) for name, skill in skills.items()}
        rows.append({"text_id": f"{number:012X}", "full_text": _essay(shown, rng), **scores})
    return pl.DataFrame(rows)


def _skills(rng: random.Random) -> Skill:
    general = rng.gauss(0, GENERAL_SPREAD)
    return {name: general + rng.gauss(0, OWN_SPREAD) for name in SCORES}


def _score(skill: float, rng: random.Random) -> float:
    return min(5.0, max(1.0, round(2 * (MEAN + SLOPE * skill + rng.gauss(0, NOISE))) / 2))


def _essay(skill: Skill, rng: random.Random) -> str:
    """Write some paragraphs; `skill` is from 0 to 1 here."""
    text = ""
    count = rng.randint(*SENTENCES)
    for place in range(count):
        text += _sentence(skill, rng)
        if place + 1 < count:
            text += "\n\n" if rng.random() < 0.2 else " "
    return text


def _sentence(skill: Skill, rng: random.Random) -> str:
    clauses = 1 + (rng.random() < skill["syntax"]) + (rng.random() < skill["syntax"])
    words = _clause(skill, rng)
    for _ in range(clauses - 1):
        words += [*rng.choice(CONJUNCTIONS).split(), *_clause(skill, rng)]
    if rng.random() < 0.4:
        words += (rng.choice(IDIOMS) if rng.random() < skill["phraseology"] else rng.choice(CLUMSY)).split()
    if rng.random() < 0.05:
        words += ["in", rng.choice(NAMES)]
    if rng.random() < 0.05 + 0.5 * skill["cohesion"]:
        words = [*rng.choice(CONNECTIVES).split(), *words]
    text = " ".join(_typed(word, skill, rng) for word in words)
    careful = 0.35 + 0.6 * skill["conventions"]
    if rng.random() < careful:
        text = text[0].upper() + text[1:]
    return text + ("." if rng.random() < careful else "")


def _clause(skill: Skill, rng: random.Random) -> list[str]:
    """Write a clause: somebody does something to something."""

    def word(plain_and_rare: tuple[Sequence[T], Sequence[T]]) -> T:
        return rng.choice(plain_and_rare[rng.random() < 0.08 + 0.5 * skill["vocabulary"]])

    wrong = 0.5 * (1 - skill["grammar"])
    verb = word(VERBS)[rng.random() < wrong]
    article = [] if rng.random() < wrong else ["the"]
    return [*word(SUBJECTS).split(), verb, *article, word(ADJECTIVES), word(NOUNS)]


def _typed(word: str, skill: Skill, rng: random.Random) -> str:
    """Return a word, sometimes with a letter left out."""
    if len(word) > 3 and word.islower() and rng.random() < 0.2 * (1 - skill["conventions"]):
        place = rng.randrange(1, len(word) - 1)
        return word[:place] + word[place + 1 :]
    return word
