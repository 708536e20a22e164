"""Looking at processes from outside."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

import pytest

from mlagentbench.grading.code.monitor import Meter, measure_processes, processor_seconds, runnable, served_by
from mlagentbench.sandbox.standalone.supervise import end_descendants

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")


@contextmanager
def python(code: str) -> Iterator[tuple[int, IO[str], IO[str]]]:
    """A program: its number, what it prints, and where it reads."""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdin is not None
    try:
        yield process.pid, process.stdout, process.stdin
    finally:
        end_descendants(process.pid)
        process.kill()
        process.communicate()


def asleep(pid: int) -> None:
    """Wait until a process's main thread sleeps. Until then it may wait for a core."""
    while Path("/proc", str(pid), "stat").read_text().rpartition(") ")[2][0] != "S":
        time.sleep(0.01)


def test_processor_time_counts_work_and_not_waiting_also_that_of_ended_threads() -> None:
    code = """
import threading, time
def work():
    end = time.thread_time() + 0.2
    while time.thread_time() < end:
        pass
thread = threading.Thread(target=work)
thread.start()
thread.join()
print(time.process_time(), flush=True)
time.sleep(600)
"""
    with python(code) as (pid, out, _):
        said = float(out.readline())
        seen = processor_seconds(pid)
        # Beside the ended thread's, it has used some 0.02 s.
        assert said >= 0.2 and seen == pytest.approx(said, abs=0.1)
        asleep(pid)
        seen = processor_seconds(pid)
        time.sleep(0.2)
        assert processor_seconds(pid) - seen < 0.1


def test_children_and_theirs_are_seen_and_their_time_counts() -> None:
    child = """
import os, time
if os.fork() == 0 and os.fork() == 0:
    while time.process_time() < 0.2:
        pass
    print(flush=True)
time.sleep(600)
"""
    with python(child) as (pid, out, _):
        out.readline()
        sight = measure_processes(pid)
        assert len(sight.processes) == 3 and pid in sight.processes
        assert sight.seconds > 0.1


def test_a_process_is_runnable_while_one_of_its_threads_computes_or_waits_for_a_core() -> None:
    code = """
import threading, time
print(flush=True)
input()
threading.Thread(target=lambda: [None for _ in iter(int, 1)], daemon=True).start()
print(flush=True)
time.sleep(600)
"""
    with python(code) as (pid, out, into):
        out.readline()
        asleep(pid)
        assert not runnable([pid])
        into.write("\n")
        into.flush()
        out.readline()
        asleep(pid)
        assert runnable([pid])
    assert not runnable([pid])


def test_native_code_that_is_loaded_later_is_seen() -> None:
    code = """
import ctypes, time
print(flush=True)
input()
ctypes.CDLL("libBrokenLocale.so.1")
print(flush=True)
time.sleep(600)
"""
    with python(code) as (pid, out, into):
        out.readline()
        before = measure_processes(pid).code
        into.write("\n")
        into.flush()
        out.readline()
        after = measure_processes(pid).code
        assert before is not None and after is not None
        assert [name for name in after - before if "BrokenLocale" in name]


def test_what_is_gone_is_nothing() -> None:
    with python("pass") as (pid, out, _):
        out.read()
    assert processor_seconds(pid) == 0.0
    assert measure_processes(pid).seconds == 0.0


HASH = """
import hashlib, os, sys, threading, time
os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
data = bytes(2**20)
def work():
    while True:
        hashlib.sha256(data).digest()  # without the interpreter's lock
for _ in range(THREADS - 1):
    threading.Thread(target=work, daemon=True).start()
print(flush=True)
work()
"""


SLEEP = 0.5


class Metered(NamedTuple):
    """What a meter said, and what it should say."""

    said: float
    elapsed: float
    least: float
    """Processor seconds that the process used between the meter's looks."""
    most: float
    """Those from before the first to after the second."""


def metered(pid: int) -> Metered:
    outside = processor_seconds(pid)
    meter = Meter.start(pid)
    inside, started = processor_seconds(pid), time.perf_counter()
    time.sleep(SLEEP)
    elapsed, least = time.perf_counter() - started, processor_seconds(pid) - inside
    said = meter.stop(elapsed)
    return Metered(said, elapsed, least, processor_seconds(pid) - outside)


def test_what_other_programs_take_of_a_core_is_taken_off() -> None:
    code = HASH.replace("THREADS", "1")
    with python(code) as (one, ready, _), python(code) as (_, other_ready, _):
        ready.readline()
        other_ready.readline()
        for _ in range(20):
            found = metered(one)
            assert found.said >= found.least - 0.02
            # The kernel counts a wait when it is over, so one that the second look falls into is not taken off.
            if found.said < 0.8 * found.elapsed and found.said <= found.most + 0.05:
                break
        else:
            raise AssertionError(found)


def test_what_a_programs_own_threads_take_of_each_other_is_not() -> None:
    with python(HASH.replace("THREADS", "4")) as (pid, ready, _):
        ready.readline()
        found = metered(pid)
        assert found.said >= found.least - 0.02


def test_waiting_for_nothing_counts() -> None:
    with python("import time\nprint(flush=True)\ntime.sleep(600)") as (pid, ready, _):
        ready.readline()
        asleep(pid)
        found = metered(pid)
        assert SLEEP - 0.05 <= found.said <= found.elapsed, "less than it took where we ourselves waited for a core"


def test_what_we_wait_for_a_core_before_a_question_and_after_it_is_not_taken_off() -> None:
    with python("import time\nprint(flush=True)\ntime.sleep(600)") as (pid, ready, _):
        ready.readline()
        asleep(pid)
        with python(HASH.replace("THREADS", "4")) as (_, busy, _):
            busy.readline()
            cores = os.sched_getaffinity(0)
            os.sched_setaffinity(0, {max(cores)})
            try:
                meter = Meter.start(pid)
                spend(0.05)
                started = time.perf_counter()
                time.sleep(0.01)
                elapsed = time.perf_counter() - started
                spend(0.05)
                said = meter.stop(elapsed)
            finally:
                os.sched_setaffinity(0, cores)
    assert said >= min(0.01, elapsed)


def spend(seconds: float) -> None:
    """Compute for so many processor seconds."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_what_serves_is_the_last_of_the_line() -> None:
    code = "import os, time\nif os.fork() == 0:\n    print(os.getpid(), flush=True)\ntime.sleep(600)"
    with python(code) as (pid, out, _):
        child = int(out.readline())
        assert served_by(pid) == child
