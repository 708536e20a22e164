"""The Python that a command in bubblewrap has: its interpreter, packages and environment variables."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from mlagentbench.sandbox.base import Sandbox, SandboxSpec
from mlagentbench.sandbox.view.interpreter import describe
from tests.sandbox.processes import Run, only_where

SANDBOX = "bubblewrap"
pytestmark = only_where(SANDBOX)


def test_this_package_is_hidden_from_scripts(sandbox: Sandbox, execute: Run, workspace: Path, venv: Path, tmp_path: Path) -> None:
    asked = subprocess.run([venv, "-I", "-c", "import mlagentbench; print(mlagentbench.__file__)"], capture_output=True, text=True)
    assert asked.stdout.startswith(str(tmp_path))  # it is installed

    spec = SandboxSpec(workspace, python=venv)
    assert execute(sandbox, "python", "-c", "import visible", spec=spec).output == "visible is here\n"
    assert "No module named 'mlagentbench'" in execute(sandbox, "python", "-c", "import mlagentbench.tasks", spec=spec).output
    found = execute(
        sandbox, "sh", "-c", f"find / -path '*mlagentbench/*' ! -name __init__.py 2>/dev/null; ls {tmp_path}/src", spec=spec
    ).output
    assert found == f"ls: cannot access '{tmp_path}/src': No such file or directory\n"


def test_an_editable_install_is_hidden_too(sandbox: Sandbox, execute: Run, workspace: Path, venv: Path) -> None:
    shutil.rmtree(next(venv.parents[1].glob("lib/python*/site-packages/mlagentbench")))

    done = execute(sandbox, "python", "-c", "import mlagentbench", spec=SandboxSpec(workspace, python=venv))

    assert "No module named 'mlagentbench'" in done.output


def test_a_sandbox_shows_only_the_packages_it_names(sandbox: Sandbox, execute: Run, workspace: Path, venv: Path) -> None:
    spec = SandboxSpec(workspace, python=venv, packages=("visible",))

    assert execute(sandbox, "python", "-c", "import visible", spec=spec).exit_code == 0
    for hidden in ("other", "mlagentbench"):
        assert f"No module named '{hidden}'" in execute(sandbox, "python", "-c", f"import {hidden}", spec=spec).output
    assert execute(sandbox, "ls", str(describe(venv).sites[0]), spec=spec).output == "visible\n"


def test_numpy_works_as_the_only_package(sandbox: Sandbox, execute: Run, workspace: Path) -> None:
    spec = SandboxSpec(workspace, packages=("numpy",))

    assert (
        execute(sandbox, "python", "-c", "import numpy as n; print(n.ones((300, 300)) @ n.ones(300) @ n.ones(300))", spec=spec).output
        == "90000.0\n"
    )
    assert "No module named 'pydantic'" in execute(sandbox, "python", "-c", "import pydantic", spec=spec).output


def test_an_interpreter_without_python_beside_it_is_python_inside(sandbox: Sandbox, execute: Run, workspace: Path, tmp_path: Path) -> None:
    link, lone = tmp_path / "link", tmp_path / "bin" / "snake"
    lone.parent.mkdir()
    lone.symlink_to(link)
    link.symlink_to(os.path.realpath(sys.executable))

    for python in (lone, Path("/bin/python3")):
        if python.exists():
            done = execute(sandbox, "sh", "-c", "python -c 'print(1)'; python3 -c 'print(2)'", spec=SandboxSpec(workspace, python=python))
            assert done.output == "1\n2\n"
            assert execute(sandbox, "python", "-c", "print(3)", spec=SandboxSpec(workspace, python=python)).output == "3\n"


def test_the_environment_is_only_what_is_told(sandbox: Sandbox, execute: Run, workspace: Path) -> None:
    done = execute(sandbox, "env", spec=SandboxSpec(workspace, environment={"OMP_NUM_THREADS": "2"}))

    environment = dict(line.split("=", 1) for line in done.output.splitlines())
    assert environment["OMP_NUM_THREADS"] == "2"
    assert environment["HOME"] == "/tmp"
    assert set(environment) <= {
        *("PATH", "HOME", "LANG", "USER", "LOGNAME", "PWD", "MPLBACKEND", "CUDA_VISIBLE_DEVICES"),
        *("PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "OMP_NUM_THREADS", "LD_LIBRARY_PATH"),
    }
