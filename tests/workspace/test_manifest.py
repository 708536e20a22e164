"""How a snapshot's list lies on disk, and which part of it a glob names."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import zstandard

from mlagentbench.errors import RunNotFound, UsageError
from mlagentbench.workspace.snapshots.manifest import Manifest, ManifestEntry
from tests.workspace.support import Place

NAMES = [
    "submission.csv",
    "train.py",
    "out/submission.csv",
    "out/deep/submission.csv",
    "out/deep/model.pt",
    "out/[odd].txt",
    "new\nline.py",
    ".hidden",
]


@pytest.mark.parametrize(
    ("globs", "selected"),
    [
        (["submission.csv"], ["submission.csv"]),
        (["./submission.csv"], ["submission.csv"]),
        (["**/submission.csv"], ["out/deep/submission.csv", "out/submission.csv", "submission.csv"]),
        (["*.py"], ["new\nline.py", "train.py"]),
        (["*"], NAMES),
        (["**/*.pt", "train.??"], ["out/deep/model.pt", "train.py"]),
        (["out/*/model.pt"], ["out/deep/model.pt"]),
        (["out"], ["out/[odd].txt", "out/deep/model.pt", "out/deep/submission.csv", "out/submission.csv"]),
        (["out/deep/"], ["out/deep/model.pt", "out/deep/submission.csv"]),
        (["out/**"], ["out/[odd].txt", "out/deep/model.pt", "out/deep/submission.csv", "out/submission.csv"]),
        (["out/[[]odd].txt"], ["out/[odd].txt"]),
        (["[!a-s.n]*.py"], ["train.py"]),
        (["train"], []),
        (["rain.py"], []),
        ([".*"], [".hidden"]),
        ([], []),
    ],
)
def test_globs_select_as_people_expect(globs: list[str], selected: list[str]) -> None:
    manifest = Manifest({name: ManifestEntry("file", 0o644, 1, 0, "00") for name in NAMES})
    assert sorted(manifest.select(globs).entries) == sorted(selected)


def test_a_glob_that_means_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="z-a"):
        Manifest({"a": ManifestEntry("file", 0o644)}).select(["[z-a]"])


def test_a_digest_is_of_the_content_and_not_of_its_times(place: Place) -> None:
    (place.root / "a").write_text("a")
    first = place.take()
    os.utime(place.root / "a", (1, 1))
    again = place.take()
    assert first.entries["a"].mtime_ns != again.entries["a"].mtime_ns
    assert first.digest == again.digest
    (place.root / "a").chmod(0o600)
    assert place.take().digest != first.digest


def test_an_unchanged_step_of_many_files_costs_some_bytes(place: Place) -> None:
    for folder in range(20):
        (place.root / str(folder)).mkdir()
        for number in range(100):
            (place.root / str(folder) / f"{number}.txt").write_text(f"{folder} {number}")
    manifest = place.take()
    manifest.save(place.path / "0000")
    for step in range(1, 5):
        manifest = place.take(manifest)
        manifest.save(place.path / f"{step:04d}")
    assert (place.path / "0004").stat().st_size < 200
    (place.root / "3" / "7.txt").write_text("changed")
    (place.root / "4" / "7.txt").unlink()
    manifest = place.take(manifest)
    manifest.save(place.path / "0005")
    assert (place.path / "0005").stat().st_size < 400
    assert Manifest.load(place.path / "0005") == manifest


def test_a_line_of_snapshots_loads_as_it_was_saved_and_goes_on_from_there(place: Place) -> None:
    saved = []
    manifest = None
    for step in range(12):
        for number in range(step):
            (place.root / f"{step}-{number}").write_text(str(step))
        (place.root / "1-0").unlink(missing_ok=True)
        if step == 6:
            manifest = Manifest.load(place.path / "0005")  # as after a restart
        manifest = place.take(manifest)
        manifest.save(place.path / f"{step:04d}")
        saved.append(manifest)
    for step, manifest in enumerate(saved):
        assert Manifest.load(place.path / f"{step:04d}") == manifest


def test_a_snapshot_saved_elsewhere_stands_alone(place: Place) -> None:
    (place.root / "a").write_text("a")
    manifest = place.take()
    manifest.save(place.path / "0000")
    (place.path / "fork").mkdir()
    place.take(manifest).save(place.path / "fork" / "0000")
    (place.path / "0000").unlink()
    assert Manifest.load(place.path / "fork" / "0000") == manifest


def write(path: Path, content: object) -> None:
    path.write_bytes(zstandard.compress(json.dumps(content).encode()))


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", "a/../../b", "", "a//b", "a\0b", "."])
def test_a_forged_name_that_leads_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    write(tmp_path / "0000", {"format": 1, "set": {name: ["file", 0o644, 1, 0, "00"]}})
    with pytest.raises(RunNotFound, match="damaged"):
        Manifest.load(tmp_path / "0000")


@pytest.mark.parametrize(
    "content", [b"", b"no zstd", zstandard.compress(b"{"), zstandard.compress(b"[]"), zstandard.compress(b'{"format":1}')]
)
def test_a_damaged_snapshot_is_told(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "0000").write_bytes(content)
    with pytest.raises(RunNotFound, match="damaged"):
        Manifest.load(tmp_path / "0000")


def test_a_missing_snapshot_and_one_of_another_version_are_told(tmp_path: Path) -> None:
    with pytest.raises(RunNotFound, match="no snapshot"):
        Manifest.load(tmp_path / "0000")
    write(tmp_path / "0000", {"format": 99, "set": {}})
    with pytest.raises(RunNotFound, match="another version"):
        Manifest.load(tmp_path / "0000")


def test_a_base_that_was_replaced_is_noticed(place: Place) -> None:
    (place.root / "a").write_text("a")
    first = place.take()
    first.save(place.path / "0000")
    place.take(first).save(place.path / "0001")
    (place.root / "a").write_text("b")
    place.take().save(place.path / "0000")
    with pytest.raises(RunNotFound, match="damaged"):
        Manifest.load(place.path / "0001")
