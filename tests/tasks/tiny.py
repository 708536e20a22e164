"""A small task with data, for tests of how data is prepared."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from mlagentbench.task.catalogue import Task, load_task
from tests.tiny_task import tiny_task

URL = "https://example.org/data/train.csv"
PREPARE = """
import os, time
from pathlib import Path

from mlagentbench.data import fetch


def mini(public, private, seed):
    with open(Path(__file__).parents[1] / "calls.txt", "a") as calls:
        calls.write(f"{os.getpid()}\\n")
    (public / "train.csv").write_text(f"seed {seed}")
    time.sleep(0.3)
    (private / "answers.csv").write_text("42")


def full(public, private):
    (public / "train.csv").write_bytes(fetch.download("https://example.org/data/train.csv").read_bytes())
    (private / "answers.csv").write_text("42")
"""
DATA = """
[data]
url = "https://example.org"
licence = "CC BY 4.0"
download_mb = 1
disk_mb = 2
consent = "https://example.org/terms"
"""


def make_task(root: Path, prepare: str = PREPARE, more: str = "", name: str = "tiny", extras: Sequence[str] = ()) -> Task:
    """Write a task's folder, and read it.

    Args:
        root: where the folder goes; each call to `mini` is counted in its `calls.txt`.
        prepare: the task's `prepare.py`.
        more: tables of task.toml.
        name: of the task and of its folder.
        extras: that it needs.
    """
    folder = tiny_task(root / name, prepare=prepare, keys={"extras": json.dumps(list(extras))})
    with (folder / "task.toml").open("a") as spec:
        spec.write(more)
    return load_task(folder)
