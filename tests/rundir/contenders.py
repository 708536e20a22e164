"""Processes that go on with the same run, one of them a zombie: `python contenders.py FOLDER ROUNDS LEAST SEED`.

Each round stops an attempt at a random moment (SIGSTOP), and has another take over as from another node, which the lock does not reach.
Then the first goes on again. It prints what is wrong with the histories in the end, a line each, and how many have several authors.
Rounds follow until these are LEAST, at most ten times ROUNDS: on a busy machine, an attempt may be over before it is stopped.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
import traceback
from pathlib import Path

from mlagentbench.environment.publisher import Publisher
from mlagentbench.errors import InfrastructureError, UsageError
from mlagentbench.records import Action, ModelCall, Outcome, Result, Step, Usage
from mlagentbench.run_spec import RunLimits
from mlagentbench.rundir import attempts
from mlagentbench.rundir.directory import RunDirectory, prepare_log_directory
from mlagentbench.workspace.paths import Workspace
from mlagentbench.workspace.snapshots.snapshots import Manifest, SnapshotStore
from tests.support import run_info

STEPS = 8
LONGEST = 0.004
"""Seconds that a part of a step takes at most."""


def attempt(path: Path) -> None:
    """Go on with the run to its end. Each step's author signs its record, its calls, its output and a file of the workspace."""
    me = str(os.getpid())
    directory = RunDirectory(path)
    with directory.lock():
        directory.reopen()
        done = directory.steps()
        directory.workspace.mkdir(exist_ok=True)
        workspace = Workspace(directory.workspace, {})
        if directory.manifest(len(done)).exists():
            manifest = Manifest.load(directory.manifest(len(done)))
            SnapshotStore(directory.objects).restore(manifest, directory.workspace, replace=True)
        publisher = Publisher(workspace, directory, RunLimits(), 1000)
        publisher.begin(len(done))
        authors = [str(step.memory["author"]) for step in done]
        for number in range(len(done) + 1, STEPS + 1):
            directory.attempts.check()
            for _ in range(2):
                directory.append_call(
                    number, ModelCall(role="agent", purpose="agent", model=me, prompt="", reply=me, usage=Usage(), seconds=0.0)
                )
                directory.append_output(number, f"{me} ")
                time.sleep(random.uniform(0, LONGEST))
            directory.attempts.check()
            workspace.append_text("authors.txt", f"{me} ")
            memory = {"author": me, "after": list(authors)}
            publisher._publish(Step(number=number, action=Action(name="x"), observation="", started=0.0, seconds=0.0, memory=memory))
            authors.append(me)
        directory.write_result(
            Result(run=path.name, outcome=Outcome(ended="final_answer", verdict="no_improvement", reason=me), steps=STEPS, seconds=0.0)
        )


def begin(path: Path) -> int:
    """Begin an attempt in a process of its own, as on a node of its own, which the lock of another does not reach."""
    pid = os.fork()
    if pid == 0:
        code = 3
        try:
            random.seed()
            (path / "lock").unlink(missing_ok=True)
            attempts.boot = lambda: f"node-{os.getpid()}"  # type: ignore[assignment]
            attempt(path)
            code = 0
        except (InfrastructureError, UsageError) as error:
            refused = isinstance(error, InfrastructureError) or "another process" in str(error)
            code = 1 if refused else 3
            if not refused:
                print(error, flush=True)
        except Exception:
            traceback.print_exc(file=sys.stdout)
            sys.stdout.flush()
        finally:
            os._exit(code)
    return pid


def wait_until(path: Path, published: int) -> None:
    """Wait until so many steps are published, and a little longer."""
    deadline = time.monotonic() + 5
    while len(RunDirectory(path).step_numbers()) < published and time.monotonic() < deadline:
        time.sleep(0.001)
    time.sleep(random.uniform(0, 2 * LONGEST))


def contend(path: Path) -> int:
    """Have attempts contend for a run. Returns the exit status of the last."""
    first = begin(path)
    wait_until(path, random.randrange(STEPS))
    os.kill(first, signal.SIGSTOP)
    second = begin(path)
    wait_until(path, random.randrange(STEPS))
    os.kill(first, signal.SIGCONT)
    ended = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in (first, second)]
    if 3 in ended:
        print(f"{path.name}: an attempt failed")
    while not RunDirectory(path).has_result:
        ended.append(os.waitstatus_to_exitcode(os.waitpid(begin(path), 0)[1]))
        if len(ended) > 6:
            print(f"{path.name}: it cannot be finished, {ended}")
            break
    return len(ended)


def faults(path: Path) -> list[str]:
    """What is wrong with the history of a run."""
    directory, found = RunDirectory(path), []
    authors: list[str] = []
    steps = directory.steps()
    if len(steps) != STEPS or directory.result is None:
        found.append(f"{len(steps)} steps")
    for step in steps:
        author = str(step.memory["author"])
        if step.memory["after"] != authors:
            found.append(f"step {step.number} was made after other steps than those before it")
        authors.append(author)
        if [call.reply for call in directory.calls(step.number)] != [author] * 2:
            found.append(f"step {step.number} has calls of another attempt")
        if (directory.steps_folder / f"{step.number:04d}.output.txt").read_text().split() != [author] * 2:
            found.append(f"step {step.number} has output of another attempt")
        manifest = Manifest.load(directory.manifest(step.number))
        if SnapshotStore(directory.objects).read_bytes(manifest, "authors.txt").decode().split() != authors:
            found.append(f"step {step.number} has a workspace of another attempt")
    return [f"{path.name}: {fault}" for fault in found]


def main() -> None:
    folder, (rounds, least, seed) = Path(sys.argv[1]), map(int, sys.argv[2:])
    random.seed(seed)
    logs = prepare_log_directory(folder)
    taken = number = 0
    while number < rounds or (taken < least and number < 10 * rounds):
        number += 1
        path = RunDirectory.create(logs, run_info(f"run-{number}")).path
        contend(path)
        authors = {step.memory["author"] for step in RunDirectory(path).steps()}
        taken += len(authors) > 1
        for fault in faults(path):
            print(fault)
    print(f"{taken} of {number} runs changed hands")


if __name__ == "__main__":
    main()
