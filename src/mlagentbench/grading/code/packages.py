"""Find the top-level names that must be visible in a sandbox for a package to be imported there.

    with context.sandbox(code, SERVE, packages=importable("torch")) as process: ...

They are read from the metadata of this interpreter's installed distributions, so that they are right for every build of a package: torch
with its CUDA libraries needs more than torch without.
"""

from __future__ import annotations

import functools
import re
from importlib import metadata

from mlagentbench.errors import GradingError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_EXTRA = re.compile(r"\bextra\s*==")
_NOT_IMPORTABLE = (".dist-info", ".egg-info", ".data", ".pth")
_OF_NO_USE = frozenset({"setuptools"})
"""Distributions that some packages require for building and never import."""


@functools.cache
def importable(*distributions: str) -> tuple[str, ...]:
    """Return the top-level names of installed distributions and of all that they require, without their extras, sorted.

    Raises:
        GradingError: one of the named distributions is not installed.
    """
    found: set[str] = set()
    seen: set[str] = set()
    waiting = list(distributions)
    while waiting:
        name = _normal(waiting.pop())
        if name in seen or name in _OF_NO_USE:
            continue
        seen.add(name)
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            if name in map(_normal, distributions):
                raise GradingError(f"grading needs {name}, which is not installed; see `extras` in the task's task.toml") from None
            continue  # required on other systems, or by other versions of Python
        found |= _top_levels(distribution)
        waiting += [match[0] for each in distribution.requires or () if not _EXTRA.search(each) and (match := _NAME.match(each))]
    return tuple(sorted(found))


def _top_levels(distribution: metadata.Distribution) -> set[str]:
    """Return the top-level names that a distribution's files have in the folder of packages."""
    firsts = {file.parts[0] for file in distribution.files or ()}
    return {first.split(".")[0] for first in firsts if not first.endswith(_NOT_IMPORTABLE) and first not in ("..", "__pycache__")}


def _normal(name: str) -> str:
    """Return a distribution's normalized name (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()
