"""identify-contrails: run lengths against drawn masks, the Dice coefficient, and the competition's real layout."""

from __future__ import annotations

import asyncio
import io
import json
import random
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from mlagentbench.errors import InvalidSubmission
from mlagentbench.grading.grade import Graded, grade
from mlagentbench.task.catalogue import find_task
from mlagentbench.tasks.identify_contrails import prepare
from mlagentbench.tasks.identify_contrails.runs import Array, RunLengths, decode, encode
from mlagentbench.tasks.identify_contrails.scenes import draw
from tests.mirror import Mirror

TABLE = "submission.csv"
SHAPE = (7, 5)
REFUSED = ["36 1", "1 36", "35 2", "-1 3", "1 -3", "", " ", "--", "1,3", "nan 1", "1 2 3", "0x1 3"]


def masks(count: int, seed: int) -> list[Array]:
    rng = np.random.default_rng(seed)
    return [rng.random(SHAPE) < rng.choice([0.0, 0.3, 0.7, 1.0]) for _ in range(count)]


def drawn(text: str) -> Array:
    """Pixel by pixel, as the competition words it."""
    mask = np.zeros(SHAPE, dtype=bool)
    words = [] if text == "-" else [int(word) for word in text.split()]
    for start, length in zip(words[::2], words[1::2], strict=True):
        for pixel in range(start, start + length):
            mask[(pixel - 1) % SHAPE[0], (pixel - 1) // SHAPE[0]] = True
    return mask


def read(texts: list[str]) -> RunLengths:
    return decode(np.array(texts, dtype=object), [f"record {n}" for n in range(len(texts))], np.full(len(texts), 35), TABLE)


def test_run_lengths_go_down_the_columns_from_1() -> None:
    mask = np.zeros(SHAPE, dtype=bool)
    mask[1, 0] = mask[2, 0] = mask[0, 1] = True
    assert encode(mask) == "2 2 8 1"
    mask[3:, 0] = True
    assert encode(mask) == "2 7"  # on to the next column
    assert encode(np.zeros(SHAPE)) == "-"
    assert encode(np.ones(SHAPE)) == "1 35"


def test_what_is_encoded_is_drawn_again() -> None:
    for mask in masks(50, seed=1):
        assert np.array_equal(drawn(encode(mask)), mask)


def test_shared_pixels_are_those_of_the_drawn_masks() -> None:
    ours, theirs = masks(80, seed=2), masks(80, seed=3)
    first, second = read([encode(mask) for mask in ours]), read([encode(mask) for mask in theirs])
    assert first.pixels == sum(int(mask.sum()) for mask in ours)
    sizes, both = np.full(80, 35), [int((a & b).sum()) for a, b in zip(ours, theirs, strict=True)]
    assert first.by_mask(sizes, second).tolist() == second.by_mask(sizes, first).tolist() == both
    assert first.by_mask(sizes, first).tolist() == first.by_mask(sizes).tolist() == [int(mask.sum()) for mask in ours]


def test_neighbouring_runs_are_no_overlap() -> None:
    assert read(["1 2 3 2"]).pixels == 4
    assert read(["35 1"]).pixels == 1
    assert read(["1 35", "1 35"]).pixels == 70


def test_masks_without_any_pixel_share_none() -> None:
    nothing, all_of_it = read(["-", "-"]), read(["1 35", "-"])
    sizes = np.full(2, 35)
    assert nothing.pixels == nothing.by_mask(sizes, all_of_it).sum() == all_of_it.by_mask(sizes, nothing).sum() == 0


@pytest.mark.parametrize("text", [*REFUSED, f"{2**63 - 1} {2**63 - 1}"])
def test_what_is_no_run_lengths_is_refused_with_the_record(text: str) -> None:
    with pytest.raises(InvalidSubmission, match="record 1"):
        read(["-", text, "1 1"])


def test_no_text_is_ever_misread_or_a_bug_of_the_reader() -> None:
    rng = random.Random(4)
    taken = 0
    for _ in range(400):
        words = [rng.choice(["1", "2", "7", "12", "30", "36", "0", "-", "x"]) for _ in range(rng.randrange(5))]
        text = " ".join(words)
        try:
            found = read([text])
        except InvalidSubmission:
            continue
        taken += 1
        assert found.pixels == drawn(text).sum()
    assert taken > 10


def graded(folder: Path, table: pl.DataFrame, private: Path) -> Graded:
    folder.mkdir()
    table.write_csv(folder / TABLE)
    return asyncio.run(grade(find_task("identify-contrails"), folder, variant="mini", private=private, sandbox="none"))


def test_dice_is_that_of_all_pixels_together_so_finding_nothing_scores_nothing(tmp_path: Path) -> None:
    private = tmp_path / "private"
    private.mkdir()
    truth, guess = masks(30, seed=5), masks(30, seed=6)
    ids = [str(9 * 10**18 + number) for number in range(30)]
    answers = pl.DataFrame({"record_id": ids, "pixels": [35] * 30, "encoded_pixels": [encode(mask) for mask in truth]})
    answers.write_csv(private / "answers.csv")
    expected = 2 * sum((a & b).sum() for a, b in zip(truth, guess, strict=True)) / (np.sum(truth) + np.sum(guess))
    guesses = pl.DataFrame({"record_id": ids, "encoded_pixels": [encode(mask) for mask in guess]})
    found = graded(tmp_path / "guess", guesses.sample(fraction=1, shuffle=True, seed=0), private)
    assert found.score is not None and found.score.value == pytest.approx(expected)
    nothing = graded(tmp_path / "nothing", guesses.with_columns(pl.lit("-").alias("encoded_pixels")), private)
    assert nothing.score is not None and nothing.score.value == 0.0


def test_as_many_runs_as_the_real_test_set_holds_are_read_at_once(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    texts = [encode(rng.random((256, 256)) < 0.01) for _ in range(50)]
    many = np.array((texts * 38)[:1856], dtype=object)
    started = time.process_time()
    sizes = np.full(1856, 256 * 256)
    found = decode(many, [str(number) for number in range(1856)], sizes, TABLE)
    assert found.by_mask(sizes, found).sum() == found.pixels > 1_000_000
    assert time.process_time() - started < 5


def npy(array: Array) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def test_the_competitions_files_become_scenes_whose_test_labels_stay_private(tmp_path: Path, mirror: Mirror) -> None:
    pytest.importorskip("kagglesdk")
    rng = np.random.default_rng(8)
    files: dict[str, bytes] = {"sample_submission.csv": b"record_id,encoded_pixels\n1,-\n"}
    scenes = {}
    for part, names in (("train", ["111", "222"]), ("validation", ["444", "333"]), ("test", ["333"])):
        files[f"{part}_metadata.json"] = json.dumps([{"record_id": name, "timestamp": 1.0} for name in names]).encode()
        for name in names:
            scenes[name] = scene = draw(rng)
            for band in range(8, 17):
                files[f"{part}/{name}/band_{band:02d}.npy"] = npy(scene.bands[14] + band)
            if part != "test":
                files[f"{part}/{name}/human_pixel_masks.npy"] = npy(scene.mask)
            if part == "train":
                files[f"{part}/{name}/human_individual_masks.npy"] = npy(scene.individual_masks)
    truth = {name: scenes[name].mask for name in ("444",)}
    mirror.competition(prepare.COMPETITION, files)
    public, private = tmp_path / "public", tmp_path / "private"
    public.mkdir()
    private.mkdir()

    prepare.full(public, private)

    came = {asked.url.rpartition("/")[2] for asked in mirror.requests if asked.method == "GET"}
    assert came == {"train_metadata.json", "validation_metadata.json", *(f"band_{band}.npy" for band in (11, 14, 15)), *prepare.MASKS}
    assert not any("/test/" in asked.url or "archive.zip" in asked.url for asked in mirror.requests)
    found = sorted(str(path.relative_to(public / "data")) for path in public.rglob("*") if path.is_file())
    bands = [f"band_{band}.npy" for band in (11, 14, 15)]
    assert found == sorted(
        [f"train/{name}/{file}" for name in ("111", "222") for file in (*bands, "human_individual_masks.npy", "human_pixel_masks.npy")]
        + [f"test/{name}/{file}" for name in ("333", "444") for file in bands]
        + ["train_metadata.json", "test_metadata.json", "sample_submission.csv"]
    )
    answers = pl.read_csv(private / "answers.csv", schema_overrides={"record_id": pl.String})
    assert answers["record_id"].to_list() == ["333", "444"]
    assert answers["encoded_pixels"][1] == encode(truth["444"][..., 0])
    assert [record["record_id"] for record in json.loads((public / "data" / "test_metadata.json").read_text())] == ["444", "333"]
