"""Make a synthetic library of papers, each of which studies a subject with a method for an aim.

Each of these has several wordings. A title names two of the three. An abstract names all three, some of them in a second wording too, and
a subject that the paper is not about. So a search for the words of a question finds only some of the papers that it asks for, and also
others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

Wordings = tuple[str, str, str]

SUBJECTS: tuple[Wordings, ...] = (
    ("river floods", "high water in catchments", "inundation along waterways"),
    ("protein folding", "the shape of amino acid chains", "tertiary structure of polypeptides"),
    ("bird song", "avian calls", "recordings of warblers and thrushes"),
    ("traffic at crossings", "vehicle flow through junctions", "queues at signalled intersections"),
    ("old manuscripts", "medieval handwriting", "historical codices"),
    ("crop disease", "blight on farmland", "infected leaves in the field"),
    ("heart rhythm", "cardiac arrhythmia", "irregular pulses in electrocardiograms"),
    ("ocean plastic", "marine litter", "floating debris at sea"),
    ("sign language", "gestures of deaf speakers", "manual signing"),
    ("power demand", "electricity load", "consumption on the grid"),
    ("meteor craters", "impact scars on the Moon", "lunar surface basins"),
    ("court rulings", "judges' decisions", "legal verdicts"),
)
METHODS: tuple[Wordings, ...] = (
    ("graph networks", "message passing between nodes", "relational neural models"),
    ("decision forests", "ensembles of trees", "boosted splits"),
    ("diffusion models", "learned denoising", "iterative noise removal"),
    ("Gaussian processes", "kernel regression with uncertainty", "nonparametric Bayesian curves"),
    ("attention models", "transformers", "self-attentive sequence encoders"),
    ("contrastive learning", "pulling similar pairs together", "representations from augmented views"),
    ("reinforcement learning", "policies trained by reward", "trial-and-error agents"),
    ("symbolic regression", "searching for equations", "closed-form expressions from data"),
)
AIMS: tuple[Wordings, ...] = (
    ("cheap training", "small computing budgets", "less energy per model"),
    ("few labels", "scarce annotation", "learning from a handful of examples"),
    ("privacy", "keeping records confidential", "protecting individuals' data"),
    ("explanations", "decisions that people can follow", "interpretable outputs"),
    ("robustness to noise", "corrupted measurements", "resilience against faulty sensors"),
    ("forecasts long ahead", "distant horizons", "prediction over many months"),
)
KINDS = (SUBJECTS, METHODS, AIMS)

GIVEN = ("Ada", "Bruno", "Chidi", "Dina", "Elif", "Farid", "Greta", "Hana", "Igor", "Jun", "Katya", "Lars", "Mina", "Noor", "Otto", "Priya")
FAMILY = (
    *("Abara", "Bergstrom", "Castellan", "Dobrev", "Eriksen", "Fontane", "Galanis", "Hartono", "Ivanova", "Jansky", "Kowalik", "Lindqvist"),
    *("Moreau", "Nakagawa", "Okafor", "Petrov", "Quispe", "Rahmani", "Sorensen", "Takeda", "Urbina", "Valdis", "Wachira", "Yilmaz"),
)
VENUES = ("Journal of Applied Inference", "Letters in Computation", "Conference on Learning Machines", "Workshop on Data in the World")
YEARS = (2008, 2023)

TITLES = ("{0} for {1}", "Towards {0} in {1}", "{0} and {1}: a study", "On {0} with a view to {1}", "Revisiting {0} for {1}")
ABSTRACTS = (
    "We study {s} by means of {m}. Our aim is {a}. Where {s2} are at stake, {m2} bring {a2}. What was learnt from {x} does not carry over.",
    "{m} have rarely been tried on {s}. We do so with {a} in mind, on {n} cases. For {x} this is usual. With {m2}, {a2} comes closer.",
    "For {a}, this paper turns to {m}. {n} cases of {s} serve as its data, more than others have had for {s2}. An outlook on {x} ends it.",
    "Work on {x} has moved on faster than that on {s}. We close it by {m}. {a} is within reach now, and {a2} with it ({n} trials).",
)


class Paper(NamedTuple):
    """A paper of the library. Its last field says what it is about, and is not in the index."""

    id: str
    title: str
    authors: tuple[str, ...]
    year: int
    venue: str
    abstract: str
    facets: tuple[int, int, int]
    """Subject, method and aim, as indices into the three parts of `KINDS`."""

    def record(self) -> dict[str, object]:
        """Return the paper's record in the index, which lacks `facets`."""
        return {name: value for name, value in self._asdict().items() if name != "facets"}


def make_papers(count: int, rng: np.random.Generator) -> list[Paper]:
    """Make papers with unique titles, sorted by unique random ids."""
    numbers = np.sort(rng.choice(np.arange(1, 10_000), count, replace=False))
    titles: set[str] = set()
    papers = []
    for number in numbers:
        facets = tuple(int(rng.integers(len(kind))) for kind in KINDS)
        while (title := _title(facets, rng)) in titles:
            continue
        titles.add(title)
        papers.append(
            Paper(
                id=f"P{number:04d}",
                title=title,
                authors=_authors(rng),
                year=int(rng.integers(YEARS[0], YEARS[1] + 1)),
                venue=pick(VENUES, rng),
                abstract=_abstract(facets, rng),
                facets=(facets[0], facets[1], facets[2]),
            )
        )
    return papers


def pick(choices: Sequence[str], rng: np.random.Generator) -> str:
    """Return one of several texts at random."""
    return choices[int(rng.integers(len(choices)))]


def capital(text: str) -> str:
    """Capitalize the first letter of a text, and leave the others as they are."""
    return text[:1].upper() + text[1:]


def _title(facets: Sequence[int], rng: np.random.Generator) -> str:
    first, second = (pick(KINDS[place][facets[place]], rng) for place in rng.permutation(3)[:2])
    return capital(pick(TITLES, rng).format(first, second))


def _authors(rng: np.random.Generator) -> tuple[str, ...]:
    families = rng.choice(len(FAMILY), int(rng.integers(1, 4)), replace=False)
    return tuple(f"{pick(GIVEN, rng)} {FAMILY[family]}" for family in families)


def _abstract(facets: Sequence[int], rng: np.random.Generator) -> str:
    (s, s2), (m, m2), (a, a2) = (_two(kind[facet], rng) for kind, facet in zip(KINDS, facets, strict=True))
    other = (facets[0] + 1 + int(rng.integers(len(SUBJECTS) - 1))) % len(SUBJECTS)
    x, n = pick(SUBJECTS[other], rng), int(rng.integers(20, 900))
    text = pick(ABSTRACTS, rng).format(s=s, s2=s2, m=m, m2=m2, a=a, a2=a2, x=x, n=n)
    return ". ".join(capital(sentence) for sentence in text.split(". "))


def _two(wordings: Wordings, rng: np.random.Generator) -> tuple[str, str]:
    one, other = rng.permutation(len(wordings))[:2]
    return wordings[one], wordings[other]
