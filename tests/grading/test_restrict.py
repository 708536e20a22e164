"""What a confined process cannot do any more, tried in a real one."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import textwrap
from collections.abc import Mapping

import pytest

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"), reason="the filter is made for Linux on x86_64 and aarch64"
)

CORE = max(os.sched_getaffinity(0)) if sys.platform == "linux" else 0
PREFACE = f"""
import ctypes, json, mmap, os, subprocess, sys, tempfile, threading
import numpy as np
from mlagentbench.grading.code.restrict import confine, load_native_code
load_native_code("numpy")
libc = ctypes.CDLL(None, use_errno=True)
page = ctypes.addressof(ctypes.create_string_buffer(8192)) & ~4095
def call(number, *arguments):
    if libc.syscall(number, *arguments) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
lacking = confine({CORE})
assert lacking == "", lacking
"""

IN_PYTHON = (
    "os.fork()",
    "subprocess.run(['true'])",
    "os.posix_spawn('/bin/true', ['true'], {})",
    "os.execv('/bin/true', ['true'])",
    "import multiprocessing; multiprocessing.Pool(2)",
    "mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC)",
    "libc.mprotect(ctypes.c_void_p(page), 4096, 7) == 0 or call(-1)",
    "ctypes.CDLL('libBrokenLocale.so.1')",
    "import numpy as np; f = os.memfd_create('x'); os.write(f, open(np.__file__, 'rb').read()); ctypes.CDLL(f'/proc/self/fd/{f}')",
    "open('/proc/self/mem', 'r+b')",
    "os.open('mem', os.O_RDWR, dir_fd=os.open('/proc/self', os.O_RDONLY))",
    "os.open('/dev/null', os.O_WRONLY)",
    "tempfile.TemporaryFile()",
    "os.sched_setaffinity(0, range(os.cpu_count()))",
)
BY_NUMBER = (
    "call(57)",  # fork
    "call(58)",  # vfork
    "call(435, 0, 0)",  # clone3
    "call(56, 17, 0, 0, 0, 0)",  # clone, for a process
    "call(59, b'/bin/true', 0, 0)",  # execve
    "call(10, ctypes.c_void_p(page), 4096, 7)",  # mprotect
    "call(135, 0x0400000)",  # personality: all that is readable is executable
    "call(101, 0, 0, 0, 0)",  # ptrace
    "call(2, b'/proc/self/mem', os.O_RDWR)",  # open
    "call(437, -100, b'/proc/self/mem', 0, 24)",  # openat2
    "call(425, 1, 0)",  # io_uring_setup
    "call(0x40000000 + 57)",  # fork, among the x32 calls
)


def confined(code: str) -> str:
    """What a script prints that has first confined itself."""
    ended = subprocess.run([sys.executable, "-c", PREFACE + textwrap.dedent(code)], capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.fixture(scope="module")
def refusals() -> Mapping[str, str]:
    """What each attempt was told, empty for one that succeeded."""
    attempts = IN_PYTHON + (BY_NUMBER if platform.machine() == "x86_64" else ())
    code = f"""
        told = {{}}
        for attempt in {attempts!r}:
            told[attempt] = ""
            try:
                exec(attempt)
            except OSError as error:
                told[attempt] = repr(error)
        print(json.dumps(told))
    """
    found: Mapping[str, str] = json.loads(confined(code))
    return found


@pytest.mark.parametrize("attempt", IN_PYTHON)
def test_it_starts_nothing_loads_nothing_writes_nothing_and_stays(refusals: Mapping[str, str], attempt: str) -> None:
    assert refusals[attempt]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="these are numbers of x86_64")
@pytest.mark.parametrize("attempt", BY_NUMBER)
def test_nor_by_the_number_of_a_call(refusals: Mapping[str, str], attempt: str) -> None:
    assert refusals[attempt]


def test_what_a_numpy_script_does_still_works() -> None:
    out = confined(f"""
        import concurrent.futures, csv, datetime, decimal, hashlib, logging, random, sqlite3, statistics, uuid, zlib
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            total = sum(pool.map(lambda n: float(np.linalg.norm(np.fft.fft(np.random.default_rng(n).random(1000)))), range(8)))
        a = np.random.rand(300, 300)
        np.einsum("ij,jk->ik", a, a) @ np.linalg.inv(a)
        print(len(open(csv.__file__).read()) > 0, total > 0, os.sched_getaffinity(0) == {{{CORE}}})
    """)
    assert out == "True True True\n"


def test_it_holds_for_threads_that_start_later() -> None:
    out = confined("""
        def work():
            try:
                os.fork()
            except PermissionError:
                print("refused")
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    """)
    assert out == "refused\n"
