"""Fixtures of the tests of one task, which is the one that the test file is named after."""

from __future__ import annotations

import polars as pl
import pytest

from mlagentbench.data.prepare import Prepared
from mlagentbench.task.catalogue import Task, find_task
from tests.tasks.by_hand import mini


@pytest.fixture(scope="module")
def task(request: pytest.FixtureRequest) -> Task:
    return find_task(request.module.__name__.rpartition("test_")[2].replace("_", "-"))


@pytest.fixture(scope="module")
def data(task: Task, tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """The task's mini data."""
    return mini(task, tmp_path_factory.mktemp(task.id))


@pytest.fixture
def answers(data: Prepared) -> pl.DataFrame:
    return pl.read_csv(data.private / "answers.csv")
