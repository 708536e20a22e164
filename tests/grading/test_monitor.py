"""Looking at processes from outside."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

import pytest

from mlagentbench.grading.code.monitor import Meter, measure_processes, processor_seconds, served_by
from mlagentbench.sandbox.standalone.supervise import end_descendants

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")


@contextmanager
def python(code: str) -> Iterator[tuple[int, IO[str]]]:
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.pid, process.stdout
    finally:
        end_descendants(process.pid)
        process.kill()
        process.communicate()


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
time.sleep(60)
"""
    with python(code) as (pid, out):
        said = float(out.readline())
        seen = processor_seconds(pid)
        assert said >= 0.2 and seen == pytest.approx(said, abs=0.02)
        time.sleep(0.2)
        assert processor_seconds(pid) - seen < 0.01


def test_children_and_theirs_are_seen_and_their_time_counts() -> None:
    child = """
import os, time
if os.fork() == 0 and os.fork() == 0:
    while time.process_time() < 0.2:
        pass
    print(flush=True)
time.sleep(60)
"""
    with python(child) as (pid, out):
        out.readline()
        sight = measure_processes(pid)
        assert len(sight.processes) == 3 and pid in sight.processes
        assert sight.seconds > 0.1


def test_native_code_that_is_loaded_later_is_seen() -> None:
    code = """
import ctypes, time
print(flush=True)
time.sleep(0.3)
ctypes.CDLL("libBrokenLocale.so.1")
print(flush=True)
time.sleep(60)
"""
    with python(code) as (pid, out):
        out.readline()
        before = measure_processes(pid).code
        out.readline()
        after = measure_processes(pid).code
        assert before is not None and after is not None
        assert [name for name in after - before if "BrokenLocale" in name]


def test_what_is_gone_is_nothing() -> None:
    with python("pass") as (pid, out):
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


def metered(pid: int) -> float:
    meter = Meter.start(pid)
    started = time.perf_counter()
    time.sleep(0.5)
    return meter.stop(time.perf_counter() - started)


def test_what_other_programs_take_of_a_core_is_taken_off() -> None:
    code = HASH.replace("THREADS", "1")
    with python(code) as (one, ready), python(code) as (_, other_ready):
        ready.readline()
        other_ready.readline()
        used = processor_seconds(one)
        remained = metered(one)
        assert remained < 0.4
        assert remained == pytest.approx(processor_seconds(one) - used, abs=0.05)


def test_what_a_programs_own_threads_take_of_each_other_is_not() -> None:
    with python(HASH.replace("THREADS", "4")) as (pid, ready):
        ready.readline()
        used = processor_seconds(pid)
        assert metered(pid) >= processor_seconds(pid) - used - 0.02


def test_waiting_for_nothing_counts() -> None:
    with python("import time\nprint(flush=True)\ntime.sleep(60)") as (pid, ready):
        ready.readline()
        assert metered(pid) == pytest.approx(0.5, abs=0.05)


def test_what_serves_is_the_last_of_the_line() -> None:
    code = "import os, time\nif os.fork() == 0:\n    print(os.getpid(), flush=True)\ntime.sleep(60)"
    with python(code) as (pid, out):
        child = int(out.readline())
        assert served_by(pid) == child
