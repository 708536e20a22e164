"""The sandbox that lasts as long as a run: what its commands can do to it, and what they cannot."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from mlagentbench.errors import BoxEnded, SandboxUnavailable
from mlagentbench.limits import ScriptLimits
from mlagentbench.sandbox.base import Mount, SandboxSpec
from mlagentbench.sandbox.box import Box, TooLarge
from mlagentbench.sandbox.isolation import choose
from tests.sandbox.processes import Trace, available
from tests.support import HANGING

pytestmark = pytest.mark.skipif("bubblewrap" not in available(), reason="needs bubblewrap")

FORGE = """
import glob, os, struct, sys
opened = 0
frames = b""
for number in range(0, 50):
    header = ('{"id": %d, "code": 0, "timed_out": false, "output": 6}' % number).encode()
    frames += struct.pack(">II", len(header), 6) + header + b"forged"
for path in glob.glob("/proc/[0-9]*/fd/*"):
    if path.split("/")[2] in (str(os.getpid()), "self"):
        continue
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        continue
    opened += 1
    try:
        os.write(descriptor, frames)
    except OSError:
        pass
print("opened", opened)
"""
"""Writes replies of the server into every descriptor of another process that can be opened; `/proc/1/fd/1` can."""
STEAL = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
pidfd = os.pidfd_open(2)
for number in range(3, 40):
    if libc.syscall(438, pidfd, number, 0) >= 0:
        print("took", number)
print("traced", libc.ptrace(16, 2, 0, 0))
try:
    open("/proc/2/mem", "r+b")
    print("opened its memory")
except OSError:
    print("no memory")
"""
"""Takes descriptors of the server by pidfd_getfd, traces it, opens its memory."""

Story = Callable[[Box], Awaitable[None]]


@pytest.fixture
def spec(workspace: Path, tmp_path: Path) -> SandboxSpec:
    (tmp_path / "home").mkdir()
    return SandboxSpec(workspace, home=tmp_path / "home", limits=ScriptLimits(memory_mb=512))


def in_a_box(spec: SandboxSpec, story: Story) -> None:
    """Tell a story of a box, which is closed at its end and leaves nothing alive."""

    async def tell() -> None:
        box = await Box.open(choose("bubblewrap"), spec)
        try:
            await story(box)
        finally:
            box.close()
        assert not box.running

    asyncio.run(tell())


async def text(box: Box, *command: str) -> str:
    done = await box.execute(command)
    return (done.output + done.errors).decode()


def test_commands_and_files_are_carried_out_beside_one_another(spec: SandboxSpec) -> None:
    async def story(box: Box) -> None:
        wait = "until [ -e go ]; do sleep 0.02; done; cat; echo $NAME >&2; exit 3"
        slow = asyncio.create_task(box.execute(["sh", "-c", wait], given=b"in", environment={"NAME": "x"}))
        assert await text(box, "pwd") == "/workspace\n"
        assert not slow.done()
        await box.write("go", b"")
        assert await slow == (3, b"in", b"x\n")
        assert (await box.execute(["no-such-program"])).code == 127
        await box.write("deep/file", b"\0\xff")
        assert await box.read("/workspace/deep/file", 2) == b"\0\xff"
        with pytest.raises(TooLarge):
            await box.read("deep/file", 1)
        with pytest.raises(FileNotFoundError):
            await box.read("deep/other", 1)
        with pytest.raises(IsADirectoryError):
            await box.write("deep", b"")
        with pytest.raises(TimeoutError):
            await box.execute(["sleep", "60"], seconds=0.1)
        assert (await box.execute(["sh", "-c", "yes | head -c 300000; echo end"], most=1000)).output.endswith(b"y\nend\n")

    in_a_box(spec, story)


@pytest.mark.parametrize("started", [True, False])
def test_a_command_that_is_cancelled_ends_also_where_it_had_not_started(spec: SandboxSpec, started: bool) -> None:
    async def story(box: Box) -> None:
        async def sleeps() -> bool:
            return "sleep 61" in await text(box, "sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")

        asking = asyncio.create_task(box.execute(["sleep", "61"]))
        await asyncio.sleep(0)
        while started and not await sleeps():
            await asyncio.sleep(0.01)
        asking.cancel()
        await asyncio.wait((asking,))
        async with asyncio.timeout(HANGING):
            await asyncio.sleep(0.2)  # in which one that had not started would
            while await sleeps():
                await asyncio.sleep(0.01)

    in_a_box(spec, story)


def test_programs_find_a_whole_machine_that_tells_nothing_of_this_one(spec: SandboxSpec) -> None:
    async def story(box: Box) -> None:
        assert await text(box, "sh", "-c", "id -un; getent hosts localhost; echo ~; touch ~/kept; ls /etc") == (
            f"agent\n127.0.0.1       localhost sandbox\n/home/agent\n{await text(box, 'ls', '/etc')}"
        )
        assert "NAME=" in await text(box, "cat", "/etc/os-release")
        told = re.split(r"[\s:]+", await text(box, "sh", "-c", "cat /etc/hosts /etc/passwd; hostname"))
        assert socket.gethostname() not in told or socket.gethostname() in ("localhost", "sandbox")
        # 600 MB do not fit into /var/tmp, whose bound is half of the memory limit, nor does the attempt end the box.
        assert (await box.execute(["sh", "-c", "head -c 600M /dev/zero > /var/tmp/big"])).code != 0
        assert (await box.execute(["sh", "-c", "rm /var/tmp/big; echo x > /var/tmp/small"])).code == 0

    in_a_box(spec, story)
    assert spec.home is not None and (spec.home / "kept").exists()


def test_an_agent_cannot_forge_the_replies_of_the_server(spec: SandboxSpec) -> None:
    async def story(box: Box) -> None:
        await box.write("true", b"true")
        slow = asyncio.create_task(box.execute(["sh", "-c", "exec >/dev/null 2>&1; until [ -e forged ]; do sleep 0.02; done; exit 7"]))
        forging = asyncio.create_task(box.execute([sys.executable, "-c", FORGE]))
        while not forging.done():
            assert await box.read("true", 4) == b"true"
        forged = await forging
        assert not slow.done()
        await box.write("forged", b"")
        assert (await slow).code == 7
        assert int(forged.output.split()[1]) >= 2, "the pipes of the first process can be opened, and lead nowhere"
        stolen = await text(box, sys.executable, "-c", STEAL)
        assert "took" not in stolen and "traced -1" in stolen and "no memory" in stolen
        assert await text(box, "echo", "true") == "true\n"

    in_a_box(spec, story)


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (struct.pack(">II", 1 << 20, 0), "a header of 1,048,576 bytes"),
        (struct.pack(">II", 9, 0) + b'{"id": 99', "Expecting"),
        (struct.pack(">II", 10, 0) + b'{"id": 99}', "an answer to nothing"),
        (struct.pack(">II", 4, 0) + b"[99]", "an answer to nothing"),
        (struct.pack(">II", 9, 1 << 31) + b'{"id": 1}', "2,147,483,648 bytes where at most 20"),
        (struct.pack(">II", 9, 0) + b'{"id": 1}', "without an exit code"),
        (struct.pack(">II", 34, 0) + b'{"id": 1, "code": 0, "output": 99}', "without an exit code"),
        (struct.pack(">II", 60000, 0) + b"[" * 60000, "recursion"),
    ],
)
def test_a_malformed_reply_ends_the_box(spec: SandboxSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reply: bytes, why: str) -> None:
    server = tmp_path / "server.py"
    ready = struct.pack(">II", 9, 0) + b'{"id": 0}'
    server.write_text(
        "import socket, sys\nconnection = socket.socket(fileno=int(sys.argv[1]))\n"
        f"connection.sendall({ready!r})\nconnection.recv(1)\nconnection.sendall({reply!r})\nconnection.recv(1 << 20)\nwhile True: pass\n"
    )
    monkeypatch.setattr("mlagentbench.sandbox.box.SERVER", server)

    async def story(box: Box) -> None:
        with pytest.raises(BoxEnded, match=why):
            await asyncio.wait_for(box.execute(["true"], most=10), HANGING)
        with pytest.raises(BoxEnded):
            await box.execute(["true"])

    in_a_box(spec, story)


def test_a_command_over_the_memory_limit_ends_alone(spec: SandboxSpec) -> None:
    async def story(box: Box) -> None:
        keeper = asyncio.create_task(box.execute(["sh", "-c", "until [ -e go ]; do sleep 0.02; done; echo kept"]))
        # It holds what it has until somebody looks.
        greedy = await box.execute([sys.executable, "-c", "import time; x = bytearray(900 << 20); time.sleep(600)"], seconds=HANGING)
        assert greedy.code != 0 and not keeper.done()
        await box.write("go", b"")
        assert (await keeper).output == b"kept\n"

    in_a_box(spec, story)


def test_a_frozen_box_changes_nothing(spec: SandboxSpec) -> None:
    async def story(box: Box) -> None:
        counting = asyncio.create_task(box.execute(["bash", "-ic", "for i in $(seq 40); do echo x >> log; sleep 0.05; done; echo all"]))
        log = spec.workspace / "log"
        while not log.exists():
            await asyncio.sleep(0.01)
        with box.frozen():
            size = log.stat().st_size
            await asyncio.sleep(0.3)
            assert log.stat().st_size == size
        done = await counting
        assert done.output == b"all\n" and log.stat().st_size == 80, "a shell does not notice it"

    in_a_box(spec, story)


READ = """
import os, signal, sys, threading
from mlagentbench.sandbox.standalone import exec_server
tail = exec_server.Tail(os.fdopen(os.dup(0), "rb"), 10)
look, looks = threading.Thread.join, []

def join(thread, seconds):
    looks.append(seconds)
    if len(looks) == exec_server.LOOKS // 10:
        os.kill(os.getpid(), signal.SIGSTOP)
    look(thread, seconds)

threading.Thread.join = join
print(tail.content().decode(), flush=True)
os._exit(0)
"""


def test_what_comes_while_the_server_is_frozen_is_read(tmp_path: Path) -> None:
    for _ in range(2):
        inside, outside = os.pipe()
        with subprocess.Popen([sys.executable, "-c", READ], stdin=inside, stdout=subprocess.PIPE, text=True) as server:
            os.waitid(os.P_PID, server.pid, os.WSTOPPED | os.WNOWAIT)
            time.sleep(0.7)  # longer than it reads after a command's end
            os.write(outside, b"x" * 10)
            server.send_signal(signal.SIGCONT)
            assert server.stdout is not None and server.stdout.readline() == "x" * 10 + "\n"
            os.close(outside)
        os.close(inside)


UNREAD = """
import os, sys, threading
from mlagentbench.sandbox.standalone import exec_server
exec_server.Tail._follow = lambda self: threading.Event().wait()  # its thread is given no core
reading, writing = os.pipe()
tail = exec_server.Tail(os.fdopen(reading, "rb"), 1000)
os.write(writing, b"x" * 60_000 + b"end")
os.write(1, tail.content())
os._exit(0)
"""


def test_what_a_command_wrote_is_returned_though_the_thread_that_reads_has_no_core() -> None:
    done = subprocess.run([sys.executable, "-c", UNREAD], stdout=subprocess.PIPE, check=True)
    assert done.stdout == b"x" * 997 + b"end"


def test_closing_ends_all_that_was_started_and_what_waits_for_it(spec: SandboxSpec, trace: Trace) -> None:
    sleep = f"sleep {trace.seconds}"

    async def story(box: Box) -> None:
        await box.execute(["sh", "-c", f"setsid -f {sleep}; nohup {sleep} >/dev/null 2>&1 &"])
        waiting = asyncio.create_task(box.execute(sleep.split()))
        assert await asyncio.to_thread(trace.becomes, True)
        box.close()
        assert not trace.alive()
        with pytest.raises(BoxEnded, match="closed"):
            await waiting

    in_a_box(spec, story)


def test_a_server_that_its_agent_kills_is_the_end_of_the_box(spec: SandboxSpec) -> None:
    async def story(box: Box) -> None:
        with pytest.raises(BoxEnded, match="has ended"):
            await asyncio.wait_for(box.execute(["sh", "-c", "kill -9 2; sleep 600"]), HANGING)
        assert not box.running

    in_a_box(spec, story)


def test_it_has_no_network_and_sees_what_is_mounted(spec: SandboxSpec, tmp_path: Path) -> None:
    (tmp_path / "program").mkdir()
    (tmp_path / "program" / "tool").write_text("#!/bin/sh\necho tool\n")
    (tmp_path / "program" / "tool").chmod(0o755)
    (tmp_path / "secret").write_text("the answers")
    spec = replace(spec, read_only=(Mount(tmp_path / "program", "/opt/program"),), path=("/opt/program",))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]

        async def story(box: Box) -> None:
            connect = f"import socket; print(socket.socket().connect_ex(('127.0.0.1', {port})))"
            assert await text(box, sys.executable, "-c", connect) != "0\n"
            assert await text(box, "tool") == "tool\n"
            assert (await box.execute(["sh", "-c", "echo > /opt/program/tool"])).code != 0
            assert (await box.execute(["ls", str(tmp_path / "secret")])).code != 0

        in_a_box(spec, story)


def test_only_bubblewrap_can_give_one(spec: SandboxSpec) -> None:
    with pytest.raises(SandboxUnavailable, match="bubblewrap only"):
        asyncio.run(Box.open(choose("none"), spec))
