"""What a command under Landlock tries, and cannot do. What it can do although it should not is in `landlock.LIMITATIONS`."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from mlagentbench.errors import SandboxUnavailable
from mlagentbench.sandbox.base import Mount, Sandbox, SandboxSpec
from mlagentbench.sandbox.landlock import LIMITATIONS
from mlagentbench.sandbox.standalone import landlock_exec
from mlagentbench.sandbox.view.interpreter import describe
from tests.sandbox.processes import Run, Trace, become, copy_package, folder_of, nobodys_id, only_where

SANDBOX = "landlock"
pytestmark = only_where(SANDBOX)


@pytest.fixture
def spec(workspace: Path, tmp_path: Path) -> SandboxSpec:
    data = tmp_path / "data"
    (data / "deep").mkdir(parents=True)
    (data / "deep" / "train.csv").write_text("1,2\n")
    (workspace / "data").symlink_to(data)
    (tmp_path / "answers.csv").write_text("the answer")
    return SandboxSpec(workspace, read_only=(Mount(data, "/workspace/data"),))


def test_the_workspace_can_be_used_as_ever(sandbox: Sandbox, execute: Run, spec: SandboxSpec) -> None:
    done = execute(
        sandbox,
        "sh",
        "-c",
        "mkdir a b; echo hello > a/x; mv a/x b/y; ln -s b/y link; rm -r a; cat link; cat data/deep/train.csv",
        spec=spec,
    )

    assert done.output == "hello\n1,2\n"


def test_read_only_data_stays_whatever_is_tried(sandbox: Sandbox, execute: Run, spec: SandboxSpec) -> None:
    data = spec.read_only[0].host
    attacks = (
        "echo 9 > data/deep/train.csv",
        "echo 9 >> data/deep/train.csv",
        "truncate -s 0 data/deep/train.csv",
        "rm -rf data/deep",
        f"rm -rf {data}",
        f"mv {data} .",
        "mv data/deep/train.csv .",
        "touch data/new",
        "ln data/deep/train.csv hard && echo 9 > hard",
        "ln -s data/deep/train.csv link && echo 9 > link",
    )
    for attack in attacks:
        execute(sandbox, "sh", "-c", attack, spec=spec)
        assert (data / "deep" / "train.csv").read_text() == "1,2\n", attack
        assert [entry.name for entry in data.iterdir()] == ["deep"], attack


def test_files_of_the_host_cannot_be_read_or_listed(sandbox: Sandbox, execute: Run, spec: SandboxSpec, tmp_path: Path) -> None:
    for command in (
        f"cat {tmp_path}/answers.csv",
        f"ls {tmp_path}",
        f"ln -s {tmp_path}/answers.csv link; cat link",
        f"ln {tmp_path}/answers.csv hard; cat hard",
        f"mv {tmp_path}/answers.csv .",
        f"cat {__file__}",
        "cat /etc/passwd",
        "ls /root /home /tmp /var",
        f"cat /proc/self/root{tmp_path}/answers.csv",
    ):
        done = execute(sandbox, "sh", "-c", command, spec=spec)
        assert done.exit_code != 0, command
        assert "the answer" not in done.output


def test_only_the_workspace_and_the_temporary_folder_can_be_written(
    sandbox: Sandbox, execute: Run, spec: SandboxSpec, tmp_path: Path
) -> None:
    places = (tmp_path, Path("/tmp"), Path("/usr"), Path("/etc"), Path(sys.prefix), Path.home(), Path("/dev"), Path("/run"))
    name = f"written-{secrets.token_hex(8)}"
    execute(sandbox, "sh", "-c", f'for place; do touch "$place/{name}"; done', "sh", *map(str, places), spec=spec)
    for place in places:
        assert not (place / name).exists(), place
    assert execute(sandbox, "sh", "-c", "touch $TMPDIR/x $HOME/x written", spec=spec).exit_code == 0


CHANGES = """
import contextlib, ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
path = sys.argv[1].encode()
here = os.open(path, os.O_RDONLY)
for change in (
    lambda: os.chmod(path, 0), lambda: os.fchmod(here, 0), lambda: os.chown(path, -1, 4242), lambda: os.utime(path, (1, 1)),
    lambda: os.setxattr(path, "user.mine", b"1"), lambda: libc.syscall(452, -100, path, 0, 0), lambda: libc.syscall(425, 1, bytes(120)),
    lambda: libc.ioctl(here, 0x40086602, ctypes.byref(ctypes.c_long(0x80))), lambda: libc.syscall(463, -100, path, 0, b"user.mine", 0, 0),
):
    with contextlib.suppress(OSError):
        change()
open("done", "w").close()
"""


def test_no_file_outside_is_changed_in_mode_owner_time_or_attributes(sandbox: Sandbox, execute: Run, spec: SandboxSpec) -> None:
    train = spec.read_only[0].host / "deep" / "train.csv"
    before = train.stat(), os.listxattr(train)
    assert execute(sandbox, "python", "-c", CHANGES, str(train), spec=spec).exit_code == 0
    after = train.stat()
    assert (before[0].st_mode, before[0].st_gid, before[0].st_mtime_ns, before[1]) == (
        after.st_mode,
        after.st_gid,
        after.st_mtime_ns,
        os.listxattr(train),
    )
    assert after.st_ctime_ns == before[0].st_ctime_ns, "nothing of it was changed"


def test_files_are_copied_and_archives_unpacked_as_ever(sandbox: Sandbox, execute: Run, workspace: Path) -> None:
    (workspace / "a.py").write_text("x")
    copy = "import shutil; shutil.copy('a.py', 'b.py'); shutil.copytree('.', 'copy'); shutil.make_archive('all', 'tar', 'copy')"
    unpack = "shutil.unpack_archive('all.tar', 'out'); shutil.copy2('a.py', 'c.py'); print(open('out/b.py').read())"
    assert execute(sandbox, "python", "-c", f"{copy}; {unpack}").output == "x\n"


LEFT = Path(f"/dev/shm/mlagentbench-left-{os.getpid()}-{secrets.token_hex(4)}")
LEAVE = f"""
import contextlib, ctypes, os
with contextlib.suppress(OSError):
    open("{LEFT}", "w").write("a message")
print(os.path.exists("{LEFT}"), ctypes.CDLL(None).shmget(4711, 4096, 0o1600))
"""


def test_what_is_left_in_shared_memory_is_gone(sandbox: Sandbox, execute: Run) -> None:
    assert execute(sandbox, "python", "-c", LEAVE).output == "True -1\n"
    look = f"import os; print(os.path.exists('{LEFT}'))"
    assert not LEFT.exists()
    assert execute(sandbox, "python", "-c", look).output == "False\n"


def test_a_temporary_folder_that_was_closed_is_gone(sandbox: Sandbox, execute: Run) -> None:
    done = execute(sandbox, "sh", "-c", "umask 777; mkdir -p $TMPDIR/a; umask 0; mkdir $TMPDIR/b; ln -s /etc $TMPDIR/b/c; echo $TMPDIR")
    assert not Path(done.output.strip()).exists()


def test_the_harness_cannot_be_read_traced_or_signalled(
    sandbox: Sandbox, execute: Run, spec: SandboxSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = subprocess.Popen(["sleep", "600"], env={"KEY": "sk-secret"})
    try:
        for pid in (victim.pid, os.getpid()):
            read = f"cd /proc/{pid}; for name in environ maps auxv fd/0 root/etc/hostname; do cat $name && echo READ; done; head -c1 mem"
            done = execute(sandbox, "sh", "-c", read, spec=spec)
            assert (done.exit_code, "READ" in done.output, "secret" in done.output) == (1, False, False)
        if landlock_exec.abi() >= 6:
            assert execute(sandbox, "sh", "-c", f"kill -9 {victim.pid}", spec=spec).exit_code != 0
            assert victim.poll() is None
    finally:
        victim.kill()
        victim.wait()


def test_the_supervisor_cannot_be_killed(sandbox: Sandbox, execute: Run, spec: SandboxSpec, trace: Trace) -> None:
    if landlock_exec.abi() < 6:
        pytest.skip("this kernel's Landlock does not hold signals")

    done = execute(sandbox, "sh", "-c", f"kill -9 $PPID; setsid sleep {trace.seconds} & echo on", spec=spec)

    assert done.output.endswith("on\n")
    assert not trace.alive()


PRIVILEGES = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
for name, *arguments in (
    ("mount", b"tmpfs", b"/tmp", b"tmpfs", 0, None), ("umount2", b"/proc", 2), ("chroot", b"/tmp"), ("unshare", 0x10000000),
    ("mknod", b"sda", 0o60666, 0x800), ("sethostname", b"x", 1), ("setuid", 1), ("syscall", 101, 16, os.getppid(), 0, 0),
):
    if getattr(libc, name)(*arguments) != -1:
        sys.exit(f"{name} succeeded")
status = open("/proc/self/status").read()
for line in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
    assert f"{line}:\\t0000000000000000" in status, status
assert "NoNewPrivs:\\t1" in status
"""


def test_no_privilege_is_left_or_can_be_had(sandbox: Sandbox, execute: Run, spec: SandboxSpec) -> None:
    if os.getuid() != 0:
        pytest.skip("setuid to oneself is no privilege; only root has any to lose")
    done = execute(sandbox, "python", "-c", PRIVILEGES, spec=spec)

    assert done.exit_code == 0, done.output


def test_there_is_no_network_unless_asked_for(sandbox: Sandbox, execute: Run, workspace: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        connect = f"import socket; socket.create_connection(('127.0.0.1', {server.getsockname()[1]}), 5)"
        assert execute(sandbox, "python", "-c", connect, spec=SandboxSpec(workspace, network=True)).exit_code == 0
        assert execute(sandbox, "python", "-c", connect, spec=SandboxSpec(workspace)).exit_code != 0
    datagram = "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 9))"
    assert execute(sandbox, "python", "-c", datagram, spec=SandboxSpec(workspace)).exit_code != 0


def test_this_package_and_others_are_hidden(sandbox: Sandbox, execute: Run, workspace: Path, venv: Path) -> None:
    importing = "import mlagentbench; print(mlagentbench.__file__)"
    assert execute(sandbox, "python", "-c", importing, spec=SandboxSpec(workspace, python=venv)).exit_code != 0
    assert execute(sandbox, "python", "-c", "import visible, other", spec=SandboxSpec(workspace, python=venv)).exit_code == 0

    spec = SandboxSpec(workspace, python=venv, packages=("visible",))
    assert execute(sandbox, "python", "-c", "import visible", spec=spec).output == "visible is here\n"
    for hidden in ("other", "mlagentbench.tasks"):
        assert execute(sandbox, "python", "-c", f"import {hidden}", spec=spec).exit_code != 0
    assert execute(sandbox, "cat", str(describe(venv).sites[0] / "other" / "__init__.py"), spec=spec).exit_code != 0


def test_ordinary_experiments_work(sandbox: Sandbox, execute: Run, workspace: Path) -> None:
    (workspace / "train.py").write_text(
        "import multiprocessing, tempfile, numpy\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.Manager() as manager: print(manager.list([1]))\n"
        "    tempfile.NamedTemporaryFile().write(b'x')\n"
        "    numpy.save('out.npy', numpy.ones(3) @ numpy.ones((3, 3)))\n"
    )
    done = execute(sandbox, "python", "train.py")

    assert (done.output, done.exit_code) == ("[1]\n", 0)
    assert (workspace / "out.npy").exists()


def test_an_old_kernel_is_told_from_a_new_one(sandbox: Sandbox, execute: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landlock_exec, "abi", lambda: 2)

    with pytest.raises(SandboxUnavailable, match=r"Linux 6\.2"):
        execute(sandbox, "true")


def test_its_limitations_are_told() -> None:
    assert all(limitation for limitation in LIMITATIONS)


def test_a_user_without_privileges_is_confined_too(sandbox: Sandbox) -> None:
    python = Path("/usr/bin/python3")
    if os.getuid() != 0 or not python.exists():
        pytest.skip("needs root, to become another user, and a Python that this user can reach")
    script = f"touch made; cat ../secret; cat /etc/passwd; echo private > {LEFT}; cat {LEFT}"
    program = (
        "import asyncio, sys; from pathlib import Path; from mlagentbench.sandbox.base import SandboxSpec\n"
        "from mlagentbench.sandbox.isolation import choose; from mlagentbench.sandbox.process import run\n"
        "spec = SandboxSpec(Path(sys.argv[1]))\n"
        f"print(asyncio.run(run(choose('landlock'), ('sh', '-c', '{script}'), spec)).output)"
    )
    with folder_of(nobody := nobodys_id()) as folder:
        copy_package(folder / "src")
        (folder / "secret").write_text("secret")
        words = [*become(nobody), python, "-c", program, folder / "workspace"]
        done = subprocess.run(words, env={"PYTHONPATH": str(folder / "src")}, capture_output=True, text=True, cwd="/")
        assert done.stderr == ""
        assert done.stdout.count("Permission denied") == 2
        assert "private" in done.stdout
        assert not LEFT.exists()
        assert (folder / "workspace" / "made").exists()
