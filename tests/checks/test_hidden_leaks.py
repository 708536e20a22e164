"""Leaks that are hidden well, each beside an honest look-alike: copies of test rows, digits, pictures' metadata, archives, nested data."""

from __future__ import annotations

import io
import json
import os
import zipfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image, PngImagePlugin

from tests.checks.test_leaks import FLAG, IDS, KIND, ROWS, STRENGTH, Place

TRAIN = 1000
X = np.random.default_rng(7).normal(size=(ROWS, 5)).round(4)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def columns(values: np.ndarray) -> dict[str, np.ndarray]:
    return {f"x{number}": column for number, column in enumerate(values.T)}


def train(values: np.ndarray, strength: np.ndarray) -> pl.DataFrame:
    """Other rows, and these, shuffled, under new ids."""
    rng = np.random.default_rng(8)
    others = pl.DataFrame({**columns(rng.normal(size=(TRAIN, 5)).round(4)), "strength": rng.normal(40, 15, TRAIN).round(3)})
    found = pl.concat([others, pl.DataFrame({**columns(values), "strength": strength})])
    return found.sample(fraction=1, shuffle=True, seed=2).with_row_index("id").with_columns(pl.format("t{}", "id").alias("id"))


# --------------------------------------------------------------------------------------------- rows


def near(values: np.ndarray) -> np.ndarray:
    return (values + np.random.default_rng(9).normal(0, 0.01, values.shape)).round(4)


@pytest.mark.parametrize("change", [lambda values: values, near], ids=["exact", "nearly so"])
def test_test_rows_that_stand_in_train_under_other_ids_are_found(place: Place, change) -> None:  # type: ignore[no-untyped-def]
    place.put("test.csv", pl.DataFrame({"id": IDS, **columns(X)}))
    place.put("train.csv", train(change(X[:60]), STRENGTH[:60]))
    assert "'strength' of copies of test rows in train.csv tells strength" in place.lint()["duplicates"]


def test_copies_of_test_rows_with_other_answers_are_let_pass(place: Place) -> None:
    place.put("test.csv", pl.DataFrame({"id": IDS, **columns(X)}))
    place.put("train.csv", train(X, np.random.default_rng(1).permutation(STRENGTH)))
    assert place.lint() == {}


def test_rows_in_one_table_that_are_copied_all_over_are_found(place: Place) -> None:
    rows = pl.concat([train(X, STRENGTH)] * 3).with_columns(id=pl.Series([f"t{number}" for number in range(3 * (TRAIN + ROWS))]))
    place.put("all.csv", pl.concat([rows, pl.DataFrame({"id": IDS, **columns(X)}).with_columns(strength=None)], how="vertical_relaxed"))
    assert "of copies of test rows in all.csv" in place.lint()["duplicates"]


@pytest.mark.parametrize("values, classes", [(3, 5), (30, 2)], ids=["few values", "two columns"])
def test_rows_that_are_alike_since_there_are_few_kinds_are_let_pass(place: Place, values: int, classes: int) -> None:
    rng = np.random.default_rng(3)
    table = rng.integers(0, values, (ROWS + TRAIN, classes))
    label = (table.sum(axis=1) % 2).astype(int)
    place.answer(flag=label[:ROWS])
    place.put("test.csv", pl.DataFrame({"id": IDS, **columns(table[:ROWS])}))
    place.put("train.csv", pl.DataFrame({"id": [f"t{number}" for number in range(TRAIN)], **columns(table[ROWS:]), "flag": label[ROWS:]}))
    assert place.lint() == {}


def test_well_separated_classes_in_a_plane_are_let_pass(place: Place) -> None:
    rng = np.random.default_rng(4)
    label = rng.integers(0, 3, ROWS + TRAIN)
    points = np.column_stack([np.cos(2 * label), np.sin(2 * label)]) + rng.normal(0, 0.05, (ROWS + TRAIN, 2))
    place.answer(kind=label[:ROWS])
    twisted = np.column_stack([points, points[:, 0] * points[:, 1], points.sum(axis=1) ** 2]) @ rng.normal(size=(4, 4))
    np.save(place.public / "test_x.npy", twisted[:ROWS])
    np.save(place.public / "train_x.npy", twisted[ROWS:])
    np.save(place.public / "train_y.npy", label[ROWS:])
    place.answers = place.answers.with_columns(id=np.arange(ROWS))
    assert "duplicates" not in place.lint()


def test_groups_with_one_answer_that_are_split_are_found(place: Place) -> None:
    place.answer(flag=FLAG)
    patients = [f"p{number}" for number in range(ROWS)]
    place.put("test.csv", pl.DataFrame({"id": IDS, "patient": patients, "x": X[:, 0]}))
    rows = pl.DataFrame({"patient": patients, "x": X[:, 1], "outcome": FLAG}).sample(fraction=1, shuffle=True, seed=1)
    place.put("train.csv", rows)
    assert "of equal values of 'patient' in train.csv" in place.lint()["duplicates"]
    place.put("train.csv", rows.with_columns(outcome=pl.Series(np.where(np.arange(ROWS) % 8 == 0, 1 - rows["outcome"], rows["outcome"]))))
    assert place.lint() == {}


# --------------------------------------------------------------------------------------------- digits and codes


@pytest.mark.parametrize(
    "digits",
    [KIND == "cat", np.unique(KIND, return_inverse=True)[1] + 3 * np.random.default_rng(1).integers(0, 3, ROWS)],
    ids=["one", "mixed"],
)
def test_an_answer_in_the_low_digits_of_a_feature_is_found(place: Place, digits: np.ndarray) -> None:
    kind = KIND == "cat" if digits.dtype == bool else KIND
    place.answer(kind=kind)
    noise = np.random.default_rng(2).normal(50, 20, ROWS).round(3)
    place.put("test.csv", pl.DataFrame({"id": IDS, "x": [f"{value:.3f}{int(digit)}" for value, digit in zip(noise, digits, strict=True)]}))
    assert "'x' of test.csv tells kind" in place.lint()["proxy column"]


def test_a_number_in_what_follows_the_second_digit_is_found_and_prices_are_let_pass(place: Place) -> None:
    noise = np.random.default_rng(2).normal(50, 20, ROWS).round(2)
    place.put("test.csv", pl.DataFrame({"id": IDS, "x": noise + (STRENGTH - STRENGTH.min()) / 1e5}))
    assert "what follows digit 2 after the point of the column 'x'" in place.lint()["proxy column"]
    prices = np.abs(np.random.default_rng(2).normal(500, 200, ROWS)).round() + np.where(STRENGTH > 40, 0.99, 0.49)
    place.put("test.csv", pl.DataFrame({"id": IDS, "x": prices}))
    assert place.lint() == {}


def test_an_answer_in_one_character_of_an_id_is_found(place: Place) -> None:
    rng = np.random.default_rng(6)
    code = {"cat": "048c", "dog": "159d", "owl": "26ae"}
    ids = [f"{rng.integers(16**5, 16**6):06x}{rng.choice(list(code[kind]))}{rng.integers(16**5, 16**6):06x}" for kind in KIND]
    place.answers = pl.DataFrame({"id": ids, "kind": KIND})
    assert "character 7 of the id" in place.lint()["order"]
    place.answers = pl.DataFrame({"id": ids, "kind": np.random.default_rng(1).permutation(KIND)})
    assert place.lint() == {}


# --------------------------------------------------------------------------------------------- pictures


def picture(seed: int, text: dict[str, str] | None = None, exif: dict[int, str] | None = None, form: str = "PNG") -> bytes:
    pixels = np.random.default_rng(seed).integers(0, 255, (8, 8), dtype=np.uint8)
    image = Image.fromarray(pixels).resize((32, 32), Image.Resampling.BICUBIC)
    stream, info, tags = io.BytesIO(), PngImagePlugin.PngInfo(), Image.Exif()
    for key, value in (text or {}).items():
        info.add_text(key, value)
    tags.update(exif or {})
    image.save(stream, form, **({"pnginfo": info} if form == "PNG" else {}), exif=tags)
    return stream.getvalue()


def pictures(place: Place, make) -> None:  # type: ignore[no-untyped-def]
    (place.public / "images").mkdir(exist_ok=True)
    for row in np.argsort(IDS):
        path = place.public / "images" / f"{IDS[row]}.png"
        path.write_bytes(make(int(row)))
        os.utime(path, (0, 0))


CAMERA, ARTIST = 0x0110, 0x013B


@pytest.mark.parametrize(
    "make, told",
    [
        (lambda row: picture(row, {"note": f"no {row} of {KIND[row]}s"}), "the text 'note'"),
        (lambda row: picture(row, exif={ARTIST: f"{KIND[row]}"}, form="JPEG"), "the tag Artist"),
        (lambda row: picture(row) + f"{row % 7}{KIND[row]}".encode(), "what follows the end"),
        (lambda row: picture(row, {"cat": ""} if KIND[row] == "cat" else {}), "whether there is the text 'cat'"),
    ],
    ids=["a text chunk", "EXIF", "bytes after the end", "whether there is a text"],
)
def test_answers_in_what_pictures_carry_are_found(place: Place, make, told: str) -> None:  # type: ignore[no-untyped-def]
    place.answer(kind=KIND if "cat'" not in told else (KIND == "cat"))
    pictures(place, make)
    assert told in place.lint()["metadata"]


def test_pictures_with_honest_metadata_are_let_pass(place: Place) -> None:
    rng = np.random.default_rng(3)
    place.answer(kind=KIND)
    pictures(
        place,
        lambda row: (
            picture(row, {"Software": "camera", "Taken": f"2020-01-{rng.integers(10, 29)}"}, {CAMERA: str(rng.choice(["A1", "B2"]))})
            + b"\0" * int(rng.integers(0, 3))
        ),
    )
    assert place.lint() == {}


@pytest.mark.parametrize("named", ["in folders", "in a table"])
def test_test_pictures_that_are_saved_again_for_training_are_found(place: Place, named: str) -> None:
    place.answer(kind=KIND)
    pictures(place, picture)
    labels = []
    for number in range(300):
        copied = number < 40
        kind = str(KIND[number]) if copied else str(np.random.default_rng(number).choice(["cat", "dog", "owl"]))
        folder = place.public / "train" / (kind if named == "in folders" else "")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number:05}.jpg").write_bytes(picture(number if copied else 10_000 + number, form="JPEG"))
        labels.append({"image": f"{number:05}.jpg", "kind": kind})
    if named == "in a table":
        place.put("train.csv", pl.DataFrame(labels))
    assert "of copies of test rows in the pictures" in place.lint()["duplicates"]
    for number in range(40):
        for path in (place.public / "train").rglob(f"{number:05}.jpg"):
            path.write_bytes(picture(20_000 + number, form="JPEG"))
    assert place.lint() == {}


def test_test_images_that_stand_in_a_train_array_are_found(place: Place) -> None:
    rng = np.random.default_rng(3)
    place.answers = pl.DataFrame({"id": np.arange(ROWS), "kind": KIND})
    images = rng.integers(0, 255, (ROWS, 10, 10, 3), dtype=np.uint8)
    others = rng.integers(0, 255, (500, 10, 10, 3), dtype=np.uint8)
    labels = np.concatenate([rng.integers(0, 3, 500), np.unique(KIND, return_inverse=True)[1][:50]])
    np.save(place.public / "test_images.npy", images)
    np.save(place.public / "train_images.npy", np.concatenate([others, np.clip(images[:50].astype(int) + 2, 0, 255).astype(np.uint8)]))
    np.save(place.public / "train_labels.npy", labels)
    assert "of copies of test rows in train_images.npy" in place.lint()["duplicates"]
    np.save(place.public / "train_images.npy", np.concatenate([others, rng.integers(0, 255, (50, 10, 10, 3), dtype=np.uint8)]))
    assert place.lint() == {}


# --------------------------------------------------------------------------------------------- archives, attributes, nested data


@pytest.mark.parametrize("honest", [False, True])
def test_comments_of_an_archives_members_are_read(place: Place, honest: bool) -> None:
    place.answer(kind=KIND)
    told = np.random.default_rng(1).permutation(KIND) if honest else KIND
    with zipfile.ZipFile(place.public / "images.zip", "w") as archive:
        for row in np.argsort(IDS):
            member = zipfile.ZipInfo(f"{IDS[row]}.bin")
            member.comment = str(told[row]).encode()
            archive.writestr(member, b"x")
    assert ("the comment of members of images.zip" in place.lint().get("metadata", "")) is not honest


@pytest.mark.parametrize("honest", [False, True])
def test_attributes_of_files_are_read(place: Place, honest: bool) -> None:
    told = np.random.default_rng(1).permutation(STRENGTH) if honest else STRENGTH

    def make(row: int) -> bytes:
        path = place.public / "images" / f"{IDS[row]}.png"
        path.write_bytes(b"")
        try:
            os.setxattr(path, "user.note", f"{told[row]}".encode())
        except (OSError, AttributeError):
            pytest.skip("this file system keeps no attributes")
        return b"x"

    pictures(place, make)
    assert ("the attribute user.note" in place.lint().get("metadata", "")) is not honest


@pytest.mark.parametrize("honest", [False, True])
@pytest.mark.parametrize("form", ["records in a record", "records by id", "a struct in parquet", "metadata of parquet"])
def test_columns_in_nested_data_are_read(place: Place, form: str, honest: bool) -> None:
    told = np.random.default_rng(1).permutation(STRENGTH) * 2 if honest else STRENGTH * 2
    records = [{"id": number, "a": {"b": {"c": float(value)}}} for number, value in zip(IDS, told, strict=True)]
    records = [records[row] for row in np.random.default_rng(2).permutation(ROWS)]
    if form == "records in a record":
        (place.public / "x.json").write_text(json.dumps({"version": 1, "data": {"rows": records}}))
    elif form == "records by id":
        (place.public / "x.json").write_text(json.dumps({row["id"]: row["a"] for row in records}))
    elif form == "a struct in parquet":
        pl.DataFrame(records).write_parquet(place.public / "x.parquet")
    else:
        pl.DataFrame({"id": IDS}).write_parquet(place.public / "x.parquet", metadata={"notes": json.dumps(records)})
    assert ("tells strength" in place.lint().get("proxy column", "")) is not honest
