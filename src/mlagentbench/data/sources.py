"""Find the source files of a task's data, and compute a key that changes when one of them does.

The key is part of the name of the prepared data's folder, so that a changed generator never finds data that its older version made. Files
that only grade, prove or describe a task are not part of it: editing a description does not download a hundred gigabytes again.
"""

from __future__ import annotations

import ast
import hashlib
import json
import threading
from collections.abc import Iterator
from pathlib import Path

from mlagentbench.errors import TaskError
from mlagentbench.records import Variant
from mlagentbench.task.catalogue import BUILT_IN, Task

FORMAT = 1
"""The format of prepared data. Increase it when `prepare` itself processes a task's output differently."""
DIGITS = 12
PACKAGE = "mlagentbench.tasks"
NOT_DATA = frozenset({"starter", "problem.md", "task.toml", "__pycache__"})
"""The entries of a task's folder, other than modules, that data is not made from."""
_PARSING = threading.Lock()
"""Held while a module is parsed: Python 3.11 miscounts its recursion when several threads parse at once."""


def key(task: Task, variant: Variant, seed: int | None) -> str:
    """Return a digest of what a variant's data is made from: the source files, the seed, and for the real data the published checksums.

    Raises:
        TaskError: a module cannot be read as Python.
    """
    parts: list[object] = [FORMAT, variant, seed]
    if variant == "full" and task.spec.data is not None:
        parts.append(sorted(task.spec.data.checksums.items()))
    if task.parameters:
        parts.append(sorted(task.parameters.items()))
    for path in sources(task):
        inside = path.is_relative_to(task.folder)
        name = path.relative_to(task.folder if inside else BUILT_IN)
        parts.append((inside, str(name), hashlib.sha256(path.read_bytes()).hexdigest()))
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:DIGITS]


def sources(task: Task) -> list[Path]:
    """Return the source files of a task's data: `prepare.py`, the task modules that it imports (directly or not), and files beside it.

    Raises:
        TaskError: a module cannot be read as Python.
    """
    found: set[Path] = set()
    waiting = [task.preparer or task.folder / "prepare.py"]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting += _imported(path)
    return [*sorted(found), *sorted(_beside(task.folder))]


def _imported(path: Path) -> Iterator[Path]:
    """Yield the files of the task modules that a module imports anywhere in its code."""
    try:
        with _PARSING:
            tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError) as error:
        raise TaskError(f"{path} is no Python: {error}") from None
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [(alias.name, 0) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            names = [(module, node.level), *((f"{module}.{alias.name}".lstrip("."), node.level) for alias in node.names)]
        else:
            continue
        for name, level in names:
            place = _place(path.parent, name, level)
            if place is not None and place.is_file():
                yield place


def _place(folder: Path, name: str, level: int) -> Path | None:
    """Return the path that an imported module would have if it belongs to a task; None if it does not."""
    parts = name.split(".")
    if level:
        start = folder.parents[level - 2] if level > 1 else folder
    elif name.startswith(f"{PACKAGE}."):
        start, parts = BUILT_IN, parts[2:]
    else:
        # In a folder that is not a package, modules import each other by their bare names.
        start = folder
    # Modules beside the tasks' folders, such as `catalogue`, are machinery and make no data.
    return None if start == BUILT_IN and len(parts) == 1 else start.joinpath(*parts).with_suffix(".py")


def _beside(folder: Path) -> Iterator[Path]:
    """Yield the files that a task's modules may read, such as word lists, tables and images."""
    for path in folder.rglob("*"):
        parts = path.relative_to(folder).parts
        if path.is_file() and path.suffix not in (".py", ".pyc") and not NOT_DATA & {*parts} and not any(part[0] == "." for part in parts):
            yield path
