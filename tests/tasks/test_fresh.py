"""The fresh tasks: one document states the rule, no other helps, and the grader tells finding it from using it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mlagentbench import experiments
from mlagentbench.data.prepare import Prepared
from mlagentbench.errors import InvalidSubmission
from mlagentbench.task.catalogue import Task, find_task
from mlagentbench.task.proofs import Files
from mlagentbench.tasks.fresh import world
from mlagentbench.tasks.fresh.documents import statement
from tests.tasks.by_hand import mini, score

TASKS = ("fresh-tabular", "fresh-text", "fresh-graph")
SEEDS = (11, 12)


@pytest.fixture(params=TASKS)
def task(request: pytest.FixtureRequest) -> Task:
    """Each of the tasks."""
    return find_task(str(request.param))


def left_by(task: Task, data: Prepared, folder: Path, files: Files) -> Files:
    """What the starter leaves with some files written over it."""
    shutil.copytree(task.starter, folder)
    for path in data.public.iterdir():
        (folder / path.name).symlink_to(path)
    for name, content in files.items():
        (folder / name).write_text(str(content))
    subprocess.run([sys.executable, "train.py"], cwd=folder, check=True, capture_output=True)
    return {name: (folder / name).read_text() for name in ("submission.csv", "document.txt") if (folder / name).exists()}


@pytest.mark.parametrize("seed", SEEDS)
def test_only_the_document_of_the_station_helps(task: Task, seed: int, tmp_path: Path) -> None:
    data = mini(task, tmp_path / "data", seed)
    proof = task.module("proof")
    assert proof is not None
    solution = proof.solution()["train.py"]
    station = json.loads((data.private / "rule.json").read_text())["station"]
    documents = "".join(path.read_text() for path in sorted((data.public / "documents").iterdir()))
    other = next(name for name in re.findall(r"Of the rule at (\w+)\.", documents) if name != station)
    told = 'station = re.search(r"the station (\\w+)", Path("data/about.md").read_text())[1]'
    assert told in solution
    scores = {}
    for name, files in {
        "starter": {},
        "rule": {"train.py": solution},
        "another station's rule": {"train.py": solution.replace(told, f"station = {other!r}")},
    }.items():
        left = left_by(task, data, tmp_path / name, files)
        scores[name] = score(task, data, left, tmp_path / f"{name} graded")
    plain = scores["starter"].value
    assert 0.6 < plain < 0.75 and scores["rule"].value > 0.9
    assert scores["another station's rule"].value < 1.05 * plain
    assert [each.rung for each in scores.values()] == [0, 2, 0]


def test_one_of_twenty_documents_states_the_rule_and_each_seed_has_another(task: Task, tmp_path: Path) -> None:
    rules = []
    for seed in SEEDS:
        data = mini(task, tmp_path / str(seed), seed)
        documents = {path.name: path.read_text() for path in (data.public / "documents").iterdir()}
        rule = json.loads((data.private / "rule.json").read_text())
        assert len(documents) == 20
        assert [name for name, text in documents.items() if str(rule["weights"][0]) in text] == [rule["document"]]
        assert f"the rule at {rule['station']}." in documents[rule["document"]]
        assert sum(rule["station"] in text for text in documents.values()) > 10, "the station's name alone does not lead to it"
        rules.append(rule)
    assert rules[0]["weights"] != rules[1]["weights"]


def test_the_example_of_the_study_computes_the_rule_as_documents_state_it() -> None:
    example = (Path(experiments.__file__).parent / "studies" / "examples" / "fresh-tabular.md").read_text()
    rule = world.HiddenRule(("ash", "bale", "cord"), (1, 2, 3))
    assert statement("table", "Arbor", rule).split("`cord` times 3")[1] in example
    assert json.dumps(find_task("fresh-tabular").module("proof").solution()["train.py"]) in example  # type: ignore[union-attr]


@pytest.mark.parametrize("power", [1, world.POWER])
@pytest.mark.parametrize("family", ["table", "graph"])
def test_no_plane_wave_in_the_columns_tells_the_rule(family: world.Family, power: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for the rule without its document, by a Fourier transform of the answers: it finds a sum's remainder, but not a power's."""
    monkeypatch.setattr(world, "POWER", power)
    monkeypatch.setattr(world, "VALUES", 24)
    rng = np.random.default_rng(5)
    rule = world.draw_rule(family, rng)
    table, edges, good = world.make(family, rule, 2000, rng)
    if edges is None:
        found, values, size = table, good - 0.5, 64
    else:
        found, size = edges, 2048
        values = (good - 0.5)[edges["source"].to_numpy()] * table["charge"].to_numpy()[edges["target"].to_numpy()]
    grid = np.zeros((size,) * len(rule.columns))
    np.add.at(grid, tuple(found[name].to_numpy() for name in rule.columns), values - values.mean())
    waves = np.abs(np.fft.rfftn(grid))
    assert bool(waves.max() > 7 * np.median(waves)) is (power == 1)


def test_finding_the_document_is_told_apart_from_using_it(task: Task, tmp_path: Path) -> None:
    data = mini(task, tmp_path / "data", SEEDS[0])
    proof = task.module("proof")
    assert proof is not None
    right = json.loads((data.private / "rule.json").read_text())["document"]
    wrong = next(path.name for path in sorted((data.public / "documents").iterdir()) if path.name != right)
    constant, best = proof.naive(data)["constant"], proof.oracle(data)["answers"]
    found = {
        name: score(task, data, {**table, **({"document.txt": document} if document else {})}, tmp_path / name)
        for name, table, document in (
            ("neither", constant, None),
            ("wrong", constant, wrong),
            ("found", constant, f"documents/{right}\n"),
            ("used", best, None),
            ("both", best, right),
        )
    }
    assert {name: each.rung for name, each in found.items()} == {"neither": 0, "wrong": 0, "found": 1, "used": 2, "both": 2}
    assert found["found"].note == "document found, rule not used" and found["used"].note == "document not named, rule used"
    assert found["found"].value == found["neither"].value
    with pytest.raises(InvalidSubmission, match=r"document\.txt"):
        score(task, data, {**best, "document.txt": b"\xff"}, tmp_path / "bytes")
