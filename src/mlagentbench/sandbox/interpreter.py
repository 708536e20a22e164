"""The Python installation that a box shows: what of it must be visible, and what must not.

Covered: virtual environments, whose interpreter is a chain of symbolic links into other installations; several spellings of one folder;
where this package lies, installed or editable. Not covered: folders that `.pth` files add from outside the installation. They stay
invisible, since a project's folder may hold logs and data.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
from pathlib import Path
from typing import NamedTuple

from mlagentbench.errors import SandboxUnavailable

PACKAGE = "mlagentbench"
"""Hidden from every box: tasks make their small data from a seed, so that the package holds the answers."""
SYSTEM = Path("/usr")
"""Visible in every box, and so no root of its own."""

_QUESTION = f"""
import importlib.util, json, site, sys, sysconfig
spec = importlib.util.find_spec({PACKAGE!r})
base = {{"base": sys.base_prefix, "platbase": sys.base_exec_prefix}}
sites = [sysconfig.get_path(name, vars=vars) for name in ("purelib", "platlib") for vars in (None, base)]
print(json.dumps({{
    "prefixes": [sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix],
    "sites": sites + site.getsitepackages(),
    "package": list(spec.submodule_search_locations or ()) if spec else [],
    "virtual": sys.prefix != sys.base_prefix,
}}))
"""


class Interpreter(NamedTuple):
    """An interpreter and its installation, in paths of the host."""

    executable: Path
    """Absolute, with its symbolic links: they tell a virtual environment from its base."""
    roots: tuple[Path, ...]
    """Folders that must be visible for it to run, those in `/usr` left out."""
    sites: tuple[Path, ...]
    """Its folders of installed packages that exist."""
    hidden: tuple[Path, ...]
    """Where this package lies in `roots` or `/usr`, in every spelling."""
    virtual: bool

    @property
    def provides_python(self) -> bool:
        """Whether `python` and `python3` beside it are the same interpreter."""
        real = self.executable.resolve()
        return all((self.executable.parent / name).resolve() == real for name in ("python", "python3"))


@functools.lru_cache(maxsize=32)
def describe(python: Path) -> Interpreter:
    """Ask an interpreter where it lies. The answer is kept for the life of the process.

    Raises:
        SandboxUnavailable: it does not run, or its installation is a folder too wide to show.
    """
    executable = Path(os.path.abspath(python))
    try:
        asked = subprocess.run((executable, "-I", "-c", _QUESTION), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        answer = json.loads(asked.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise SandboxUnavailable(f"{executable} is no Python that runs ({error}); choose another with --python") from None
    roots = _outermost([*map(Path, answer["prefixes"]), *_installations(executable)])
    if bad := {Path("/"), Path("/home"), Path("/root"), Path.home()} & set(roots):
        raise SandboxUnavailable(f"{executable} is installed in {bad.pop()}, which a sandbox must not show; choose another with --python")
    sites = tuple(dict.fromkeys(site for site in map(Path, answer["sites"]) if site.is_dir()))
    places = [*map(Path, answer["package"]), Path(__file__).parents[1], *(site / PACKAGE for site in sites)]
    hidden = dict.fromkeys(spelling for place in places if place.is_dir() for spelling in spellings(place, (*roots, SYSTEM)))
    return Interpreter(executable, roots, sites, tuple(hidden), answer["virtual"])


def spellings(path: Path, roots: tuple[Path, ...]) -> list[Path]:
    """The paths below some roots under which a folder is reached; none where it lies below no root."""
    real = path.resolve()
    return [root / real.relative_to(root.resolve()) for root in roots if real.is_relative_to(root.resolve())]


def package_files(site: Path, names: tuple[str, ...]) -> list[Path]:
    """What belongs to top-level packages in a folder of packages: folder or module, and the shared libraries beside it."""
    found = []
    for entry in site.iterdir():
        stem = entry.name.split(".")[0]
        if stem in names and (entry.name == stem or entry.suffix in (".py", ".so", ".libs")):
            found.append(entry)
    return sorted(found)


def _installations(executable: Path) -> list[Path]:
    """The installations that the links of an executable lead through, each in its spelling."""
    found, link = [], executable
    for _ in range(40):
        found.append(link.parent.parent if link.parent.name == "bin" else link.parent)
        if not link.is_symlink():
            break
        link = Path(os.path.normpath(link.parent / os.readlink(link)))
    return found


def _outermost(roots: list[Path]) -> tuple[Path, ...]:
    """Each folder once, in its own spelling and the real one, without those that lie inside another or in `/usr`."""
    all_roots = {spelling for root in roots for spelling in (root, root.resolve())}
    kept = [root for root in all_roots if not root.is_relative_to(SYSTEM) and not any(other in root.parents for other in all_roots)]
    return tuple(sorted(kept))
