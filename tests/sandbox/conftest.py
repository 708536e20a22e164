"""Real sandboxes and real processes: what a machine cannot give is skipped, with the reason."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from mlagentbench.limits import ScriptLimits
from mlagentbench.sandbox.base import Execution, Sandbox, SandboxSpec
from mlagentbench.sandbox.isolation import choose
from mlagentbench.sandbox.process import run
from tests.sandbox.processes import Run, Trace, available
from tests.support import HANGING


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test of promises that all sandboxes make each sandbox that works here; `test_isolation.py` tells which do not."""
    if "sandbox" in metafunc.fixturenames:
        own = getattr(metafunc.module, "SANDBOX", None)
        names = [own] if own else [*available(), "none"]
        metafunc.parametrize("sandbox", names, indirect=True)


@pytest.fixture
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    """The sandbox of a name."""
    return choose(request.param)


@pytest.fixture
def execute(workspace: Path) -> Run:
    """Run a command in a workspace: `execute(sandbox, "sh", "-c", "…", memory_mb=64)`."""

    def call(sandbox: Sandbox, *command: str, spec: SandboxSpec | None = None, groups: bool = True, **limits: float) -> Execution:
        spec = replace(spec or SandboxSpec(workspace), limits=ScriptLimits(**{"seconds": HANGING, **limits}))  # type: ignore[arg-type]
        return asyncio.run(run(sandbox, command, spec, groups=groups))

    return call


@pytest.fixture
def trace() -> Trace:
    return Trace()


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    """A virtual environment with this package installed, and another copy of it on a .pth file, as an editable install leaves it."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True)
    site = next((tmp_path / "venv").glob("lib/python*/site-packages"))
    package = Path(__file__).parents[2] / "src" / "mlagentbench"
    for folder in (site / "mlagentbench", tmp_path / "src" / "mlagentbench"):
        shutil.copytree(package, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (site / "editable.pth").write_text(f"{tmp_path / 'src'}\n")
    for module in ("visible", "other"):
        (site / module).mkdir()
        (site / module / "__init__.py").write_text(f"print('{module} is here')")
    return tmp_path / "venv" / "bin" / "python"
