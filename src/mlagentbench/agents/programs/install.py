"""Install agents into the cache from the registries of their packages, so that a run downloads nothing.

<cache>/agents/<agent>/<version>/   what the registry's own client installed, and installed.json

The clients are `npm` and `pip`, with their user's own settings, such as a mirror. No script of an npm package runs.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from pydantic import Field

from mlagentbench.agents.programs.definition import OPT, Package, Program
from mlagentbench.agents.programs.registries import Fetched, fetch
from mlagentbench.data.cache import cache_directory, locked, read_record, unwritable, write_record
from mlagentbench.errors import AgentError
from mlagentbench.records import Record
from mlagentbench.run_spec import AgentPackage

RECORD = "installed.json"


class Installed(Record):
    """What was installed of an agent."""

    package: AgentPackage
    checksums: dict[str, str] = Field(default_factory=dict)
    """The registry's checksum of each package that was installed, by the package's name and version."""
    python: Path | None = None
    """For a package of PyPI, the interpreter at the end of all links that it was installed for."""


class Installation(NamedTuple):
    """An agent in the cache."""

    folder: Path
    record: Installed

    @property
    def version(self) -> str:
        """The version of the agent's package."""
        return self.record.package.version


def install(
    program: Program,
    *,
    version: str | None = None,
    python: Path | None = None,
    cache: Path | None = None,
    begin: Callable[[str], object] = lambda text: None,
) -> Installation:
    """Install an agent from its package's registry; return it as it is if it is installed already.

    Args:
        program: the agent.
        version: the version of its package, or `latest`; None for the one that its `agent.toml` names.
        python: for a package of PyPI, the interpreter that the agent will run in; None for this one.
        cache: the cache; None for the usual one.
        begin: called with a line that says what is about to be fetched.

    Raises:
        AgentError: the agent needs no installation, the registry's client is missing, or it fails.
        TaskError: the cache cannot be written.
    """
    package = _package(program)
    cache = cache or cache_directory()
    version = version or package.version
    python = (python or Path(sys.executable)).absolute()
    with locked(cache, f"agent-{program.name}"):
        found = find_installed(program, version, cache)
        if found and found.record.python in (None, python.resolve()):
            return found
        begin(f"installing {package.name} {version} from {package.registry}")
        parent = cache / "agents" / program.name
        try:
            parent.mkdir(parents=True, exist_ok=True)
            folder = Path(tempfile.mkdtemp(prefix=".", dir=parent))
        except OSError as error:
            raise unwritable(cache, error) from None
        try:
            return _published(program, folder, fetch(package, version, folder, python), python.resolve())
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def find_installed(program: Program, version: str | None = None, cache: Path | None = None) -> Installation | None:
    """Return an agent's installation; None if it is not installed.

    Args:
        program: the agent.
        version: the version of its package; None for the one that its `agent.toml` names.
        cache: the cache; None for the usual one.
    """
    folder = (cache or cache_directory()) / "agents" / program.name / (version or _package(program).version)
    record = read_record(folder / RECORD, Installed)
    return Installation(folder, record) if record and record.package.name == _package(program).name else None


def installed_versions(program: Program, cache: Path | None = None) -> list[str]:
    """Return the versions of an agent's package that are installed, in the order of their names."""
    parent = (cache or cache_directory()) / "agents" / program.name
    return sorted(record.parent.name for record in parent.glob(f"[!.]*/{RECORD}"))


def uninstall(program: Program, version: str | None = None, cache: Path | None = None) -> list[str]:
    """Remove an agent from the cache. Runs in progress lose it.

    Args:
        program: the agent.
        version: the version of its package; None for all.
        cache: the cache; None for the usual one.

    Returns:
        The versions that were removed.

    Raises:
        AgentError: it is not installed.
    """
    cache = cache or cache_directory()
    with locked(cache, f"agent-{program.name}"):
        there = installed_versions(program, cache)
        chosen = [found for found in there if version in (None, found)]
        if not chosen:
            raise AgentError(f"{program.name} {version or ''}".strip() + f" is not installed; installed: {', '.join(there) or 'none'}")
        for found in chosen:
            shutil.rmtree(cache / "agents" / program.name / found)
    return chosen


def require_installed(program: Program, version: str | None = None) -> Installation:
    """Return an agent's installation.

    Raises:
        AgentError: it is not installed; the message has the command that installs it.
    """
    if found := find_installed(program, version):
        return found
    package = _package(program)
    named = program.name if version in (None, package.version) else f"{program.name} --version {version}"
    raise AgentError(f"{package.name} {version or package.version} is not installed; run `mlab agents install {named}`")


def _package(program: Program) -> Package:
    if program.definition.package is None:
        raise AgentError(f"the agent {program.name} has no package, and needs no installation")
    return program.definition.package


def _published(program: Program, folder: Path, fetched: Fetched, python: Path) -> Installation:
    """Move what was fetched to its place, over an installation of this version for another interpreter."""
    package = _package(program)
    for pattern in package.path:
        if not any(folder.glob(pattern)):
            raise AgentError(f"{package.name} {fetched.version} has no folder {pattern}; name its programs' folder in {program.folder}")
    _readdress(folder, f"{OPT}/{program.name}")
    found = AgentPackage(registry=package.registry, name=package.name, version=fetched.version, checksum=fetched.checksum)
    record = Installed(package=found, checksums=fetched.checksums, python=python if package.registry == "pypi" else None)
    write_record(folder / RECORD, record)
    place = folder.parent / fetched.version
    there = read_record(place / RECORD, Installed)
    if there and there.python == record.python:
        return Installation(place, there)  # `latest` was this one
    shutil.rmtree(place, ignore_errors=True)
    folder.chmod(0o755)
    folder.rename(place)
    return Installation(place, record)


def _readdress(folder: Path, inside: str) -> None:
    """Have the programs of a virtual environment start its interpreter by the path that it has in the sandbox."""
    for file in folder.glob("bin/*"):
        if file.is_file() and not file.is_symlink() and (content := file.read_bytes()).startswith(b"#!"):
            file.write_bytes(content.replace(bytes(folder), inside.encode()))
