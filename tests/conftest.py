"""What many tests start from: a small real environment, in the strongest sandbox this machine has."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from mlagentbench import Environment, RunLimits, ScriptedReply, ScriptLimits
from mlagentbench.actions import ACTIONS
from mlagentbench.environment import ScriptRunner
from mlagentbench.model import Models, Script
from mlagentbench.rundir.directory import RunDirectory, prepare_log_directory
from mlagentbench.sandbox.base import WORKSPACE, Mount, SandboxSpec
from mlagentbench.sandbox.bubblewrap import BubblewrapSandbox
from mlagentbench.sandbox.plain import PlainSandbox
from mlagentbench.util.interrupts import SIGNALS
from mlagentbench.util.machine import cores
from mlagentbench.workspace.paths import create_workspace
from tests import commands
from tests.mirror import Mirror, serve
from tests.support import HANGING, MakeEnvironment, run_info

TRAIN = 'print("accuracy 0.5")\n'


def pytest_configure() -> None:
    """Let no test's process inherit that an interrupt is ignored, as it is for what a shell's script starts in the background."""
    for number in SIGNALS:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: many tests wait for processes, clocks and servers."""
    return cores() + 1


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Spare the garbage collector what stays to the end: all that collecting tests imports. It takes a third of the time otherwise."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session", autouse=True)
def _commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Spare commands that tests start the providers' packages (`lean/sitecustomize.py`), and leave no server of commands behind.

    Inspect's files of processes that were killed are left in a folder of the tests' own: each evaluation looks through all there are.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("share")))
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(Path(__file__).parent / "lean"), os.environ.get("PYTHONPATH")])))
        yield
    commands.end_servers()


@pytest.fixture
def providers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands that the test starts import the providers' packages."""
    monkeypatch.delenv("PYTHONPATH")


@pytest.fixture
def make_environment(tmp_path: Path) -> MakeEnvironment:
    """Make an environment whose starter is a script that prints. A second call with the same run continues it."""

    def make(
        replies: Sequence[ScriptedReply | str] = (),
        *,
        files: Mapping[str, str | bytes] = {"train.py": TRAIN},
        run: str = "a-run",
        limits: RunLimits = RunLimits(),
        box_limits: ScriptLimits = ScriptLimits(seconds=HANGING),
        sandboxed: bool = False,
        data: Mapping[str, Path] = {},
        **more: Any,
    ) -> Environment:
        starter = tmp_path / f"starter-{run}"
        for name, content in files.items():
            path = starter / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        logs = prepare_log_directory(tmp_path / "logs")
        directory = RunDirectory.create(logs, run_info(run))
        workspace = create_workspace(directory.workspace, starter, data)
        script = Script([reply if isinstance(reply, ScriptedReply) else ScriptedReply(reply=reply) for reply in replies])
        return Environment(
            directory=directory,
            workspace=workspace,
            scripts=ScriptRunner(
                BubblewrapSandbox() if sandboxed else PlainSandbox(),
                SandboxSpec(
                    workspace=workspace.root,
                    read_only=tuple(Mount(host, f"{WORKSPACE}/{name}") for name, host in data.items()),
                    limits=box_limits,
                ),
            ),
            models=more.pop("models", None) or Models.scripted(script),
            actions=ACTIONS,
            limits=limits,
            **more,
        )

    return make


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mirror]:
    """A server that stands for the whole network, with a cache of its own."""
    mirror, server = serve(tmp_path / "mirror")
    monkeypatch.setenv("MLAB_MIRROR", mirror.url)
    monkeypatch.setenv("MLAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    # Kaggle's client asks http://localhost then, through the proxy.
    monkeypatch.setenv("KAGGLE_API_ENVIRONMENT", "LOCALHOST")
    monkeypatch.setenv("http_proxy", mirror.url)
    monkeypatch.setenv("KAGGLE_USERNAME", mirror.key[0])
    monkeypatch.setenv("KAGGLE_KEY", mirror.key[1])
    for name in ("HF_ENDPOINT", "HF_TOKEN", "KAGGLE_API_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    yield mirror
    server.shutdown()
    server.server_close()
