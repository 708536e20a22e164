"""Prepare satellite scenes with contrails: those of the Kaggle competition, or synthetic ones of the same layout.

The competition's validation set is the test set here, since the labels of its test set are not published.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from mlagentbench.data import fetch
from mlagentbench.tasks.identify_contrails.runs import NOTHING, encode
from mlagentbench.tasks.identify_contrails.scenes import BANDS, SIZE, Array, draw

COMPETITION = "google-research-identify-contrails-reduce-global-warming"
MINI_TRAIN, MINI_TEST = 56, 28
ID_PLACES = 10**15
FIRST_TIME = 1_556_668_800
"""Seconds since the epoch: the real data begins in May 2019."""
MASKS = ("human_pixel_masks.npy", "human_individual_masks.npy")


def full(public: Path, private: Path) -> None:
    """Write the competition's scenes, with the three of their nine bands that show ice. Only these are downloaded, file by file.

    Files are hard links to the download where the disk allows it, and copies otherwise.
    """
    source = fetch.kaggle_competition(COMPETITION, ["train_metadata.json", "validation_metadata.json"])
    train, validation = (_records(source / f"{part}_metadata.json") for part in ("train", "validation"))
    bands = [_band(number) for number in BANDS]
    wanted = [f"train/{record}/{name}" for record in train for name in (*bands, *MASKS)]
    wanted += [f"validation/{record}/{name}" for record in validation for name in (*bands, MASKS[0])]
    fetch.kaggle_competition(COMPETITION, wanted)
    data = public / "data"
    data.mkdir()
    for record in train:
        _take(source / "train" / record, data / "train" / record, (*bands, *MASKS))
    answers = []
    for record in validation:
        _take(source / "validation" / record, data / "test" / record, bands)
        answers.append(_answer(record, np.load(source / "validation" / record / MASKS[0])))
    shutil.copyfile(source / "train_metadata.json", data / "train_metadata.json")
    shutil.copyfile(source / "validation_metadata.json", data / "test_metadata.json")
    _write_tables(answers, data, private)


def mini(public: Path, private: Path, seed: int) -> None:
    """Write synthetic scenes of 32 x 32 pixels."""
    rng = np.random.default_rng(seed)
    data = public / "data"
    names = [str(10**18 + int(number)) for number in rng.integers(ID_PLACES, size=MINI_TRAIN + MINI_TEST)]
    answers = []
    for part, ids in (("train", names[:MINI_TRAIN]), ("test", names[MINI_TRAIN:])):
        for name in ids:
            scene = draw(rng)
            folder = data / part / name
            folder.mkdir(parents=True)
            for number, temperatures in scene.bands.items():
                np.save(folder / _band(number), temperatures)
            if part == "train":
                np.save(folder / MASKS[0], scene.mask)
                np.save(folder / MASKS[1], scene.individual_masks)
            else:
                answers.append(_answer(name, scene.mask))
        (data / f"{part}_metadata.json").write_text(json.dumps([_metadata(name, rng) for name in ids]))
    _write_tables(sorted(answers), data, private)


def _band(number: int) -> str:
    return f"band_{number:02d}.npy"


def _records(metadata: Path) -> Sequence[str]:
    """Return the ids of the scenes in a file of metadata, in order."""
    return sorted(str(record["record_id"]) for record in json.loads(metadata.read_text(encoding="utf-8")))


def _take(record: Path, into: Path, names: Iterable[str]) -> None:
    into.mkdir(parents=True)
    for name in names:
        try:
            os.link(record / name, into / name)
        except OSError:
            shutil.copyfile(record / name, into / name)


def _answer(name: str, mask: Array) -> tuple[str, int, str]:
    return name, mask.size, encode(mask[..., 0])


def _write_tables(answers: list[tuple[str, int, str]], data: Path, private: Path) -> None:
    table = pl.DataFrame(answers, schema=["record_id", "pixels", "encoded_pixels"], orient="row")
    table.write_csv(private / "answers.csv")
    table.select("record_id", pl.lit(NOTHING).alias("encoded_pixels")).write_csv(data / "sample_submission.csv")


def _metadata(name: str, rng: np.random.Generator) -> dict[str, object]:
    row, column = rng.uniform(-2e6, 2e6, 2).round(1).tolist()
    return {
        "record_id": name,
        "row_min": row,
        "row_size": 2000.0 * SIZE,
        "col_min": column,
        "col_size": 2000.0 * SIZE,
        "timestamp": FIRST_TIME + 600.0 * int(rng.integers(52_560)),
        "projection_wkt": 'PROJCS["unnamed",PROJECTION["Geostationary_Satellite"]]',
    }
