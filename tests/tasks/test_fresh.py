"""The fresh tasks: one document states the rule, no other helps, and the grader tells finding it from using it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mlagentbench.data.prepare import Prepared
from mlagentbench.errors import InvalidSubmission
from mlagentbench.task.catalogue import Task, find_task
from mlagentbench.task.proofs import Files
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
