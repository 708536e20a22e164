"""Run a job's command, and leave no process behind. Every executor starts a job through this, on the machine where the job runs.

    python -m mlagentbench.experiments.executors.launch PARENT SECONDS -- COMMAND...

At SIGTERM, and after SECONDS (0 for no limit), the command gets SIGTERM and has `GRACE` seconds to end in order. When PARENT (0: whatever
process is the parent at the start), this process's parent, has died, everything is killed at once: the job is about to be started
elsewhere. In any case all descendants of the command are killed at the end, even those that called setsid and forked twice, since this
process is their subreaper. If this process itself is killed, the kernel kills the command (PR_SET_PDEATHSIG).
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence

from mlagentbench.experiments.jobs import Job
from mlagentbench.sandbox.standalone.supervise import become_subreaper, die_with_parent, end_descendants, send

GRACE = 20.0
"""Seconds between SIGTERM and SIGKILL, in which a run is graded as it stands."""
TICK = 0.1
"""Seconds between two looks at the command, the parent and the clock."""
KILLED = 128 + signal.SIGKILL


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
    deadline = time.monotonic() + seconds if seconds else float("inf")
    stopped = False

    def stop(number: int, frame: object) -> None:
        nonlocal stopped
        stopped = True

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop)
    become_subreaper()
    print(f"[{time.strftime('%Y-%m-%d %H:%M:%S')}] started on {socket.gethostname()}", flush=True)
    try:
        running = _start(command)
        kill_at = float("inf")
        while (status := running.poll()) is None:
            now = time.monotonic()
            if os.getppid() != parent or now > kill_at:
                return KILLED
            if (stopped or now > deadline) and kill_at == float("inf"):
                kill_at = now + GRACE
                send(-running.pid, signal.SIGTERM)
            time.sleep(TICK)
        return status if status >= 0 else 128 - status
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", flush=True)
        return 127
    finally:
        end_descendants(os.getpid())


def _start(command: Sequence[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, start_new_session=True, preexec_fn=lambda: die_with_parent(signal.SIGKILL))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
