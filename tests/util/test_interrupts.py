"""How processes are stopped: by three signals alike, as often as they come, and without an exception on the screen."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

from tests.support import HANGING

PROGRAM = """
import asyncio, signal, sys, threading, time
from mlagentbench.util import interrupts

class Removed:
    def __del__(self):
        print("ready", flush=True)
        time.sleep(600)

async def in_a_loop():
    try:
        print("ready", flush=True)
        await asyncio.sleep(600)
    finally:
        await asyncio.sleep(0.3)
        print("cleaned up", flush=True)

async def gently():
    asked = asyncio.Event()
    with interrupts.first(asked.set):
        print("ready", flush=True)
        await asked.wait()
        print("asked to stop", flush=True)
        if {second}:
            await asyncio.sleep(600)
        await asyncio.to_thread(sys.stdin.read)  # until it may end by itself

def outside():
    try:
        print("ready", flush=True)
        time.sleep(600)
    finally:
        time.sleep(0.3)
        print("cleaned up", flush=True)

def while_another_thread_gets_it():
    threading.Thread(target=threading.Event().wait, daemon=True).start()
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    interrupts.run(gently())

def in_a_removal():
    Removed()
    time.sleep(600)

def at_the_end():
    while interrupts._state.closed is None:
        time.sleep(0.01)
    print("ready", flush=True)
    time.sleep(600)

interrupts.install()
interrupts.IMPATIENCE, interrupts.TWICE = {impatience}, {twice}
status = 0
try:
    {act}
except KeyboardInterrupt:
    status = 130
interrupts.close()
time.sleep(0.2)
sys.exit(status)
"""


def start(
    act: str, *, second: bool = False, under: tuple[str, ...] = (), impatience: float = 300.0, twice: float = 300.0
) -> subprocess.Popen[str]:
    """Start the program. Its times are long, so that it does not matter where a busy machine holds it up."""
    program = PROGRAM
    for name, value in {"act": act, "second": second, "impatience": impatience, "twice": twice}.items():
        program = program.replace(f"{{{name}}}", str(value))
    pipes = {name: subprocess.PIPE for name in ("stdin", "stdout", "stderr")}
    process = subprocess.Popen([*under, sys.executable, "-c", program], **pipes, text=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    return process


def bombard(process: subprocess.Popen[str], number: signal.Signals) -> None:
    """Send a signal and go on with Ctrl-C until the process has ended."""
    process.send_signal(number)
    deadline = time.monotonic() + HANGING
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
        process.send_signal(signal.SIGINT)


@pytest.mark.parametrize("act", ["interrupts.run(in_a_loop())", "outside()"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_work_cleans_up_however_often_it_is_interrupted(act: str, number: signal.Signals) -> None:
    process = start(act)
    bombard(process, number)
    assert process.communicate(timeout=HANGING) == ("cleaned up\n", "")
    # The second where it came when Python had put its own handlers away: a shell reads it as the first.
    assert process.returncode in (130, -signal.SIGINT)


def test_an_interrupt_that_python_cannot_raise_comes_again() -> None:
    process = start("in_a_removal()")
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=HANGING) == ("", "")
    assert process.returncode == 130


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_one_asks_and_the_second_stops(number: signal.Signals) -> None:
    process = start("interrupts.run(gently())")
    process.send_signal(number)
    assert process.communicate(timeout=HANGING) == ("asked to stop\n", "")
    assert process.returncode == 0, "what was asked to stop has ended by itself"

    process = start("interrupts.run(gently())", second=True)
    process.send_signal(number)
    assert process.stdout is not None and process.stdout.readline() == "asked to stop\n"
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=HANGING) == ("", "")
    assert process.returncode == 130


def test_a_signal_that_does_not_disturb_the_loops_wait_ends_it() -> None:
    process = start("while_another_thread_gets_it()")
    time.sleep(0.3)  # so that the wait has begun
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=HANGING) == ("asked to stop\n", "")
    assert process.returncode == 0


def test_a_terminal_that_closes_is_one_interrupt_though_it_sends_two() -> None:
    process = start("interrupts.run(gently())")
    process.send_signal(signal.SIGHUP)
    assert process.stdout is not None and process.stdout.readline() == "asked to stop\n"
    process.send_signal(signal.SIGHUP)
    assert process.communicate(timeout=HANGING) == ("", "")
    assert process.returncode == 0


def test_a_process_under_nohup_outlives_its_terminal() -> None:
    process = start("outside()", under=("nohup",))
    process.send_signal(signal.SIGHUP)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=HANGING)
    assert process.returncode == 130


def test_an_end_that_takes_too_long_can_be_interrupted() -> None:
    """Python waits for threads when it ends, and one may never end."""
    process = start("threading.Thread(target=at_the_end).start()", impatience=0.5)
    bombard(process, signal.SIGINT)
    assert process.communicate(timeout=HANGING) == ("", "")
    assert process.returncode == 130
