"""Answers of other rows, under ids written otherwise and in files of other forms are found, and shuffled ones are let pass."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.checks.test_leaks import FLAG, IDS, ROWS, STRENGTH, Place

ORDER = np.argsort([int(name[4:]) for name in IDS])
MIXED = np.random.default_rng(1).permutation(ROWS)
NUMBERS = np.random.default_rng(3).normal(0, 20, ROWS).round(3)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def drawn(row: int, count: int) -> list[float]:
    return np.random.default_rng(row).normal(size=count).round(3).tolist()  # type: ignore[no-any-return]


def of_the_row_before(place: Place, told: np.ndarray) -> None:
    """The answer of the row with the id before, as in a table of a time series."""
    before = np.zeros(ROWS)
    before[ORDER[1:]] = told[ORDER[:-1]]
    place.put("test.csv", pl.DataFrame({"id": IDS, "x": NUMBERS, "before": before})[MIXED.tolist()])


def sum_so_far(place: Place, told: np.ndarray) -> None:
    place.put("test.csv", pl.DataFrame({"id": IDS, "x": NUMBERS, "total": np.cumsum(told).round(3)}))


def ids_as(write: Callable[[str], str]) -> Callable[[Place, np.ndarray], None]:
    return lambda place, told: place.put("more.csv", pl.DataFrame({"ref": [write(IDS[row]) for row in MIXED], "v": told[MIXED] * 2}))


def lines(name: str, line: str) -> Callable[[Place, np.ndarray], None]:
    def plant(place: Place, told: np.ndarray) -> None:
        text = "".join(line.format(IDS[row], told[row] * 2) + "\n" for row in MIXED)
        (place.public / name).write_text(f"<begin>\n{text}<end>\n")

    return plant


def one_column_a_row(place: Place, told: np.ndarray) -> None:
    text = [",".join(IDS[row] for row in MIXED), ",".join(f"{told[row] * 2:.3f}" for row in MIXED)]
    (place.public / "wide.csv").write_text("\n".join(text) + "\n")


def one_record_a_file(place: Place, told: np.ndarray) -> None:
    (place.public / "records").mkdir()
    for row in ORDER:
        record = {"pixels": drawn(row, 30), "meta": {"grade": round(float(told[row]), 3)}, "more": drawn(row + ROWS, 30)}
        (place.public / "records" / f"{IDS[row]}.json").write_text(json.dumps(record))


PLANTS: dict[str, Callable[[Place, np.ndarray], None]] = {
    "the answer of the row before": of_the_row_before,
    "a sum of the answers so far": sum_so_far,
    "ids by their numbers": ids_as(lambda name: f"00{name[4:]}"),
    "ids in capitals": ids_as(lambda name: name.upper().replace("_", "-")),
    "XML": lines("rows.xml", '<row id="{}" v="{:.3f}"/>'),
    "YAML": lines("rows.yaml", "{}: {:.3f}"),
    "code": lines("look.py", '    "{}": {:.3f},'),
    "a column for each row": one_column_a_row,
    "a file for each row": one_record_a_file,
}


@pytest.mark.parametrize("where", PLANTS)
def test_answers_of_numbers_are_found_wherever_they_are(place: Place, where: str) -> None:
    PLANTS[where](place, STRENGTH)
    assert "tells strength" in str(place.lint())


@pytest.mark.parametrize("where", PLANTS)
def test_other_numbers_there_are_let_pass(place: Place, where: str) -> None:
    PLANTS[where](place, np.random.default_rng(7).permutation(STRENGTH))
    assert place.lint() == {}


@pytest.mark.parametrize("told", ["the answers", "shuffled ones"])
@pytest.mark.parametrize("what", ["gaps in any column", "keys of records"])
def test_what_a_row_lacks_is_looked_at(place: Place, what: str, told: str) -> None:
    place.answer(flag=FLAG)
    flags = FLAG if told == "the answers" else np.random.default_rng(7).permutation(FLAG)
    if what == "gaps in any column":
        where = np.random.default_rng(2).integers(0, 5, ROWS)
        table = {f"x{number}": np.where(flags & (where == number), None, np.array(drawn(number, ROWS))).tolist() for number in range(5)}
        place.put("test.csv", pl.DataFrame({"id": IDS, **table}))
    else:
        records = [{"id": IDS[row], "x": NUMBERS[row], **({"note": ""} if flags[row] else {})} for row in range(ROWS)]
        (place.public / "test.jsonl").write_text("\n".join(json.dumps(record) for record in records))
    assert ("tells flag" in str(place.lint())) is (told == "the answers")


def test_an_honest_time_series_is_let_pass(place: Place) -> None:
    rng = np.random.default_rng(4)
    level = np.cumsum(rng.normal(size=ROWS))  # each row is much like the one before
    target = (level + rng.normal(0, 0.3, ROWS)).round(3)
    place.answers = pl.DataFrame({"id": [f"day_{row:03}" for row in range(ROWS)], "strength": target})
    sensor = (level + rng.normal(0, 3, ROWS)).round(2)
    lags = {f"sensor_lag{lag}": np.concatenate([np.zeros(lag), sensor[:-lag]]) for lag in (1, 2)}
    features = {
        "id": place.answers["id"],
        "day": np.arange(ROWS) % 7,
        "sensor": sensor,
        **lags,
        "load": np.cumsum(rng.random(ROWS)).round(3),
    }
    place.put("test.csv", pl.DataFrame(features))
    place.put("calendar.csv", pl.DataFrame({"day": [str(row) for row in range(ROWS)], "week": np.arange(ROWS) // 7}))
    (place.public / "config.yaml").write_text("\n".join(f"option_{row}: {rng.integers(9)}" for row in range(30)))
    assert place.lint() == {}


def test_an_honest_folder_of_records_is_let_pass(place: Place) -> None:
    place.answer(flag=FLAG)
    (place.public / "records").mkdir()
    for row in ORDER:
        hint = FLAG[row] + np.random.default_rng(row).normal(0, 0.8)
        record = {"length": round(float(hint), 2), "of": {"colour": "red" if row % 3 else "blue"}, **({"x": 1} if row % 5 else {})}
        (place.public / "records" / f"{IDS[row]}.json").write_text(json.dumps(record))
    place.put("sizes.csv", pl.DataFrame({f"size {row}": [row, row + 1] for row in range(20)}))
    assert place.lint() == {}
