"""A run read as it goes on, and what tells that nothing works on it any more."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from pathlib import Path

import pytest

from mlagentbench.errors import RunNotFound, UsageError
from mlagentbench.results.follow import BEGINNING, follow
from mlagentbench.rundir.directory import RunDirectory
from tests.example_runs import vectorization_steps, write_run
from tests.support import HANGING, wait_until


def test_steps_come_as_they_are_published_and_end_with_the_lock(tmp_path: Path) -> None:
    whole = write_run(tmp_path / "whole").steps()
    directory = write_run(tmp_path / "logs", steps=vectorization_steps()[:2], finished=False)
    looks: list[float] = []

    def work() -> None:
        with RunDirectory(directory.path).lock():
            held.set()
            for step in whole[2:5]:
                wait_until(lambda: len(looks) > 0)
                directory.publish_step(step)

    held, worker = threading.Event(), threading.Thread(target=work)
    worker.start()
    assert held.wait(HANGING)
    seen = [step.number for step in follow(directory, idle=lambda: looks.append(time.monotonic()))]
    worker.join()
    assert seen == [1, 2, 3, 4, 5]
    assert looks, "it waited for some of them"


def test_a_run_that_nothing_works_on_is_read_once(tmp_path: Path) -> None:
    killed = write_run(tmp_path / "logs", finished=False)
    os.utime(killed.path / "run.json", (0, 0))
    looks: list[float] = []
    assert len(list(follow(killed, idle=lambda: looks.append(time.monotonic())))) == 8
    assert not looks, "it does not wait"


def test_a_run_whose_process_has_not_taken_the_lock_yet_is_waited_for(tmp_path: Path) -> None:
    young = write_run(tmp_path / "logs", steps=[], finished=False)
    looks: list[float] = []

    def grow_old() -> None:
        looks.append(time.monotonic())
        os.utime(young.path / "run.json", (0, 0))

    made = time.time() + 60  # young however long this machine stands still
    os.utime(young.path / "run.json", (made, made))
    assert list(follow(young, idle=grow_old)) == []
    assert len(looks) == 1
    made = time.time() - BEGINNING
    os.utime(young.path / "run.json", (made, made))
    assert list(follow(young, idle=grow_old)) == []
    assert len(looks) == 1


def test_a_run_that_is_deleted_meanwhile_is_one_line(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "logs", steps=[], finished=False)
    with pytest.raises(RunNotFound, match="is gone"):
        list(follow(directory, idle=lambda: (directory.path / "run.json").unlink()))


def test_who_asks_whether_a_run_is_held_keeps_nobody_from_it(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "logs")
    lock = directory.path / "lock"
    lock.touch()
    with lock.open() as asking:
        fcntl.flock(asking, fcntl.LOCK_SH)
        assert not directory.held, "another who asks is not who works on it"
        threading.Timer(1.5, lambda: fcntl.flock(asking, fcntl.LOCK_UN)).start()  # as long as a busy machine may stop it
        with directory.lock():
            assert RunDirectory(directory.path).held
            with pytest.raises(UsageError, match="another process"), RunDirectory(directory.path).lock():
                pass
    assert not directory.held
