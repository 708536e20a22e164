"""What a command in a container sees and cannot do. Its processes and limits are tested with the other sandboxes' in `test_process.py`."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
from pathlib import Path

import pytest

from mlagentbench.errors import SandboxUnavailable
from mlagentbench.sandbox.base import Mount, Sandbox, SandboxSpec
from mlagentbench.sandbox.docker import DockerSandbox
from mlagentbench.sandbox.process import run
from tests.sandbox.processes import Run, only_where

SANDBOX = "docker"
pytestmark = only_where(SANDBOX)


@pytest.fixture
def spec(workspace: Path, tmp_path: Path) -> SandboxSpec:
    data = tmp_path / "data, with a comma"
    data.mkdir()
    (data / "train.csv").write_text("1,2\n")
    (tmp_path / "answers.csv").write_text("the answer")
    return SandboxSpec(workspace, read_only=(Mount(data, "/workspace/data"),))


def test_the_workspace_is_the_hosts(sandbox: Sandbox, execute: Run, spec: SandboxSpec) -> None:
    done = execute(sandbox, "sh", "-c", "pwd; cat data/train.csv; echo back > out.txt", spec=spec)

    assert done.output == "/workspace\n1,2\n"
    assert (spec.workspace / "out.txt").stat().st_uid == os.getuid()


def test_read_only_data_stays_whatever_is_tried(sandbox: Sandbox, execute: Run, spec: SandboxSpec) -> None:
    attack = "echo 9 > data/train.csv; rm -rf data; mv data away; umount data; mount -o remount,rw data; chmod a+w data; touch data/new"

    execute(sandbox, "sh", "-c", attack, spec=spec)

    assert [(entry.name, entry.read_text()) for entry in spec.read_only[0].host.iterdir()] == [("train.csv", "1,2\n")]


def test_the_hosts_files_are_absent(sandbox: Sandbox, execute: Run, spec: SandboxSpec, tmp_path: Path) -> None:
    for path in (tmp_path / "answers.csv", "/etc/shadow", "/home", "/var/run/docker.sock", Path(__file__)):
        assert execute(sandbox, "ls", str(path), spec=spec).exit_code != 0, path


def test_nothing_but_the_workspace_and_memory_can_be_written(sandbox: Sandbox, execute: Run, spec: SandboxSpec) -> None:
    for path in ("/", "/usr", "/etc", "/proc/sys/kernel", "/sys"):
        assert execute(sandbox, "touch", f"{path}/written", spec=spec).exit_code != 0, path
    assert execute(sandbox, "sh", "-c", "echo x > /proc/sys/kernel/hostname", spec=spec).exit_code != 0
    assert execute(sandbox, "touch", "/tmp/written", "/dev/shm/written", "written", spec=spec).exit_code == 0


def test_there_is_no_network_and_no_capability(sandbox: Sandbox, execute: Run, workspace: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        connect = f"import socket; socket.create_connection(('127.0.0.1', {server.getsockname()[1]}), 5)"
        assert execute(sandbox, "python", "-c", connect).exit_code != 0
    status = execute(sandbox, "cat", "/proc/self/status").output
    assert "CapEff:\t0000000000000000" in status
    assert "NoNewPrivs:\t1" in status


def test_this_package_and_others_are_hidden(sandbox: Sandbox, execute: Run, workspace: Path, venv: Path) -> None:
    spec = SandboxSpec(workspace, python=venv)
    assert "No module named 'mlagentbench'" in execute(sandbox, "python", "-c", "import mlagentbench", spec=spec).output
    assert execute(sandbox, "python", "-c", "import visible, other", spec=spec).exit_code == 0

    spec = SandboxSpec(workspace, python=venv, packages=("visible",))
    assert execute(sandbox, "python", "-c", "import visible", spec=spec).output == "visible is here\n"
    assert "No module named 'other'" in execute(sandbox, "python", "-c", "import other", spec=spec).output


def test_an_image_that_is_missing_is_not_downloaded(sandbox: Sandbox, execute: Run, workspace: Path) -> None:
    done = execute(DockerSandbox("mlagentbench-no-such-image"), "true")

    assert done.exit_code == 125
    assert "mlagentbench-no-such-image" in done.output


def test_no_container_is_left(sandbox: Sandbox, execute: Run, workspace: Path) -> None:
    execute(sandbox, "sh", "-c", "setsid sleep 60 & sleep 60", seconds=0.5)
    execute(sandbox, "sh", "-c", "setsid sleep 60 & kill -9 $$")

    async def cancelled(delay: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(delay):
                await run(sandbox, ("sleep", "60"), SandboxSpec(workspace))

    async def story() -> None:
        await asyncio.gather(*(cancelled(0.02 * number) for number in range(20)))

    asyncio.run(story())

    names = subprocess.run(["docker", "ps", "--all", "--format", "{{.Names}}"], capture_output=True, text=True).stdout
    assert f"mlagentbench-{os.getpid()}-" not in names


def test_an_engine_that_does_not_answer_is_named(execute: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from mlagentbench.sandbox.isolation import choose

    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
    with pytest.raises(SandboxUnavailable, match=r"no Docker engine answers|docker is not installed"):
        choose("docker")
