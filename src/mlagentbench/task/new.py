"""Create a new task's folder from the template: a small but complete task, so that every change to it can be checked."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from mlagentbench.errors import TaskError
from mlagentbench.task.catalogue import BUILT_IN, Task, find_tasks, load_task

TEMPLATE = BUILT_IN / "_template"
LONGEST = 60
"""The most characters of an id, which is a part of file names."""
_LEFT_BEHIND = shutil.ignore_patterns("__pycache__", "*.pyc", "__init__.py")


def new_task(task_id: str, directory: Path, title: str | None = None) -> Task:
    """Create a task's folder, which passes `mlab tasks check` and can be run as it stands.

    Args:
        task_id: the id by which it is run; its folder has the same name, with underscores.
        directory: the folder in which to create it; created where it does not exist.
        title: a line that says what the task is about; None for the template's title.

    Raises:
        TaskError: the id is not valid or is taken, or the folder exists already or cannot be created.
    """
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", task_id) or len(task_id) > LONGEST:
        raise TaskError(
            f"{task_id!r} is no task id; take up to {LONGEST} lower-case letters and digits, in words joined by -, such as my-task"
        )
    if task_id in find_tasks():
        raise TaskError(f"there is a task {task_id!r} already; choose another id")
    folder = directory / task_id.replace("-", "_")
    if folder.exists() or folder.is_symlink():
        raise TaskError(f"{folder} exists already; remove it, or choose another id or --dir")
    try:
        shutil.copytree(TEMPLATE, folder, ignore=_LEFT_BEHIND)
        for path in (folder, *folder.rglob("*")):
            path.chmod(path.stat().st_mode | 0o200)  # an installed package may be read-only, a new task must not
        spec = folder / "task.toml"
        spec.write_text(_named(spec.read_text(encoding="utf-8"), task_id, title), encoding="utf-8")
    except OSError as error:
        raise TaskError(f"{folder} cannot be made: {error.strerror}") from None
    return load_task(folder)


def _named(text: str, task_id: str, title: str | None) -> str:
    text = re.sub(r'^id = ".*"$', f'id = "{task_id}"', text, count=1, flags=re.MULTILINE)
    if title is None:
        return text
    # Escaped as a basic TOML string, since a title may hold any character.
    quoted = "".join(rf"\u{ord(each):04x}" if not each.isprintable() else rf"\{each}" if each in '"\\' else each for each in title)
    return re.sub(r'^title = ".*"$', lambda match: f'title = "{quoted}"', text, count=1, flags=re.MULTILINE)
