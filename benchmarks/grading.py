"""What grading costs: a table's score beside row-by-row grading, and `mlab grade --every-step` over 50 runs of 50 steps.

    python benchmarks/grading.py            some four minutes, about 1 GB of disk below --dir
    python benchmarks/grading.py --quick    some seconds

The first table times graders alone, in turns on the same files: ours (the files opened, the answers read, every id and number checked),
beside the original benchmark's manner (pandas, and a look-up by label for each row) and beside a plain loop over the rows of the `csv`
module. Neither of those checks anything, and both have the true labels at hand. What the library alone takes to read the same files is
timed too, in the same turns, and `scoring` is the rest. A turn of ours is five gradings, and their mean.

The second times the command on run directories that real runs left, each with 10 distinct submissions, no two runs alike: cold, with no
grading known from before, and again, with all of them known. `processor` is processor time of all its processes: over the cores it is what
the command takes on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import io
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from numpy.typing import NDArray

from mlagentbench.grading.context import GradingContext
from mlagentbench.grading.reader import SubmissionFiles
from mlagentbench.model import Models, Script
from mlagentbench.rundir.directory import prepare_log_directory
from mlagentbench.runner.preflight import make_spec, ready_run
from mlagentbench.runner.run_once import run_once
from mlagentbench.sandbox.plain import PlainSandbox
from mlagentbench.task.catalogue import load_task
from mlagentbench.tasks.cifar10.grade import grade as grade_cifar10
from mlagentbench.tasks.imdb.grade import grade as grade_imdb

CORES = len(os.sched_getaffinity(0))
ROWS = 10_000
DISTINCT = 10
"""Submissions of a run."""

TOML = """\
id = "pictures"
title = "Ten classes of pictures"
category = "none"
modality = "none"
published = 2026-01-01
metric = { name = "accuracy", direction = "maximize" }
submission = { mode = "file", files = ["submission.csv"], required = ["submission.csv"] }
paper = { baseline = 0.1 }
"""
PREPARE = f"""\
import numpy as np
import polars as pl


def mini(public, private, seed):
    labels = np.random.default_rng(seed).integers(0, 10, {ROWS})
    pl.DataFrame({{"id": np.arange({ROWS}), "label": labels}}).write_csv(private / "answers.csv")
"""
GRADE = "from mlagentbench.tasks.cifar10.grade import grade\n"

# In the place of a script that trains and predicts, it puts the next table where such a script would write it.
AGENT = """\
import shutil
from pathlib import Path

from mlagentbench.records import Action


class Submitter:
    needs_model = False

    def __init__(self, tables: str, every: int) -> None:
        self.tables, self.every = sorted(Path(tables).iterdir()), every

    async def __call__(self, environment):
        for number, table in enumerate(self.tables):
            for _ in range(self.every - (number == len(self.tables) - 1)):
                await environment.settle()
                shutil.copyfile(table, environment.workspace.root / "submission.csv")
                await environment.execute(Action(name="List Files", arguments={"dir_path": "."}))
        await environment.execute(Action(name="Final Answer", arguments={"final_answer": "done"}))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer repetitions and runs")
    parser.add_argument("--dir", type=Path, default=Path.cwd(), help="where to work; a folder is made there and removed again")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="grading-", dir=options.dir) as name:
        folder = Path(name)
        print(f"{CORES} cores, load {os.getloadavg()[0]:.1f}\n")
        functions(folder, 1 if options.quick else 15)
        command(folder, *((1, 10) if options.quick else (50, 50)))


def functions(folder: Path, times: int) -> None:
    """Scores of one table, in three ways."""
    heads = ("ours ms", "reading", "scoring", "pandas ms", "reading", "scoring", "ratio", "of scoring", "csv ms", "ratio")
    print(f"{'a table':>14} {' '.join(f'{head:>10}' for head in heads)}    (medians of {times})")
    for rows, classes in ((ROWS, 10), (25_000, 2)):
        context, labels = tables(folder / f"{rows}", rows, classes)
        path = context.submission.root / "submission.csv"
        score = grade_cifar10 if classes == 10 else grade_imdb
        scores = {score(context).value, row_by_row(path, labels), loop(path, labels)}
        assert len(scores) == 1, scores
        ways: list[tuple[Callable[[], object], int]] = [
            (partial(score, context), 5),
            (partial(read, context), 5),
            (partial(row_by_row, path, labels), 1),
            (partial(pd.read_csv, path, index_col=0), 1),
            (partial(loop, path, labels), 1),
        ]
        taken = [[timed(way, often) for way, often in ways] for _ in range(times)]
        ours, our_reading, pandas, their_reading, plain = (1000 * statistics.median(column) for column in zip(*taken, strict=True))
        scoring, their_scoring = ours - our_reading, pandas - their_reading
        numbers = (
            ours,
            our_reading,
            scoring,
            pandas,
            their_reading,
            their_scoring,
            pandas / ours,
            their_scoring / scoring,
            plain,
            plain / ours,
        )
        print(f"{rows:>9,} x {classes:>2} {' '.join(f'{number:>10.1f}' for number in numbers)}")


def read(context: GradingContext) -> None:
    """What a grader of a table reads, and nothing more."""
    data = context.submission.read_bytes("submission.csv")
    header = data[: data.index(b"\n")].decode().split(",")
    pl.read_csv(io.BytesIO(data), schema={header[0]: pl.String, **dict.fromkeys(header[1:], pl.Float64)})
    assert context.private is not None
    pl.read_csv(context.private / "answers.csv")


def tables(folder: Path, rows: int, classes: int) -> tuple[GradingContext, NDArray[Any]]:
    """A submission and its answers, as a task's grader is given them, and the true labels."""
    rng = np.random.default_rng(rows)
    labels = rng.integers(0, classes, rows)
    for part in ("submission", "private", "scratch"):
        (folder / part).mkdir(parents=True)
    number, names = ("id", [str(each) for each in range(classes)]) if classes == 10 else ("idx", ["negative", "positive"])
    pl.DataFrame({number: np.arange(rows), "label": labels}).write_csv(folder / "private" / "answers.csv")
    write_table(folder / "submission" / "submission.csv", rng, rows, number, names)
    context = GradingContext(
        submission=SubmissionFiles(folder / "submission"),
        starter=SubmissionFiles(folder / "scratch"),
        private=folder / "private",
        variant="mini",
        seed=None,
        isolation=PlainSandbox(),
        scratch=folder / "scratch",
    )
    return context, labels


def write_table(path: Path, rng: np.random.Generator, rows: int, number: str, names: Sequence[str]) -> None:
    values = rng.dirichlet(np.ones(len(names)), rows).round(6)
    pl.DataFrame({number: np.arange(rows), **dict(zip(names, values.T, strict=True))}).write_csv(path)


def row_by_row(path: Path, labels: NDArray[Any]) -> float:
    """Accuracy as the original benchmark finds it: each row by its label, a series a row."""
    submission = pd.read_csv(path, index_col=0)
    right = 0
    for number, label in enumerate(labels):
        right += int(submission.loc[number].argmax() == label)
    return right / len(labels)


def loop(path: Path, labels: NDArray[Any]) -> float:
    """The same without pandas."""
    with path.open(newline="") as file:
        lines = csv.reader(file)
        next(lines)
        rows = {int(number): [float(value) for value in values] for number, *values in lines}
    right = 0
    for number, label in enumerate(labels):
        row = rows[number]
        right += int(row.index(max(row)) == label)
    return right / len(labels)


def timed(act: Callable[[], object], times: int = 1) -> float:
    """Seconds that it takes, on average over some times."""
    started = time.perf_counter()
    for _ in range(times):
        act()
    return (time.perf_counter() - started) / times


def command(folder: Path, runs: int, steps: int) -> None:
    """`mlab grade LOGS --every-step`, on the directories of real runs."""
    os.environ["MLAB_CACHE"] = str(folder / "cache")
    started = time.perf_counter()
    logs = make_runs(folder, runs, steps)
    made = time.perf_counter() - started
    submissions = f"{runs * DISTINCT} distinct tables of {ROWS:,} x 10"
    print(f"\nmlab grade --every-step: {runs} runs of {steps} steps, {submissions} (made in {made:.0f} s)")
    for title in ("cold", "again"):
        before = processor_seconds()
        taken = timed(
            lambda: subprocess.run(
                [sys.executable, "-m", "mlagentbench", "grade", logs, "--every-step", "--json"], check=True, stdout=subprocess.DEVNULL
            )
        )
        used = processor_seconds() - before
        print(f"{title:>8} {taken:>7.1f} s   processor {used:>6.1f} s, over {CORES} cores {used / CORES:>5.1f} s")


def processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def make_runs(folder: Path, runs: int, steps: int) -> Path:
    """Real runs of an agent that leaves a new table every few steps; none of them is graded yet at any step but the last."""
    task = folder / "pictures"
    (task / "starter").mkdir(parents=True)
    (task / "starter" / "train.py").write_text("# Writes submission.csv.\n")
    (folder / "agent.py").write_text(AGENT)
    for name, text in (("task.toml", TOML), ("prepare.py", PREPARE), ("grade.py", GRADE), ("problem.md", "Tell pictures apart.\n")):
        (task / name).write_text(text)
    logs = prepare_log_directory(folder / "logs")
    rng = np.random.default_rng(0)
    for _ in range(runs):
        written = folder / "tables"
        written.mkdir()
        for table in range(DISTINCT):
            write_table(written / f"{table}.csv", rng, ROWS, "id", [str(each) for each in range(10)])
        given = {
            "agent": f"{folder / 'agent.py'}:Submitter",
            "agent_options": {"tables": str(written), "every": steps // DISTINCT},
            "variant": "mini",
            "sandbox": "none",
            "score_steps": False,
            "baseline": "paper",
        }
        ready = asyncio.run(ready_run(make_spec(load_task(task), given), logs))
        result = asyncio.run(run_once(ready, Models.scripted(Script([]))))
        assert result.score is not None and result.steps == steps, result
        shutil.rmtree(written)
    shutil.rmtree(logs / "gradings")
    return logs


if __name__ == "__main__":
    main()
