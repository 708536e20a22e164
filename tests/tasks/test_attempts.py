"""What an agent leaves that has read the graders of pictures, graphs and masks: nothing of it is worth more than what it knows.

Each attempt is made without the answers. It is refused, with words that say why, or scores no more than a guess.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from mlagentbench.data.prepare import Prepared
from mlagentbench.errors import InvalidSubmission
from mlagentbench.task.catalogue import Task, find_task
from mlagentbench.tasks.fathomnet.prepare import listed
from mlagentbench.tasks.identify_contrails.runs import encode
from tests.tasks.by_hand import mini, score

Array = NDArray[np.float64]


@pytest.fixture(scope="module")
def task(request: pytest.FixtureRequest) -> Task:
    return find_task(request.param)


@pytest.fixture(scope="module")
def data(task: Task, tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    if task.id in ("fathomnet", "photo-denoise"):
        pytest.importorskip("PIL")
    if task.id == "photo-denoise":
        pytest.importorskip("sklearn")
    return mini(task, tmp_path_factory.mktemp(task.id), seed=7)


def worth(task: Task, data: Prepared, text: str, folder: Path) -> float:
    """What a table scores; 0 where it is refused for what is wrong with it."""
    try:
        return score(task, data, {"submission.csv": text}, folder).value
    except InvalidSubmission as refused:
        assert "submission.csv" in str(refused)
        return 0.0


def pictures(classes: int, rows: Callable[[int, int], str]) -> Callable[[Prepared], str]:
    """A table of the test pictures, whose lines are made of a picture's number and the number of classes."""

    def table(data: Prepared) -> str:
        count = len(np.load(data.public / "data" / "test_images.npy", mmap_mode="r"))
        return "\n".join(["id," + ",".join(map(str, range(classes))), *(rows(number, classes) for number in range(count))]) + "\n"

    return table


def certain(chosen: int, classes: int, value: str = "1") -> str:
    return ",".join(value if number == chosen else "0" for number in range(classes))


def of_training(data: Prepared, classes: int) -> str:
    """The labels to learn from, as if the pictures to predict came in their order."""
    labels = np.load(data.public / "data" / "train_labels.npy").tolist()
    return pictures(classes, lambda number, classes: f"{number},{certain(labels[number], classes)}")(data)


CIFAR: Mapping[str, Callable[[Prepared, int], str]] = {
    "certain of every class": lambda data, n: pictures(n, lambda i, n: f"{i}," + ",".join(["1"] * n))(data),
    "no number beats every number": lambda data, n: pictures(n, lambda i, n: f"{i},{certain(i % n, n, 'NaN')}")(data),
    "more than certain": lambda data, n: pictures(n, lambda i, n: f"{i},{certain(i % n, n, '1e300')}")(data),
    "several guesses a picture": lambda data, n: pictures(n, lambda i, n: "\n".join(f"{i},{certain(k, n)}" for k in range(n)))(data),
    "guesses under other spellings of an id": lambda data, n: pictures(n, lambda i, n: f"{i},{certain(0, n)}\n0{i},{certain(1, n)}")(data),
    "a class named twice in the header": lambda data, n: pictures(n, lambda i, n: f"{i},{certain(0, n)}")(data).replace(
        "id,0,1", "id,0,0", 1
    ),
    "the labels to learn from in their order": of_training,
}


@pytest.mark.parametrize("attempt", CIFAR)
@pytest.mark.parametrize(("task", "classes"), [("cifar10", 10), ("cifar100", 100)], ids=["cifar10", "cifar100"], indirect=["task"])
def test_no_table_of_probabilities_is_right_without_the_pictures(
    task: Task, data: Prepared, classes: int, attempt: str, tmp_path: Path
) -> None:
    assert worth(task, data, CIFAR[attempt](data, classes), tmp_path) < 1.6 / classes


def animals(data: Prepared, categories: Callable[[int], str], osd: Callable[[int], str]) -> str:
    """A table of the pictures of the sea floor, in the order of the list of them."""
    images = json.loads((data.public / "data" / "object_detection" / "eval.json").read_text())["images"]
    return "id,categories,osd\n" + "".join(
        f"{Path(image['file_name']).stem},{categories(place)},{osd(place)}\n" for place, image in enumerate(images)
    )


FATHOMNET: Mapping[str, tuple[Callable[[int], str], Callable[[int], str]]] = {
    "all categories": (lambda _: " ".join(map(str, range(1, 291))), lambda _: "0.5"),
    "a category again in other spellings": (lambda _: "1 01 001 1 +1 1", lambda _: "0.5"),
    "categories of the next picture": (lambda _: "1 292 583 -290", lambda _: "0.5"),
    "no number that sorts last": (lambda _: "1", lambda place: "NaN" if place % 2 else "0.5"),
    "infinite": (lambda _: "1", lambda place: "inf" if place % 2 else "-inf"),
    "the order of the list": (lambda _: "1", str),
}


@pytest.mark.parametrize("attempt", FATHOMNET)
@pytest.mark.parametrize("task", ["fathomnet"], indirect=True)
def test_no_list_of_animals_is_right_without_the_pictures(task: Task, data: Prepared, attempt: str, tmp_path: Path) -> None:
    """What the same list for every picture scores, the commonest animals first, is no success either: the baseline is measured with it."""
    train = pl.read_csv(data.public / "data" / "multilabel_classification" / "train.csv")
    common = (
        pl.Series([number for text in train["categories"] for number in listed(text)]).value_counts(sort=True).to_series()[:20].to_list()
    )
    honest = worth(task, data, animals(data, lambda _: " ".join(map(str, common)), lambda _: "0.5"), tmp_path)
    assert worth(task, data, animals(data, *FATHOMNET[attempt]), tmp_path) < honest + 0.02


def masks(data: Prepared, text: str, more: str = "") -> str:
    ids = pl.read_csv(data.public / "data" / "sample_submission.csv", schema_overrides={"record_id": pl.String})["record_id"]
    return "record_id,encoded_pixels\n" + "".join(f"{each},{text}\n" for each in ids) + more


def usual(data: Prepared) -> str:
    """The pixels that are labelled most often in the scenes to learn from."""
    files = (data.public / "data" / "train").glob("*/human_pixel_masks.npy")
    often = np.mean([np.load(file)[..., 0] for file in files], axis=0)
    return masks(data, encode(often >= np.quantile(often, 0.7)))


CONTRAILS: Mapping[str, Callable[[Prepared], str]] = {
    "every pixel": lambda data: masks(data, "1 1024"),
    "a pixel twice": lambda data: masks(data, "1 600 300 700"),
    "pixels of the next scene": lambda data: masks(data, "1 28672"),
    "numbers that run over": lambda data: masks(data, f"2 {2**63 - 1}"),
    "fewer than no pixels": lambda data: masks(data, "1000 -900"),
    "a scene twice": lambda data: masks(data, "1 1024", masks(data, "1 512").split("\n", 1)[1]),
    "the usual places": usual,
}


@pytest.mark.parametrize("attempt", CONTRAILS)
@pytest.mark.parametrize("task", ["identify-contrails"], indirect=True)
def test_no_mask_is_right_without_the_scenes(task: Task, data: Prepared, attempt: str, tmp_path: Path) -> None:
    assert worth(task, data, CONTRAILS[attempt](data), tmp_path) < 0.28, "the starter's"


def arrays(data: Prepared) -> dict[str, Array]:
    return {file.stem: np.load(file) for file in (data.public / "graph").glob("*.npy")}


def nearest_number(data: Prepared) -> str:
    """The class of the training node whose number is nearest, as if numbers had been given out class by class."""
    graph = arrays(data)
    order = np.argsort(graph["train_nodes"])
    places = np.searchsorted(graph["train_nodes"][order], graph["test_nodes"]).clip(0, len(order) - 1)
    return "node,pred\n" + "".join(
        f"{node},{label}\n" for node, label in zip(graph["test_nodes"], graph["train_labels"][order][places], strict=True)
    )


def nodes(data: Prepared, line: Callable[[int], str], header: str = "node,pred") -> str:
    return f"{header}\n" + "".join(f"{line(int(node))}\n" for node in arrays(data)["test_nodes"])


def commonest(data: Prepared) -> int:
    return int(np.bincount(arrays(data)["train_labels"].astype(int)).argmax())


ARXIV: Mapping[str, Callable[[Prepared], str]] = {
    "the class of the nearest number": nearest_number,
    "the commonest class": lambda data: nodes(data, lambda node: f"{node},{commonest(data)}"),
    "every class of a node": lambda data: nodes(data, lambda node: "\n".join(f"{node},{label}" for label in range(40))),
    "between classes": lambda data: nodes(data, lambda node: f"{node},{commonest(data)}.5"),
    "no number": lambda data: nodes(data, lambda node: f"{node},NaN"),
    "a second column of guesses": lambda data: nodes(data, lambda node: f"{node},0,1", "node,pred,pred"),
}


@pytest.mark.parametrize("attempt", ARXIV)
@pytest.mark.parametrize("task", ["ogbn-arxiv"], indirect=True)
def test_no_class_of_a_paper_is_right_without_the_graph(task: Task, data: Prepared, attempt: str, tmp_path: Path) -> None:
    assert worth(task, data, ARXIV[attempt](data), tmp_path) < 0.2, "the starter has 0.22"


def photograph(array: Array) -> dict[str, bytes]:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return {"denoised.npy": buffer.getvalue()}


@pytest.mark.parametrize("task", ["photo-denoise"], indirect=True)
def test_no_photograph_is_clean_by_numbers_that_are_none(task: Task, data: Prepared, tmp_path: Path) -> None:
    """Numbers that an error is not taken of, or of which it comes out as little: NaN, infinite, and those that are cut off."""
    noisy = np.load(data.public / "data" / "noisy.npy").astype(np.float64)
    honest = score(task, data, photograph(noisy), tmp_path).value
    for value in (np.nan, np.inf, -np.inf, 1e300):
        with pytest.raises(InvalidSubmission, match=r"denoised\.npy"):
            score(task, data, photograph(np.where(noisy < 0.5, noisy, value)), tmp_path)
    beyond = np.where(noisy >= 1, 2.0, np.where(noisy <= 0, -1.0, noisy))
    assert score(task, data, photograph(beyond), tmp_path).value == pytest.approx(honest)


@pytest.mark.parametrize("task", ["photo-denoise"], indirect=True)
def test_a_photograph_has_no_other_copy_in_its_data(task: Task, data: Prepared) -> None:
    assert [path.relative_to(data.public).as_posix() for path in data.public.rglob("*") if path.is_file()] == ["data/noisy.npy"]
    assert np.load(data.public / "data" / "noisy.npy").dtype == np.float32
