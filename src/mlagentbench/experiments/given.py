"""Make a folder of the runs of some cells, which runs of other cells are given as experience."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from mlagentbench.errors import StorageFailed
from mlagentbench.experiments.matrix import MatrixCell
from mlagentbench.experiments.state import ExperimentState
from mlagentbench.rundir.directory import RunDirectory
from mlagentbench.workspace.snapshots.snapshots import Manifest, SnapshotStore

LARGEST = 1 << 20
"""Bytes of the largest file of a workspace that is given on: scripts and notes, but no weights."""


def experience_folder(state: ExperimentState, cell: MatrixCell) -> Path:
    """Return the path of the folder that the runs of a cell are given."""
    return state.given / cell.id


def give(state: ExperimentState, cell: MatrixCell) -> None:
    """Write the experience that the runs of a cell, whose sources are done, may read, unless it exists: what earlier agents saw and did.

    For each run of the cell's sources these are its `run.json`, its steps with their output, and its last workspace without large files.
    Scores are left out.

    Raises:
        RunNotFound: a run of its sources is damaged.
        StorageFailed: the disk is full or read-only.
    """
    folder = experience_folder(state, cell)
    if folder.exists():
        return
    begun = Path(tempfile.mkdtemp(prefix=".", dir=state.given))
    try:
        for name in cell.sources:
            _copy(state.run(name), begun / name)
        begun.chmod(0o755)
        os.rename(begun, folder)
    except OSError as error:
        raise StorageFailed(f"the experience for {cell.id} cannot be written to {folder}: {error.strerror}") from None
    finally:
        shutil.rmtree(begun, ignore_errors=True)


def _copy(run: RunDirectory, folder: Path) -> None:
    (folder / "steps").mkdir(parents=True)
    (folder / "task.md").write_text(run.info.description, encoding="utf-8")
    shutil.copyfile(run.path / "run.json", folder / "run.json")
    steps = run.steps()
    for path in sorted(run.steps_folder.iterdir()):
        if path.name.endswith((".json", ".output.txt")) and ".lost" not in path.name:
            shutil.copyfile(path, folder / "steps" / path.name)
    workspace = folder / "workspace"
    workspace.mkdir()
    SnapshotStore(run.objects).restore(Manifest.load(run.manifest(len(steps))), workspace, replace=True)
    for path in workspace.rglob("*"):
        if not path.is_dir() and (path.is_symlink() or path.lstat().st_size > LARGEST):
            path.unlink()
