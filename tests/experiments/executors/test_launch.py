"""What starts a job's command, told to end while it does."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys

import pytest

from tests.support import HANGING

LATE = """
import os, sys, time
from mlagentbench.experiments.executors import launch

def late(do):
    def done(*arguments):
        time.sleep(0.5)
        return do(*arguments)
    return done

os.setsid, os.execvp = late(os.setsid), late(os.execvp)
sys.exit(launch.main(sys.argv[1:]))
"""
"""A launcher on a machine so busy that each child waits for its turn."""


@pytest.mark.parametrize("looks", [0, 1])
def test_a_job_that_is_told_to_end_while_it_starts_is_told_and_not_killed_later(looks: int) -> None:
    command = [sys.executable, "-c", LATE, "0", "0", "--", "sleep", "600"]
    launcher = subprocess.Popen(command, stdout=subprocess.PIPE)
    with launcher:
        assert launcher.stdout is not None and b"started on" in launcher.stdout.readline()
        with contextlib.suppress(subprocess.TimeoutExpired):
            launcher.wait(0.7 * looks)  # its first child has not begun, or the command has not
        launcher.send_signal(signal.SIGTERM)
        assert launcher.wait(HANGING) == 128 + signal.SIGTERM
