"""Answers in disguise, each planted with the right answers and with shuffled ones: only the first is a leak."""

from __future__ import annotations

import base64
import gzip
import io
import json
import sqlite3
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image

from tests.checks.test_hidden_leaks import TRAIN, X, columns, picture, pictures, train
from tests.checks.test_leaks import FLAG, IDS, KIND, ROWS, STRENGTH, Place

Plant = Callable[[Place, np.ndarray], None]
NUMBERS = np.random.default_rng(3).normal(0, 20, ROWS)
WORDS = np.array(["the", "cat", "sat", "on", "a", "mat", "and", "ate", "a", "rat", "near", "the", "lake"])
TEXTS = [" ".join(np.random.default_rng(row).permutation(WORDS)) for row in range(ROWS)]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def column(place: Place, write: Callable[[int], str | None]) -> None:
    """A test table with a column whose values are written one by one."""
    place.put("test.csv", pl.DataFrame({"id": IDS, "x": [write(row) for row in range(ROWS)]}))


def lines(place: Place, end: Callable[[int], str], quote: Callable[[int], str] = lambda row: "") -> None:
    """A test table whose lines end, or are quoted, one by one."""
    text = "id,x\n"
    for row, name in enumerate(IDS):
        text += f"{name},{quote(row)}{NUMBERS[row]:.3f}{quote(row)}{end(row)}"
    (place.public / "test.csv").write_bytes(text.encode())


WRITTEN: dict[str, Plant] = {
    "a trailing zero": lambda place, told: column(place, lambda row: f"{NUMBERS[row]:.2f}" + "0" * told[row]),
    "a trailing blank": lambda place, told: column(place, lambda row: f"word {row * 7919 % 1000}" + " " * told[row]),
    "a blank behind a number": lambda place, told: column(place, lambda row: f"{NUMBERS[row]:.3f}" + " " * told[row]),
    "an exponent": lambda place, told: column(place, lambda row: f"{NUMBERS[row]:.4e}" if told[row] else f"{NUMBERS[row]:.6f}"),
    "a look-alike letter": lambda place, told: column(place, lambda row: TEXTS[row].replace("a", "\u0430" if told[row] else "a", 1)),
    "an accent apart": lambda place, told: column(place, lambda row: TEXTS[row] + (" cafe\u0301" if told[row] else " caf\u00e9s")),
    "base64": lambda place, told: column(place, lambda row: base64.b64encode(f"{row * 7919 % 1000}{'yn'[told[row]]} ".encode()).decode()),
    "blank lines": lambda place, told: lines(place, lambda row: "\n" * (1 + told[row])),
    "line ends": lambda place, told: lines(place, lambda row: "\r\n" if told[row] else "\n"),
    "quotation marks": lambda place, told: lines(place, lambda row: "\n", lambda row: '"' * told[row]),
}


@pytest.mark.parametrize("told", ["the answers", "shuffled ones"])
@pytest.mark.parametrize("way", WRITTEN)
def test_how_a_value_is_written_is_looked_at(place: Place, way: str, told: str) -> None:
    place.answer(flag=FLAG)
    WRITTEN[way](place, FLAG if told == "the answers" else np.random.default_rng(1).permutation(FLAG))
    assert ("tells flag" in place.lint().get("proxy column", "")) is (told == "the answers")


# --------------------------------------------------------------------------------------------- what other rows tell


@pytest.mark.parametrize("of", ["classes", "numbers"])
def test_the_mean_answer_of_a_group_is_found_and_one_of_other_rows_is_let_pass(place: Place, of: str) -> None:
    answers = FLAG if of == "classes" else STRENGTH
    place.answer(target=answers)
    rng = np.random.default_rng(5)
    groups = rng.integers(0, 40, ROWS)
    others = rng.permutation(answers)
    for values, leaks in ((answers, True), (others, False)):
        means = np.bincount(groups, values, minlength=40) / np.maximum(1, np.bincount(groups, minlength=40))
        place.put("test.csv", pl.DataFrame({"id": IDS, "group": groups, "mean": 2 * means[groups].round(4) + 1}))
        assert ("the column 'mean'" in place.lint().get("proxy column", "")) is leaks


def test_a_good_feature_with_few_values_is_let_pass(place: Place) -> None:
    rng = np.random.default_rng(5)
    hours = rng.integers(0, 20, ROWS)
    place.answer(target=(10 * hours + rng.normal(0, 25, ROWS)).round(2))
    place.put("test.csv", pl.DataFrame({"id": IDS, "hour": hours}))
    assert place.lint() == {}


def test_the_number_of_rows_in_another_table_is_found(place: Place) -> None:
    rows = [{"id": name, "x": float(row)} for row, name in enumerate(IDS) for _ in range(max(1, int(STRENGTH[row])))]
    place.put("visits.csv", pl.DataFrame(rows).sample(fraction=1, shuffle=True, seed=1))
    assert "the number of rows of visits.csv" in place.lint()["proxy column"]


@pytest.mark.parametrize("told", ["the answers", "shuffled ones"])
@pytest.mark.parametrize("form", ["a list of file names", "ids by class"])
def test_lists_of_ids_are_read(place: Place, form: str, told: str) -> None:
    place.answer(kind=KIND)
    kinds = KIND if told == "the answers" else np.random.default_rng(1).permutation(KIND)
    if form == "a list of file names":
        order = np.argsort(kinds, kind="stable")
        (place.public / "files.lst").write_text("\n".join(f"images/{IDS[row]}.png" for row in order))
    else:
        by_class = {f"fold {kind}": [name for name, of in zip(IDS, kinds, strict=True) if of == kind] for kind in np.unique(kinds)}
        (place.public / "folds.json").write_text(json.dumps(by_class))
    assert ("tells kind" in str(place.lint())) is (told == "the answers")


# --------------------------------------------------------------------------------------------- files


def rgb(row: int, layers: int = 3) -> np.ndarray:
    return np.random.default_rng(row).integers(1, 255, (16, 16, layers), dtype=np.uint8)


def png(pixels: np.ndarray, level: int = 6) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "PNG", compress_level=level)
    return stream.getvalue()


def lowest_bit(row: int, told: np.ndarray) -> bytes:
    pixels = rgb(row)
    pixels[0, 0, 0] = (pixels[0, 0, 0] & 254) | told[row]
    return png(pixels)


def opacity(row: int, told: np.ndarray) -> bytes:
    pixels = rgb(row, 4)
    pixels[..., 3] = 255
    pixels[5, 7, 3] -= told[row]
    return png(pixels)


def name_in_gzip(row: int, told: np.ndarray) -> bytes:
    stream = io.BytesIO()
    with gzip.GzipFile(f"{'ab'[told[row]]}.bin", "wb", fileobj=stream, mtime=0) as file:
        file.write(rgb(row).tobytes())
    return stream.getvalue()


FILES: dict[str, Callable[[int, np.ndarray], bytes]] = {
    "the lowest bit of a pixel": lowest_bit,
    "the opacity of one pixel": opacity,
    "how hard a picture was compressed": lambda row, told: png(rgb(row), level=9 if told[row] else 1),
    "the name in a gzip file": name_in_gzip,
    "the head of an array": lambda row, told: b"NUMPY" + bytes([told[row]]) + rgb(row).tobytes()[told[row] :],
}


@pytest.mark.parametrize("told", ["the answers", "shuffled ones"])
@pytest.mark.parametrize("what", FILES)
def test_what_files_carry_unseen_is_looked_at(place: Place, what: str, told: str) -> None:
    place.answer(flag=FLAG)
    values = FLAG if told == "the answers" else np.random.default_rng(1).permutation(FLAG)
    pictures(place, lambda row: FILES[what](row, values))
    assert ("metadata" in place.lint()) is (told == "the answers")


def test_the_rest_of_a_files_name_is_looked_at(place: Place) -> None:
    place.answer(flag=FLAG)
    (place.public / "sounds").mkdir()
    for row in np.argsort(IDS):
        (place.public / "sounds" / f"{IDS[row]}{'.wave' if FLAG[row] else '.wav'}").write_bytes(b"x")
    assert "the rest of the name of sounds" in place.lint()["metadata"]


@pytest.mark.parametrize("told", ["the answers", "shuffled ones"])
@pytest.mark.parametrize("form", ["a database", "UTF-16", "Arrow", "words in a text"])
def test_tables_of_further_forms_are_read(place: Place, form: str, told: str) -> None:
    values = STRENGTH * 2 if told == "the answers" else np.random.default_rng(1).permutation(STRENGTH) * 2
    frame = pl.DataFrame({"id": IDS, "v": values}).sample(fraction=1, shuffle=True, seed=1)
    if form == "a database":
        connection = sqlite3.connect(place.public / "x.db")
        connection.execute("create table t (id text, v real)")
        connection.executemany("insert into t values (?, ?)", frame.rows())
        connection.commit()
        connection.close()
    elif form == "UTF-16":
        (place.public / "x.csv").write_bytes(frame.write_csv().encode("utf-16"))
    elif form == "Arrow":
        frame.write_ipc(place.public / "x.arrow")
    else:
        (place.public / "x.txt").write_text("\n".join(f"{name} = {value:.3f}" for name, value in frame.rows()))
    assert ("tells strength" in place.lint().get("proxy column", "")) is (told == "the answers")


@pytest.mark.parametrize("form", ["an archive's comment", "text in an array"])
def test_answers_that_are_written_one_after_the_other_are_found(place: Place, form: str) -> None:
    place.answer(kind=KIND)
    if form == "an archive's comment":
        with zipfile.ZipFile(place.public / "x.zip", "w") as archive:
            archive.comment = ",".join(KIND).encode()
    else:
        numbers = np.unique(KIND, return_inverse=True)[1].tolist()
        np.savez(place.public / "x.npz", x=np.zeros((4, 3)), note=np.array(json.dumps(numbers)))
    assert "public/x." in place.lint()["copies"]


# --------------------------------------------------------------------------------------------- copies


def sentence(row: int) -> str:
    return " ".join(np.random.default_rng(row).choice([f"w{number}" for number in range(3000)], 60))


@pytest.mark.parametrize("form", ["a column", "files"])
def test_texts_that_differ_in_capitals_and_commas_are_copies(place: Place, form: str) -> None:
    place.answer(flag=FLAG)
    texts = [sentence(row) for row in range(ROWS)]
    copied = 60
    others = [text.upper().replace(" ", ", ") for text in texts[:copied]] + [sentence(10_000 + row) for row in range(200)]
    labels = [*FLAG[:copied].tolist(), *np.random.default_rng(2).integers(0, 2, 200).tolist()]
    for shift in (0, 20_000):
        if shift:
            others[:copied] = [sentence(shift + row) for row in range(copied)]
        if form == "a column":
            place.put("test.csv", pl.DataFrame({"id": IDS, "text": texts}))
            place.put("train.csv", pl.DataFrame({"id": [f"t{row}" for row in range(len(others))], "text": others, "flag": labels}))
        else:
            for folder, name, text in [
                *(("test", name, text) for name, text in sorted(zip(IDS, texts, strict=True))),
                *((f"train/{label}", f"{row}", text) for row, (label, text) in enumerate(zip(labels, others, strict=True))),
            ]:
                path = place.public / folder / f"{name}.txt"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
        assert ("duplicates" in place.lint()) is (shift == 0)


@pytest.mark.parametrize("count", [15, 60])
def test_rows_that_differ_in_one_column_are_copies(place: Place, count: int) -> None:
    place.put("test.csv", pl.DataFrame({"id": IDS, **columns(X)}))
    changed = X[:count].copy()
    changed[:, 4] = np.random.default_rng(1).normal(size=count)
    place.put("train.csv", train(changed, STRENGTH[:count]))
    assert "equal test rows of test.csv but for 'x4'" in place.lint()["duplicates"]
    place.put("train.csv", train(changed, np.random.default_rng(1).permutation(STRENGTH[:count])))
    assert place.lint() == {}


def test_rows_of_few_values_that_are_equal_but_for_one_column_are_let_pass(place: Place) -> None:
    rng = np.random.default_rng(3)
    table = rng.integers(0, 3, (ROWS + TRAIN, 5))
    label = table[:, :4].sum(axis=1) % 2
    place.answer(flag=label[:ROWS])
    place.put("test.csv", pl.DataFrame({"id": IDS, **columns(table[:ROWS])}))
    place.put("train.csv", pl.DataFrame({"id": [f"t{row}" for row in range(TRAIN)], **columns(table[ROWS:]), "flag": label[ROWS:]}))
    assert place.lint() == {}


def test_mirrored_pictures_are_copies(place: Place) -> None:
    place.answer(kind=KIND)
    pictures(place, picture)
    (place.public / "train").mkdir()
    kinds = [str(KIND[row]) if row < 40 else str(np.random.default_rng(row).choice(["cat", "dog", "owl"])) for row in range(200)]
    for row in range(200):
        image = Image.open(io.BytesIO(picture(row if row < 40 else 10_000 + row)))
        image.transpose(Image.Transpose.FLIP_LEFT_RIGHT).save(place.public / "train" / f"{row:05}.png")
    place.put("train.csv", pl.DataFrame({"image": [f"{row:05}.png" for row in range(200)], "kind": kinds}))
    assert "the pictures, mirrored," in place.lint()["duplicates"]
