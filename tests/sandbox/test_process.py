"""Whatever a command does, its call ends in time, says why, and leaves nothing alive."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mlagentbench.errors import ActionError
from mlagentbench.limits import ScriptLimits
from mlagentbench.sandbox.base import Execution, Sandbox, SandboxSpec
from mlagentbench.sandbox.linux.limits import make_group
from mlagentbench.sandbox.process import run
from tests.sandbox.processes import DAEMON, Clock, Run, Trace
from tests.support import HANGING


def needs_watching(sandbox: Sandbox) -> None:
    if sandbox.isolation == "docker":
        pytest.skip("a container's processes are the engine's: their limits are held, but not watched")


def test_output_and_errors_come_merged_in_their_order(sandbox: Sandbox, execute: Run) -> None:
    done = execute(sandbox, "sh", "-c", "echo one; echo two >&2; echo three; exit 3")

    assert (sorted(done.output.split()), done.exit_code, done.reason, done.output_bytes) == (["one", "three", "two"], 3, "exit", 14)
    if sandbox.isolation != "docker":  # which passes on two streams
        assert done.output == "one\ntwo\nthree\n"


def test_a_killed_command_ends_as_a_shell_says_it(sandbox: Sandbox, execute: Run) -> None:
    assert execute(sandbox, "sh", "-c", "kill -SEGV $$").exit_code == 128 + 11


def test_a_command_that_does_not_exist_says_so(sandbox: Sandbox, execute: Run) -> None:
    done = execute(sandbox, "no-such-program")

    assert done.exit_code != 0
    assert re.search("no-such-program: (No such file or directory|not found)", done.output)


def test_python_is_the_interpreter_of_the_box(sandbox: Sandbox, execute: Run) -> None:
    for word in ("python", "python3"):
        assert execute(sandbox, word, "-c", "import sys; print(sys.executable)").output == f"{sys.executable}\n"
        assert execute(sandbox, "sh", "-c", f"{word} -c 'import sys; print(sys.prefix)'").output == f"{sys.prefix}\n"


def test_output_is_streamed_while_it_comes(sandbox: Sandbox, workspace: Path) -> None:
    came: list[str] = []

    def see(text: str) -> None:
        came.append(text)
        (workspace / "seen").touch()

    command = ("sh", "-c", "echo first; until [ -e seen ]; do sleep 0.02; done; printf '\\033[31m'")

    asyncio.run(run(sandbox, command, SandboxSpec(workspace, limits=ScriptLimits(seconds=HANGING)), see))

    assert came == ["first\n", "\\x1b[31m"]


@pytest.mark.parametrize("groups", [True, False])
def test_a_flood_costs_neither_time_nor_memory_nor_the_step(sandbox: Sandbox, execute: Run, workspace: Path, groups: bool) -> None:
    flood = "import sys\nfor i in range(60): sys.stdout.write('x' * (1 << 20))\nopen('after', 'w').close()\nprint('end')"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = time.process_time()

    done = execute(sandbox, "python", "-c", flood, groups=groups, output_kb=256)

    assert time.process_time() - begin < 3
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000  # KB
    assert (done.reason, done.exit_code, done.output_bytes) == ("exit", 0, 60 * 2**20 + 4)
    assert len(done.output) < 257 * 1024
    assert done.output.endswith("xend\n")
    assert (workspace / "after").exists()


def test_an_endless_flood_is_ended(sandbox: Sandbox, execute: Run) -> None:
    assert execute(sandbox, "sh", "-c", "cat /dev/zero").reason == "output"


@pytest.fixture
def execute_too_long(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a shell's command whose time limit is over as soon as it prints."""
    monkeypatch.setattr("mlagentbench.sandbox.process.time", clock := Clock())

    def end(output: str) -> None:
        clock.ahead = 2000

    def call(sandbox: Sandbox, command: str) -> Execution:
        return asyncio.run(run(sandbox, ("sh", "-c", command), SandboxSpec(workspace, limits=ScriptLimits(seconds=1000)), end))

    return call


def test_the_time_limit_keeps_what_was_printed(sandbox: Sandbox, execute_too_long: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlagentbench.sandbox.process.GRACE", 60.0)  # for a machine so busy that the command needs it

    done = execute_too_long(sandbox, "trap 'echo last words; exit 9' TERM; echo before; sleep 600 & wait")

    assert (done.reason, done.output) == ("time", "before\nlast words\n")
    assert 2000 <= done.seconds < 2300


def test_a_command_that_ignores_the_request_to_end_is_ended(sandbox: Sandbox, execute_too_long: Run, trace: Trace) -> None:
    done = execute_too_long(sandbox, f"trap '' TERM; echo before; sleep {trace.seconds}; sleep {trace.seconds}")

    assert (done.reason, done.output, done.exit_code) == ("time", "before\n", 137)
    assert not trace.alive()


@pytest.mark.parametrize("groups", [True, False])
@pytest.mark.parametrize("then", ["pass", "sys.exit(3)", "os.kill(os.getpid(), 9)"])
def test_a_daemon_does_not_outlive_its_call(sandbox: Sandbox, execute: Run, trace: Trace, then: str, groups: bool) -> None:
    done = execute(sandbox, "python", "-c", f"{DAEMON}\n{then}", trace.seconds, groups=groups)

    assert not trace.alive()
    assert done.seconds < HANGING  # though the daemon held the pipe


def test_a_daemon_does_not_outlive_the_time_limit(sandbox: Sandbox, execute: Run, trace: Trace) -> None:
    done = execute(sandbox, "python", "-c", f"{DAEMON}\nimport time; time.sleep(60)", trace.seconds, seconds=0.5)

    assert done.reason == "time"
    assert not trace.alive()


def test_cancelling_kills_the_tree_and_is_passed_on(sandbox: Sandbox, workspace: Path, trace: Trace) -> None:
    async def story() -> None:
        task = asyncio.create_task(
            run(sandbox, ("python", "-c", f"{DAEMON}\nimport time; time.sleep(600)", trace.seconds), SandboxSpec(workspace))
        )
        assert await asyncio.to_thread(trace.becomes, True)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not trace.alive()

    asyncio.run(story())


def test_a_call_never_touches_the_processes_of_another(sandbox: Sandbox, workspace: Path, trace: Trace) -> None:
    async def story() -> None:
        daemon = ("python", "-c", f"{DAEMON}\nimport time; time.sleep(600)", trace.seconds)
        other = asyncio.create_task(run(sandbox, daemon, SandboxSpec(workspace, limits=ScriptLimits(seconds=600))))
        assert await asyncio.to_thread(trace.becomes, True)
        for seconds in (60, 0.2):
            await run(sandbox, ("sh", "-c", "setsid sleep 70 & sleep 0.25"), SandboxSpec(workspace, limits=ScriptLimits(seconds=seconds)))
        assert trace.alive()
        other.cancel()
        with pytest.raises(asyncio.CancelledError):
            await other
        assert not trace.alive()

    asyncio.run(story())


def test_calls_cancelled_at_any_moment_leave_nothing(sandbox: Sandbox, workspace: Path, trace: Trace) -> None:
    async def story() -> None:
        async def call(delay: float) -> None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(delay):
                    await run(sandbox, ("sh", "-c", f"setsid sleep {trace.seconds} & sleep 60"), SandboxSpec(workspace))

        await asyncio.gather(*(call(0.002 * number) for number in range(44)))

    asyncio.run(story())
    assert not trace.alive()


HARNESS = """
import asyncio, sys
from pathlib import Path
from mlagentbench.sandbox.base import SandboxSpec
from mlagentbench.sandbox.isolation import choose
from mlagentbench.sandbox.process import run
command = ("python", "-c", sys.argv[2] + "\\nimport time; time.sleep(600)", sys.argv[3])
asyncio.run(run(choose(sys.argv[1]), command, SandboxSpec(Path(sys.argv[4]))))
"""


def test_a_killed_harness_takes_its_commands_along(sandbox: Sandbox, workspace: Path, trace: Trace) -> None:
    harness = subprocess.Popen([sys.executable, "-c", HARNESS, sandbox.isolation, DAEMON, trace.seconds, str(workspace)])
    assert trace.becomes(True)

    harness.kill()
    harness.wait()

    assert trace.becomes(False)


HARNESSES = """
import asyncio, os, signal, sys, time
from pathlib import Path
from mlagentbench.sandbox.base import SandboxSpec
from mlagentbench.sandbox.isolation import choose
from mlagentbench.sandbox.process import run
sandbox = choose(sys.argv[1])
for number in range(40):
    harness = os.fork()
    if not harness:
        asyncio.run(run(sandbox, ("sleep", sys.argv[2]), SandboxSpec(Path(sys.argv[3]))))
    time.sleep(0.002 * number)
    os.kill(harness, signal.SIGKILL)
    os.waitpid(harness, 0)
"""


def test_a_harness_killed_while_it_starts_a_command_leaves_nothing(sandbox: Sandbox, workspace: Path, trace: Trace) -> None:
    subprocess.run([sys.executable, "-c", HARNESSES, sandbox.isolation, trace.seconds, str(workspace)], check=True)
    time.sleep(1)  # for a command that was being started

    assert trace.becomes(False)


@pytest.mark.parametrize("groups", [True, False])
def test_the_memory_limit_ends_a_command_with_its_reason(sandbox: Sandbox, execute: Run, groups: bool) -> None:
    hungry = "print('before')\nkept = []\nwhile True: kept.append(bytearray(b'x' * (8 << 20)))"

    done = execute(sandbox, "python", "-c", hungry, groups=groups, memory_mb=300)

    assert done.reason == "memory"
    assert done.output.startswith("before\n")


@pytest.mark.parametrize("groups", [True, False])
def test_the_memory_of_all_processes_counts(sandbox: Sandbox, execute: Run, groups: bool) -> None:
    needs_watching(sandbox)
    hungry = "import os, time\nfor _ in range(3): os.fork()\nkept = b'x' * (100 << 20)\ntime.sleep(600)"

    done = execute(sandbox, "python", "-c", hungry, groups=groups, memory_mb=400)

    assert done.reason == "memory"


@pytest.mark.parametrize("groups", [True, False])
def test_reserved_addresses_are_no_memory(sandbox: Sandbox, execute: Run, groups: bool) -> None:
    reserve = "import mmap; mmap.mmap(-1, 64 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, prot=0); print('fine')"

    assert execute(sandbox, "python", "-c", reserve, groups=groups, memory_mb=300).output == "fine\n"


def test_memory_that_forked_workers_share_counts_once(sandbox: Sandbox, execute: Run) -> None:
    share = "import os, time\nkept = b'x' * (150 << 20)\nfor _ in range(3): os.fork()\ntime.sleep(0.7)"

    # Not less: each share is read at its own moment, and grows while the workers end one after the other, to 408 MB together at worst.
    assert execute(sandbox, "python", "-c", share, groups=False, memory_mb=700).reason == "exit"


@pytest.mark.parametrize("groups", [True, False])
def test_too_many_processes_end_a_command_with_its_reason(sandbox: Sandbox, execute: Run, groups: bool) -> None:
    needs_watching(sandbox)
    many = "import os, time\nfor _ in range(1000):\n    if os.fork() == 0: time.sleep(600)\n    time.sleep(0.003)\ntime.sleep(600)"

    done = execute(sandbox, "python", "-c", many, groups=groups, processes=40)

    assert done.reason == "processes"


def test_never_more_processes_run_than_the_limit_says(sandbox: Sandbox, execute: Run, workspace: Path) -> None:
    needs_watching(sandbox)
    if os.getuid() == 0 and (group := make_group(ScriptLimits())) is None:
        pytest.skip("for root only a control group holds it, and this machine gives none")
    elif os.getuid() == 0 and group is not None:
        group.end()
    many = "import os, time\nfor made in range(600):\n    open('made', 'w').write(str(made))\n    if os.fork() == 0: time.sleep(60)"

    assert execute(sandbox, "python", "-c", many, processes=40).reason == "processes"
    assert 20 < int((workspace / "made").read_text()) < 40


@pytest.mark.parametrize("groups", [True, False])
def test_a_fork_bomb_is_ended(sandbox: Sandbox, execute: Run, groups: bool) -> None:
    needs_watching(sandbox)
    bomb = "import os, time\nwhile True:\n    try: os.fork()\n    except OSError: pass\n    time.sleep(0.05)"

    assert execute(sandbox, "python", "-c", bomb, groups=groups, processes=40).reason == "processes"


def test_a_workspace_that_grows_too_large_ends_its_command(sandbox: Sandbox, execute: Run) -> None:
    grow = "import os, time\nfor i in range(300):\n    open(f'{i}', 'wb').write(b'x' * (1 << 20))\n    time.sleep(0.01)\ntime.sleep(600)"

    assert execute(sandbox, "python", "-c", grow, workspace_mb=100).reason == "disk"


def test_a_file_that_grows_too_large_fails_its_writer(sandbox: Sandbox, execute: Run, workspace: Path) -> None:
    done = execute(sandbox, "python", "-c", "open('big', 'wb').write(b'x' * (20 << 20))", file_mb=10)
    assert "File too large" in done.output
    assert (workspace / "big").stat().st_size == 10 << 20

    assert execute(sandbox, "sh", "-c", "exec head -c 20M /dev/zero > big", file_mb=10).reason == "disk"


def test_no_core_is_dumped(sandbox: Sandbox, execute: Run, workspace: Path) -> None:
    assert execute(sandbox, "sh", "-c", "ulimit -c; ulimit -H -c").output == "0\n0\n"


def test_a_command_that_can_be_started_nowhere_is_the_agents_mistake(sandbox: Sandbox, execute: Run) -> None:
    with pytest.raises(ActionError, match="NUL"):
        execute(sandbox, "python", "a\0b")
    with pytest.raises(ActionError, match="too long"):
        execute(sandbox, "python", "-c", "#" * (1 << 18))


def test_the_environment_holds_no_secret_of_the_harness(sandbox: Sandbox, execute: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")

    done = execute(sandbox, "sh", "-c", "env; cat /proc/self/environ; cat /proc/$PPID/environ")

    assert "LANG=C.UTF-8" in done.output
    assert "secret" not in done.output


def test_a_command_inherits_no_open_file(sandbox: Sandbox, execute: Run, tmp_path: Path) -> None:
    with (tmp_path / "private").open("w") as file:
        os.set_inheritable(file.fileno(), True)

        done = execute(sandbox, "sh", "-c", "ls /proc/self/fd")

    assert done.output.split() == ["0", "1", "2", "3"]  # 3 is the folder that ls reads


def test_home_and_temporary_folder_are_private_to_a_call(sandbox: Sandbox, execute: Run) -> None:
    first = execute(sandbox, "sh", "-c", "touch $HOME/seen; mkdir -p ${TMPDIR:-/tmp}/a/b; ls $HOME").output.split()
    second = execute(sandbox, "sh", "-c", "ls -A $HOME").output.split()

    assert set(first) - set(second) == {"a", "seen"}


LEAVES = """
import asyncio, os, sys
from pathlib import Path
from mlagentbench.limits import ScriptLimits
from mlagentbench.sandbox.base import SandboxSpec
from mlagentbench.sandbox.isolation import choose
from mlagentbench.sandbox.process import run
from mlagentbench.sandbox.standalone.supervise import children
sandbox, groups = choose(sys.argv[1]), "/sys/fs/cgroup"

def execute(*command, seconds=300):
    asyncio.run(run(sandbox, command, SandboxSpec(Path(sys.argv[2]), limits=ScriptLimits(seconds=seconds))))

def left():
    places = [*Path(groups).glob(f"**/mlagentbench-{os.getpid()}-*"), *Path("/tmp").glob(f"mlagentbench-{os.getpid()}-*")]
    return {*children(os.getpid()), *places}, len(os.listdir("/proc/self/fd"))

execute("true")
before = left()
for _ in range(5):
    execute("python", "-c", sys.argv[3], "60")
execute("sh", "-c", "echo x > $HOME/left; sleep 60", seconds=0.3)
print(before == left() or (before, left()))
"""


def test_calls_leave_the_harness_as_it_was(sandbox: Sandbox, workspace: Path) -> None:
    # In a process of its own: to this one, processes and files of other tests come and go.
    words = [sys.executable, "-c", LEAVES, sandbox.isolation, str(workspace), DAEMON]
    assert subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout == "True\n"


def test_a_read_only_workspace_cannot_be_written(sandbox: Sandbox, execute: Run, workspace: Path) -> None:
    if sandbox.isolation == "none":
        pytest.skip("without a sandbox every file can be written")
    (workspace / "model.txt").write_text("1")

    done = execute(
        sandbox, "sh", "-c", "cat model.txt; echo 2 > model.txt; touch new", spec=SandboxSpec(workspace, workspace_writable=False)
    )

    assert done.output.startswith("1")
    assert (workspace / "model.txt").read_text() == "1"
    assert os.listdir(workspace) == ["model.txt"]


def test_multiprocessing_works(sandbox: Sandbox, execute: Run, workspace: Path) -> None:
    (workspace / "pool.py").write_text(
        "import multiprocessing\nif __name__ == '__main__':\n    with multiprocessing.Pool(2) as pool: print(pool.map(abs, [-1, -2]))\n"
    )
    assert execute(sandbox, "python", "pool.py").output == "[1, 2]\n"
