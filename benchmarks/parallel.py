"""What runs cost each other: 1, 10 and 100 scripted runs of a tiny task at once, each number measured in a process of its own.

The model is scripted and answers at once; the grader counts lines. Every fourth step runs a script, in one of two ways:

- wait: the scripts sleep, so that a step takes two seconds on average, as with a model that thinks. Nobody needs the cores but the
  framework and the starting of scripts: a run that takes longer beside others than alone was slowed down by those.
- compute: the scripts need a core. What those of one run take, times the runs, over the cores, is the scripts' own share of the machine:
  no run can be faster than that.

`framework` is processor time of the harness's own process a step, imports left out; in `wait` for a single run it holds what is done once.
`stalled` is the longest time for which its event loop answered nobody. `slower` is the steps of a run, grading apart, beside the others
over alone, or over the scripts' share where that is more: of the middle run, and of the slowest.

    python benchmarks/parallel.py [--quick]
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from tiny_task import write_replies, write_task

CORES = len(os.sched_getaffinity(0))
COUNTS, SCRIPTS = (1, 10, 100), {"wait": "import time; time.sleep(8)", "compute": "sum(range(40_000_000))"}
QUICK_COUNTS, QUICK_SCRIPTS = (2,), {"compute": "sum(range(4_000_000))"}
EVERY = 4
"""One step in so many runs a script."""


def make_replies(path: Path, steps: int) -> None:
    cycle = (
        ("Execute Script", {"script_name": "train.py"}),
        ("List Files", {"dir_path": "."}),
        ("Append File", {"file_name": "notes.txt", "content": "The plan goes on.\n"}),
        ("Inspect Script Lines", {"script_name": "train.py", "start_line_number": 1, "end_line_number": 60}),
    )
    assert len(cycle) == EVERY
    actions = [("Write File", {"file_name": "notes.txt", "content": "A plan.\n"}), *(cycle[number % EVERY] for number in range(steps - 2))]
    write_replies(path, actions)


class Stalls:
    """Asks an event loop for a sign of life, from a thread, and keeps how long it took at worst."""

    def __init__(self) -> None:
        self.worst = 0.0
        self._over = threading.Event()

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        threading.Thread(target=self._ask, args=(loop,), daemon=True).start()

    def _ask(self, loop: asyncio.AbstractEventLoop) -> None:
        while not self._over.wait(0.01):
            answered, asked = threading.Event(), time.perf_counter()
            try:
                loop.call_soon_threadsafe(answered.set)
            except RuntimeError:  # the loop is closed
                return
            if answered.wait(60):
                self.worst = max(self.worst, time.perf_counter() - asked)

    def stop(self) -> None:
        self._over.set()


class Nowhere(io.StringIO):
    def write(self, text: str) -> int:
        return len(text)


def processor_seconds(who: int) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def measure(count: int, steps: int, script: str, folder: Path) -> dict[str, Any]:
    """Do so many runs at once in this process."""
    from rich.console import Console

    from mlagentbench.cli.output.progress import ProgressDisplay
    from mlagentbench.engine.evaluate import evaluate
    from mlagentbench.rundir.directory import RunDirectory
    from mlagentbench.runner.preflight import ReadyRun, make_spec, ready_run
    from mlagentbench.runner.run_once import RunHooks
    from mlagentbench.task.catalogue import load_task

    write_task(folder / "tiny", script)
    make_replies(folder / "replies.jsonl", steps)
    given = {
        "variant": "mini",
        "models": {"agent": f"scripted/{folder / 'replies.jsonl'}"},
        "limits": {"steps": steps},
        "score_steps": False,
        "baseline": "none",
    }
    run = asyncio.run(ready_run(make_spec(load_task(folder / "tiny"), given), folder / "logs"))
    done: list[RunDirectory] = []
    stalls, started = Stalls(), list[float]()
    # A terminal of a usual size, whose bytes go nowhere: to show what goes on is part of the cost.
    console = Console(file=Nowhere(), force_terminal=True, width=120, height=40)
    progress = ProgressDisplay(console, count)

    def listen(ready: ReadyRun, number: int) -> Any:
        if not started:
            started.append(processor_seconds(resource.RUSAGE_SELF))
            stalls.start(asyncio.get_running_loop())
        return progress.listen(ready, number)

    def finished(ready: ReadyRun, number: int, result: Any) -> None:
        progress.done(ready, number, result)
        done.append(RunDirectory(ready.log_directory / result.run))

    begun = time.perf_counter()
    with progress:
        evaluate([run], RunHooks(listener=listen, finished=finished), times=count, parallel=count)
    wall = time.perf_counter() - begun
    stalls.stop()
    used = processor_seconds(resource.RUSAGE_SELF) - started[0]
    results = [directory.result for directory in done]
    assert len(results) == count and all(result and result.steps == steps and result.score for result in results)
    return {
        "wall": wall,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "framework": 1000 * used / (count * steps),
        "children": processor_seconds(resource.RUSAGE_CHILDREN),
        "stalled": stalls.worst,
        "seconds": [result.seconds for result in results if result],
    }


def apart(count: int, steps: int, script: str) -> dict[str, Any]:
    """The same in a process of its own, so that its peak of memory is its own."""
    with tempfile.TemporaryDirectory() as name:
        command = [sys.executable, __file__, "--one", str(count), "--steps", str(steps), "--script", script, "--folder", name]
        found: dict[str, Any] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    return found


def script_seconds(script: str) -> float:
    """Processor time of a script with its interpreter."""
    before = processor_seconds(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-I", "-c", script], check=True)
    return processor_seconds(resource.RUSAGE_CHILDREN) - before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one short script a run that computes, and two runs at once")
    for hidden in ("--one", "--steps", "--script", "--folder"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(measure(int(asked.one), int(asked.steps), asked.script, Path(asked.folder))))
        return
    scripts, counts, kinds = (1, QUICK_COUNTS, QUICK_SCRIPTS) if asked.quick else (3, COUNTS, SCRIPTS)
    steps = 2 + EVERY * scripts
    print(f"{CORES} cores, {steps} steps a run, {scripts} of them scripts")
    print(
        f"{'':>7} {'runs':>5} {'wall s':>7} {'a run s':>8} {'memory MB':>10} {'framework ms':>13} {'stalled s':>10} {'slower: middle':>15}"
        f" {'slowest':>8}"
    )
    for kind, script in kinds.items():
        alone, share = 0.0, scripts * script_seconds(script) / CORES
        for count in counts:
            found = apart(count, steps, script)
            seconds = found["seconds"]
            alone = alone or seconds[0]
            least = max(alone, count * share)
            print(
                f"{kind:>7} {count:>5} {found['wall']:>7.1f} {statistics.median(seconds):>8.1f} {found['memory']:>10.0f}"
                f" {found['framework']:>13.1f} {found['stalled']:>10.2f} {statistics.median(seconds) / least:>15.2f}"
                f" {max(seconds) / least:>8.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
