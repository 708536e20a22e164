"""Generate the mini variant's text: sentences of a small grammar, in a style of its own for each source.

A model can learn from it spelling, word order, agreement in number over a distance, the tense of a line, and pronouns that refer to an
earlier name. A line keeps to a few nouns, verbs and adjectives, so that the more of it a model sees, the better it predicts the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

SOURCES = (
    "aochildes",
    "bnc_spoken",
    "cbt",
    "children_stories",
    "gutenberg",
    "open_subtitles",
    "qed",
    "simple_wikipedia",
    "switchboard",
    "wikipedia",
)


def _words(text: str) -> list[str]:
    return text.split()


_NOUNS = _words(
    "baker bird boat cat chair cloud dog farmer fish friend hill horse king letter lion poet queen river road sailor song tower tree window"
)
_IRREGULAR = {"fish": "fish"}
_TRANSITIVE = _words(
    "admire/admired bring/brought build/built carry/carried draw/drew find/found follow/followed help/helped hide/hid know/knew love/loved"
    " see/saw"
)
_INTRANSITIVE = _words("dance/danced fall/fell laugh/laughed sing/sang sleep/slept wait/waited")
"""Verbs with their past forms."""
_ADJECTIVES = _words("bright cold early famous green large old quiet strange tired")
_ADVERBS = ("again", "at once", "often", "slowly", "together")
_PLACES = _words("behind near under with")
_NAMES = {"she": _words("Anna Lucy Ruth"), "he": _words("Adam Jack Peter")}
_YEARS = range(1800, 2020, 20)
_CONJUNCTIONS = (" and ", " but ", " because ", " while ", " until ")


SENTENCES = (10, 20)
"""The least sentences of a line, and one more than the most."""


class _Topic(NamedTuple):
    """The words that a line keeps to."""

    nouns: list[str]
    transitive: list[str]
    intransitive: list[str]
    adjectives: list[str]


class Style(NamedTuple):
    """A source's style."""

    openings: tuple[str, ...] = ()
    """Texts that a sentence may begin with."""
    opening: float = 0.0
    """The probability that it begins with one."""
    joined: float = 0.1
    """The probability that a sentence has two clauses."""
    names: float = 0.2
    """The probability that a subject is a person with a name."""
    past: float = 0.5
    """The probability that a line is in the past tense."""
    speaker: str = ""
    """The text that a line begins with."""
    ends: str = "."


_STYLES: dict[str, Style] = {
    "aochildes": Style(("look , ", "do you see how ", "oh , "), 0.5, 0.02, 0.1, 0.1, "", "?"),
    "bnc_spoken": Style(("well , ", "I mean , ", "you know , "), 0.6, 0.2, 0.2, 0.5),
    "cbt": Style(("Then ", "So ", "At last "), 0.3, 0.4, 0.4, 0.95),
    "children_stories": Style(("Once upon a time ", "One day "), 0.3, 0.3, 0.5, 1.0),
    "gutenberg": Style(("Indeed , ", "Alas , ", "It was said that "), 0.3, 0.6, 0.3, 0.9),
    "open_subtitles": Style(("- Hey , ", "- No , ", "- Listen , "), 0.5, 0.05, 0.4, 0.3, "", "!"),
    "qed": Style(("So now ", "Let us say that ", "Remember that "), 0.5, 0.3, 0.05, 0.1),
    "simple_wikipedia": Style(("In {year} , ",), 0.4, 0.05, 0.3, 0.7),
    "switchboard": Style(("uh , ", "yeah , ", "I think that "), 0.6, 0.3, 0.1, 0.3, "{letter}: "),
    "wikipedia": Style(("In {year} , ", "Until {year} , ", "According to {name} , "), 0.5, 0.5, 0.3, 0.9),
}


def text(source: str, lines: int, rng: np.random.Generator) -> str:
    """Generate lines of a source, each with its line end."""
    return "".join(_line(_STYLES[source], rng) + "\n" for _ in range(lines))


class _Clause(NamedTuple):
    words: str
    pronoun: str
    """The pronoun for its subject."""


def _line(style: Style, rng: np.random.Generator) -> str:
    """Generate sentences of one topic in one tense; a later one may refer to the first one's subject."""
    topic = _Topic(*(_some(words, count, rng) for words, count in ((_NOUNS, 3), (_TRANSITIVE, 2), (_INTRANSITIVE, 2), (_ADJECTIVES, 2))))
    past = rng.random() < style.past
    sentences: list[str] = []
    pronoun = ""
    for _ in range(int(rng.integers(*SENTENCES))):
        clause = _clause(style, topic, past, pronoun if rng.random() < 0.5 else "", rng)
        words, pronoun = clause.words, pronoun or clause.pronoun
        if rng.random() < style.joined:
            words += _pick(_CONJUNCTIONS, rng) + _clause(style, topic, past, clause.pronoun if rng.random() < 0.4 else "", rng).words
        if rng.random() < style.opening:
            words = _pick(style.openings, rng) + words
        words = words.format(year=_YEARS[int(rng.integers(len(_YEARS)))], name=_pick(_NAMES["he"] + _NAMES["she"], rng))
        sentences.append(f"{words[0].upper()}{words[1:]} {style.ends if rng.random() < 0.8 else '.'}")
    return style.speaker.format(letter=_pick(("A", "B"), rng)) + " ".join(sentences)


def _clause(style: Style, topic: _Topic, past: bool, pronoun: str, rng: np.random.Generator) -> _Clause:
    if pronoun:
        subject = pronoun
    elif rng.random() < style.names:
        pronoun = _pick(("she", "he"), rng)
        subject = _pick(_NAMES[pronoun], rng)
    else:
        plural = rng.random() < 0.35
        pronoun = "they" if plural else "it"
        subject = _noun_phrase(topic, plural, past, 0, rng)
    return _Clause(f"{subject} {_verb_phrase(topic, pronoun == 'they', past, 0, rng)}", pronoun)


def _noun_phrase(topic: _Topic, plural: bool, past: bool, depth: int, rng: np.random.Generator) -> str:
    noun = _pick(topic.nouns, rng)
    words = [_pick(("the", "some", "these", "many") if plural else ("the", "a", "this", "every"), rng)]
    if rng.random() < 0.4:
        words.append(_pick(topic.adjectives, rng))
    words.append(_IRREGULAR.get(noun, noun + "s") if plural else noun)
    if words[0] == "a" and words[1][0] in "aeiou":
        words[0] = "an"
    if depth < 2 and rng.random() < 0.2:
        other = rng.random() < 0.35
        words += [_pick(_PLACES, rng), _noun_phrase(topic, other, past, depth + 1, rng)]
    elif depth < 2 and rng.random() < 0.1:
        words += ["that", _verb_phrase(topic, plural, past, depth + 1, rng)]
    return " ".join(words)


def _verb_phrase(topic: _Topic, plural: bool, past: bool, depth: int, rng: np.random.Generator) -> str:
    transitive = rng.random() < 0.65
    base, before = _pick(topic.transitive if transitive else topic.intransitive, rng).split("/")
    words = [before if past else base if plural else _third_person(base)]
    if transitive:
        words.append(_noun_phrase(topic, bool(rng.random() < 0.35), past, depth, rng))
    if rng.random() < 0.2:
        words.append(_pick(_ADVERBS, rng))
    return " ".join(words)


def _third_person(verb: str) -> str:
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return verb[:-1] + "ies"
    return verb + ("es" if verb.endswith(("ch", "s", "sh", "x")) else "s")


def _pick(words: Sequence[str], rng: np.random.Generator) -> str:
    return words[int(rng.integers(len(words)))]


def _some(words: Sequence[str], count: int, rng: np.random.Generator) -> list[str]:
    return [words[place] for place in rng.permutation(len(words))[:count]]
