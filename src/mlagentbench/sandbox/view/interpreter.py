"""Find out which files of a Python installation a sandbox must show, and which it must hide.

Covered: virtual environments, whose interpreter is a chain of symbolic links into other installations; several paths to one folder; this
package's folders, installed or editable. Not covered: folders outside the installation that `.pth` files add. They stay invisible, since a
project's folder may hold logs and data.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
from pathlib import Path
from typing import NamedTuple

from mlagentbench.errors import SandboxUnavailable
from mlagentbench.sandbox.base import SandboxSpec

PACKAGE = "mlagentbench"
"""Hidden in every sandbox: tasks make their small data from a seed, so that this package holds the answers."""
SYSTEM = tuple(map(Path, ("/usr", "/bin", "/sbin", "/lib", "/lib64")))
"""Visible in every sandbox, so that they need no entry in `Interpreter.roots`."""
SITES = ("lib*/python*/*-packages", "*/lib*/python*/*-packages")
"""Globs of folders of packages, of any version of Python, in an installation and in one inside it (`/usr/local`)."""
NESTED_SITES = ("*/*/lib*/python*/*-packages", "*/*/site-packages")
"""Globs of those in a conda installation: in its other environments (`envs/NAME`), and in its unpacked packages (`pkgs/NAME`)."""

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
    """Absolute, with symbolic links not resolved: they distinguish a virtual environment from its base."""
    roots: tuple[Path, ...]
    """Folders that must be visible for it to run, without those in `SYSTEM`."""
    sites: tuple[Path, ...]
    """All folders of installed packages that a sandbox shows, the interpreter's own first."""
    libraries: tuple[Path, ...]
    """The folders of its standard library."""
    links: tuple[Path, ...]
    """Symbolic links outside `roots` and `SYSTEM` that lead to the executable: they must exist for it to run."""
    hidden: tuple[Path, ...]
    """This package's folders in `roots` and `SYSTEM`, by all their paths."""

    @property
    def provides_python(self) -> bool:
        """Whether `python` and `python3` in its folder are this interpreter, and visible."""
        real = self.executable.resolve()
        same = all((self.executable.parent / name).resolve() == real for name in ("python", "python3"))
        return same and _lies_in(self.executable, self.roots)


@functools.lru_cache(maxsize=32)
def describe(python: Path) -> Interpreter:
    """Run an interpreter to find its installation. The result is cached for the life of the process.

    Raises:
        SandboxUnavailable: it does not run, or is installed in a folder that a sandbox must not show, such as /home.
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
    if bad := {Path("/"), Path("/home"), Path("/root"), Path(os.path.expanduser("~"))} & set(roots):
        raise SandboxUnavailable(f"{executable} is installed in {bad.pop()}, which a sandbox must not show; choose another with --python")
    sites = _sites(list(map(Path, answer["sites"])), roots)
    folders = [*map(Path, answer["package"]), Path(__file__).parents[2], *(site / PACKAGE for site in sites)]
    links = tuple(link for link in chain if not _lies_in(link, roots))
    hidden = dict.fromkeys(spelling for folder in folders if folder.is_dir() for spelling in spellings(folder, (*roots, *SYSTEM)))
    libraries = tuple(dict.fromkeys(map(Path, answer["libraries"])))
    return Interpreter(executable, roots, sites, libraries, links, tuple(hidden))


def check_workspace(spec: SandboxSpec, interpreter: Interpreter) -> None:
    """Raise SandboxUnavailable if a spec's workspace or mounts do not exist, or its workspace lies in the visible installation.

    A workspace in the installation would be visible with the files beside it, which may hold answers.
    """
    if not spec.workspace.is_dir():
        raise SandboxUnavailable(f"the workspace {spec.workspace} is no folder")
    for mount in spec.read_only:
        if not mount.host.exists():
            raise SandboxUnavailable(f"{mount.host}, which a sandbox was to show at {mount.inside}, does not exist")
    workspace = spec.workspace.resolve()
    for root in (*interpreter.roots, *SYSTEM):
        if workspace.is_relative_to(root.resolve()):
            raise SandboxUnavailable(
                f"the workspace {workspace} lies in {root}, which every sandbox shows; choose another --log-dir, or another --python"
            )


def spellings(path: Path, roots: tuple[Path, ...]) -> list[Path]:
    """Return all paths below some roots that lead to a file or folder; none where it lies below no root."""
    real = path.resolve()
    return [root / real.relative_to(root.resolve()) for root in roots if real.is_relative_to(root.resolve())]


def library_files(interpreter: Interpreter, globs: tuple[str, ...]) -> list[Path]:
    """Find the files that globs match in an installation's standard library and packages, by all the paths that a sandbox shows."""
    folders = (*interpreter.libraries, *interpreter.sites)
    found = {path for folder in folders for glob in globs for path in folder.glob(glob) if path.is_file()}
    return sorted({spelling for path in found for spelling in spellings(path, (*interpreter.roots, *SYSTEM))})


def package_files(site: Path, names: tuple[str, ...]) -> list[Path]:
    """Find what belongs to top-level packages in a folder of packages: the folder or module, and the shared libraries beside it."""
    found = []
    for entry in site.iterdir():
        stem = entry.name.split(".")[0]
        if stem in names and (entry.name == stem or entry.suffix in (".py", ".so", ".libs")):
            found.append(entry)
    return sorted(found)


def _sites(own: list[Path], roots: tuple[Path, ...]) -> tuple[Path, ...]:
    """Return the folders of packages, each once: the interpreter's own, then those of other installations that are visible with it."""
    others = [site for root in roots for pattern in (*SITES, *NESTED_SITES) for site in root.glob(pattern)]
    others += [site for pattern in SITES for site in Path("/usr").glob(pattern)]
    found: dict[Path, Path] = {}
    for site in (*own, *others):
        if site.is_dir():
            found.setdefault(site.resolve(), site)
    return tuple(found.values())


def _chain(executable: Path) -> list[Path]:
    """Return the executable, the symbolic links that it leads through, and the file at their end."""
    found = [executable]
    while found[-1].is_symlink() and len(found) < 40:
        found.append(Path(os.path.normpath(found[-1].parent / os.readlink(found[-1]))))
    if found[-1] != executable.resolve():  # a folder of the path is a link
        found.append(executable.resolve())
    return found


def _lies_in(path: Path, roots: tuple[Path, ...]) -> bool:
    return any(path.is_relative_to(root) for root in (*roots, *SYSTEM))


def _outermost(roots: list[Path]) -> tuple[Path, ...]:
    """Return the folders, as given and with links resolved, without those that lie inside another one or in `SYSTEM`."""
    all_roots = {spelling for root in roots for spelling in (root, root.resolve()) if not _lies_in(spelling, ())}
    kept = [root for root in all_roots if not any(other in root.parents for other in all_roots)]
    return tuple(sorted(kept))
