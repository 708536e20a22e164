"""The leak lint on small public and private folders: what tells is found, and what honest tasks have is let pass."""

from __future__ import annotations

import io
import json
import os
import pickle
import shutil
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from mlagentbench.checks.findings import Name
from mlagentbench.checks.leaks import lint
from mlagentbench.checks.public_files import read_tables
from mlagentbench.checks.public_tables import read_answers
from mlagentbench.data.prepare import Prepared
from mlagentbench.task.catalogue import Task, load_task
from mlagentbench.task.new import TEMPLATE

ROWS = 240
RNG = np.random.default_rng(5)
IDS = [f"row_{number}" for number in RNG.permutation(ROWS) + 1000]
STRENGTH = RNG.normal(40, 15, ROWS).round(3)
KIND = RNG.choice(["cat", "dog", "owl"], ROWS)
FLAG = (RNG.random(ROWS) < 0.3).astype(int)


class Place:
    """A task's data, and what the lint says of it."""

    def __init__(self, folder: Path) -> None:
        self.public, self.private = folder / "public", folder / "private"
        self.public.mkdir()
        self.private.mkdir()
        shutil.copytree(TEMPLATE, folder / "task")
        self.task: Task = load_task(folder / "task")
        self.answers = pl.DataFrame({"id": IDS, "strength": STRENGTH})
        self.rng = np.random.default_rng(6)
        """What a test draws from, so that it draws the same whichever tests ran before it."""

    def answer(self, **columns: object) -> None:
        """Other answers than the strengths."""
        self.answers = pl.DataFrame({"id": IDS, **columns})

    def put(self, name: str, frame: pl.DataFrame) -> None:
        frame.write_csv(self.public / name)

    def lint(self, *, ids: bool = True) -> dict[Name, str]:
        oracle = self.answers if ids else self.answers.drop("id")
        self.answers.write_csv(self.private / "answers.csv")
        tables, grids = read_tables(self.public)
        names = [path.relative_to(self.public).as_posix() for path in self.public.rglob("*")]
        answers = read_answers("submission.csv", oracle.write_csv().encode(), tables, names)
        assert answers is not None and (answers.id_column == "id") is ids
        found = lint(self.task, Prepared(self.public, self.private), answers, tables, grids)
        return {finding.name: finding.detail for finding in found if finding.status == "failed"}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def noise(size: float) -> np.ndarray:
    return np.random.default_rng(1).normal(0, size, ROWS)


# --------------------------------------------------------------------------------------------- what must be let pass


def test_an_honest_table_is_let_pass(place: Place) -> None:
    features = pl.DataFrame(
        {
            "id": IDS,
            "good feature": STRENGTH + noise(5),
            "name": [
                f"Batch {number} of {letter}"
                for number, letter in zip(place.rng.permutation(ROWS), place.rng.choice(list("abcd"), ROWS), strict=True)
            ],
            "constant": [1] * ROWS,
            "gaps": [None if number % 3 else number for number in range(ROWS)],
        }
    )
    place.put("test.csv", features)
    place.put(
        "train.csv",
        features.with_columns(id=pl.Series([f"row_{number}" for number in range(ROWS)]), strength=place.rng.normal(40, 15, ROWS)),
    )
    place.put("sample_submission.csv", pl.DataFrame({"id": IDS, "strength": [40.0] * ROWS}))
    (place.public / "texts").mkdir()
    for number in IDS:
        (place.public / "texts" / f"{number}.txt").write_text("a text " * int(place.rng.integers(1, 50)))
    assert place.lint() == {}


def test_an_honest_table_of_classes_is_let_pass(place: Place) -> None:
    place.answer(flag=FLAG)
    # A very good feature: one row in thirty on the wrong side.
    place.put("test.csv", pl.DataFrame({"id": IDS, "x": FLAG + noise(0.25), "colour": place.rng.choice(["red", "blue"], ROWS)}))
    place.put("sample_submission.csv", pl.DataFrame({"id": IDS, "flag": [0] * ROWS}))
    assert place.lint() == {}


def test_chance_is_let_pass_where_there_are_few_rows(place: Place) -> None:
    few = 14
    for seed in range(20):
        rng = np.random.default_rng(seed)
        place.answers = pl.DataFrame({"id": IDS[:few], "flag": rng.permutation([1] * 2 + [0] * (few - 2))})
        place.put("test.csv", pl.DataFrame({"id": IDS[:few], **{f"x{number}": rng.random(few).round(2) for number in range(60)}}))
        assert "proxy column" not in place.lint()


def test_a_private_table_may_repeat_what_is_public_beside_the_answers(place: Place) -> None:
    test = pl.DataFrame({"id": IDS, **{f"x{number}": place.rng.random(ROWS) for number in range(20)}})
    place.put("test.csv", test)
    test.join(place.answers, on="id").write_csv(place.private / "test.csv")
    test.select("id").write_csv(place.private / "ids.csv")
    test.select("id").write_csv(place.public / "ids.csv")
    assert place.lint() == {}


def test_arrays_of_one_kind_are_let_pass(place: Place) -> None:
    place.answer(label=KIND)
    np.save(place.public / "train_labels.npy", place.rng.integers(0, 3, 5000))
    np.save(place.public / "test_images.npy", place.rng.integers(0, 255, (ROWS, 8, 8), dtype=np.uint8))
    np.save(place.private / "labels.npy", np.unique(KIND, return_inverse=True)[1])
    np.save(place.private / "masks.npy", np.zeros((ROWS, 64), np.uint8))
    np.save(place.public / "train_masks.npy", np.zeros((ROWS, 64), np.uint8))
    assert place.lint() == {}


# --------------------------------------------------------------------------------------------- columns


@pytest.mark.parametrize(
    "column",
    [
        STRENGTH,
        -(STRENGTH**3),
        np.round(STRENGTH, 1),
        STRENGTH + noise(0.1),
        [f"{value:.1f} MPa" for value in STRENGTH],
    ],
    ids=["as it is", "turned round", "rounded", "with a little noise", "as a word"],
)
def test_a_column_that_sorts_the_answers_is_found(place: Place, column: object) -> None:
    place.put("test.csv", pl.DataFrame({"id": IDS[::-1], "x": list(column)[::-1]}))  # type: ignore[call-overload]
    assert "'x'" in place.lint()["proxy column"]


CODES = {"cat": "K7", "dog": "B2", "owl": "Z9"}


@pytest.mark.parametrize(
    "column",
    [
        [CODES[kind] for kind in KIND],
        [{"cat": 5, "dog": 2, "owl": 9}[kind] for kind in KIND],
        [f"{CODES[kind]}-{number}" for number, kind in enumerate(KIND)],
        [f"images/{kind}/{number}.png" for number, kind in enumerate(KIND)],
        [{"cat": 0.0, "dog": 10.0, "owl": 20.0}[kind] + number / ROWS for number, kind in enumerate(KIND)],
        ["x" * {"cat": 3, "dog": 4, "owl": 5}[kind] + "yz"[number % 2] for number, kind in enumerate(KIND)],
    ],
    ids=["codes", "numbers", "a prefix", "a folder", "intervals", "a length"],
)
def test_a_column_that_maps_to_the_classes_is_found(place: Place, column: list[object]) -> None:
    place.answer(kind=KIND)
    place.put("test.csv", pl.DataFrame({"id": IDS, "x": column}))
    assert "'x'" in place.lint()["proxy column"]


@pytest.mark.parametrize("name", ["more.parquet", "more.jsonl", "more.json", "more.tsv", "more.zip", "more.csv.gz"])
def test_tables_of_any_form_are_read(place: Place, name: str) -> None:
    frame = place.answers.rename({"strength": "hidden"}).sample(fraction=1, shuffle=True, seed=3).with_columns(pl.col("hidden") * 2)
    path = place.public / name
    if name.endswith("parquet"):
        frame.write_parquet(path)
    elif name.endswith("jsonl"):
        path.write_text("\n".join(json.dumps(row) for row in frame.to_dicts()))
    elif name.endswith("json"):
        path.write_text(json.dumps(dict(frame.iter_rows())))
    elif name.endswith("tsv"):
        frame.write_csv(path, separator="\t")
    elif name.endswith("zip"):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("inner/more.csv", frame.write_csv())
    else:
        import gzip

        path.write_bytes(gzip.compress(frame.write_csv().encode()))
    assert "tells strength" in place.lint()["proxy column"]


def test_rows_without_ids_are_compared_by_their_order(place: Place) -> None:
    place.put("test.csv", pl.DataFrame({"x": STRENGTH * 2 + 1}))
    assert "'x'" in place.lint(ids=False)["proxy column"]


def test_an_array_with_the_test_labels_is_found(place: Place) -> None:
    labels = np.unique(KIND, return_inverse=True)[1]
    place.answers = pl.DataFrame({"id": np.arange(ROWS) + 500, **{kind: (kind == KIND).astype(float) for kind in CODES}})
    everything = np.concatenate([place.rng.integers(0, 3, 500), labels])
    np.savez(place.public / "graph.npz", labels=everything, x=place.rng.random((500 + ROWS, 4)))
    found = place.lint()
    assert "graph.npz/labels.npy tells the likeliest class" in found["proxy column"]


def test_a_label_column_of_the_test_rows_in_the_train_table_is_found(place: Place) -> None:
    place.answer(kind=KIND)
    place.put("test.csv", pl.DataFrame({"id": IDS, "x": place.rng.random(ROWS)}))
    more = pl.DataFrame({"id": [f"row_{number}" for number in range(500)], "kind": place.rng.choice(list(CODES), 500)})
    place.put("train.csv", pl.concat((more, place.answers.head(40))).sample(fraction=1, shuffle=True, seed=1))
    assert "train.csv has the answers in its column 'kind' (100% of 40)" in place.lint()["label column"]


# --------------------------------------------------------------------------------------------- order


@pytest.mark.parametrize(
    "kinds, ids",
    [
        (np.sort(KIND), np.arange(ROWS)),
        (np.array(list(CODES))[np.arange(ROWS) % 3], np.arange(ROWS)),
        (KIND, [f"{kind}_{number}" for number, kind in enumerate(KIND)]),
        (KIND, np.argsort(np.argsort(KIND, kind="stable")) * 7),
    ],
    ids=["rows sorted", "classes in turn", "names", "sorted ids"],
)
def test_orders_and_ids_that_tell_classes_are_found(place: Place, kinds: np.ndarray, ids: object) -> None:
    place.answers = pl.DataFrame({"id": ids, "kind": kinds})
    assert "tells kind" in place.lint()["order"]


def test_an_order_that_sorts_roughly_is_found(place: Place) -> None:
    place.put("test.csv", place.answers.with_columns(rough=STRENGTH + noise(5)).sort("rough").select("id"))
    assert "the order of rows of test.csv tells strength" in place.lint()["order"]


# --------------------------------------------------------------------------------------------- metadata


def images(place: Place, **by_row: Callable[[int], object]) -> Path:
    folder = place.public / "images"
    folder.mkdir()
    for row in np.argsort(IDS):
        path = folder / f"{IDS[row]}.png"
        path.write_bytes(place.rng.bytes(int(by_row["size"](row)) if "size" in by_row else 100))  # type: ignore[call-overload]
        os.utime(path, ns=(0, int(by_row["time"](row)) if "time" in by_row else 0))  # type: ignore[call-overload]
    return folder


RANK = np.argsort(np.argsort(STRENGTH))


@pytest.mark.parametrize(
    "by_row, told",
    [
        ({"size": lambda row: 100 + RANK[row]}, "the size of images"),
        ({"time": lambda row: 10**18 + RANK[row]}, "the time of change of images"),
    ],
)
def test_times_and_sizes_are_found(place: Place, by_row: dict[str, Callable[[int], object]], told: str) -> None:
    images(place, **by_row)
    assert told in place.lint()["metadata"]


def test_the_order_in_which_files_were_made_is_found(place: Place) -> None:
    (place.public / "images").mkdir()
    for row in np.argsort(STRENGTH):
        path = place.public / "images" / f"{IDS[row]}.png"
        path.write_bytes(b"")
        os.utime(path, (0, 0))
    status = sorted((path.stat().st_ino, path.stem) for path in (place.public / "images").iterdir())
    if [stem for _, stem in status] != [IDS[row] for row in np.argsort(STRENGTH)]:
        pytest.skip("this file system numbers files in an order of its own")
    assert "the order in which they were made" in place.lint()["metadata"]


def test_the_order_in_an_archive_and_folders_are_found(place: Place) -> None:
    place.answer(kind=KIND)
    with zipfile.ZipFile(place.public / "images.zip", "w") as archive:
        for row in np.argsort(KIND, kind="stable"):
            archive.writestr(f"{IDS[row]}.png", b"x")
    for row, number in enumerate(IDS):
        path = place.public / "pictures" / f"{KIND[row]}s" / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    found = place.lint()["metadata"]
    assert "the order of members of images.zip" in found and "the folder of pictures" in found


# --------------------------------------------------------------------------------------------- copies


@pytest.mark.parametrize(
    "name, content",
    [
        ("labels.txt", "\n".join(KIND).encode()),
        ("labels.json", json.dumps(list(map(str, KIND))).encode()),
        ("labels.bin", np.unique(KIND, return_inverse=True)[1].astype("<i4").tobytes()),
        ("labels.u1", np.unique(KIND, return_inverse=True)[1].astype("u1").tobytes()),
        ("labels.pkl", pickle.dumps(np.unique(KIND, return_inverse=True)[1].tolist(), protocol=4)),
        ("rows.txt", "\n".join(f"{number},{kind}" for number, kind in sorted(zip(IDS, KIND, strict=True))).encode()),
        ("records", b"".join(struct.pack("<f", place) for place in np.unique(KIND, return_inverse=True)[1])),
    ],
)
def test_answers_in_any_writing_are_found(place: Place, name: str, content: bytes) -> None:
    place.answer(kind=KIND)
    (place.public / name).write_bytes(b"a header of some kind\n" + content)
    found = place.lint()
    if name == "labels.json":
        assert "copies" in found or "proxy column" in found
    else:
        assert f"public/{name}" in found["copies"]


def test_private_files_in_public_ones_are_found(place: Place) -> None:
    secret = place.rng.bytes(5000)
    (place.private / "weights.bin").write_bytes(secret)
    (place.public / "model.bin").write_bytes(place.rng.bytes(1000) + secret[:3000] + place.rng.bytes(1000))
    assert "private/weights.bin stand in public/model.bin" in place.lint()["copies"]
    (place.public / "model.bin").unlink()
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("deep/inside.bin", secret)
    (place.public / "all.zip").write_bytes(stream.getvalue())
    assert "public/all.zip/deep/inside.bin" in place.lint()["copies"]


def test_answers_in_the_description_are_found(place: Place) -> None:
    path = place.task.folder / "problem.md"
    path.write_text(path.read_text() + "\n".join(f"{number},{value}" for number, value in zip(IDS, STRENGTH, strict=True)))
    assert "problem.md" in place.lint()["copies"]
