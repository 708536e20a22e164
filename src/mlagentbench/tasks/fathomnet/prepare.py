"""Prepare pictures of the sea floor with the animals in them: those of the FathomNet competition of 2023, or drawn ones of the same layout.

The competition publishes neither the labels of its test pictures nor any picture. Both are public at FathomNet: the pictures at the
addresses that the competition lists, and in its database the animals in them, and the depth, which decides whether one is out of sample.
"""

from __future__ import annotations

import ast
import json
import os
import shutil
import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

import numpy as np
import polars as pl

from mlagentbench.data import fetch
from mlagentbench.errors import TaskError
from mlagentbench.tasks.fathomnet.pictures import SIZE, SeaPicture, colours, draw

COMPETITION = "fathomnet-out-of-sample-detection"
DATABASE = "https://database.fathomnet.org/api/images/query/concept"
DEPTH = 800.0
"""The greatest depth of the training pictures, in metres."""
FOUND_SHARE = 0.9
"""The share of the test pictures that the database must hold, so that the answers compare to the competition's."""
DOWNLOADS = 8
"""The most downloads at once."""
MINI_TRAIN, MINI_TEST = 240, 80
CATEGORIES = 290
SUPERCATEGORIES = (
    *("Worm", "Feather star", "Sea cucumber", "Squat lobster", "Fish", "Soft coral", "Urchin", "Sea star", "Sea fan", "Sea pen"),
    *("Barnacle", "Eel", "Glass sponge", "Shrimp", "Black coral", "Anemone", "Sea spider", "Gastropod", "Crab", "Stony coral"),
)


class PictureLabels(NamedTuple):
    """The categories in a test picture, and whether it is out of sample."""

    id: str
    categories: Sequence[int]
    osd: int


def full(public: Path, private: Path) -> None:
    """Fetch the competition's pictures, leaving out test pictures that the database no longer holds."""
    source = fetch.kaggle_competition(COMPETITION)
    train = json.loads((source / "object_detection" / "train.json").read_text(encoding="utf-8"))
    test = json.loads((source / "object_detection" / "eval.json").read_text(encoding="utf-8"))
    answers = _look_up(test["images"], {category["name"]: category["id"] for category in train["categories"]})
    answered = {answer.id for answer in answers}
    test["images"] = [image for image in test["images"] if _id(image) in answered]
    data = public / "data"
    (data / "images").mkdir(parents=True)
    images = [*train["images"], *test["images"]]
    with ThreadPoolExecutor(DOWNLOADS) as pool:
        files = pool.map(fetch.download, (quote(unquote(image["coco_url"]), safe=":/") for image in images))
        for image, file in zip(images, files, strict=True):
            _link(file, data / "images" / image["file_name"])
    labels = pl.read_csv(source / "multilabel_classification" / "train.csv")
    key = pl.read_csv(source / "category_key.csv")
    _write(train, test["images"], labels, key, answers, data, private)


def mini(public: Path, private: Path, seed: int) -> None:
    """Draw pictures of 64 x 64 pixels; half of the test pictures are deep."""
    from PIL import Image

    rng = np.random.default_rng(seed)
    palette = colours(rng)
    depths = [False] * MINI_TRAIN + rng.permutation(np.arange(MINI_TEST) % 2 == 0).tolist()
    pictures = {str(uuid.UUID(bytes=rng.bytes(16), version=4)): draw(deep, palette, rng) for deep in depths}
    images = public / "data" / "images"
    images.mkdir(parents=True)
    for name, picture in pictures.items():
        Image.fromarray(picture.pixels).save(images / f"{name}.png")
    names = list(pictures)
    categories = [
        {"id": number, "name": f"Species {number}", "supercategory": SUPERCATEGORIES[number % len(SUPERCATEGORIES)]}
        for number in range(1, CATEGORIES + 1)
    ]
    train = {**_coco(names[:MINI_TRAIN], pictures), "categories": categories}
    answers = [
        PictureLabels(name, sorted(animal.category for animal in pictures[name].animals), int(pictures[name].deep))
        for name in names[MINI_TRAIN:]
    ]
    labels = pl.DataFrame(
        {
            "id": names[:MINI_TRAIN],
            "categories": [str(sorted(float(animal.category) for animal in pictures[name].animals)) for name in names[:MINI_TRAIN]],
        }
    )
    key = pl.DataFrame([{"id": each["id"], "name": each["name"], "supercat": each["supercategory"]} for each in categories])
    _write(train, _coco(names[MINI_TRAIN:], pictures)["images"], labels, key, answers, public / "data", private)


def _look_up(images: Iterable[Mapping[str, Any]], numbers: Mapping[str, int]) -> list[PictureLabels]:
    """Look up the answers of pictures in the database, leaving out those that it does not know.

    Raises:
        TaskError: it knows less than `FOUND_SHARE` of them.
    """
    wanted = {_id(image) for image in images}
    found: dict[str, set[int]] = defaultdict(set)
    depths: dict[str, float] = {}
    for concept in numbers:
        page = fetch.download(f"{DATABASE}/{quote(concept, safe='')}", name=f"{numbers[concept]}.json")
        for image in json.loads(page.read_text(encoding="utf-8")):
            if image["uuid"] not in wanted or image.get("depthMeters") is None:
                continue
            boxes = [box for box in image.get("boundingBoxes") or () if not box.get("rejected")]
            found[image["uuid"]].update(numbers[box["concept"]] for box in boxes if box.get("concept") in numbers)
            depths[image["uuid"]] = image["depthMeters"]
    answers = [PictureLabels(name, sorted(found[name]), int(depths[name] > DEPTH)) for name in sorted(wanted) if found[name]]
    if len(answers) < FOUND_SHARE * len(wanted):
        raise TaskError(
            f"FathomNet's database knows {len(answers):,} of the competition's {len(wanted):,} test pictures, too few for its answers"
        )
    return answers


def _id(image: Mapping[str, Any]) -> str:
    return Path(image["file_name"]).stem


def _coco(names: Sequence[str], pictures: Mapping[str, SeaPicture]) -> dict[str, Any]:
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for number, name in enumerate(names, start=1):
        images.append({"id": number, "file_name": f"{name}.png", "width": SIZE, "height": SIZE})
        for animal in pictures[name].animals:
            left, top, width, height = animal.box
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": number,
                    "category_id": animal.category,
                    "bbox": [left, top, width, height],
                    "area": width * height,
                    "iscrowd": 0,
                    "segmentation": [],
                }
            )
    return {"images": images, "annotations": annotations}


def _write(
    train: Mapping[str, Any],
    test: Sequence[Mapping[str, Any]],
    labels: pl.DataFrame,
    key: pl.DataFrame,
    answers: Sequence[PictureLabels],
    data: Path,
    private: Path,
) -> None:
    """Write the tables, without the pictures' addresses, which name the dive and so reveal the depth."""
    detection, classification = data / "object_detection", data / "multilabel_classification"
    detection.mkdir()
    classification.mkdir()
    shown = [_shown(image, image["id"]) for image in train["images"]]
    coco = {"images": shown, "annotations": train["annotations"], "categories": train["categories"]}
    (detection / "train.json").write_text(json.dumps(coco), encoding="utf-8")
    in_order = sorted(test, key=_id)
    hidden = {"images": [_shown(image, number) for number, image in enumerate(in_order, start=1)], "categories": train["categories"]}
    (detection / "eval.json").write_text(json.dumps(hidden), encoding="utf-8")
    labels.write_csv(classification / "train.csv")
    key.write_csv(data / "category_key.csv")
    rows = [(answer.id, " ".join(map(str, answer.categories)), answer.osd) for answer in sorted(answers)]
    table = pl.DataFrame(rows, schema=["id", "categories", "osd"], orient="row")
    table.write_csv(private / "answers.csv")
    table.select("id", pl.lit("1 2 3").alias("categories"), pl.lit(0.5).alias("osd")).write_csv(data / "sample_submission.csv")


def _shown(image: Mapping[str, Any], number: int) -> dict[str, Any]:
    return {"id": number, **{name: image[name] for name in ("file_name", "width", "height")}}


def _link(file: Path, into: Path) -> None:
    try:
        os.link(file, into)
    except OSError:
        shutil.copyfile(file, into)


def listed(text: str) -> list[int]:
    """Parse the categories in a field of `train.csv`, such as `[1.0, 9.0]`."""
    return [int(number) for number in ast.literal_eval(text)]
