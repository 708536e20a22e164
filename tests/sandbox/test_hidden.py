"""Files of the interpreter's own installation that a sandbox hides, since they hold answers: what a command tries, and does not read."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sysconfig
from pathlib import Path

import pytest

from mlagentbench.sandbox.base import Sandbox, SandboxSpec
from mlagentbench.sandbox.standalone import absent_file
from mlagentbench.sandbox.view.interpreter import describe, library_files
from tests.sandbox.processes import Run

MODULE = Path(sysconfig.get_path("stdlib"), "this.py")
PACKAGE = "click"
PACKAGE_FILE = f"{PACKAGE}/utils.py"

READ = """
import ctypes, json, os, shutil, subprocess, sys
from pathlib import Path
paths = [Path(path) for path in json.load(open("paths.json"))]
found = []
def tried(name, read):
    try:
        content = read()
    except (OSError, subprocess.SubprocessError):
        content = b""
    if content:
        found.append(name)
def parts(path):
    here = os.open("/", os.O_RDONLY)
    for part in path.parts[1:]:
        here = os.open(part, os.O_RDONLY, dir_fd=here)
    return os.read(here, 100)
def after(action, path):
    action()
    return path.read_bytes()
for path in paths:
    tried("read", path.read_bytes)
    tried("resolved", path.resolve().read_bytes)
    tried("by parts", lambda: parts(path))
    tried("by its folder", lambda: Path(path.parent, "..", path.parent.name, path.name).read_bytes())
    tried("of the process", lambda: Path(f"/proc/self/root{path}").read_bytes())
    tried("of the first process", lambda: Path(f"/proc/1/root{path}").read_bytes())
    tried("program", lambda: subprocess.run(["cat", str(path)], capture_output=True, check=True).stdout)
    tried("copy", lambda: after(lambda: shutil.copy(path, "copy"), Path("copy")))
    tried("hard link", lambda: after(lambda: os.link(path, "hard"), Path("hard")))
    tried("unmounted", lambda: after(lambda: ctypes.CDLL(None).umount2(str(path).encode(), 2), path))
    tried("renamed", lambda: after(lambda: path.rename(path.with_name("other")), path.with_name("other")))
    tried("removed", lambda: after(path.unlink, path))
    tried("mode", lambda: after(lambda: path.chmod(0o777), path))
print(json.dumps(found))
"""


@pytest.fixture
def isolated(sandbox: Sandbox) -> Sandbox:
    if sandbox.isolation == "none":
        pytest.skip("without a sandbox nothing is hidden")
    return sandbox


def test_hidden_files_are_found_in_the_library_and_the_packages() -> None:
    interpreter = describe(SandboxSpec(Path()).python)
    assert MODULE.resolve() in {path.resolve() for path in library_files(interpreter, ("this.py",))}
    spec = importlib.util.find_spec(PACKAGE)
    assert spec is not None and spec.origin is not None
    expected = (Path(spec.origin).parent / "utils.py").resolve()
    assert expected in {path.resolve() for path in library_files(interpreter, (PACKAGE_FILE,))}
    assert library_files(interpreter, ("no-such-package/*",)) == []
    assert library_files(interpreter, ()) == []


def test_what_is_hidden_is_not_read_by_any_path(isolated: Sandbox, execute: Run, workspace: Path) -> None:
    globs = ("this.py", PACKAGE_FILE)
    files = library_files(describe(SandboxSpec(workspace).python), globs)
    lengths = {path: len(path.read_bytes()) for path in files}
    assert files and min(lengths.values()) > 0
    (workspace / "paths.json").write_text(json.dumps([str(path) for path in files]))
    (workspace / "attack.py").write_text(READ)

    done = execute(isolated, "python", "attack.py", spec=SandboxSpec(workspace, hidden=globs))
    assert done.output.strip().splitlines()[-1] == "[]", done.output
    assert {path: len(path.read_bytes()) for path in files} == lengths  # and the host's are as they were

    without = execute(isolated, "python", "attack.py", spec=SandboxSpec(workspace))
    assert "read" in without.output and "program" in without.output  # the attack does find what is not hidden


def test_what_lies_beside_it_is_as_it_was(isolated: Sandbox, execute: Run, workspace: Path) -> None:
    code = f"import {PACKAGE}.termui, zipfile, json; from pathlib import Path; print(len(Path({PACKAGE}.termui.__file__).read_text()) > 0)"
    done = execute(isolated, "python", "-c", code, spec=SandboxSpec(workspace, hidden=(f"{PACKAGE}/py.typed", "this.py")))
    assert done.output == "True\n"


def test_copies_in_other_installations_that_a_sandbox_shows_are_hidden_too(
    isolated: Sandbox, execute: Run, workspace: Path, venv: Path
) -> None:
    """Packages of another version of Python, and those of a distribution that keeps environments and unpacked archives below its own."""
    root = venv.parents[1]
    sites = [
        root / "lib" / "python3.9" / "site-packages",
        root / "nested" / "lib" / "python3.11" / "site-packages",
        root / "envs" / "other" / "lib" / "python3.12" / "site-packages",
        root / "pkgs" / "answers-1.0-py312" / "lib" / "python3.12" / "site-packages",
        root / "pkgs" / "answers-1.0-py_0" / "site-packages",
    ]
    for site in sites:
        for name in ("answers/answers.csv", "answers/other.csv", "mlagentbench/generator.py"):
            (site / name).parent.mkdir(parents=True, exist_ok=True)
            (site / name).write_text(f"found {name}\n")
    code = f"for site in {' '.join(map(str, sites))}; do cat $site/answers/*.csv $site/mlagentbench/*.py; done 2> errors"
    done = execute(isolated, "sh", "-c", code, spec=SandboxSpec(workspace, python=venv, hidden=("answers/answers.csv",)))
    assert set(done.output.splitlines()) - set(absent_file().read_text().splitlines()) == {"found answers/other.csv"}, done.output
    assert done.output.count("found answers/other.csv") == len(sites)


def test_it_is_hidden_too_where_only_some_packages_are_shown(isolated: Sandbox, execute: Run, workspace: Path) -> None:
    files = library_files(describe(SandboxSpec(workspace).python), (PACKAGE_FILE,))
    code = f"""
for path in {[str(path) for path in files]}:
    try:
        print(len(open(path).read()))
    except OSError:
        print(0)
"""
    shown = execute(isolated, "python", "-c", code, spec=SandboxSpec(workspace, packages=(PACKAGE,)))
    assert shown.output.splitlines() and all(int(line) > 0 for line in shown.output.split())
    for packages in ((PACKAGE,), ("rich",), ()):
        hidden = execute(isolated, "python", "-c", code, spec=SandboxSpec(workspace, packages=packages, hidden=(PACKAGE_FILE,)))
        assert set(hidden.output.split()) == {"0"}, (packages, hidden.output)


def test_scikit_learns_digits_are_not_to_be_had(isolated: Sandbox, execute: Run, workspace: Path) -> None:
    pytest.importorskip("sklearn")
    code = """
from sklearn.datasets import load_digits, load_iris
print(len(load_iris().target))
try:
    print(len(load_digits().target))
except Exception:
    print("nothing")
"""
    spec = SandboxSpec(workspace, hidden=("sklearn/datasets/data/digits.csv.gz",))
    assert execute(isolated, "python", "-W", "ignore", "-c", code, spec=spec).output.split() in (["150", "0"], ["150", "nothing"])
    assert execute(isolated, "python", "-W", "ignore", "-c", code, spec=SandboxSpec(workspace)).output.split() == ["150", "1797"]


def test_the_real_diamonds_of_the_climbs_are_not_to_be_had(
    isolated: Sandbox, execute: Run, workspace: Path, venv: Path, tmp_path: Path
) -> None:
    """Neither the sample in this package, installed, editable or running, nor the whole table in another package."""
    from mlagentbench.data.prepare import Prepared
    from mlagentbench.grading.baseline import ScriptSettings, data_sandbox
    from mlagentbench.task.catalogue import find_task
    from mlagentbench.tasks.climb_table.prepare import STONES

    site = next(venv.parents[1].glob("lib/python*/site-packages"))
    (site / "plotnine" / "data").mkdir(parents=True)
    shutil.copy(STONES, site / "plotnine" / "data" / "diamonds.csv")
    files = [STONES, *(root / "mlagentbench/tasks/climb_table/diamonds.csv.gz" for root in (site, tmp_path / "src"))]
    files += [site / "plotnine" / "data" / "diamonds.csv"]
    assert all(path.read_bytes() == STONES.read_bytes() for path in files)
    (workspace / "paths.json").write_text(json.dumps([str(path) for path in files]))
    (workspace / "attack.py").write_text(READ)

    task = find_task("climb-6")
    spec = data_sandbox(task, Prepared.empty(tmp_path / "data"), workspace, network=False, settings=ScriptSettings(python=venv))
    done = execute(isolated, "python", "attack.py", spec=spec)
    assert done.output.strip().splitlines()[-1] == "[]", done.output


def test_a_task_that_hides_files_says_so_relative_to_the_packages(tmp_path: Path) -> None:
    from mlagentbench.data.prepare import Prepared
    from mlagentbench.errors import TaskError
    from mlagentbench.grading.baseline import ScriptSettings, data_sandbox
    from mlagentbench.task.catalogue import find_task
    from mlagentbench.task.spec import read_spec

    task = find_task("digits-lowlabel")
    spec = data_sandbox(task, Prepared.empty(tmp_path / "data"), tmp_path, network=False, settings=ScriptSettings())
    assert spec.hidden == task.spec.hidden == ("sklearn/datasets/data/digits.csv.gz",)
    for wrong in ("/etc/passwd", "../../secret", "a//b", "./a", ""):
        text = (task.folder / "task.toml").read_text().replace(task.spec.hidden[0], wrong)
        shutil.rmtree(tmp_path / "task", ignore_errors=True)
        (tmp_path / "task").mkdir()
        (tmp_path / "task" / "task.toml").write_text(text)
        with pytest.raises(TaskError, match="hidden"):
            read_spec(tmp_path / "task" / "task.toml")
