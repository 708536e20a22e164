"""Prepare tasks of MLGym: the contents of their data folders become the folder `data` of the workspace. There is nothing private."""

from __future__ import annotations

import shutil
from pathlib import Path

from mlagentbench.task.formats.mlgym import DATA, read_config


def full(path: Path, public: Path, private: Path) -> None:
    """Copy the task's data.

    Raises:
        TaskError: the task's configuration cannot be read.
    """
    for folder in read_config(path).data:
        shutil.copytree(folder, public / DATA, dirs_exist_ok=True)
