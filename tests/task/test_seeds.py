"""What an agent does that guesses the seed of its data, without having read how the data is made: it succeeds with a small seed only.

Each attack is first held against data that is drawn from the seed 0, to show that it is one.
"""

from __future__ import annotations

import importlib
import inspect
import io
import itertools
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from mlagentbench.data.prepare import Prepared, prepared
from mlagentbench.task.catalogue import find_task, find_tasks
from mlagentbench.task.proofs import Files
from mlagentbench.task.seeds import SEED
from mlagentbench.task.success import is_success
from mlagentbench.tasks.literature_review_tool.papers import make_papers
from tests.tasks.by_hand import folders, mini, score

Array = NDArray[Any]
GUESSED = (1, 42, 0)
"""An agent would try thousands."""
SPENDING = ("RoomService", "FoodCourt", "ShoppingMall", "Spa", "VRDeck")


class Attempt(NamedTuple):
    """What an agent leaves without knowing the seed, and with what it found out by guessing it."""

    honest: Files | pl.DataFrame
    guessed: Files | pl.DataFrame


def ridge(x: Array, y: Array) -> Array:
    return np.asarray(np.linalg.solve(x.T @ x + np.eye(x.shape[1]), x.T @ y))


def correlation(one: Array, other: Array) -> float:
    return float(np.corrcoef(one, other)[0, 1])


def guess_noise_of_prices(data: Prepared) -> Attempt:
    """Draw from every place of a seed's stream, until the numbers are those by which prices differ from a plain model's."""
    train, test = (pl.read_csv(data.public / f"{part}.csv", infer_schema_length=None) for part in ("train", "test"))
    houses = pl.concat((train.drop("SalePrice"), test), how="diagonal_relaxed")
    numbers = houses.select(pl.col(pl.Int64, pl.Float64).exclude("Id").fill_null(0)).to_numpy().astype(float)
    words = houses.select("Neighborhood", "KitchenQual").to_dummies().to_numpy()
    x = np.column_stack((numbers, np.log1p(np.maximum(numbers, 0)), words))
    x = np.column_stack(((x - x.mean(axis=0)) / (x.std(axis=0) + 1e-9), np.ones(len(x))))
    known, price = len(train), np.log(train["SalePrice"].to_numpy())
    differ = price - x[:known] @ ridge(x[:known], price)
    # All 60,000 places of a stream that may matter take ten seconds; these are where it lies.
    found = max(
        _noise(itertools.product(GUESSED, range(25_000, 25_400)), len(houses)), key=lambda drawn: correlation(drawn[:64], differ[:64])
    )

    def table(x: Array) -> pl.DataFrame:
        return pl.DataFrame({"Id": test["Id"], "SalePrice": np.exp(x[known:] @ ridge(x[:known], price))})

    return Attempt(table(x), table(np.column_stack((x, found))))


def _noise(places: Iterable[tuple[int, int]], count: int) -> Iterable[Array]:
    for seed, place in places:
        stream = np.random.PCG64(seed)
        stream.advance(place)
        yield np.random.Generator(stream).standard_t(5, count)


def guess_lots_of_passengers(data: Prepared) -> Attempt:
    """Slide a seed's uniform numbers along the passengers, until those who vanish against all odds have the small ones."""
    train, test = (pl.read_csv(data.public / f"{part}.csv", infer_schema=False) for part in ("train", "test"))
    passengers = pl.concat((train.drop("Transported"), test))
    words = passengers.select("HomePlanet", "CryoSleep", "Destination", pl.col("Cabin").str.slice(0, 1)).to_dummies().to_numpy()
    spent = passengers.select(pl.col(name).cast(pl.Float64).fill_null(0).log1p() for name in SPENDING).to_numpy()
    x = np.column_stack((words, spent, np.ones(len(words))))
    vanished = (train["Transported"] == "True").to_numpy().astype(float)
    known, centred = len(train), vanished - vanished.mean()
    streams = [np.random.default_rng(seed).random(100_000) for seed in GUESSED]
    differ = centred - x[:known] @ ridge(x[:known], centred)
    places = [int(np.correlate(stream, differ, "valid").argmin()) for stream in streams]
    lots = [stream[place : place + len(x)] for stream, place in zip(streams, places, strict=True)]
    found = min(lots, key=lambda lot: correlation(lot[:known], differ))

    def table(x: Array) -> pl.DataFrame:
        said = x[known:] @ ridge(x[:known], centred) > 0
        return pl.DataFrame({"PassengerId": test["PassengerId"], "Transported": np.where(said, "True", "False")})

    return Attempt(table(x), table(np.column_stack((x, found))))


def guess_order_of_digits(data: Prepared) -> Attempt:
    """Find each picture's place in the published table by its id, where writers filled in one form after another."""
    parts = [pl.read_csv(data.public / "data" / f"{part}.csv") for part in ("labelled", "unlabelled", "test")]
    labelled, _, test = parts
    likely = [_near(part.drop("id", "digit", strict=False).to_numpy(), labelled) for part in parts]
    found: list[tuple[float, Array]] = []
    for seed in GUESSED:
        draw = np.random.default_rng(seed)
        draw.permutation(1797)
        place = np.argsort(draw.permutation(1797))
        table = np.zeros((1797, 10))
        for part, digits in zip(parts, likely, strict=True):
            table[place[part["id"].to_numpy() - 1]] = digits
        said = table.argmax(axis=1)
        again = np.array([(said[period:] == said[:-period]).mean() for period in range(1, 900)])
        found.append((again.max(), _voted(table, np.argsort(again)[:-9:-1] + 1)[place[test["id"].to_numpy() - 1]]))
    best = max(found, key=lambda each: each[0])[1]
    return Attempt(*(pl.DataFrame({"id": test["id"], "digit": digits.argmax(axis=1)}) for digits in (likely[2], best)))


def _near(pixels: Array, labelled: pl.DataFrame) -> Array:
    """How likely each picture is each digit, by the labelled pictures next to it: (pictures, 10)."""
    known = labelled.drop("id", "digit").to_numpy()
    apart = ((pixels[:, None, :].astype(float) - known) ** 2).sum(axis=2)
    nearest = np.stack([apart[:, labelled["digit"].to_numpy() == digit].min(axis=1) for digit in range(10)], axis=1)
    likely = np.exp((nearest.min(axis=1, keepdims=True) - nearest) / 100)
    return np.asarray(likely / likely.sum(axis=1, keepdims=True))


def _voted(likely: Array, periods: Array) -> Array:
    """Each picture's digit by itself and by those that stand in the same place of another form."""
    said, alone = likely.argmax(axis=1), np.log(likely + 1e-3)
    votes = alone.copy()
    for period in periods:
        same = np.convolve(said[period:] == said[:-period], np.ones(21) / 21, "same") > 0.8
        votes[period:][same] += alone[:-period][same]
        votes[:-period][same] += alone[period:][same]
    return votes


def guess_noise_of_photo(data: Prepared) -> Attempt:
    """Take away a seed's noise."""
    noisy = np.load(data.public / "data" / "noisy.npy")
    without = (noisy - np.random.default_rng(seed).normal(0, 0.12, noisy.shape) for seed in GUESSED)
    smoothest = min(without, key=lambda picture: float(np.abs(np.diff(picture, axis=0)).mean()))
    return Attempt(*({"denoised.npy": _saved(picture.clip(0, 1))} for picture in (noisy, smoothest)))


def _saved(array: Array) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array.astype(np.float32))
    return buffer.getvalue()


Attack = Callable[[Prepared], Attempt]
ATTACKS: dict[str, Attack] = {
    "house-price": guess_noise_of_prices,
    "spaceship-titanic": guess_lots_of_passengers,
    "digits-lowlabel": guess_order_of_digits,
    "photo-denoise": guess_noise_of_photo,
}
NEEDS = {"digits-lowlabel": "sklearn", "photo-denoise": "PIL"}


@pytest.mark.parametrize("task_id", ATTACKS)
def test_who_guesses_small_seeds_gains_nothing(task_id: str, tmp_path: Path) -> None:
    pytest.importorskip(NEEDS.get(task_id, "numpy"))
    task = find_task(task_id)
    gains = []
    for seed in (0, SEED):
        data = mini(task, tmp_path / f"{seed}", seed)
        attempt = ATTACKS[task_id](data)
        honest, guessed = (score(task, data, files, tmp_path / f"{seed}" / name).value for name, files in attempt._asdict().items())
        gains.append(is_success(task.spec.metric, guessed, honest))
    assert gains == [True, False]


@pytest.mark.parametrize("name", ["literature_review_tool", "bibtex_generation"])
def test_no_small_seed_draws_the_papers_of_a_library(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def drawn(ids: Iterable[str]) -> bool:
        numbers = {int(name[1:]) for name in ids}
        guesses = itertools.chain(GUESSED, itertools.product(GUESSED, range(3)))
        return any(
            set(np.random.default_rng(guess).choice(np.arange(1, 10_000), 600, replace=False).tolist()) == numbers for guess in guesses
        )

    assert drawn(paper.id for paper in make_papers(600, np.random.default_rng((0, 1))))
    prepare = importlib.import_module(f"mlagentbench.tasks.{name}.prepare")
    for questions in {"QUESTIONS", "PASSAGES"} & vars(prepare).keys():
        monkeypatch.setattr(prepare, questions, 1)  # the papers are drawn before them
    real = prepared(find_task(name.replace("_", "-")), "full", tmp_path)
    assert not drawn(pl.read_json(real.public / "library" / "papers.json")["id"])


@pytest.mark.parametrize("rungs", [2, 6])
def test_no_small_seed_draws_the_columns_of_a_ladder(rungs: int, tmp_path: Path) -> None:
    task = find_task(f"ladder-{rungs}")

    def drawn(data: Prepared) -> bool:
        site = pl.read_csv(data.public / "data" / "readings.csv")["site"].to_numpy()
        guesses = itertools.chain(GUESSED, itertools.product(GUESSED, range(8)))
        return any((np.random.default_rng(guess).integers(site.max() + 1, size=len(site)) == site).all() for guess in guesses)

    assert drawn(mini(task, tmp_path / "0", 0))
    assert not drawn(prepared(task, "mini", tmp_path / "cache"))


def test_full_answers_are_fetched_or_public_or_drawn_from_a_secret() -> None:
    """Nobody who reads the tasks' code can make the answers of the full variants again."""
    secret = set()
    for task in find_tasks().values():
        if (task.folder / "prepare.py").exists():
            takes = inspect.signature(task.module("prepare").full).parameters
            fetches = task.spec.data is not None and task.spec.data.download_mb > 0
            assert "seed" in takes or fetches or task.spec.answers_public, f"{task.id}: full takes no seed, and fetches nothing"
            secret |= {task.id} if "seed" in takes else set()
    assert secret >= {"bibtex-generation", "literature-review-tool", "pydoc-lm", "clrs", "fresh-text", "ladder-2", "ladder-6"}


@pytest.mark.parametrize("task_id", ["fresh-text", "ladder-2", "bibtex-generation", "literature-review-tool"])
def test_each_preparation_of_a_full_variant_has_other_answers(task_id: str, tmp_path: Path) -> None:
    task, found = find_task(task_id), set()
    for _ in range(2):
        data = prepared(task, "full", tmp_path / f"cache{len(found)}")
        found.add(next(path for path in data.private.iterdir() if path.stem == "answers").read_bytes())
        assert not any(path.name == "prepared.json" for path in data.public.rglob("*")), "it has the seed"
    assert len(found) == 2


@pytest.mark.parametrize("task_id", ["digits-lowlabel", "photo-denoise"])
def test_the_real_variant_is_drawn_from_the_seed_that_nobody_guesses(task_id: str, tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    pytest.importorskip("PIL")
    task = find_task(task_id)
    prepare = task.module("prepare")
    assert prepare is not None
    made, real = mini(task, tmp_path / "mini", SEED), folders(tmp_path / "full")
    prepare.full(real.public, real.private)
    for ours, theirs in zip(made, real, strict=True):
        assert ours is not None and theirs is not None
        paths = [path.relative_to(ours) for path in ours.rglob("*") if path.is_file()]
        assert paths and all((ours / path).read_bytes() == (theirs / path).read_bytes() for path in paths)
