"""The driver of an experiment, with an executor that carries jobs out in this process."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from mlagentbench.experiments import driver
from mlagentbench.experiments.file import read_experiment
from mlagentbench.experiments.jobs import Job, JobState
from mlagentbench.experiments.matrix import Matrix, expand
from mlagentbench.experiments.state import ExperimentState, Settings
from mlagentbench.rundir import provenance
from tests.cli.test_cli import here
from tests.example_runs import write_run
from tests.tiny_task import tiny_task

FILE = """
tasks = ["count"]
task_paths = ["tasks"]
runs = 3
variant = "mini"
audit = false
models = ["scripted/good.jsonl"]
"""


class Place:
    """An experiment's file and its log directory."""

    def __init__(self, folder: Path) -> None:
        tiny_task(folder / "tasks" / "count")
        self.file, self.logs = folder / "plan.toml", folder / "logs"
        (folder / "good.jsonl").touch()

    def matrix(self, more: str = "") -> tuple[Matrix, ExperimentState]:
        self.file.write_text(FILE + more)
        matrix, state = expand(read_experiment(self.file)), ExperimentState(self.logs, "plan")
        state.create()
        state.write(matrix, Settings())
        return matrix, state


class InProcess:
    """An executor that carries out a job at each poll. A job's first tries fail, so many as `failures` says."""

    def __init__(self, state: ExperimentState, failures: int = 0) -> None:
        self.state, self.failures = state, failures
        self.queue: list[str] = []
        self.tries = 0

    def submit(self, jobs: Iterable[Job]) -> None:
        self.queue += [job.id for job in jobs]

    def poll(self) -> dict[str, JobState]:
        if self.queue:
            self.tries += 1
            batch = self.state.batch(self.queue.pop(0))
            for name in batch.names if self.tries > self.failures else ():
                provenance.seal(write_run(self.state.log_directory, name, snapshots=False, cost=0.01, audit=False), None)
        return dict.fromkeys(self.queue, "queued")

    def cancel(self, ids: Iterable[str]) -> None:
        gone = set(ids)
        self.queue = [id for id in self.queue if id not in gone]

    def close(self) -> None:
        assert not self.queue


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setattr(driver, "EVERY", 0.0)
    monkeypatch.setattr(driver, "PAUSE", 0.01)
    return Place(tmp_path)


@pytest.mark.parametrize("asked", [False, True])
def test_a_driver_that_is_told_to_retry_tries_again_what_it_gave_up(place: Place, monkeypatch: pytest.MonkeyPatch, asked: bool) -> None:
    matrix, state = place.matrix()
    executor = InProcess(state, failures=4)
    monkeypatch.setattr(driver, "make_executor", lambda *_: executor)

    def retry() -> None:
        if asked and executor.tries == 1 and not state.requested("retry"):
            told = here("experiment", "retry", place.file, "--log-dir", place.logs)
            assert "was told to try them again" in told.stdout, told.stderr

    with state.driving():
        driven = driver.run_experiment(state, matrix, state.settings, watch=retry)

    assert executor.tries == (5 if asked else 3), "three tries, and three more when it is told"
    assert set(driven.missing) == set(driven.failed) == (set() if asked else set(matrix.names))
    assert not state.requested("retry")


def test_a_driver_that_is_cancelled_while_it_prepares_starts_nothing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    matrix, state = place.matrix()
    executor = InProcess(state)
    monkeypatch.setattr(driver, "make_executor", lambda *_: executor)
    assert not driver.cancel(state, matrix), "nobody drives it"

    with state.driving():
        assert not state.requested("cancel"), "what was asked of an earlier driver"
        assert driver.cancel(state, matrix)
        driven = driver.run_experiment(state, matrix, state.settings)

    assert (driven.stopped, executor.tries, len(driven.missing)) == ("it was cancelled", 0, 3)


def test_a_result_is_read_again_when_another_has_taken_its_place_at_the_same_time(place: Place) -> None:
    matrix, state = place.matrix()
    run = write_run(state.log_directory, matrix.names[0], snapshots=False, audit=False)
    file = run.path / "result.json"
    first, before = state.result(run.name), file.stat()
    assert first is not None
    run.write_result(first.model_copy(update={"seconds": first.seconds + 1}))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))

    assert (again := state.result(run.name)) is not None and again.seconds == first.seconds + 1


@pytest.mark.parametrize(("budget", "why"), [("tokens = 30_000", "tokens are used"), ("cost = 0.1", "of 0.10 dollars are used")])
def test_nothing_is_started_any_more_when_the_budget_is_used_up(
    place: Place, monkeypatch: pytest.MonkeyPatch, budget: str, why: str
) -> None:
    matrix, state = place.matrix(f"[budget]\n{budget}\n")
    monkeypatch.setattr(driver, "make_executor", lambda *_: InProcess(state))

    driven = driver.run_experiment(state, matrix, Settings(batch=1))

    assert len(driven.missing) == 1 and not driven.failed
    assert driven.stopped is not None and why in driven.stopped


def test_a_limit_of_the_cost_needs_the_price_of_every_model(place: Place) -> None:
    place.matrix("[budget]\ncost = 1.0\n")
    for command in (["run"], ["run", "--dry-run"]):
        refused = here("experiment", *command, place.file, "--log-dir", place.logs)
        assert refused.returncode == 2 and re.search(r"budget\.cost cannot hold: the price of scripted/\S+ is not known", refused.stderr)

    matrix, state = place.matrix("[budget]\ncost = 1.0\n")
    write_run(place.logs, matrix.names[0], snapshots=False, cost=None, audit=False)
    assert "what some runs cost is not known" in (state.over_budget(matrix) or "")
