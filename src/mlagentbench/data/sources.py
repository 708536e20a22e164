"""What a task's data is made of: the files that its `prepare.py` reaches, and a key that changes when one of them does.

Prepared data lies at a place named by the key, so that a generator that changed never meets what it made before. What only grades, proves
or describes has no part in it: mending a description does not fetch a hundred gigabytes again.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

from mlagentbench.errors import TaskError
from mlagentbench.records import Variant
from mlagentbench.tasks.catalogue import BUILT_IN, Task

FORMAT = 1
"""Changes when `prepare` itself makes something else of what a task gives it."""
DIGITS = 12
PACKAGE = "mlagentbench.tasks"
NOT_DATA = frozenset({"starter", "problem.md", "task.toml", "__pycache__"})
"""What a task's folder holds beside its modules that no data is made of."""


def key(task: Task, variant: Variant, seed: int | None) -> str:
    """A name of what a variant's data is made of: the task's files that matter, the seed, and for the real data its published checksums.

    Raises:
        TaskError: a module cannot be read as Python.
    """
    parts: list[object] = [FORMAT, variant, seed]
    if variant == "full" and task.spec.data is not None:
        parts.append(sorted(task.spec.data.checksums.items()))
    for path in sources(task):
        inside = path.is_relative_to(task.folder)
        name = path.relative_to(task.folder if inside else BUILT_IN)
        parts.append((inside, str(name), hashlib.sha256(path.read_bytes()).hexdigest()))
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:DIGITS]


def sources(task: Task) -> list[Path]:
    """The files that a task's data is made of: `prepare.py`, what it imports of tasks, what that imports, and what lies beside.

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
    """The modules of tasks that a module imports, wherever in it."""
    try:
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
    """Where a module would lie that a module in a task's folder names; None for one that is none of a task's."""
    parts = name.split(".")
    if level:
        start = folder.parents[level - 2] if level > 1 else folder
    elif name.startswith(f"{PACKAGE}."):
        start, parts = BUILT_IN, parts[2:]
    else:
        # In a folder that is no package, modules beside one another are found by their bare names.
        start = folder
    # What lies beside the tasks' folders, such as `fetch`, is machinery, and makes no data.
    return None if start == BUILT_IN and len(parts) == 1 else start.joinpath(*parts).with_suffix(".py")


def _beside(folder: Path) -> Iterator[Path]:
    """Files that modules may read: lists of words, tables, images."""
    for path in folder.rglob("*"):
        parts = path.relative_to(folder).parts
        if path.is_file() and path.suffix not in (".py", ".pyc") and not NOT_DATA & {*parts} and not any(part[0] == "." for part in parts):
            yield path
