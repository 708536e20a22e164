"""A model's rate limit is one for all who share it: in order, at its rate, whatever happens to the processes and files."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mlagentbench.engine.models.bucket import BACK_OFF, SIZE, Bucket, Rates
from mlagentbench.engine.models.limiter import SharedLimiter
from mlagentbench.model import Refusal
from mlagentbench.run_spec import RateLimit
from tests.engine.server import Fault, Provider, too_many
from tests.support import HANGING, finish

MODEL = "openai/gpt-4o"
ASKING = """\
import asyncio, json, sys, time
from pathlib import Path
from mlagentbench.engine.models.limiter import SharedLimiter
from mlagentbench.run_spec import RateLimit

async def main():
    limiter = SharedLimiter(Path(sys.argv[1]), {sys.argv[2]: RateLimit(requests=float(sys.argv[3]))})
    print("ready", flush=True)
    sys.stdin.readline()
    async def one():
        asked = time.time()
        permit = await limiter.admit(sys.argv[2], 100)
        print(json.dumps([permit.before_requests, asked, time.time()]), flush=True)
    await asyncio.gather(*(one() for _ in range(int(sys.argv[4]))))

asyncio.run(main())
"""
QUESTIONS = """\
import asyncio, sys
from pathlib import Path
from mlagentbench.engine.models.limiter import SharedLimiter
from mlagentbench.engine.models.model import RoleModel
from mlagentbench.engine.models.providers import make_model
from mlagentbench.engine.models.retries import RetryPolicy
from mlagentbench.run_spec import RateLimit

async def main():
    limiter = SharedLimiter(Path(sys.argv[1]), {"openai/gpt-4o": RateLimit(requests=1200)})
    async with make_model("openai/gpt-4o") as model:
        asker = RoleModel(model, "agent", retry_policy=RetryPolicy(seconds=0.5), limiter=limiter)
        for reply in await asyncio.gather(*(asker.generate("Say hello.") for _ in range(int(sys.argv[2])))):
            print(reply.text)

asyncio.run(main())
"""
HOLDING = """\
import os, sys, time
from mlagentbench.util import lock
lock.acquire(os.open(sys.argv[1], os.O_RDWR))
print("ready", flush=True)
time.sleep(600)
"""


def start(source: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", source, *map(str, arguments)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    return process


def limiter(folder: Path, **how: object) -> SharedLimiter:
    return SharedLimiter(folder, {MODEL: RateLimit(requests=600)}, **how)  # type: ignore[arg-type]


def admitted(shared: SharedLimiter, times: int = 1) -> float:
    """The seconds until so many requests at once may all be sent."""

    async def story() -> float:
        started = time.monotonic()
        await asyncio.gather(*(shared.admit(MODEL, 100) for _ in range(times)))
        return time.monotonic() - started

    return finish(story())


def the_file(folder: Path) -> Path:
    (path,) = folder.iterdir()
    return path


def test_processes_share_one_limit_in_the_order_in_which_they_asked(tmp_path: Path) -> None:
    asking = [start(ASKING, tmp_path, MODEL, 1200, 12) for _ in range(3)]
    begun = time.time()
    for process in asking:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    places = sorted(json.loads(line) for process in asking for line in process.communicate(timeout=HANGING)[0].splitlines())
    assert [place for place, _, _ in places] == list(range(36)), "no two have the same place, and none is left out"
    # Twenty a second: nobody goes before it is its turn. How much later it goes is the machine's doing.
    assert all(moment - begun >= place / 20 - 0.01 for place, _, moment in places)
    late = [moment - begun - place / 20 for place, _, moment in places]
    assert sorted(late)[18] < 30.0


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGSTOP])
def test_a_process_that_is_ended_while_it_holds_the_lock_holds_nobody_up(tmp_path: Path, end: signal.Signals) -> None:
    shared = limiter(tmp_path)
    admitted(shared)
    holder = start(HOLDING, the_file(tmp_path))

    async def story() -> None:
        waiting = asyncio.create_task(shared.admit(MODEL, 100))
        holder.send_signal(signal.SIGSTOP)
        # The event loop goes on while a holder that does nothing has the lock.
        for _ in range(20):
            await asyncio.sleep(0.01)
        assert not waiting.done()
        holder.send_signal(end)
        if end == signal.SIGSTOP:
            holder.kill()
        await waiting

    finish(story())
    holder.communicate()


class LimitedProvider(Provider):
    """A provider that refuses requests as long as those who ask may send more than 600 a minute: however fast they really are."""

    refusals = 0

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.shared = SharedLimiter(folder)

    def next(self) -> Fault:
        with self.lock:
            if 600 < self.shared.rates(MODEL).requests < math.inf:
                self.refusals += 1
                return too_many()
        return Fault(text="Hello.")


@pytest.mark.slow
def test_processes_find_together_what_a_provider_allows(tmp_path: Path, providers: None) -> None:
    with LimitedProvider(tmp_path) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        environment = {**os.environ, "OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "dummy"}
        command = [sys.executable, "-c", QUESTIONS, str(tmp_path), "15"]
        asking = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) for _ in range(2)]
        answers = [process.communicate(timeout=HANGING)[0].split() for process in asking]
        server.shutdown()
    assert [len(texts) for texts in answers] == [15, 15] and {text for texts in answers for text in texts} == {"Hello."}
    shared = SharedLimiter(tmp_path)
    assert server.refusals > 0 and 300 < shared.rates("openai/gpt-4o").requests < 900, "1200 were stated, and it allows 600"


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "torn": lambda data: data[: len(data) // 2],
    "longer": lambda data: data + b"\0",
    "text": lambda data: b"not a bucket" * 40,
    "one bit": lambda data: data[:60] + bytes([data[60] ^ 1]) + data[61:],
    "zeros": lambda data: bytes(len(data)),
}


@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_file_is_begun_anew(tmp_path: Path, how: str) -> None:
    shared = limiter(tmp_path)
    admitted(shared, 3)
    path = the_file(tmp_path)
    path.write_bytes(DAMAGE[how](path.read_bytes()))
    assert 0.3 <= admitted(shared, 5) < 30
    assert path.stat().st_size >= SIZE and shared.rates(MODEL).requests == 600


def test_any_bytes_are_a_bucket_or_a_new_one() -> None:
    whole = Bucket.new(Rates(600), 5.0).dump()
    for place in range(SIZE):
        damaged = whole[:place] + bytes([whole[place] ^ 0x40]) + whole[place + 1 :]
        assert Bucket.load(damaged, Rates(600), 99.0) == Bucket.new(Rates(600), 99.0)
    assert Bucket.load(whole, Rates(600), 99.0).looked == 5.0


def test_a_limit_that_is_stated_anew_holds_for_those_who_wait(tmp_path: Path) -> None:
    clock = Clock()
    bucket = Bucket.new(Rates(60), clock.now)
    places = [bucket.place(MODEL, 0, clock.now) for _ in range(11)]
    bucket = Bucket.load(bucket.dump(), Rates(600), clock.now)
    assert bucket.wait(places[10], clock.now) == pytest.approx(1.0)
    assert Bucket.load(bucket.dump(), Rates(), clock.now) == bucket, "who states none takes what there is"


def test_a_folder_that_cannot_be_written_ends_no_run(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "limits").write_text("a file")
    assert 0.3 <= admitted(limiter(tmp_path / "limits"), 5) < 30, "this process still keeps to the limit"
    assert "not shared with other processes" in caplog.text


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def turns(bucket: Bucket, clock: Clock, seconds: float, limit: float = float("inf")) -> float:
    """How many requests a minute a provider answers that refuses above a limit, of one who asks as fast as is allowed."""
    end, answered, room = clock.now + seconds, 0, 1.0
    permit = bucket.place(MODEL, 0, clock.now)
    waited = False
    while clock.now < end:
        pause = bucket.wait(permit, clock.now)
        if pause:
            waited, clock.now, room = True, clock.now + pause, min(limit / 10, room + pause * limit / 60)
            continue
        sent = bucket.send(permit, clock.now, waited=waited)
        if room < 1:
            bucket.refused(sent, Refusal(), clock.now)
            continue
        room -= 1
        answered += 1
        bucket.answered(sent, 0, clock.now)
        permit, waited = bucket.place(MODEL, 0, clock.now), False
    return answered / seconds * 60


def test_the_rate_follows_what_the_provider_allows() -> None:
    clock = Clock()
    bucket = Bucket.new(Rates(1000), clock.now)
    assert turns(bucket, clock, 60) == pytest.approx(1000, rel=0.02), "the stated limit, as long as nothing is refused"
    turns(bucket, clock, 300, limit=600)
    falls = bucket.falls
    assert turns(bucket, clock, 1800, limit=600) > 0.85 * 600
    assert bucket.falls - falls < 15, "half an hour of some 17,000 answers"
    assert turns(bucket, clock, 900) > 800, "it finds out that there is more again"
    assert bucket.rates().requests == 1000, "never more than is stated"


def test_a_limit_that_nobody_stated_is_learnt_from_the_first_refusal() -> None:
    clock = Clock()
    bucket = Bucket.new(Rates(), clock.now)
    for _ in range(120):
        sent = bucket.send(bucket.place(MODEL, 0, clock.now), clock.now, waited=False)
        assert bucket.wait(sent, clock.now) == 0
        clock.now += 0.5
    bucket.refused(sent, Refusal(), clock.now)
    assert bucket.rates().requests == pytest.approx(BACK_OFF * 120, rel=0.05)
    turns(bucket, clock, 900, limit=300)
    assert turns(bucket, clock, 900, limit=300) == pytest.approx(300, rel=0.15), "and found to be more, when it is"


def test_what_a_refusal_says_is_believed() -> None:
    clock = Clock()
    bucket = Bucket.new(Rates(), clock.now)
    permits = [bucket.send(bucket.place(MODEL, 50, clock.now), clock.now, waited=False) for _ in range(3)]
    for permit in permits:
        bucket.refused(permit, Refusal(retry_after=20, requests=60, tokens=9000), clock.now)
    assert bucket.rates() == pytest.approx((BACK_OFF * 60, BACK_OFF * 9000)), "one fall for all that were sent before it"
    assert [bucket.wait(permit, clock.now) for permit in permits] == [20, 20, 20]
    for _ in range(4):
        clock.now += 5
        waits = [bucket.wait(permit, clock.now) for permit in permits]
    newcomer = bucket.place(MODEL, 50, clock.now)
    waits = [bucket.wait(permit, clock.now) for permit in (*permits, newcomer)]
    assert waits == sorted(waits) and 3 <= waits[-1] < 6, "the refused keep their places before who comes later"
    bucket.refused(permits[0], Refusal(retry_after=1e12), clock.now)
    assert bucket.wait(newcomer, clock.now) <= 3600 + 10


def test_tokens_are_limited_as_they_were_counted() -> None:
    clock = Clock()
    bucket = Bucket.new(Rates(tokens=6000), clock.now)
    for _ in range(100):
        sent = bucket.place(MODEL, 100, clock.now)
        clock.now += bucket.wait(sent, clock.now)
        bucket.answered(bucket.send(sent, clock.now, waited=True), 300, clock.now)
    assert clock.now - 1000 == pytest.approx(99 * 300 / 100, rel=0.02), "100 tokens a second"


def test_a_request_that_is_given_up_leaves_its_place_to_others(tmp_path: Path) -> None:
    async def story() -> float:
        shared = SharedLimiter(tmp_path, {MODEL: RateLimit(requests=120)})
        await shared.admit(MODEL, 1)
        gone = [asyncio.create_task(shared.admit(MODEL, 1)) for _ in range(1000)]
        await asyncio.sleep(0)  # in which each takes its place
        for task in gone:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*gone)
        started = time.monotonic()
        await shared.admit(MODEL, 1)
        return time.monotonic() - started

    assert finish(story()) < 250, "not after the 500 seconds of those who are gone"


def test_a_queue_that_nobody_stands_in_any_more_is_gone(tmp_path: Path) -> None:
    clock = Clock()
    bucket = Bucket.new(Rates(60), clock.now)
    for _ in range(1000):
        bucket.place(MODEL, 1, clock.now)
    assert bucket.wait(bucket.place(MODEL, 1, clock.now), clock.now) == pytest.approx(1000)
    clock.now += 16
    assert bucket.wait(bucket.place(MODEL, 1, clock.now), clock.now) <= 1


def test_machines_have_equal_shares_while_they_ask(tmp_path: Path) -> None:
    clock = Clock()
    machines = [limiter(tmp_path, clock=clock, machine=f"node{number}") for number in range(4)]

    async def all_ask(asking: list[SharedLimiter]) -> None:
        for machine in asking:
            await machine.admit(MODEL, 1)

    finish(all_ask(machines))
    clock.now += 11
    finish(all_ask(machines))
    assert [machine.rates(MODEL).requests for machine in machines] == pytest.approx([150] * 4)

    async def queue() -> list[float]:
        waiting = [asyncio.create_task(machines[0].admit(MODEL, 1)) for _ in range(500)]
        await asyncio.sleep(0)  # in which each takes its place
        clock.now += 11
        rates = [machine.rates(MODEL).requests for machine in machines]
        for task in waiting:
            task.cancel()
        return rates

    rates = finish(queue())
    assert rates[0] > 3 * rates[1] and sum(rates) == pytest.approx(600, rel=0.1), "who has the longer queue sends more"
    for _ in range(15):
        clock.now += 11
        finish(all_ask(machines[:1]))
    assert machines[0].rates(MODEL).requests == 600, "the others have stopped asking"
    other = SharedLimiter(tmp_path, clock=clock, machine="node0")
    finish(other.admit("openai/gpt-4o-mini", 1))
    assert len(list(tmp_path.iterdir())) == 5, "another model has a limit of its own"


def test_names_that_look_alike_share_nothing(tmp_path: Path) -> None:
    shared = SharedLimiter(tmp_path)
    names = ["a/b", "a_b", "a b", "../../a", "a" * 500, "a" * 501, "é"]
    for name in names:
        finish(shared.admit(name, 1))
    assert len({path.name for path in tmp_path.iterdir()}) == len(names)
    assert all(len(path.name) < 200 for path in tmp_path.iterdir())


def test_a_call_costs_little(tmp_path: Path) -> None:
    shared = SharedLimiter(tmp_path)

    async def calls() -> float:
        started = time.process_time()
        for _ in range(500):
            await shared.admit(MODEL, 100)
        return (time.process_time() - started) / 500

    assert min(finish(calls()) for _ in itertools.repeat(None, 5)) < 1e-4
