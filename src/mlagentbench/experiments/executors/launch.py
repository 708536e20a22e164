"""Run a job's command, and leave no process behind. Every executor starts a job through this, on the machine where the job runs.

    python -m mlagentbench.experiments.executors.launch PARENT SECONDS -- COMMAND...

At SIGTERM, and after SECONDS (0 for no limit), the command gets SIGTERM and has `GRACE` seconds to end in order. When PARENT (0: whatever
process is the parent at the start), this process's parent, has died, everything is killed at once: the job is about to be started
elsewhere.

At the end all descendants of the command are killed, even those that called setsid and forked twice. Two processes see to that, the one
that is started and its child, each the subreaper of what is below it: if one of them is killed (Ray kills the children of a worker that it
ends), the other one ends everything.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

from mlagentbench.experiments.jobs import Job
from mlagentbench.sandbox.standalone.supervise import become_subreaper, die_with_parent, end_descendants, send

GRACE = 20.0
"""Seconds between SIGTERM and SIGKILL, in which a run is graded as it stands."""
TICK = 0.1
"""Seconds between two looks at the command, the parent and the clock."""


def command_of(job: Job, parent: int = 0) -> tuple[str, ...]:
    """Return the command that launches a job.

    Args:
        job: the job.
        parent: the id of the process that starts it; 0 where that is not known.
    """
    return (sys.executable, "-m", __name__, str(parent), str(job.time_s), "--", *job.argv)


def start(job: Job, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    """Launch a job from this process; its output is appended to its log.

    Args:
        job: the job.
        environment: the environment variables that the executor gives it, besides this process's.
    """
    with job.log.open("ab") as log:
        return subprocess.Popen(
            command_of(job, os.getpid()),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment, **job.env},
            start_new_session=True,
        )


def main(arguments: Sequence[str]) -> int:
    """Run the command until it ends or must end. Returns its exit status, as in a shell."""
    parent, seconds, command = int(arguments[0]) or os.getppid(), float(arguments[1]), arguments[3:]
    for number in _SIGNALS:
        signal.signal(number, _stop)
    print(f"[{time.strftime('%Y-%m-%d %H:%M:%S')}] started on {socket.gethostname()}", flush=True)
    outer = os.getpid()

    def inner(started: int) -> None:
        os.close(started)
        os._exit(_watch(lambda: _fork(lambda _: _exec(command)), outer, seconds, GRACE))

    return _watch(lambda: _fork(inner), parent, 0, 2 * GRACE)


def _watch(start: Callable[[], int], parent: int, seconds: float, grace: float) -> int:
    """Start a child and wait until it ends or must end; then kill all descendants. Returns its exit status, as in a shell.

    Args:
        start: starts the child, as the leader of a session, and returns its id.
        parent: the process without which it must end at once.
        seconds: the time after which it must end; 0 for no limit.
        grace: the seconds that it has between SIGTERM and SIGKILL.
    """
    become_subreaper()
    deadline = time.monotonic() + seconds if seconds else float("inf")
    kill_at = float("inf")
    child = start()
    try:
        while (status := _reap(child)) is None:
            now = time.monotonic()
            if os.getppid() != parent or now > kill_at:
                return 128 + signal.SIGKILL
            if (_stopped or now > deadline) and kill_at == float("inf"):
                kill_at = now + grace
                send(-child, signal.SIGTERM)
            time.sleep(TICK)
        return status if status >= 0 else 128 - status
    finally:
        end_descendants(os.getpid())


_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_stopped: list[int] = []
"""The signals that this process has got."""


def _stop(number: int, frame: object) -> None:
    _stopped.append(number)


def _reap(child: int) -> int | None:
    """Wait for whatever has ended. Returns the exit status of `child` if it has, negative for a signal."""
    while True:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == child:
            return os.waitstatus_to_exitcode(status)
        if pid == 0:
            return None


def _fork(run: Callable[[int], object]) -> int:
    """Start a child as the leader of a session, and return its id.

    Before it leads one, a signal to its session would reach nobody, and before it executes a command, the handler above would swallow it.

    Args:
        run: what the child does. It gets a descriptor that is to be closed, or is closed by exec, when the child can take signals.
    """
    waiting, started = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(waiting)
        os.setsid()
        run(started)
    os.close(started)
    with open(waiting, "rb") as pipe:
        pipe.read()
    return pid


def _exec(command: Sequence[str]) -> None:
    for number in (*_SIGNALS, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)  # this process's handlers, and the signals that Python ignores
    die_with_parent(signal.SIGKILL)
    try:
        os.execvp(command[0], list(command))
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", flush=True)
    os._exit(127)


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))
