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
from mlagentbench.sandbox.base import Box

PACKAGE = "mlagentbench"
"""Hidden from every box: tasks make their small data from a seed, so that the package holds the answers."""
SYSTEM = tuple(map(Path, ("/usr", "/bin", "/sbin", "/lib", "/lib64")))
"""Visible in every box, and so no roots of their own."""
SITES = ("lib*/python*/*-packages", "*/lib*/python*/*-packages")
"""Folders of packages of any version of Python, below the folder of an installation: its own, and those of one inside it (`/usr/local`)."""
NESTED_SITES = ("*/*/lib*/python*/*-packages", "*/*/site-packages")
"""Those inside conda's: of its other environments (`envs/NAME`), and of what it keeps unpacked (`pkgs/NAME`)."""

_QUESTION = f"""
import importlib.util, json, site, sys, sysconfig
spec = importlib.util.find_spec({PACKAGE!r})
base = {{"base": sys.base_prefix, "platbase": sys.base_exec_prefix}}
sites = [sysconfig.get_path(name, vars=vars) for name in ("purelib", "platlib") for vars in (None, base)]
print(json.dumps({{
    "prefixes": [sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix],
    "sites": sites + site.getsitepackages(),
    "libraries": [sysconfig.get_path(name) for name in ("stdlib", "platstdlib")],
    "package": list(spec.submodule_search_locations or ()) if spec else [],
}}))
"""


class Interpreter(NamedTuple):
    """An interpreter and its installation, in paths of the host."""

    executable: Path
    """Absolute, with its symbolic links: they tell a virtual environment from its base."""
    roots: tuple[Path, ...]
    """Folders that must be visible for it to run, those in `/usr` left out."""
    sites: tuple[Path, ...]
    """All folders of installed packages that a box shows, its own first."""
    libraries: tuple[Path, ...]
    """The folders of its standard library."""
    links: tuple[Path, ...]
    """Symbolic links outside these folders through which the executable is reached: they must exist for it to run."""
    hidden: tuple[Path, ...]
    """Where this package lies in `roots` or `/usr`, in every spelling."""

    @property
    def provides_python(self) -> bool:
        """Whether `python` and `python3` beside it are the same interpreter, and visible."""
        real = self.executable.resolve()
        same = all((self.executable.parent / name).resolve() == real for name in ("python", "python3"))
        return same and _lies_in(self.executable, self.roots)


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
    chain = _chain(executable)
    roots = _outermost(list(map(Path, answer["prefixes"])))
    if not _lies_in(chain[-1], roots):
        roots = tuple(sorted((*roots, chain[-1])))
    if bad := {Path("/"), Path("/home"), Path("/root"), Path.home()} & set(roots):
        raise SandboxUnavailable(f"{executable} is installed in {bad.pop()}, which a sandbox must not show; choose another with --python")
    sites = _sites(list(map(Path, answer["sites"])), roots)
    places = [*map(Path, answer["package"]), Path(__file__).parents[2], *(site / PACKAGE for site in sites)]
    links = tuple(link for link in chain if not _lies_in(link, roots))
    hidden = dict.fromkeys(spelling for place in places if place.is_dir() for spelling in spellings(place, (*roots, *SYSTEM)))
    libraries = tuple(dict.fromkeys(map(Path, answer["libraries"])))
    return Interpreter(executable, roots, sites, libraries, links, tuple(hidden))


def check_workspace(box: Box, interpreter: Interpreter) -> None:
    """Prove that what a box shows exists, and that its workspace, beside which answers may lie, is not shown with the installation.

    Raises:
        SandboxUnavailable: it does not, or it is.
    """
    if not box.workspace.is_dir():
        raise SandboxUnavailable(f"the workspace {box.workspace} is no folder")
    for mount in box.read_only:
        if not mount.host.exists():
            raise SandboxUnavailable(f"{mount.host}, which a sandbox was to show at {mount.inside}, does not exist")
    workspace = box.workspace.resolve()
    for root in (*interpreter.roots, *SYSTEM):
        if workspace.is_relative_to(root.resolve()):
            raise SandboxUnavailable(
                f"the workspace {workspace} lies in {root}, which every sandbox shows; choose another --log-dir, or another --python"
            )


def spellings(path: Path, roots: tuple[Path, ...]) -> list[Path]:
    """The paths below some roots under which a file or folder is reached; none where it lies below no root."""
    real = path.resolve()
    return [root / real.relative_to(root.resolve()) for root in roots if real.is_relative_to(root.resolve())]


def library_files(interpreter: Interpreter, globs: tuple[str, ...]) -> list[Path]:
    """The files that globs match in an installation's standard library and packages, in every spelling in which a box shows them."""
    folders = (*interpreter.libraries, *interpreter.sites)
    found = {path for folder in folders for glob in globs for path in folder.glob(glob) if path.is_file()}
    return sorted({spelling for path in found for spelling in spellings(path, (*interpreter.roots, *SYSTEM))})


def package_files(site: Path, names: tuple[str, ...]) -> list[Path]:
    """What belongs to top-level packages in a folder of packages: folder or module, and the shared libraries beside it."""
    found = []
    for entry in site.iterdir():
        stem = entry.name.split(".")[0]
        if stem in names and (entry.name == stem or entry.suffix in (".py", ".so", ".libs")):
            found.append(entry)
    return sorted(found)


def _sites(own: list[Path], roots: tuple[Path, ...]) -> tuple[Path, ...]:
    """The folders of packages, each once: the interpreter's own that exist, then those of other installations that are shown with it."""
    others = [site for root in roots for pattern in (*SITES, *NESTED_SITES) for site in root.glob(pattern)]
    others += [site for pattern in SITES for site in Path("/usr").glob(pattern)]
    found: dict[Path, Path] = {}
    for site in (*own, *others):
        if site.is_dir():
            found.setdefault(site.resolve(), site)
    return tuple(found.values())


def _chain(executable: Path) -> list[Path]:
    """The executable, the links that it leads through, and the file at their end."""
    found = [executable]
    while found[-1].is_symlink() and len(found) < 40:
        found.append(Path(os.path.normpath(found[-1].parent / os.readlink(found[-1]))))
    if found[-1] != executable.resolve():  # a folder on the way is a link itself
        found.append(executable.resolve())
    return found


def _lies_in(path: Path, roots: tuple[Path, ...]) -> bool:
    return any(path.is_relative_to(root) for root in (*roots, *SYSTEM))


def _outermost(roots: list[Path]) -> tuple[Path, ...]:
    """Each folder once, in its own spelling and the real one, without those that lie inside another or in `/usr`."""
    all_roots = {spelling for root in roots for spelling in (root, root.resolve()) if not _lies_in(spelling, ())}
    kept = [root for root in all_roots if not any(other in root.parents for other in all_roots)]
    return tuple(sorted(kept))
