"""Check that the packages that only some tasks need are installed, and name missing ones in one line before anything is imported.

A task names extras of this package in task.toml, such as `extras = ["tabular"]`; an extra's packages are read from this package's metadata.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

from packaging.requirements import Requirement

from mlagentbench.errors import TaskError
from mlagentbench.task.catalogue import Task

PACKAGE = "mlagentbench"
ONLY_FULL = frozenset({"kaggle"})
"""Extras that are needed only to fetch the real data."""
TIMEOUT = 60
"""Seconds that another interpreter may take to answer; one on a network disk is slow to start."""
_LOOK = """
import json, sys
from importlib.metadata import PackageNotFoundError, version

missing = []
for name in json.loads(sys.argv[1]):
    try:
        version(name)
    except PackageNotFoundError:
        missing.append(name)
print(json.dumps(missing))
"""


def require_extras(task: Task, python: Path | None = None, *, without: Iterable[str] = ONLY_FULL) -> None:
    """Raise TaskError if packages that a task needs are not installed.

    Args:
        task: the task.
        python: the interpreter that must have them; None for this one.
        without: extras that are not checked.

    Raises:
        TaskError: a package is missing (the message has the command that installs it), this package has no such extra, or the interpreter
            cannot be asked.
    """
    wanted = [extra for extra in task.spec.extras if extra not in without]
    packages = {extra: _packages(extra) for extra in wanted}
    for extra, needed in packages.items():
        if not needed and (known := _metadata("Provides-Extra")):
            raise TaskError(f"{task.folder / 'task.toml'}: extras: there is no extra {extra!r}; there are: {', '.join(sorted(known))}")
    own = python is None or os.path.abspath(python) == os.path.abspath(sys.executable)
    names = list(dict.fromkeys(name for needed in packages.values() for name in needed))
    missing = _missing(names, None if own else python)
    if not missing:
        return
    lacking = [extra for extra, needed in packages.items() if missing & set(needed)]
    line = f"the task {task.id} needs {' and '.join(name for name in names if name in missing)}"
    if own:
        raise TaskError(f"{line}; install with: {install_command(lacking)}")
    requirements = [needed[name] for needed in packages.values() for name in needed if name in missing]
    quoted = " ".join(f'"{requirement}"' for requirement in dict.fromkeys(requirements))
    raise TaskError(f"{line}, which {python} lacks; install with: {python} -m pip install {quoted}")


def install_command(extras: Sequence[str]) -> str:
    """Return the command that installs some extras."""
    return f'pip install "{PACKAGE}[{",".join(extras)}]"'


def _missing(names: Sequence[str], python: Path | None) -> set[str]:
    """Return those of some packages that an interpreter lacks, without importing them."""
    if not names:
        return set()
    if python is None:
        return {name for name in names if not _installed(name)}
    # `python -c` finds modules in the current folder, which may be this package's.
    command = [str(python), "-c", _LOOK, json.dumps(list(names))]
    try:
        looked = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=True, cwd="/")
        return set(json.loads(looked.stdout))
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise TaskError(f"{python} cannot be asked which packages it has: {error}") from None


def _installed(name: str) -> bool:
    try:
        return bool(metadata(name))
    except PackageNotFoundError:
        return False


def _metadata(field: str) -> Sequence[str]:
    """Return a field of this package's metadata; nothing if it is not installed."""
    try:
        return metadata(PACKAGE).get_all(field) or ()
    except PackageNotFoundError:
        return ()


def _packages(extra: str) -> dict[str, str]:
    """Return an extra's requirements, such as `torch>=2.6`, by package name."""
    requirements = [Requirement(line) for line in _metadata("Requires-Dist")]
    return {each.name: f"{each.name}{each.specifier}" for each in requirements if each.marker and each.marker.evaluate({"extra": extra})}
