"""Prepare tasks of the original's layout: run their own `scripts/prepare.py` in a copy of the task.

The files that it adds to `env/` are public, read-only data of the workspace; the copy, with `scripts/` and the answers in it, is private.
"""

from __future__ import annotations

import filecmp
import shutil
import subprocess
import sys
from pathlib import Path

from mlagentbench.errors import TaskError


def full(folder: Path, public: Path, private: Path) -> None:
    """Run `prepare.py` as the original does: in `scripts/`, with `env/` beside it.

    Raises:
        TaskError: `prepare.py` failed, asked a question, or changed a file that was in `env/` before.
    """
    copy = private / "task"
    shutil.copytree(folder, copy, symlinks=True)
    done = subprocess.run(
        [sys.executable, "prepare.py"], cwd=copy / "scripts", stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False
    )
    if done.returncode != 0:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        by_hand = f"do it by hand: cd {folder / 'scripts'} && python prepare.py && touch prepared"
        if lines and lines[-1].startswith("EOFError"):
            raise TaskError(f"{folder / 'scripts' / 'prepare.py'} asks a question; {by_hand}")
        raise TaskError(f"{folder / 'scripts' / 'prepare.py'} failed: {lines[-1] if lines else 'it said nothing'}; mend it, or {by_hand}")
    (copy / "scripts" / "prepared").write_text("success")
    for path in sorted((copy / "env").iterdir()):
        before = folder / "env" / path.name
        if before.exists():
            if not _same(before, path):
                raise TaskError(
                    f"{folder / 'scripts' / 'prepare.py'} changes env/{path.name}, which runs begin with; "
                    f"prepare the task itself: cd {folder / 'scripts'} && python prepare.py && touch prepared"
                )
        elif path.is_dir():
            shutil.copytree(path, public / path.name)
        else:
            shutil.copy2(path, public / path.name)


def _same(before: Path, after: Path) -> bool:
    if before.is_dir() != after.is_dir():
        return False
    if not before.is_dir():
        return filecmp.cmp(before, after, shallow=False)
    names = sorted(path.name for path in before.iterdir())
    return names == sorted(path.name for path in after.iterdir()) and all(_same(before / name, after / name) for name in names)
