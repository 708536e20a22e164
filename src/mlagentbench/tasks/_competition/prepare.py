"""Prepare competitions of MLE-bench: run their own `prepare.py` over Kaggle's files, in a process of its own.

Its public files become the folder `data` of the workspace, and its private ones belong to the grader.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import platformdirs

from mlagentbench import fetch
from mlagentbench.errors import TaskError
from mlagentbench.task.formats.competition import DATA, read_config

RUN = """
import sys
from pathlib import Path
from mlagentbench.tasks._competition.imports import function

folder, name, raw, public, private = sys.argv[1:]
function(Path(folder), name)(raw=Path(raw), public=Path(public), private=Path(private))
"""


def full(folder: Path, public: Path, private: Path) -> None:
    """Prepare the competition's data from its raw files: those that MLE-bench has downloaded, or else Kaggle's.

    Raises:
        TaskError: there are no raw files, or `prepare.py` failed.
    """
    data = public / DATA
    data.mkdir()
    preparer = read_config(folder)["preparer"]
    with tempfile.TemporaryDirectory(prefix="mlab-competition-") as scratch:
        # prepare.py unpacks archives beside the raw files, and moves these. They are linked, since they may be large.
        raw = Path(scratch) / "raw"
        shutil.copytree(_raw(folder), raw, copy_function=_linked)
        command = (sys.executable, "-c", RUN, str(folder), preparer, *map(str, (raw, data, private)))
        done = subprocess.run(
            command, cwd=scratch, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False
        )
        if done.returncode != 0:
            lines = done.stderr.decode(errors="replace").strip().splitlines()
            raise TaskError(f"{folder / 'prepare.py'} failed: {lines[-1] if lines else f'exit status {done.returncode}'}")
        for path in (*data.rglob("*"), *private.rglob("*")):
            if path.is_symlink():  # it was moved here from the raw files
                target = path.resolve()
                path.unlink()
                shutil.copy2(target, path)


def _raw(folder: Path) -> Path:
    """Return the folder of the raw files; download them if MLE-bench has not."""
    path = Path(platformdirs.user_cache_dir()) / "mle-bench" / "data" / folder.name / "raw"
    return path if path.is_dir() and any(path.iterdir()) else fetch.kaggle_competition(folder.name.lower())


def _linked(source: str, target: str) -> None:
    Path(target).symlink_to(Path(source).resolve())
