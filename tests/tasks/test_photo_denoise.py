"""photo-denoise: the error, what is read as an array and what is refused, and the noise."""

from __future__ import annotations

import io
import os
import pickle
import struct
from pathlib import Path

import numpy as np
import pytest

from mlagentbench.errors import InvalidSubmission
from mlagentbench.tasks.photo_denoise.grade import read_array

SHAPE = (4, 3, 3)


def saved(array: object, version: tuple[int, int] | None = None) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asanyarray(array), version=version)
    return buffer.getvalue()


def headed(header: str, content: bytes = b"", version: bytes = b"\x01\x00") -> bytes:
    text = header.encode()
    return b"\x93NUMPY" + version + struct.pack("<H", len(text)) + text + content


@pytest.mark.parametrize("dtype", ["<f2", "<f4", ">f4", "<f8", ">f8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_floating_point_arrays_are_read_as_numpy_reads_them(dtype: str, order: str) -> None:
    array = np.asarray(np.random.default_rng(0).random(SHAPE), dtype=dtype, order=order)  # type: ignore[call-overload]
    for version in ((1, 0), (2, 0)):
        assert np.array_equal(read_array(saved(array, version), SHAPE), array.astype(float))


class Attack:
    """Unpickled, it leaves a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (str(self.path),)


def test_nothing_is_ever_unpickled(tmp_path: Path) -> None:
    attack = np.empty(SHAPE, dtype=object)
    attack[:] = Attack(tmp_path / "hit")
    header = "{'descr': '|O', 'fortran_order': False, 'shape': (4, 3, 3), }\n"
    for data in (saved(attack), headed(header, pickle.dumps(attack)), pickle.dumps(attack)):
        with pytest.raises(InvalidSubmission):
            read_array(data, SHAPE)
    assert not (tmp_path / "hit").exists()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x93NUMPY",
        headed("{}"),
        headed("[1, 2]"),
        headed("not python"),
        headed("{'descr': '<f8', 'fortran_order': False}"),
        headed("{'descr': '<f8', 'fortran_order': False, 'shape': (4, 3, 3), 'more': 1}\n"),
        headed("{'descr': 'none such', 'fortran_order': False, 'shape': (4, 3, 3)}\n"),
        headed("{'descr': '<f8', 'fortran_order': False, 'shape': '4'}\n"),
        headed("{'descr': '<f8', 'fortran_order': False, 'shape': (" + "4, " * 5000 + ")}\n"),
        headed("{'descr': '<f8', 'fortran_order': False, 'shape': " + "(" * 400 + ")" * 400 + "}\n"),
        headed("{'descr': [('r', '<f8'), ('g', '<f8')], 'fortran_order': False, 'shape': (4, 3, 3)}\n", bytes(576)),
        headed("{'descr': '<f8', 'fortran_order': False, 'shape': (4, 3, 3)}\n", bytes(287)),
        headed("{'descr': '<f8', 'fortran_order': False, 'shape': (-4, -3, 3)}\n", bytes(288)),
        headed("{'descr': '<f8', 'fortran_order': False, 'shape': (4 3 3), }\n", bytes(288)),
        headed("{'descr': '<f8', 'fortran_order': False, 'shape': (,,), }\n", bytes(288)),
        headed("{'descr': '<f8', 'fortran_order': False, 'shape': (10000000000, 10000000000)}\n", bytes(288)),
        headed("{'descr': '<f8', 'fortran_order': False, 'shape': (4, 3, 3)}\n", bytes(288), b"\x09\x00"),
        saved(np.zeros(SHAPE, dtype="<M8[s]")),
        saved(np.full(SHAPE, "0.5")),
        saved(np.zeros(SHAPE, dtype=bool)),
        saved(np.zeros(SHAPE, dtype=np.longdouble)),
        saved(np.full(SHAPE, 3.0)),
        saved(np.full(SHAPE, np.nan, dtype=np.float16)),
    ],
)
def test_what_is_no_picture_is_refused_with_what_to_do(data: bytes) -> None:
    with pytest.raises(InvalidSubmission, match=r"denoised\.npy .*; write"):
        read_array(data, SHAPE)


def test_no_damage_to_a_file_is_a_bug_of_the_reader() -> None:
    rng = np.random.default_rng(1)
    whole = saved(np.full(SHAPE, 0.5))
    for _ in range(500):
        data = bytearray(whole)
        for place in rng.integers(len(data) if rng.random() < 0.3 else 128, size=rng.integers(1, 6)):
            data[place] = rng.integers(256)
        try:
            assert read_array(bytes(data), SHAPE).shape == SHAPE
        except InvalidSubmission:
            continue


def test_the_noise_is_of_the_promised_strength_and_the_error_that_of_a_loop(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    pytest.importorskip("PIL")
    import asyncio

    from mlagentbench.grading.grade import grade
    from mlagentbench.task.catalogue import find_task
    from mlagentbench.tasks.photo_denoise import prepare

    public, private, run = (tmp_path / name for name in ("public", "private", "run"))
    for folder in (public, private, run):
        folder.mkdir()
    prepare.mini(public, private, seed=0)
    noisy, clean = np.load(public / "data" / "noisy.npy"), np.load(private / "clean.npy")
    assert noisy.dtype == np.float32 and noisy.shape == clean.shape == (427, 640, 3)
    middle = (clean > 110) & (clean < 145)  # where nothing is cut off
    assert np.std((noisy - clean / 255)[middle]) == pytest.approx(0.12, rel=0.01)

    guess = noisy + 0.05  # beyond 1 in places, which counts as 1
    np.save(run / "denoised.npy", guess)
    total = 0.0
    for row in range(0, 427):
        for ours, theirs in zip(guess[row].ravel().tolist(), clean[row].ravel().tolist(), strict=True):
            total += (255 * min(max(ours, 0.0), 1.0) - theirs) ** 2
    found = asyncio.run(grade(find_task("photo-denoise"), run, variant="mini", private=private, sandbox="none")).score
    assert found is not None and found.value == pytest.approx((total / clean.size) ** 0.5, rel=1e-5)
