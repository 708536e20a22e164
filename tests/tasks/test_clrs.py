"""The task clrs: the benchmark's own data without its libraries, and a grader that runs the agent's processor in our model."""

from __future__ import annotations

import asyncio
import hashlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mlagentbench.data.prepare import Prepared
from mlagentbench.grading.grade import Graded, grade
from mlagentbench.sandbox.isolation import Choice, probe
from mlagentbench.tasks.catalogue import Task, find_task
from mlagentbench.tasks.clrs import prepare, proof
from mlagentbench.tasks.clrs.sampler import run, sample
from mlagentbench.tasks.proofs import Files

SANDBOX: Choice = "auto" if any(found.available for found in probe()) else "none"
SAMPLES = json.loads((Path(__file__).parent / "data" / "clrs_samples.json").read_text())["data"]


@pytest.fixture(scope="module")
def task() -> Task:
    return find_task("clrs")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    folder = tmp_path_factory.mktemp("clrs")
    public, private = folder / "public", folder / "private"
    public.mkdir()
    private.mkdir()
    prepare.mini(public, private, 0)
    return Prepared(public, private)


def graded(task: Task, data: Prepared, folder: Path, files: Files) -> Graded:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return asyncio.run(grade(task, folder, variant="mini", private=data.private, sandbox=SANDBOX))


@pytest.mark.parametrize("name", SAMPLES)
def test_the_data_is_the_benchmarks_to_the_last_bit(name: str) -> None:
    expected = SAMPLES[name]
    found = sample(expected["count"], expected["nodes"], expected["seed"])._asdict()
    assert set(found) == set(expected["arrays"])
    for field, array in found.items():
        assert list(array.shape) == expected["arrays"][field]["shape"], field
        assert hashlib.sha256(np.ascontiguousarray(array, dtype="<f8").tobytes()).hexdigest() == expected["arrays"][field]["sha256"], field


def test_pointers_lead_along_shortest_paths() -> None:
    """Against Dijkstra's idea in its slowest form: relax all edges until nothing changes."""
    runs = sample(20, 9, seed=4)
    for A, adj, Pi in zip(runs.A, runs.adj, runs.Pi, strict=True):
        edges = np.where((adj > 0) & (A > 0), A, np.inf)
        best = np.where(np.eye(9) > 0, 0.0, edges)
        for _ in range(9):
            best = np.minimum(best, (best[:, :, None] + edges[None]).min(axis=1))
        for i, j in np.argwhere(np.isfinite(best) & ~np.eye(9, dtype=bool)):
            assert best[i, Pi[i, j]] + edges[Pi[i, j], j] == pytest.approx(best[i, j])


def test_a_node_without_a_path_points_to_the_start() -> None:
    A = np.zeros((1, 3, 3))
    A[0, 0, 1] = A[0, 1, 0] = 0.5
    assert run(A).Pi[0].tolist() == [[0, 0, 0], [1, 1, 1], [2, 2, 2]]


def test_the_full_data_is_the_benchmarks_and_its_test_is_nobodys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepare, "TEST_NODES", 16)
    seeds = []
    for name in ("first", "second"):
        public, private = tmp_path / name / "public", tmp_path / name / "private"
        public.mkdir(parents=True)
        private.mkdir()
        prepare.full(public, private)
        with np.load(private / "test.npz") as arrays:
            seeds.append(int(arrays["seed"]))
            assert arrays["A"].shape == arrays["Pi"].shape == (32, 16, 16)
        with np.load(public / "data" / "val.npz") as arrays:
            assert np.array_equal(arrays["Pi_h"], sample(32, 16, seed=2).Pi_h)
            assert np.allclose(arrays["D"], sample(32, 16, seed=2).D, atol=1e-6)
    assert seeds[0] != seeds[1]
    assert sorted(path.name for path in (tmp_path / "first" / "public").rglob("*.npz")) == ["train.npz", "val.npz"]


def test_perfect_pointers_score_one_with_a_model_of_the_agents_own_beside_them(task: Task, data: Prepared, tmp_path: Path) -> None:
    """The submission's model.py answers without looking; that it is not asked shows in the score."""
    pytest.importorskip("torch")
    cheat = "class M:\n    def predict(self, A):\n        return 0 * A\ndef load(path):\n    return M()\n"
    found = graded(task, data, tmp_path, {**proof.gold(data)["exact"], "model.py": cheat})
    assert found.score is not None, found.reason
    assert found.score.value == 1.0


def test_a_processor_of_several_files_takes_effect(task: Task, data: Prepared, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    files = proof.gold(data)["exact"]
    moved = {
        "checkpoint.npz": files["checkpoint.npz"],
        "parts/__init__.py": "",
        "parts/exact.py": files["processors.py"],
        "processors.py": "from parts.exact import build_processor\n",
    }
    found = graded(task, data, tmp_path, moved)
    assert found.score is not None, found.reason
    assert found.score.value == 1.0
    assert found.score.details["nodes"] == 12


def test_the_grader_runs_the_agents_processor_without_the_answers(task: Task, data: Prepared, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    files = dict(proof.gold(data)["exact"])
    assert isinstance(files["processors.py"], str) and data.private is not None
    places = [str(data.private), str(data.private / "test.npz")]
    files["processors.py"] = f"import os\nassert not any(map(os.path.exists, {places}))\n" + files["processors.py"]
    if SANDBOX == "none":
        pytest.skip("this machine has no sandbox")
    found = graded(task, data, tmp_path, files)
    assert found.score is not None, found.reason


@pytest.mark.slow
def test_the_starters_script_trains_and_its_checkpoint_is_graded(task: Task, data: Prepared, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    assert data.public is not None
    for path in task.starter.glob("*.py"):
        (tmp_path / path.name).write_text(path.read_text().replace("EPOCHS = 60", "EPOCHS = 2"))
    (tmp_path / "data").symlink_to(data.public / "data")
    subprocess.run([sys.executable, "train.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True)
    (tmp_path / "data").unlink()
    found = graded(task, data, tmp_path, {})
    assert found.score is not None, found.reason
    assert 0.05 < found.score.value < 0.6
