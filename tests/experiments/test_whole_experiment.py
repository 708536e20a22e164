"""`mlab experiment`: a matrix of runs from a file, whose process is killed on the way, on this machine."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import psutil
import pytest

from mlagentbench.rundir.directory import RunDirectory, find_runs
from tests import commands
from tests.cli.test_cli import here
from tests.support import HANGING, reply, wait_until
from tests.tiny_task import tiny_task

FILE = """
tasks = ["count", "guess"]
task_paths = ["tasks"]
runs = 3
variant = "mini"
sandbox = "none"
baseline = "paper"
score_steps = false
agents = ["research", "react"]
[[models]]
label = "good"
model = "scripted/good.jsonl"
[[models]]
label = "bad"
model = "scripted/bad.jsonl"
"""
GATE = """
import time
from pathlib import Path

most = Path({most})
while most.exists() and len(list(most.parent.glob("killed/*/result.json"))) >= int(most.read_text()):
    time.sleep(0.1)
"""
"""Keeps a script waiting while so many runs are done as a file says, if it is there. Graders would not do: what is known is not graded."""
TIMES = ("seconds", "started", "path")
"""What the names of columns contain that hold times, or where a run is."""


WORKER = ["-m", "mlagentbench.experiments.worker"]
"""What the command of a process says that carries runs out."""


def write_file(content: str) -> str:
    return reply("Write File", json.dumps({"file_name": "submission.txt", "content": content}))


class Place:
    """An experiment's file, its tasks and models, and its commands."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started: list[subprocess.Popen[str]] = []
        for task in ("count", "guess"):
            tiny_task(folder / "tasks" / task, train=GATE.replace("{most}", repr(str(folder / "most"))))
        self.model("good", write_file("1"), write_file("12"))
        self.model("bad", write_file("12"), write_file("3"))
        self.file(FILE)

    def model(self, name: str, *replies: str) -> None:
        texts = [*replies, reply("Final Answer", '{"final_answer": "Done."}')]
        (self.folder / f"{name}.jsonl").write_text("".join(json.dumps({"reply": text}) + "\n" for text in texts))

    def file(self, text: str) -> None:
        (self.folder / "plan.toml").write_text(text)

    def start(self, command: str, logs: str, *arguments: str) -> subprocess.Popen[str]:
        words = ["experiment", command, str(self.folder / "plan.toml"), "--log-dir", str(self.folder / logs), *arguments]
        process = commands.Popen([*commands.MLAB, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.started.append(process)
        return process

    def mlab(self, command: str, logs: str, *arguments: str, status: int = 0) -> str:
        """Carry out runs in a process of its own, and return what was printed."""
        with self.start(command, logs, *arguments) as process:
            output, _ = process.communicate(timeout=HANGING)
        assert process.returncode == status, output
        return output

    def here(self, command: str, logs: str, *arguments: str, status: int = 0) -> str:
        """Do what carries out no runs in this process, and return what was printed."""
        finished = here("experiment", command, self.folder / "plan.toml", "--log-dir", self.folder / logs, *arguments)
        assert finished.returncode == status, finished.stdout + finished.stderr
        return finished.stdout + finished.stderr

    def status(self, logs: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.here("status", logs, "--json"))
        return found

    def runs(self, logs: str) -> list[RunDirectory]:
        return find_runs(self.folder / logs) if list((self.folder / logs).glob("*/run.json")) else []

    def done(self, logs: str) -> int:
        return len(list((self.folder / logs).glob("*/result.json")))

    def report(self, logs: str, *without: str) -> dict[str, bytes]:
        """The tables of a report, each as a file's bytes, in the order of runs' names and without columns of times and others."""
        tables = self.folder / f"{logs} tables"
        assert here("report", self.folder / logs, "--no-page", "--tables", tables).returncode == 0
        found = {}
        for path in sorted(tables.iterdir()):
            frame = pl.read_csv(path, infer_schema=False)
            frame = frame.with_columns(pl.col(pl.String).str.replace(r"ran for [\d.]+ seconds", "ran"))
            keys = [name for name in ("run", "step") if name in frame.columns and path.stem in ("runs", "steps")]
            others = [name for name in frame.columns if any(part in name for part in (*TIMES, *without))]
            found[path.name] = frame.sort(keys).drop(others).write_csv().encode() if keys else frame.drop(others).write_csv().encode()
        return found


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.setenv("MLAB_CACHE", str(tmp_path / "cache"))
    found = Place(tmp_path)
    yield found
    for process in found.started:
        with process:
            process.kill()  # where a test failed


def workers(driver: int) -> list[psutil.Process]:
    """The processes that carry out an experiment's runs, without children of theirs that have not become another program yet."""
    found: dict[int, psutil.Process] = {}
    for process in psutil.Process(driver).children(recursive=True):
        with suppress(psutil.Error):  # it has ended
            if process.cmdline()[1:3] == WORKER and process.ppid() not in found:
                found[process.pid] = process
    return list(found.values())


@pytest.mark.slow
def test_a_killed_worker_and_a_killed_driver_change_nothing_in_the_report(place: Place) -> None:
    script = reply("Execute Script", '{"script_name": "train.py"}')
    place.model("good", write_file("1"), script, write_file("12"))
    place.model("bad", write_file("12"), script, write_file("3"))
    assert "24 runs to do" in place.here("run", "whole", "--dry-run") and not (place.folder / "whole").exists()
    place.mlab("run", "whole", "--parallel", "3")

    most = place.folder / "most"
    most.write_text("12")  # so that there is a worker to kill however late this process notices
    driver = place.start("run", "killed", "--parallel", "3")
    wait_until(lambda: place.done("killed") >= 5)
    (worker,) = workers(driver.pid)
    worker.send_signal(signal.SIGKILL)
    wait_until(lambda: worker.pid not in {one.pid for one in workers(driver.pid)} and place.done("killed") >= 9)
    seen = place.status("killed")
    assert seen["driven"] and 5 <= seen["done"] < 24 and seen["tokens"] > 0
    assert "another process drives this experiment" in place.here("run", "killed", status=2)
    (worker,) = workers(driver.pid)
    driver.kill()
    driver.communicate()
    wait_until(lambda: not worker.is_running())
    most.unlink()
    ended = place.status("killed")
    assert not ended["driven"] and 9 <= ended["done"] < 24
    done = [run["run"] for cell in ended["cells"] for run in cell["runs"] if run["stage"] == "done"]
    before = {name: os.stat(place.folder / "killed" / name / "result.json").st_mtime_ns for name in done}

    output = place.mlab("run", "killed", "--parallel", "3")

    assert f"{24 - len(done)} runs to do, {len(done)} of 24 are done" in output and "24 of 24 runs done" in output
    after = {run.name: os.stat(run.path / "result.json").st_mtime_ns for run in place.runs("killed")}
    assert {name: after[name] for name in before} == before, "what is done stays"
    assert all((run.path / "audit.json").exists() for run in place.runs("killed")), "also of a run killed between its result and its audit"
    assert sorted(after) == sorted(run.name for run in place.runs("whole")), "the same runs by the same names"
    assert all(step.number == number for run in place.runs("killed") for number, step in enumerate(run.steps(), start=1))
    # What a killed process had asked for the step in progress is asked again, and both count.
    whole, killed = place.report("whole", "tokens"), place.report("killed", "tokens")
    assert whole.keys() == killed.keys() and len(whole) > 5
    assert [name for name in whole if whole[name] != killed[name]] == []
    assert "0 runs to do, 24 of 24 are done" in place.here("run", "killed"), "nothing is done again"


TRANSFER = """
task_paths = ["tasks"]
variant = "mini"
sandbox = "none"
baseline = "none"
score_steps = false
audit = false
[[models]]
label = "good"
model = "scripted/good.jsonl"
[[groups]]
name = "informed"
tasks = ["count"]
experience_from = "source"
[[groups]]
name = "source"
tasks = ["guess"]
runs = 2
"""


@pytest.mark.slow
def test_runs_wait_for_the_experience_of_others_and_stop_at_the_budget(place: Place) -> None:
    listing = reply("List Files", '{"dir_path": "experience"}')
    place.model("good", write_file("12"), listing)
    price = '[prices."scripted/good.jsonl"]\ninput = 1e6\noutput = 1e6\ncache_read = 1e6\ncache_write = 1e6\nsource = "made up"\n'
    place.file(f"{TRANSFER}{price}[budget]\ncost = 0.01\n")

    output = place.mlab("run", "logs", "--parallel", "1", status=3)

    assert re.search(r"Nothing more was started: [\d.]+ of 0.01 dollars are used", output)
    assert "1 of 3 runs done" in output, "the run in progress went on to its end"
    (first,) = place.runs("logs")
    assert first.info.spec.task == "guess" and first.result is not None and first.result.outcome.ended == "final_answer"

    place.file(TRANSFER)
    output = place.mlab("run", "logs")

    assert "2 runs to do, 1 of 3 are done; expected" in output and "tokens unknown" in output
    assert "3 of 3 runs done" in output
    runs = {run.name: run for run in place.runs("logs")}
    (informed,) = [run for run in runs.values() if run.info.spec.task == "count"]
    given = informed.info.experience
    assert given is not None and Path(given.folder).parent == place.folder / "logs" / "experiments" / "plan" / "given"
    sources = sorted(name for name in runs if name != informed.name)
    assert sorted(path.name for path in informed.experience.iterdir()) == sources
    for name in sources:
        assert name in informed.steps()[1].observation
        held = {
            path.relative_to(informed.experience / name).as_posix() for path in (informed.experience / name).rglob("*") if path.is_file()
        }
        steps = {f"steps/{number:04d}.json" for number in (1, 2, 3)}
        assert held == {"run.json", "task.md", "workspace/train.py", "workspace/submission.txt", *steps}, "nothing of what the grader found"

    # The expectation is that of the runs that are done; a cell that has another number of runs keeps those that it has.
    place.file(TRANSFER.replace("runs = 2", "runs = 3").replace('"count"', '"count", "more"'))
    tiny_task(place.folder / "tasks" / "more")
    output = place.here("run", "logs", "--dry-run")
    assert "The file has changed: 2 runs as before, 3 new." in output, "the source has another number of runs, and so other experience"
    assert "1 run in the log directory no longer match" in output and informed.name in output


@pytest.mark.slow
def test_an_experiment_is_cancelled_and_retried_from_another_terminal(place: Place) -> None:
    place.model("good", write_file("1"), reply("Execute Script", '{"script_name": "train.py"}'))
    tiny_task(
        place.folder / "tasks" / "guess",
        train=f"import os, time\nwhile not os.path.exists({str(place.folder / 'go')!r}): time.sleep(0.05)\n",
    )
    place.file(
        FILE.replace('["count", "guess"]', '["guess"]').replace("runs = 3", "runs = 2").replace('agents = ["research", "react"]', "")
    )
    driver = place.start("run", "logs", "--parallel", "3")
    # The good ones wait, the bad ones are over.
    wait_until(lambda: place.done("logs") == 2 and sum(len(run.steps()) for run in place.runs("logs")) == 2 + 2 * 3)

    assert "was told to end it" in place.here("cancel", "logs")

    output, _ = driver.communicate(timeout=HANGING)
    assert driver.returncode == 130 and "Nothing more was started: it was cancelled" in output
    status = place.status("logs")
    assert (status["done"], status["failed"], status["driven"]) == (2, 2, False)
    assert [cell["outcomes"] for cell in status["cells"]] == [{"cancelled": 2}, {"no_improvement": 2}]
    assert "No run has ended as infrastructure" in place.here("retry", "logs")

    (place.folder / "go").touch()
    assert "2 of 4 are done" in (output := place.mlab("retry", "logs", "--outcome", "cancelled")) and "4 of 4 runs done" in output
    assert all(step.number == number for run in place.runs("logs") for number, step in enumerate(run.steps(), start=1))


@pytest.mark.slow
def test_each_run_that_wants_a_gpu_has_one_to_itself_and_a_process(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,7,9")
    script = "import os, time\nbegan = time.time()\ntime.sleep(1)\nprint('gpu', os.environ['CUDA_VISIBLE_DEVICES'], began, time.time())\n"
    tiny_task(place.folder / "tasks" / "learn", train=script, keys={"gpu": "true"})
    place.model("good", reply("Execute Script", '{"script_name": "train.py"}'))
    common = FILE.partition("[[models]]")[0].replace('agents = ["research", "react"]', 'models = ["scripted/good.jsonl"]')
    place.file(common.replace('["count", "guess"]', '["learn"]'))

    output = place.mlab("run", "logs", "--gpus", "2")

    assert "3 of 3 runs done" in output
    used = []
    for run in place.runs("logs"):
        match = re.search(r"gpu (\S+) (\S+) (\S+)", run.steps()[0].observation)
        assert match is not None and run.info.spec.gpus == (match[1],)
        used.append((match[1], float(match[2]), float(match[3])))
    assert {gpu for gpu, _, _ in used} == {"4", "7"}, "two of those that this process may use"
    for gpu in ("4", "7"):
        times = sorted((began, ended) for name, began, ended in used if name == gpu)
        assert all(earlier[1] <= later[0] for earlier, later in pairwise(times)), "no two runs share a GPU"
    assert len(list((place.folder / "logs" / "experiments" / "plan" / "output").iterdir())) == 3, "a process each"
