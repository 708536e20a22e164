"""Find a run by what a user types: a path, an id, or the beginning of an id."""

from __future__ import annotations

from pathlib import Path

from mlagentbench.errors import RunNotFound, UsageError
from mlagentbench.util.text import some

CANDIDATES = 8
"""The most runs that an error message lists when a name matches several."""


def locate(name: str, log_directory: Path) -> Path:
    """Return the path of the run or log directory that a user named.

    Args:
        name: a path, a run's id, or the beginning of an id. A directory of that name takes precedence.
        log_directory: the directory in which ids are looked up.

    Raises:
        RunNotFound: no directory and no run matches.
        UsageError: several runs match; the message lists them.
    """
    if name and Path(name).is_dir():
        return Path(name)
    found = [file.parent for file in sorted(log_directory.glob("*/run.json")) if name and file.parent.name.startswith(name)]
    exact = [path for path in found if path.name == name]
    if len(found) > 1 and not exact:
        listed = some([path.name for path in found], CANDIDATES)
        raise UsageError(f"{len(found)} runs in {log_directory} begin with {name!r}; name one: {listed}")
    if not found:
        raise RunNotFound(f"there is no directory {name!r}, and no run in {log_directory} whose id begins so")
    return (exact or found)[0]
