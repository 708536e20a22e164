"""Graders never fail on what is damaged: a few hundred cases here, 50,000 with `python -m tests.fuzz.graders`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

import pytest

from mlagentbench.grading.fork_server import fork_server
from mlagentbench.task.catalogue import BUILT_IN, load_task
from tests.fuzz.damage import KINDS, damaged
from tests.fuzz.graders import Tally, Target, fuzz, target
from tests.tiny_task import tiny_task

CASES = 60
TASKS = ("bibtex_generation", "fathomnet", "house_price", "literature_review_tool", "photo_denoise")
"""Tables of numbers and of texts, JSON, BibTeX and an array."""

GRADE = """
from mlagentbench.records import Score

def grade(context):
    return Score(value=float(context.submission.read_text("guess.csv").split(",")[1]))
"""
PROOF = """
def oracle(data):
    return {"the best": {"guess.csv": "a,1,b\\n"}}
"""


async def fuzzed(target: Target) -> Tally:
    async with fork_server() as forks:
        return await fuzz(target, range(CASES), forks)


@pytest.mark.parametrize("name", TASKS)
def test_a_grader_scores_or_refuses_whatever_is_left(name: str, tmp_path: Path) -> None:
    tally = asyncio.run(fuzzed(target(load_task(BUILT_IN / name), tmp_path)))
    assert not tally.failures, tally.failures
    assert tally.verdicts.total() == CASES and tally.verdicts["refused"] > CASES / 2


def test_a_grader_that_fails_is_found_and_its_cases_are_named(tmp_path: Path) -> None:
    folder = tiny_task(tmp_path / "guess", file="guess.csv", grade=GRADE, proof=PROOF)
    tally = asyncio.run(fuzz(target(load_task(folder), tmp_path), range(8)))
    assert len(tally.failures) == tally.verdicts["failed"] > 0
    assert tally.failures[0].startswith("guess:") and "the grader of guess failed at guess/grade.py, line 5" in tally.failures[0]


@pytest.mark.parametrize("suffix", [*KINDS, ".bib"])
def test_damage_is_the_same_for_the_same_seed_and_other_for_another(suffix: str) -> None:
    oracle = {f"file{suffix}": "id,value\n1,2\n3,4\n"}
    found = [damaged(oracle, Random(seed)) for seed in range(50)]
    assert found == [damaged(oracle, Random(seed)) for seed in range(50)]
    assert len({repr(left) for left in found}) > 15
