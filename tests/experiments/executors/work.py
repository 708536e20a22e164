"""The job of these tests: `python work.py FOLDER ID SECONDS`. It runs for a while on its GPU and commits a result, once.

It leaves behind a process that no signal to its group reaches, as a careless script on a GPU does, and notes all that the tests ask about.
SECONDS below 0: it fails. While FOLDER/held exists, it does not begin to count them, and fails when that takes too long.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil


def note(path: Path, **facts: object) -> None:
    with path.open("a") as file:
        file.write(json.dumps(facts) + "\n")


def main() -> int:
    folder, name, seconds = Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])

    def terminated(number: int, frame: object) -> None:
        note(folder / f"{name}.ends", signal=number)
        sys.exit(143)

    signal.signal(signal.SIGTERM, terminated)
    stray = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    node = os.environ.get("SLURMD_NODENAME") or os.environ.get("RAY_RAYLET_PID") or socket.gethostname()
    since = time.time()
    note(
        folder / f"{name}.starts",
        pid=os.getpid(),
        keeper=os.getppid(),
        launcher=psutil.Process().parent().ppid(),
        stray=stray.pid,
        node=node,
        gpu=os.environ["CUDA_VISIBLE_DEVICES"],
        since=since,
        given=os.environ.get("GIVEN"),
    )
    if seconds < 0:
        return 1
    result = folder / f"{name}.result"
    if result.exists():
        return 0
    until = time.monotonic() + 600
    while (folder / "held").exists():
        if time.monotonic() > until:
            return 1  # the test is gone, or what it waits for does not happen
        time.sleep(0.02)
    time.sleep(seconds)
    temporary = folder / f".{name}.{os.getpid()}"
    temporary.write_text(json.dumps({"node": node, "gpu": os.environ["CUDA_VISIBLE_DEVICES"], "since": since, "until": time.time()}))
    os.link(temporary, result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
