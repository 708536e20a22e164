"""cifar10 and cifar100: the archives of the real layout, the drawn pictures, and the accuracy."""

from __future__ import annotations

import asyncio
import io
import os
import tarfile
from pathlib import Path
from types import ModuleType

import numpy as np
import polars as pl
import pytest

from mlagentbench.data.prepare import Prepared
from mlagentbench.errors import TaskError
from mlagentbench.grading.grade import Graded, grade
from mlagentbench.task.catalogue import find_task
from mlagentbench.tasks.cifar10 import pictures, prepare
from mlagentbench.tasks.cifar10.grade import probabilities
from mlagentbench.tasks.cifar100 import prepare as prepare100
from tests.mirror import Mirror

TABLE = "submission.csv"


@pytest.fixture(scope="module")
def mini(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    folder = tmp_path_factory.mktemp("mini")
    data = Prepared(folder / "public", folder / "private")
    data.public.mkdir()
    data.private.mkdir()
    prepare.mini(data.public, data.private, seed=0)
    return data


def graded(folder: Path, text: str, data: Prepared, task: str = "cifar10") -> Graded:
    folder.mkdir(exist_ok=True)
    (folder / TABLE).write_text(text)
    return asyncio.run(grade(find_task(task), folder, variant="mini", private=data.private, sandbox="none"))


def archive(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def records(labels: pictures.Array, images: pictures.Array, coarse: bool) -> bytes:
    """As the binary version has them: labels, then the red, green and blue values, one row after another."""
    rows = [
        bytes([7, label] if coarse else [label]) + image.transpose(2, 0, 1).tobytes() for label, image in zip(labels, images, strict=True)
    ]
    return b"".join(rows)


@pytest.mark.parametrize(
    ("task", "module", "classes"), [("cifar10", prepare, 10), ("cifar100", prepare100, 100)], ids=["cifar10", "cifar100"]
)
def test_the_published_archive_becomes_arrays_and_test_labels_stay_private(
    tmp_path: Path, mirror: Mirror, task: str, module: ModuleType, classes: int
) -> None:
    rng = np.random.default_rng(1)
    labels = rng.integers(classes, size=60).astype(np.uint8)
    images = rng.integers(256, size=(60, 32, 32, 3)).astype(np.uint8)
    coarse = classes == 100
    parts = [records(labels[start : start + 10], images[start : start + 10], coarse) for start in range(0, 60, 10)]
    names = "\n".join(module.NAMES).encode() + b"\n\n"
    if coarse:
        files = {"train.bin": b"".join(parts[:5]), "test.bin": parts[5], "fine_label_names.txt": names, "coarse_label_names.txt": b"fish\n"}
    else:
        files = {f"data_batch_{number + 1}.bin": parts[number] for number in range(5)} | {"test_batch.bin": parts[5]}
        files |= {"batches.meta.txt": names, "readme.html": b"<html>"}
    mirror.add(module.ARCHIVE, archive({f"{module.FOLDER}/{name}": content for name, content in files.items()}))

    public, private = tmp_path / "public", tmp_path / "private"
    public.mkdir()
    private.mkdir()
    module.full(public, private)

    data = public / "data"
    assert sorted(path.name for path in data.iterdir()) == ["class_names.txt", "test_images.npy", "train_images.npy", "train_labels.npy"]
    assert np.array_equal(np.load(data / "train_images.npy"), images[:50])
    assert np.array_equal(np.load(data / "train_labels.npy"), labels[:50])
    assert (data / "class_names.txt").read_text().split() == module.NAMES
    answers = pl.read_csv(private / "answers.csv")
    assert answers["id"].to_list() == list(range(10))
    for image, label in zip(np.load(data / "test_images.npy"), answers["label"], strict=True):
        place = next(number for number in range(50, 60) if np.array_equal(images[number], image))
        assert label == labels[place]
    assert not np.array_equal(np.load(data / "test_images.npy"), images[50:])  # the published order is known by heart


def test_another_archive_than_the_published_one_is_refused(tmp_path: Path, mirror: Mirror) -> None:
    from mlagentbench.data import fetch

    mirror.add(prepare.ARCHIVE, archive({"cifar-10-batches-bin/test_batch.bin": b"other"}))
    with fetch.fetching(find_task("cifar10").spec, tmp_path / "cache"), pytest.raises(TaskError, match="not the file it should be"):
        prepare.full(tmp_path, tmp_path)


def test_drawn_pictures_hold_every_class_alike_and_tell_no_class_by_their_place(mini: Prepared) -> None:
    labels = probabilities(10).answers(mini.private)["label"].to_numpy()
    assert set(np.bincount(labels)) == {prepare.MINI_TEST // 10}
    assert abs(np.corrcoef(np.arange(len(labels)), labels)[0, 1]) < 0.1
    images = np.load(mini.public / "data" / "test_images.npy")
    assert images.shape == (prepare.MINI_TEST, 32, 32, 3) and images.dtype == np.uint8
    assert abs(np.corrcoef(images.mean(axis=(1, 2, 3)), labels)[0, 1]) < 0.15


def test_difficulty_draws_other_pictures_of_the_same_classes() -> None:
    plain, _ = pictures.draw(20, 10, 10, pictures.Difficulty(0.5, 0.3, 0.0), seed=3)
    noisy, _ = pictures.draw(20, 10, 10, pictures.Difficulty(0.5, 0.3, 0.9), seed=3)
    assert np.array_equal(plain.labels, noisy.labels)
    assert not np.array_equal(plain.images, noisy.images)


def test_accuracy_is_what_a_loop_counts_and_the_first_of_equal_probabilities_wins(mini: Prepared, tmp_path: Path) -> None:
    labels = probabilities(10).answers(mini.private)["label"].to_numpy()
    rng = np.random.default_rng(0)
    predicted = np.round(rng.dirichlet(np.ones(10), len(labels)), 1)  # so coarse that many rows have equal ones
    right = 0
    for row, label in zip(predicted.tolist(), labels, strict=True):
        right += row.index(max(row)) == label
    rows = [f"{number}," + ",".join(map(str, row)) for number, row in enumerate(predicted.tolist())]
    found = graded(tmp_path / "run", "\n".join(["id," + ",".join(map(str, range(10))), *rows]), mini)
    assert found.score is not None, found.reason
    assert found.score.value == pytest.approx(right / len(labels))


def test_a_full_sized_table_of_a_hundred_classes_is_graded_at_once(tmp_path: Path) -> None:
    labels = np.arange(10_000) % 100
    (tmp_path / "private").mkdir()
    pl.DataFrame({"id": np.arange(10_000), "label": labels}).write_csv(tmp_path / "private" / "answers.csv")
    data = Prepared(tmp_path / "public", tmp_path / "private")
    before = os.times().children_user
    found = graded(tmp_path / "run", probabilities(100).best(data).write_csv(), data, task="cifar100")
    assert found.score is not None and found.score.value == 1.0
    assert os.times().children_user - before < 5


def test_what_is_learnt_on_the_one_can_be_tried_on_the_other() -> None:
    one, other = ((find_task(task).starter / "train.py").read_text().splitlines() for task in ("cifar10", "cifar100"))
    apart = {pair[0].split()[0] for pair in zip(one, other, strict=True) if pair[0] != pair[1]}
    assert apart == {'"""Train'}, "their starters differ in the first line"
