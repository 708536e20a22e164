"""Write docstrings of a library that does not exist, so that no copy of them is in any package or any model's training data.

Nouns, verbs and adjectives are invented for each library, some far more frequent than others; the language around them is that of Python's
documentation. A model can learn the words and their spelling, how names are made of them, the sections and their layout, and what repeats:
parameters in their descriptions, a function in its example, the exceptions and constants of a module.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


def _split(words: str) -> list[str]:
    return words.split()


ONSETS = _split("b br c ch d dr f fl g gl gr h j k l m n p pl pr qu r s sc sh sl sp st t th tr v w z")
VOWELS = _split("a e i o u ai ea oo ou")
ENDS = _split("b ck d ft g ll lm m n nd ng nt p r rd rk rn rt s sk ss st t x")
NOUNS, VERBS, ADJECTIVES = 320, 110, 90
TYPES = ("int", "str", "bytes", "float", "bool", "list", "dict", "callable", "file object", "iterable")
ERRORS = ("ValueError", "TypeError", "KeyError", "OSError", "IndexError", "RuntimeError")
WIDTH = 72


class Words(NamedTuple):
    """The words of a library, most frequent first."""

    nouns: Sequence[str]
    verbs: Sequence[str]
    adjectives: Sequence[str]


class Module(NamedTuple):
    """Words and names that the docstrings of one module share."""

    words: Words
    """The library's words, in an order of this module."""
    functions: Sequence[str]
    error: str
    constants: Sequence[str]


def write_docstrings(count: int, rng: np.random.Generator) -> list[str]:
    """Write `count` different docstrings of a new library, in random order."""
    words = Words(*(_invented(size, rng) for size in (NOUNS, VERBS, ADJECTIVES)))
    found: dict[str, None] = {}
    while len(found) < count:
        module = _module(words, rng)
        for _ in range(int(rng.integers(6, 16))):
            found[_docstring(module, rng)] = None
    return [list(found)[place] for place in rng.permutation(len(found))[:count]]


def _invented(count: int, rng: np.random.Generator) -> list[str]:
    """Invent different words of one to three syllables."""
    found: dict[str, None] = {}
    while len(found) < count:
        syllables = int(rng.choice((1, 2, 3), p=(0.3, 0.5, 0.2)))
        found["".join(_any(ONSETS, rng) + _any(VOWELS, rng) for _ in range(syllables)) + _any(ENDS, rng)] = None
    return list(found)


def _module(words: Words, rng: np.random.Generator) -> Module:
    """Make a module with its own names, and with some of the library's words more frequent."""
    own = Words(*(_mixed(each, rng) for each in words))
    functions = [f"{_pick(own.verbs, rng)}_{_pick(own.nouns, rng)}" for _ in range(8)]
    error = _pick(own.nouns, rng).title() + "Error"
    constants = [f"{_pick(own.adjectives, rng)}_{_pick(own.nouns, rng)}".upper() for _ in range(4)]
    return Module(own, functions, error, constants)


def _mixed(words: Sequence[str], rng: np.random.Generator) -> list[str]:
    """Return the words with a tenth of them moved to the front."""
    chosen = set(rng.choice(len(words), len(words) // 10, replace=False).tolist())
    return [words[place] for place in sorted(chosen)] + [word for place, word in enumerate(words) if place not in chosen]


def _docstring(module: Module, rng: np.random.Generator) -> str:
    """Write a docstring: sentences, then some of the parameters, the value returned, an exception, an example and related functions."""
    words = module.words
    name = _any(module.functions, rng)
    parameters = list(dict.fromkeys(_parameter(words, rng) for _ in range(int(rng.integers(1, 5)))))
    parts = [_sentence(module, parameters, rng)]
    parts += [_paragraph(module, parameters, rng) for _ in range(int(rng.integers(1, 3)))]
    if rng.random() < 0.6:
        parts.append("Args:\n" + "\n".join(_description(each, words, rng) for each in parameters))
    if rng.random() < 0.4:
        parts.append(_wrapped(f"Returns {_phrase(words, rng)}, or None if {_clause(module, parameters, rng)}."))
    if rng.random() < 0.4:
        error = module.error if rng.random() < 0.5 else _any(ERRORS, rng)
        parts.append(_wrapped(f"Raises {error} if {_clause(module, parameters, rng)}."))
    if rng.random() < 0.4:
        parts.append(_example(name, parameters, rng))
    if rng.random() < 0.3:
        parts.append(f"See also: {', '.join(dict.fromkeys(f'{_any(module.functions, rng)}()' for _ in range(3)))}.")
    return "\n\n".join(parts)


def _parameter(words: Words, rng: np.random.Generator) -> str:
    noun = _pick(words.nouns, rng)
    return noun if rng.random() < 0.6 else f"{_pick(words.adjectives, rng)}_{noun}"


def _description(name: str, words: Words, rng: np.random.Generator) -> str:
    default = f" (default: {_value(rng)})" if rng.random() < 0.4 else ""
    text = f"{name}: {_any(TYPES, rng)}, the {_pick(words.adjectives, rng)} {name.replace('_', ' ')} of {_phrase(words, rng)}{default}"
    return textwrap.fill(text, WIDTH, initial_indent="    ", subsequent_indent=" " * 8)


def _paragraph(module: Module, parameters: Sequence[str], rng: np.random.Generator) -> str:
    return _wrapped(" ".join(_sentence(module, parameters, rng) for _ in range(int(rng.integers(1, 4)))))


def _sentence(module: Module, parameters: Sequence[str], rng: np.random.Generator) -> str:
    words = module.words
    verb, parameter = _pick(words.verbs, rng), _any(parameters, rng)
    kinds = (
        lambda: f"{verb.title()} {_phrase(words, rng)} and return {_phrase(words, rng)}.",
        lambda: f"If {parameter} is {_value(rng)}, {_phrase(words, rng)} is {_past(verb)} with {_phrase(words, rng)}.",
        lambda: f"The {parameter} argument is {_phrase(words, rng)} that {_with_s(verb)} {_phrase(words, rng)}.",
        lambda: f"This is like {_any(module.functions, rng)}(), but {_with_s(verb)} {_phrase(words, rng)}.",
        lambda: f"When {_clause(module, parameters, rng)}, {module.error} is raised and {_phrase(words, rng)} is {_past(verb)}.",
        lambda: f"Use {_any(module.constants, rng)} to {verb} {_phrase(words, rng)}.",
    )
    return kinds[int(rng.integers(len(kinds)))]()


def _clause(module: Module, parameters: Sequence[str], rng: np.random.Generator) -> str:
    words = module.words
    kinds = (
        lambda: f"{_any(parameters, rng)} is not {_phrase(words, rng)}",
        lambda: f"{_phrase(words, rng)} cannot be {_past(_pick(words.verbs, rng))}",
        lambda: f"{_any(module.constants, rng)} is set",
    )
    return kinds[int(rng.integers(len(kinds)))]()


def _phrase(words: Words, rng: np.random.Generator) -> str:
    noun = _pick(words.nouns, rng)
    described = f"{_pick(words.adjectives, rng)} {noun}" if rng.random() < 0.5 else noun
    if rng.random() < 0.3:
        return f"the {_with_s(described)} of {_phrase(words, rng)}"
    article = "the" if rng.random() < 0.5 else "an" if described[0] in "aeiou" else "a"
    return f"{article} {described}"


def _example(name: str, parameters: Sequence[str], rng: np.random.Generator) -> str:
    given = [f"{parameter}={_value(rng)}" for parameter in parameters]
    return f">>> {name}({', '.join(given)})\n{_value(rng)}"


def _value(rng: np.random.Generator) -> str:
    return str(_any(("None", "True", "False", "0", "1", "-1", str(int(rng.integers(2, 100))), "''", "[]"), rng))


def _with_s(word: str) -> str:
    return word + ("es" if word.endswith(("s", "x")) else "s")


def _past(verb: str) -> str:
    return verb + "ed"


def _wrapped(text: str) -> str:
    return textwrap.fill(text, WIDTH)


def _pick(words: Sequence[str], rng: np.random.Generator) -> str:
    """Draw one of the words, each with a probability of about one over its rank (Zipf's law)."""
    return words[int(len(words) ** rng.random()) - 1]


def _any(words: Sequence[str], rng: np.random.Generator) -> str:
    return words[int(rng.integers(len(words)))]
