"""What a command in bubblewrap tries, and cannot do. As host root it would be root without these."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from mlagentbench.errors import SandboxUnavailable
from mlagentbench.limits import ScriptLimits
from mlagentbench.sandbox.base import Mount, Sandbox, SandboxSpec
from tests.sandbox.processes import Run, become, copy_package, folder_of, nobodys_id, only_where

SANDBOX = "bubblewrap"
pytestmark = only_where(SANDBOX)

CALL = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *arguments):
    if getattr(libc, name)(*arguments) != -1:
        sys.exit(f"{name} succeeded")
    print(name, os.strerror(ctypes.get_errno()))
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "train.csv").write_text("1,2\n")
    return folder


@pytest.fixture
def spec(workspace: Path, data: Path) -> SandboxSpec:
    (workspace / "data").mkdir()
    return SandboxSpec(workspace, read_only=(Mount(data, "/workspace/data"),))


def test_the_workspace_is_the_hosts(sandbox: Sandbox, execute: Run, spec: SandboxSpec) -> None:
    (spec.workspace / "in.txt").write_text("hello")

    done = execute(sandbox, "sh", "-c", "pwd; cat in.txt; echo back > out.txt", spec=spec)

    assert done.output == "/workspace\nhello"
    assert (spec.workspace / "out.txt").read_text() == "back\n"
    assert (spec.workspace / "out.txt").stat().st_uid == os.getuid()


def test_read_only_data_stays_whatever_is_tried(sandbox: Sandbox, execute: Run, spec: SandboxSpec, data: Path) -> None:
    attacks = (
        "echo 9 > data/deep/train.csv",
        "echo 9 >> data/deep/../deep/train.csv",
        "rm -rf data/deep",
        "rm -rf data",
        "mv data elsewhere",
        "mv data/deep/train.csv .",
        "chmod -R a+w data",
        "touch data/new",
        "ln data/deep/train.csv hard",
        "truncate -s 0 data/deep/train.csv",
        "rmdir data",
        "ln -s data/deep/train.csv link && echo 9 > link",
        "mount -o remount,rw,bind data",
        "umount data",
        "umount -l data",
    )
    for attack in attacks:
        assert execute(sandbox, "sh", "-c", attack, spec=spec).exit_code != 0, attack
        assert (data / "deep" / "train.csv").read_text() == "1,2\n", attack
        assert [entry.name for entry in data.iterdir()] == ["deep"], attack


def test_mounts_cannot_be_undone_or_made(sandbox: Sandbox, execute: Run, spec: SandboxSpec, data: Path) -> None:
    code = f"""{CALL}
for place in (b"/workspace/data", b"/workspace", b"/proc/sys", b"/proc", b"/usr", b"/tmp", b"/"):
    call("umount2", place, 0)
    call("umount2", place, 2)
    call("mount", b"none", place, None, 32 | 4096, None)
    call("mount", b"none", place, None, 32, None)
call("mount", b"tmpfs", b"/tmp", b"tmpfs", 0, None)
call("mount", b"proc", b"/tmp", b"proc", 0, None)
call("mount", b"/usr", b"/tmp", None, 4096, None)
"""
    done = execute(sandbox, "python", "-c", code, spec=spec)

    assert done.exit_code == 0, done.output


def test_no_privilege_is_left_or_can_be_had(sandbox: Sandbox, execute: Run, spec: SandboxSpec) -> None:
    code = f"""{CALL}
call("chroot", b"/tmp")
call("mknod", b"/tmp/sda", 0o60666, 0x800)
call("mknod", b"/workspace/kmem", 0o20666, 0x102)
call("setuid", 0)
call("setgid", 0)
call("sethostname", b"x", 1)
call("unshare", 0x10000000)
call("unshare", 0x20000)
call("unshare", 0x10000000 | 0x20000 | 0x20000000)
call("setns", os.open("/proc/self/ns/user", 0), 0)
call("syscall", 56, 0x10000000 | 17, 0, 0, 0, 0)
call("syscall", 250, 0, 0)
call("syscall", 425, 8, 0)
call("syscall", 321, 0, 0, 0)
call("syscall", 155, b"/tmp", b"/tmp")
call("syscall", 246, 0, 0, 0, 0)
status = open("/proc/self/status").read()
for line in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
    assert f"{{line}}:\\t0000000000000000" in status, status
assert "NoNewPrivs:\\t1" in status
"""
    done = execute(sandbox, "python", "-c", code, spec=spec)

    assert done.exit_code == 0, done.output


def test_the_kernels_settings_cannot_be_written(sandbox: Sandbox, execute: Run, spec: SandboxSpec) -> None:
    code = """
import os
for folder, folders, files in os.walk("/proc"):
    if folder == "/proc":
        folders[:] = [name for name in folders if not name.isdigit() and name not in ("self", "thread-self")]
    for name in files:
        path = os.path.join(folder, name)
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
            print(path)
        except OSError:
            pass
"""
    assert execute(sandbox, "python", "-c", code, spec=spec).output == ""
    assert execute(sandbox, "sh", "-c", "echo b > /proc/sysrq-trigger", spec=spec).exit_code != 0
    assert execute(sandbox, "sh", "-c", "cat /proc/sys/kernel/hostname && echo x > /proc/sys/kernel/hostname", spec=spec).exit_code != 0


def test_only_the_workspace_and_memory_can_be_written(sandbox: Sandbox, execute: Run, spec: SandboxSpec) -> None:
    code = """
import os
for folder, folders, files in os.walk("/"):
    if folder in ("/proc", "/sys", "/usr/share", "/usr/lib"):
        folders[:] = []
    try:
        os.close(os.open(os.path.join(folder, "written"), os.O_CREAT | os.O_WRONLY))
        print(folder)
    except OSError:
        pass
"""
    done = execute(sandbox, "python", "-c", code, spec=spec)

    written = [folder for folder in done.output.split() if not folder.startswith("/tmp/")]
    assert set(written) == {"/workspace", "/tmp", "/dev/shm"}


def test_the_hosts_files_are_absent(sandbox: Sandbox, execute: Run, spec: SandboxSpec, tmp_path: Path, data: Path) -> None:
    (tmp_path / "answers.csv").write_text("the answer")
    for path in (
        tmp_path / "answers.csv",
        data,
        "/etc/passwd",
        "/etc/shadow",
        "/var",
        "/srv",
        "/boot",
        "/proc/1/root/etc/passwd",
        Path(__file__),
    ):
        assert execute(sandbox, "ls", str(path), spec=spec).exit_code != 0, path
    assert "the answer" not in execute(sandbox, "sh", "-c", f"ln -s {tmp_path}/answers.csv link; cat link", spec=spec).output


def test_other_processes_are_out_of_sight_and_reach(sandbox: Sandbox, execute: Run, spec: SandboxSpec) -> None:
    victim = subprocess.Popen(["sleep", "600"])
    try:
        done = execute(sandbox, "sh", "-c", f"ls /proc | grep -c '^[0-9]'; kill {victim.pid}; kill -9 -1", spec=spec)
        assert int(done.output.split()[0]) <= 6
        assert victim.poll() is None
    finally:
        victim.kill()
        victim.wait()


@pytest.fixture
def server() -> socket.socket:
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        try:
            while True:
                listening.accept()[0].close()
        except OSError:  # closed: the test is over
            pass

    threading.Thread(target=serve, daemon=True).start()
    yield listening
    listening.shutdown(socket.SHUT_RDWR)
    listening.close()


@pytest.mark.parametrize("network", [False, True])
def test_the_network_is_there_only_when_asked_for(
    sandbox: Sandbox, execute: Run, spec: SandboxSpec, server: socket.socket, network: bool
) -> None:
    code = f"import socket; socket.create_connection(('127.0.0.1', {server.getsockname()[1]}), 5)"

    done = execute(sandbox, "python", "-c", code, spec=SandboxSpec(spec.workspace, network=network))

    assert (done.exit_code == 0) is network, done.output


def test_local_sockets_of_the_host_are_out_of_reach(sandbox: Sandbox, execute: Run, spec: SandboxSpec) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"\0mlagentbench-{os.getpid()}")
        listening.listen()
        code = f"import socket; socket.socket(socket.AF_UNIX).connect('\\0mlagentbench-{os.getpid()}')"
        assert "Connection refused" in execute(sandbox, "python", "-c", code, spec=spec).output


def test_memory_file_systems_are_bounded(sandbox: Sandbox, execute: Run, workspace: Path) -> None:
    for folder in ("/tmp", "/dev/shm"):
        done = execute(sandbox, "sh", "-c", f"head -c 300M /dev/zero > {folder}/big", memory_mb=400)
        assert "No space left" in done.output or done.reason == "memory"


def test_a_workspace_inside_what_is_shown_is_refused(sandbox: Sandbox, execute: Run, venv: Path) -> None:
    inside = venv.parents[1] / "runs" / "workspace"
    inside.mkdir(parents=True)

    with pytest.raises(SandboxUnavailable, match="--log-dir"):
        execute(sandbox, "true", spec=SandboxSpec(inside, python=venv))


def test_what_is_missing_is_named(sandbox: Sandbox, execute: Run, workspace: Path) -> None:
    for spec in (
        SandboxSpec(workspace / "missing"),
        SandboxSpec(workspace, read_only=(Mount(workspace / "missing", "/workspace/data"),)),
        SandboxSpec(workspace, python=workspace / "missing"),
        SandboxSpec(workspace, gpus=("99",)),
    ):
        with pytest.raises(SandboxUnavailable, match=r"missing|GPU 99"):
            execute(sandbox, "true", spec=spec)


def test_strange_names_work(sandbox: Sandbox, execute: Run, tmp_path: Path) -> None:
    for name in ("with space", "-leading", "new\nline", "quote'\"", os.fsdecode(b"\xff\xfe")):
        strange = tmp_path / name
        strange.mkdir()
        data = tmp_path / f"{name}.data"
        data.mkdir()
        (data / "x").write_text("found")
        assert (
            execute(sandbox, "cat", f"./{name}/x", spec=SandboxSpec(strange, read_only=(Mount(data, f"/workspace/{name}"),))).output
            == "found"
        )


AS_NOBODY = """
import asyncio, sys
from pathlib import Path
from mlagentbench.sandbox.base import SandboxSpec
from mlagentbench.limits import ScriptLimits
from mlagentbench.sandbox.isolation import choose
from mlagentbench.sandbox.process import run
workspace = Path(sys.argv[1])
code = '''
import os, threading, time
try:
    for _ in range(1000):
        threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
except RuntimeError as error:
    print(error)
'''
spec = SandboxSpec(workspace, limits=ScriptLimits(processes=10, memory_mb=16384))
for command in (("sh", "-c", "id -u; touch made; echo x > /proc/sys/kernel/hostname"), ("python", "-c", code)):
    print(asyncio.run(run(choose("bubblewrap"), command, spec, groups=False)).output)
"""


def test_a_user_without_privileges_has_the_same_sandbox(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> None:
    python = Path("/usr/bin/python3")
    if os.getuid() != 0 or not python.exists():
        pytest.skip("needs root, to become another user, and a Python that this user can reach")
    version = subprocess.run([python, "-c", "import sys; print(sys.version_info >= (3, 11))"], capture_output=True, text=True).stdout
    if version != "True\n":
        pytest.skip("the system's Python is too old")
    with folder_of(nobody := nobodys_id()) as folder:
        copy_package(folder / "src")
        done = subprocess.run(
            [*become(nobody), python, "-c", AS_NOBODY, folder / "workspace"],
            env={"PYTHONPATH": str(folder / "src"), "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            cwd="/",
        )
        assert done.stderr == ""
        assert "1000" in done.stdout
        assert "cannot create /proc/sys/kernel/hostname" in done.stdout
        assert "can't start new thread" in done.stdout
        assert (folder / "workspace" / "made").stat().st_uid == nobody


def test_a_gpu_works_in_a_box(sandbox: Sandbox, execute: Run, workspace: Path) -> None:
    if not Path("/dev/nvidia0").exists():
        pytest.skip("no NVIDIA GPU here")
    code = (
        "import ctypes as c; cuda, n = c.CDLL('libcuda.so.1'), c.c_int(); print(cuda.cuInit(0), cuda.cuDeviceGetCount(c.byref(n)), n.value)"
    )

    assert execute(sandbox, "python", "-c", code, spec=SandboxSpec(workspace, gpus=("0",))).output == "0 0 1\n"
    assert execute(sandbox, "python", "-c", code, spec=SandboxSpec(workspace)).output != "0 0 1\n"


def test_the_limits_of_a_box_reach_everything_in_it(sandbox: Sandbox, workspace: Path) -> None:
    from mlagentbench.sandbox.process import run

    async def story() -> None:
        done = await run(sandbox, ("sh", "-c", "sh -c 'ulimit -f'; ulimit -c"), SandboxSpec(workspace, limits=ScriptLimits(file_mb=7)))
        assert done.output == f"{7 * 2048}\n0\n"

    asyncio.run(story())
