"""What a clone stands on before any Python of ours runs: the locks, and the scripts behind `make install`."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LOCKS = sorted(ROOT.glob("requirements*.lock"))
EXTRAS = PROJECT["project"]["optional-dependencies"]
KINDS = re.findall(r"\w+", EXTRAS["tasks"][0])[1:]
ASKED = {
    "requirements.lock": [*PROJECT["project"]["dependencies"], *PROJECT["build-system"]["requires"]],
    "requirements-dev.lock": [*PROJECT["dependency-groups"]["dev"], *EXTRAS["langchain"]],
    # The right build of torch depends on the machine, and accelerate needs torch.
    "requirements-tasks.lock": [asked for kind in KINDS for asked in EXTRAS[kind] if not asked.startswith(("torch", "accelerate"))],
}


def pins(lock: Path) -> dict[str, set[str]]:
    """Versions by package; more than one where they depend on the Python."""
    found: dict[str, set[str]] = {}
    for name, version in re.findall(r"^([a-z0-9._-]+)==(\S+)", lock.read_text(), re.MULTILINE):
        found.setdefault(name, set()).add(version)
    return found


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_a_lock_holds_what_the_project_asks_for(lock: Path) -> None:
    # What the package itself needs is pinned in its own lock alone.
    pinned = pins(next(each for each in LOCKS if each.name == "requirements.lock")) | pins(lock)

    for requirement in map(Requirement, ASKED[lock.name]):
        versions = pinned[re.sub(r"[-_.]+", "-", requirement.name).lower()]
        assert all(requirement.specifier.contains(version) for version in versions), f"{requirement}: run make lock"


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_a_lock_has_a_hash_for_everything_and_names_no_index(lock: Path) -> None:
    entries = re.split(r"^(?=\S+==)", lock.read_text(), flags=re.MULTILINE)[1:]

    assert entries
    assert [entry for entry in entries if "--hash=sha256:" not in entry] == []
    assert "://" not in lock.read_text()


def test_the_locks_agree_where_they_meet() -> None:
    for one, other in itertools.combinations(LOCKS, 2):
        mine, theirs = pins(one), pins(other)
        assert {name for name in mine.keys() & theirs.keys() if mine[name] != theirs[name]} == set(), (
            f"{one.name}, {other.name}: run make lock"
        )


def machine_with(tmp_path: Path, *commands: str) -> dict[str, str]:
    """An environment whose PATH has these commands alone."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for command in ("sh", "dirname", "cat", "id", *commands):
        (folder / command).symlink_to(str(shutil.which(command)))
    return {"PATH": str(folder)}


def run_tool(clone: Path, tool: str, *arguments: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    shutil.copytree(ROOT / "tools", clone / "tools")
    return subprocess.run(["sh", f"tools/{tool}", *arguments], cwd=clone, env=environment, capture_output=True, text=True, check=False)


def test_without_a_python_the_installation_says_so_in_one_line(tmp_path: Path) -> None:
    result = run_tool(tmp_path, "environment.sh", environment=machine_with(tmp_path))

    assert result.returncode == 1
    assert result.stdout == ""
    assert re.fullmatch(r"No Python 3\.11 or newer found .*install one.*\n", result.stderr)
    assert not (tmp_path / ".venv").exists()


def test_a_command_with_no_python_behind_it_is_passed_over(tmp_path: Path) -> None:
    environment = machine_with(tmp_path)
    for name in ("python3.13", "python3"):
        (tmp_path / "bin" / name).write_text("#!/bin/sh\nexit 127\n")
        (tmp_path / "bin" / name).chmod(0o755)

    result = run_tool(tmp_path, "environment.sh", environment=environment)

    assert result.returncode == 1
    assert "tried python3.13 python3.12 python3.11 python3" in result.stderr


def test_where_nothing_may_be_installed_what_will_be_missing_is_said_and_work_goes_on(tmp_path: Path) -> None:
    result = run_tool(tmp_path, "system.sh", "bubblewrap", "chromium", environment=machine_with(tmp_path))

    assert result.returncode == 0
    bubblewrap, chromium = result.stdout.splitlines()
    assert bubblewrap.startswith("bubblewrap is not installed") and "'mlab run'" in bubblewrap
    assert chromium.startswith("chromium is not installed") and "skipped" in chromium


def test_what_the_system_has_is_left_alone_in_silence(tmp_path: Path) -> None:
    environment = machine_with(tmp_path)
    (tmp_path / "bin" / "bwrap").write_text("#!/bin/sh\n")
    (tmp_path / "bin" / "bwrap").chmod(0o755)

    result = run_tool(tmp_path, "system.sh", "bubblewrap", environment=environment)

    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_a_wheel_holds_the_data_that_tasks_bring_along_and_their_licence(tmp_path: Path) -> None:
    build = "import sys; from flit_core.buildapi import build_wheel; build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, str(tmp_path)], cwd=ROOT, check=True)
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        for name in ("diamonds.csv.gz", "diamonds.LICENSE", "starter/train.py", "problem.md"):
            path = f"mlagentbench/tasks/climb_table/{name}"
            assert wheel.read(path) == (ROOT / "src" / path).read_bytes()
