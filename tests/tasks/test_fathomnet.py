"""fathomnet: the competition's score against loops, the drawn pictures, and the real layout with answers from the database."""

from __future__ import annotations

import asyncio
import io
import json
from pathlib import Path
from urllib.parse import quote

import numpy as np
import polars as pl
import pytest

from mlagentbench.errors import TaskError
from mlagentbench.grading.grade import grade
from mlagentbench.task.catalogue import find_task
from mlagentbench.tasks.fathomnet import prepare
from mlagentbench.tasks.fathomnet.grade import Array, average_precisions, read_lists, roc_auc_terms
from mlagentbench.tasks.fathomnet.pictures import DEEP, SHALLOW, colours, draw
from tests.mirror import Mirror

TABLE = "submission.csv"


def average_precision(actual: list[int], predicted: list[int]) -> float:
    """As the competition words it, one place after the other."""
    hits, score = 0, 0.0
    for place, category in enumerate(predicted[:20], start=1):
        if category in actual and category not in predicted[: place - 1]:
            hits += 1
            score += hits / place
    return score / min(len(actual), 20)


def map_of(actual: list[list[int]], predicted: list[list[int]]) -> float:
    def texts(lists: list[list[int]]) -> Array:
        return np.array([" ".join(map(str, each)) for each in lists], dtype=object)

    ids = [str(number) for number in range(len(actual))]
    return float(average_precisions(read_lists(texts(actual), ids, TABLE), read_lists(texts(predicted), ids, TABLE), len(ids)).mean())


def test_average_precision_is_what_a_loop_counts() -> None:
    rng = np.random.default_rng(0)
    for _ in range(30):
        actual = [rng.choice(np.arange(1, 41), rng.integers(1, 30), replace=False).tolist() for _ in range(12)]
        predicted = [rng.integers(1, 41, rng.integers(1, 45)).tolist() for _ in range(12)]  # with categories named again
        expected = np.mean([average_precision(a, p) for a, p in zip(actual, predicted, strict=True)])
        assert map_of(actual, predicted) == pytest.approx(expected)


@pytest.mark.parametrize("predicted", [[1, 2, 3, 4, 5], [1, 1, 1, 1, 1], [1, 2, 1, 3, 1]])
def test_one_right_category_in_the_first_place_scores_1(predicted: list[int]) -> None:
    assert map_of([[1]], [predicted]) == 1.0


def test_what_comes_after_the_twentieth_place_does_not_count() -> None:
    assert map_of([[7]], [[*range(100, 119), 7]]) == pytest.approx(1 / 20)
    assert map_of([[7]], [[*range(100, 120), 7]]) == 0.0
    assert map_of([list(range(1, 31))], [list(range(1, 31))]) == 1.0


def test_area_under_the_curve_is_what_a_loop_over_pairs_counts() -> None:
    rng = np.random.default_rng(1)
    for _ in range(30):
        positive = rng.random(40) < 0.3
        positive[:2] = True, False
        scores = rng.integers(0, 8, 40) / 3 - 1  # with many equal ones
        pairs = [(p > n) + 0.5 * (p == n) for p in scores[positive] for n in scores[~positive]]
        assert roc_auc_terms(positive, scores).mean() == pytest.approx(np.mean(pairs))


def test_area_under_the_curve_is_scikit_learns() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(2)
    positive, scores = rng.random(10_000) < 0.4, np.round(rng.normal(size=10_000), 2)
    assert roc_auc_terms(positive, scores).mean() == pytest.approx(metrics.roc_auc_score(positive, scores))


def test_the_score_is_the_mean_of_both_parts_whatever_the_order_of_rows(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    ids = [f"image-{number}" for number in range(200)]
    actual = [rng.choice(np.arange(1, 291), rng.integers(1, 5), replace=False).tolist() for _ in ids]
    predicted = [[*a[: rng.integers(0, 3)], *rng.integers(1, 291, 4).tolist()] for a in actual]
    deep, osd = rng.random(200) < 0.5, rng.random(200)
    (tmp_path / "private").mkdir()
    (tmp_path / "run").mkdir()

    def write(path: Path, lists: list[list[int]], last: Array) -> None:
        texts = [" ".join(map(str, each)) for each in lists]
        pl.DataFrame({"id": ids, "categories": texts, "osd": last}).sample(fraction=1, shuffle=True, seed=len(path.name)).write_csv(path)

    write(tmp_path / "private" / "answers.csv", actual, deep.astype(int))
    write(tmp_path / "run" / TABLE, predicted, osd)
    found = asyncio.run(grade(find_task("fathomnet"), tmp_path / "run", variant="mini", private=tmp_path / "private", sandbox="none")).score
    assert found is not None
    precision = np.mean([average_precision(a, p) for a, p in zip(actual, predicted, strict=True)])
    auc = np.mean([(p > n) + 0.5 * (p == n) for p in osd[deep] for n in osd[~deep]])
    assert found.value == pytest.approx((2 * auc - 1 + precision) / 2)


def test_brightness_alone_does_not_tell_the_depth() -> None:
    rng = np.random.default_rng(4)
    palette = colours(rng)
    pictures = [draw(number % 2 == 0, palette, rng) for number in range(600)]
    deep = np.array([picture.deep for picture in pictures])
    darkness = -np.array([picture.pixels.mean() for picture in pictures])
    assert 0.55 < roc_auc_terms(deep, darkness).mean() < 0.85
    found = {animal.category for picture in pictures for animal in picture.animals if not picture.deep}
    assert found == set(SHALLOW)
    assert {animal.category for picture in pictures for animal in picture.animals} == {*SHALLOW, *DEEP}


def test_boxes_lie_in_their_pictures_and_hold_their_animals() -> None:
    rng = np.random.default_rng(5)
    palette = colours(rng)
    for _ in range(50):
        picture = draw(True, palette, rng)
        for _, (left, top, width, height) in picture.animals:
            assert left >= 0 and left + width <= 64 and top >= 0 and top + height <= 64
            assert picture.pixels[top : top + height, left : left + width].size


def coco(names: list[str]) -> list[dict[str, object]]:
    address = "https://fathomnet.org/static/m3/framegrabs/Doc Ricketts/images/0754/"
    return [
        {
            "id": 10 + number,
            "width": 8,
            "height": 6,
            "file_name": f"{name}.png",
            "coco_url": f"{address}{name}.png",
            "date_captured": "2019",
        }
        for number, name in enumerate(names)
    ]


def serve(mirror: Mirror, *, known: list[str]) -> dict[str, tuple[list[int], float]]:
    """The competition's files, the pictures, and a database that knows some of them."""
    train, test = ["aaaa", "bbbb"], [f"{number:04d}" for number in range(9, -1, -1)]
    categories = [
        {"id": 1, "name": "Actiniaria", "supercategory": "Anemone"},
        {"id": 290, "name": "Holothuria (V.) zacae"},
    ]
    boxes = [{"id": 1, "image_id": 10, "category_id": 1, "bbox": [0, 0, 2, 2], "area": 4, "iscrowd": 0, "segmentation": []}]
    files = {
        "category_key.csv": b"id,name,supercat\n1,Actiniaria,Anemone\n290,Holothuria (V.) zacae,X\n",
        "multilabel_classification/train.csv": b'id,categories\naaaa,[1.0]\nbbbb,"[1.0, 290.0]"\n',
        "object_detection/train.json": json.dumps({"images": coco(train), "annotations": boxes, "categories": categories}).encode(),
        "object_detection/eval.json": json.dumps({"images": coco(test), "annotations": [], "categories": categories}).encode(),
    }
    mirror.competition(prepare.COMPETITION, files)
    for image in coco([*train, *test]):
        mirror.add(str(image["coco_url"]), f"picture {image['file_name']}".encode())
    truth = {name: ([1, 290] if int(name) % 2 else [1], 100.0 * int(name) + 50) for name in known}
    for category in categories:
        answer = [
            {
                "uuid": name,
                "depthMeters": depth,
                "boundingBoxes": [{"concept": each["name"], "rejected": False} for each in categories if each["id"] in numbers]
                + [{"concept": "Rathbunaster", "rejected": False}, {"concept": "Holothuria (V.) zacae", "rejected": True}],
            }
            for name, (numbers, depth) in truth.items()
            if category["id"] in numbers
        ]
        answer.append({"uuid": "of another set", "depthMeters": 1.0, "boundingBoxes": [{"concept": category["name"]}]})
        mirror.add(f"{prepare.DATABASE}/{quote(str(category['name']), safe='')}", json.dumps(answer).encode())
    return truth


def prepared(tmp_path: Path) -> tuple[Path, Path]:
    pytest.importorskip("kagglesdk")
    public, private = tmp_path / "public", tmp_path / "private"
    public.mkdir()
    private.mkdir()
    prepare.full(public, private)
    return public / "data", private


def test_the_competitions_pictures_get_their_answers_from_the_database(tmp_path: Path, mirror: Mirror) -> None:
    known = [f"{number:04d}" for number in range(9)]
    truth = serve(mirror, known=known)  # all but the tenth
    data, private = prepared(tmp_path)

    answers = pl.read_csv(private / "answers.csv", infer_schema=False)
    assert answers["id"].to_list() == known
    assert answers["categories"].to_list() == [" ".join(map(str, truth[name][0])) for name in known]
    assert answers["osd"].to_list() == ["1" if truth[name][1] > 800 else "0" for name in known]
    assert sorted(path.stem for path in (data / "images").iterdir()) == sorted([*known, "aaaa", "bbbb"])
    assert (data / "images" / "0003.png").read_bytes() == b"picture 0003.png"

    test = json.loads((data / "object_detection" / "eval.json").read_text())
    assert [image["file_name"] for image in test["images"]] == [f"{name}.png" for name in known]
    assert "annotations" not in test
    for name in ("eval", "train"):
        assert "Doc Ricketts" not in (data / "object_detection" / f"{name}.json").read_text()
    train = json.loads((data / "object_detection" / "train.json").read_text())
    assert train["images"][0] == {"id": 10, "file_name": "aaaa.png", "width": 8, "height": 6} and train["annotations"][0]["image_id"] == 10
    sample = pl.read_csv(io.BytesIO((data / "sample_submission.csv").read_bytes()), infer_schema=False)
    assert sample["id"].to_list() == known and sample.columns == ["id", "categories", "osd"]


def test_a_database_that_knows_too_few_of_the_pictures_gives_no_answers(tmp_path: Path, mirror: Mirror) -> None:
    serve(mirror, known=["0001", "0002"])
    with pytest.raises(TaskError, match="knows 2 of the competition's 10 test pictures"):
        prepared(tmp_path)
