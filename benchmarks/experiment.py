"""What an experiment costs this machine: the memory of the process that a hundred scripted runs share, all of them at once.

Two tiny tasks, two agents and two scripted models. A run writes a file 20 times and ends; with --quick it is 8 runs that write once.
`memory` is the most that the process had resident, as the kernel counted it; the target is 600 MB, and the exit status is 1 above it.

    python benchmarks/experiment.py [--quick]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from mlagentbench.experiments.batches import run_jobs
from mlagentbench.experiments.file import read_experiment
from mlagentbench.experiments.matrix import expand
from mlagentbench.experiments.state import ExperimentState, Settings
from mlagentbench.rundir.directory import prepare_log_directory
from tiny_task import write_replies, write_task

TARGET_MB = 600
RUNS, QUICK_RUNS = 100, 8

EXPERIMENT = """\
tasks = ["tiny", "small"]
task_paths = ["tasks"]
runs = {runs}
variant = "mini"
sandbox = "none"
baseline = "none"
score_steps = false
audit = false
agents = ["research", "react"]
models = ["scripted/one.jsonl", "scripted/two.jsonl"]
"""


def write_experiment(folder: Path, runs: int, steps: int) -> Path:
    """Write an experiment of so many runs, and return its file."""
    for task in ("tiny", "small"):
        write_task(folder / "tasks" / task, "print('hello')")
    for model in ("one", "two"):
        actions = [("Write File", {"file_name": "notes.txt", "content": "A plan.\n" * lines}) for lines in range(1, steps)]
        write_replies(folder / f"{model}.jsonl", actions)
    path = folder / "hundred.toml"
    path.write_text(EXPERIMENT.format(runs=runs // 8 + (runs % 8 > 0)))
    return path


def peak_mb(command: Sequence[str], log: Path) -> float:
    """Run a command, and return the most memory that it had resident, in MB (2^20 bytes)."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}:\n{log.read_text()[-3000:]}")
    return used.ru_maxrss / 1024


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="8 runs of 2 steps")
    runs, steps = (QUICK_RUNS, 2) if parser.parse_args().quick else (RUNS, 21)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["MLAB_CACHE"] = str(folder / "cache")
        path = write_experiment(folder, runs, steps)
        matrix = expand(read_experiment(path))
        state, settings = ExperimentState(prepare_log_directory(folder / "logs"), matrix.name), Settings(parallel=runs)
        state.create()
        state.write(matrix, settings)
        (one,) = run_jobs(matrix, matrix.cells, state, settings, {}, lambda name: True)
        begun = time.perf_counter()
        memory = peak_mb(one.job.argv, folder / "worker.txt")
        seconds = time.perf_counter() - begun
        done = sum(map(state.committed, matrix.names))
        count = f"{done} of {len(matrix.names)} runs of {steps} steps done in one process, up to {runs} at once"
        print(f"{count}: {seconds:.1f} s, memory {memory:.0f} MB")
        return int(memory > TARGET_MB or done < len(matrix.names))


if __name__ == "__main__":
    sys.exit(main())
