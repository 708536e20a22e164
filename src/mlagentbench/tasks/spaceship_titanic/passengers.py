"""Make synthetic passengers with the columns, values and gaps of Kaggle's table.

Transported passengers are drawn by a logistic model of sleep, planet, cabin, destination, age and spending; about one in six passengers
cannot be predicted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

Array = NDArray[Any]

GAP = 0.022
"""Share of each column's values that are missing."""
SHARPNESS, SHIFT = 1.25, 0.4
"""Scale and offset of the log odds; with this offset, about half of the passengers are transported."""
GROUP_SIZES = (0.62, 0.2, 0.1, 0.08)
PLANETS = ("Earth", "Europa", "Mars")
DESTINATIONS = ("TRAPPIST-1e", "55 Cancri e", "PSO J318.5-22")
DECKS = {"Earth": "EFG", "Europa": "ABCDE", "Mars": "DEF"}
SPENDING = {"RoomService": 4.8, "FoodCourt": 5.2, "ShoppingMall": 4.4, "Spa": 4.9, "VRDeck": 4.8}
"""Mean of the logarithm of the money spent, by place."""
WEIGHTS = {"RoomService": -0.28, "FoodCourt": 0.14, "ShoppingMall": 0.12, "Spa": -0.27, "VRDeck": -0.26}
"""Weight of each amount's logarithm in the log odds of being transported."""
CHILD = 13
"""Age below which no money is spent."""


def passengers(count: int, seed: int) -> pl.DataFrame:
    """Make synthetic passengers.

    Returns:
        `count` rows with Kaggle's 14 columns in its order, all text; gaps are nulls.
    """
    rng = np.random.default_rng(seed)
    group, member = _groups(count, rng)
    groups = int(group.max()) + 1
    planet = rng.choice(PLANETS, groups, p=(0.54, 0.25, 0.21))[group]
    side = rng.choice(("P", "S"), groups)[group]
    deck = _decks(planet, group, rng)
    destination = rng.choice(DESTINATIONS, count, p=(0.69, 0.21, 0.1))
    sleeps = rng.random(count) < np.select([planet == "Europa", planet == "Mars"], [0.44, 0.4], 0.3)
    age = np.clip(rng.normal(29, 14, count), 0, 79).round()
    spent = {name: _spent(mean, sleeps | (age < CHILD), rng) for name, mean in SPENDING.items()}
    log_odds = (
        1.7 * sleeps
        + 0.35 * (planet == "Europa")
        - 0.25 * (planet == "Earth")
        + 0.3 * (side == "S")
        + 0.5 * (age < CHILD)
        + 0.3 * (destination == "55 Cancri e")
        + 0.3 * np.isin(deck, ("B", "C"))
        - 0.2 * (deck == "E")
        - 0.15
        + sum(WEIGHTS[name] * np.log1p(amount) for name, amount in spent.items())
    )
    vanishes = rng.random(count) < 1 / (1 + np.exp(-SHARPNESS * (log_odds + SHIFT)))
    columns = {
        "HomePlanet": planet,
        "CryoSleep": _words(sleeps),
        "Cabin": _cabins(deck, side, group),
        "Destination": destination,
        "Age": age.astype(str),
        "VIP": _words(rng.random(count) < 0.02),
        **{name: amount.astype(str) for name, amount in spent.items()},
        "Name": _names(group, rng),
    }
    known = {name: pl.when(pl.Series(rng.random(count) >= GAP)).then(pl.Series(values)).alias(name) for name, values in columns.items()}
    ids = [f"{number + 1:04d}_{place:02d}" for number, place in zip(group, member, strict=True)]
    return pl.select(pl.Series("PassengerId", ids), *known.values(), pl.Series("Transported", _words(vanishes)))


def _groups(count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Draw each passenger's group, from 0, and position in it, from 1."""
    sizes = rng.choice(np.arange(1, len(GROUP_SIZES) + 1), count, p=GROUP_SIZES)
    group = np.repeat(np.arange(count), sizes)[:count]
    first = np.searchsorted(group, group)
    return group, np.arange(count) - first + 1


def _decks(planet: Array, group: Array, rng: np.random.Generator) -> Array:
    """Draw a deck for each group, by its planet; rarely the small deck T."""
    groups = int(group.max()) + 1
    places = {name: rng.choice(list(decks), groups)[group] for name, decks in DECKS.items()}
    decks = np.select([planet == name for name in places], list(places.values()), "T")
    return np.where(rng.random(groups)[group] < 0.002, "T", decks)


def _cabins(deck: Array, side: Array, group: Array) -> Array:
    """Give each group a cabin, numbered in the order of groups on each side of each deck."""
    numbers: dict[tuple[str, str], int] = {}
    cabins: dict[int, str] = {}
    for number, where, which in zip(group.tolist(), deck.tolist(), side.tolist(), strict=True):
        if number not in cabins:
            place = numbers.get((where, which), 0)
            numbers[where, which] = place + 1
            cabins[number] = f"{where}/{place}/{which}"
    return np.array([cabins[number] for number in group.tolist()])


def _spent(mean: float, nothing: Array, rng: np.random.Generator) -> Array:
    """Draw whole amounts from a log-normal distribution; 0 where `nothing` is true, and for half of the others."""
    amount = np.exp(rng.normal(mean, 1.3, len(nothing))).round()
    return np.where(nothing | (rng.random(len(nothing)) < 0.5), 0.0, amount)


def _names(group: Array, rng: np.random.Generator) -> Array:
    """Draw names; passengers of a group share their last name."""
    starts, ends = (
        ("Al", "Bra", "Cor", "Dem", "Fa", "Gri", "Hol", "Ja", "Ma", "Sol"),
        ("an", "dia", "ero", "ick", "ley", "mond", "ta", "ux"),
    )
    first = np.array([start + end for start in starts for end in ends])
    last = np.array([start + middle + "son" for start in starts for middle in ("ar", "ber", "der", "il", "om", "vin")])
    of_group = rng.choice(last, int(group.max()) + 1)[group]
    return np.char.add(np.char.add(rng.choice(first, len(group)), " "), of_group)


def _words(values: Array) -> Array:
    return np.where(values, "True", "False")
