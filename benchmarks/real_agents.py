"""Have each agent that people really use do two tasks to a success with a scripted model, through the real command, and print a table.

    python benchmarks/real_agents.py [--agents claude-code,codex] [--install]

The model's replies write the solution of the task's proof. So the table says what an agent costs beside its model: the seconds of the whole
command, the most memory of the agent's sandbox (PSS, sampled), and what was recorded.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import psutil

from mlagentbench.rundir.directory import RunDirectory, find_runs

TASKS = {"vectorization": "mlagentbench.tasks.vectorization.proof", "house-price": "mlagentbench.tasks.house_price.proof"}
SHELLS = {"claude-code": ("Bash", "command"), "codex": ("exec_command", "cmd"), "mini-swe-agent": ("bash", "command")}
AGENTS = (*SHELLS, "aide")
DONE = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
"""What mini-swe-agent runs at its end."""
EVERY = 0.2
"""Seconds between two samples of the memory."""


def replies(agent: str, task: str, *commands: str) -> list[str]:
    """The replies of a model that has an agent write the solution of a task, and run it."""
    files: Mapping[str, str] = import_module(TASKS[task]).solution()
    if agent == "aide":
        return _scripts(files)
    write = "\n".join(f"cat > {name} <<'END_OF_FILE'\n{text}\nEND_OF_FILE" for name, text in files.items())
    return shell_replies(agent, "ls -la", *commands, write, "python train.py")


def shell_replies(agent: str, *commands: str) -> list[str]:
    """The replies of a model that has an agent run commands, and end."""
    tool, argument = SHELLS[agent]
    patience = {"yield_time_ms": 30_000} if agent == "codex" else {}  # else a command that takes longer goes on in the background
    last = [DONE] if agent == "mini-swe-agent" else []
    calls = [
        json.dumps({"text": f"I do step {number}.", "tool_calls": [{"name": tool, "arguments": {argument: command, **patience}}]})
        for number, command in enumerate((*commands, *last), start=1)
    ]
    return calls if last else [*calls, "The task is done."]


def _scripts(files: Mapping[str, str]) -> list[str]:
    """AIDE's model writes whole scripts, and reviews what each printed."""
    writes = "".join(f"open('/workspace/{name}', 'w').write({text!r})\n" for name, text in files.items())
    run = "subprocess.run([sys.executable, 'train.py'], cwd='/workspace', check=True)"
    code = f"import subprocess, sys\n{writes}{run}\nprint('metric', 0.5)\n"
    review = {"is_bug": False, "summary": "It works.", "metric": 0.5, "lower_is_better": True}
    script = f"I write the solution and run it.\n\n```python\n{code}```\n"
    return [script, json.dumps({"tool_calls": [{"name": "submit_review", "arguments": review}]})]


class Measured(NamedTuple):
    """A command that was carried out."""

    status: int
    line: dict[str, object]
    errors: str
    seconds: float
    peak_mb: float


def carry_out(words: Sequence[str], variables: Mapping[str, str] = {}) -> Measured:
    """Carry out `mlab` with some words, and measure its time and the memory of the sandbox of its agent."""
    started = time.monotonic()
    process = subprocess.Popen(
        [str(Path(sys.executable).with_name("mlab")), *words],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **variables},
    )  # fmt: skip
    peak = [0.0]
    over = threading.Event()

    def sample() -> None:
        while not over.wait(EVERY):
            peak[0] = max(peak[0], sum(_boxes(process.pid)))

    sampling = threading.Thread(target=sample)
    sampling.start()
    printed, errors = process.communicate()
    over.set()
    sampling.join()
    lines = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    return Measured(process.returncode, lines[-1] if lines else {}, errors, time.monotonic() - started, peak[0])


def _boxes(pid: int) -> Iterator[float]:
    """Yield the megabytes (2^20) of each process in a sandbox below a process: its share of what it has in memory."""
    try:
        below = [child for child in psutil.Process(pid).children(recursive=True) if child.name() == "bwrap"]
        inside = {each for box in below for each in (box, *box.children(recursive=True))}
    except psutil.Error:
        return
    for each in inside:
        try:
            yield each.memory_full_info().pss / 2**20
        except (psutil.Error, OSError):
            continue


def run_words(agent: str, task: str, script: Path, logs: Path, *options: str) -> list[str]:
    """The words of the command that runs an agent on a task."""
    aide = ("-A", "drafts=1", "--steps", "1") if agent == "aide" else ()
    words = ["run", task, "--variant", "mini", "--agent", agent, "--model", f"scripted/{script}", "--log-dir", str(logs), "--json"]
    return [*words, *aide, *options]


def row(agent: str, task: str, folder: Path) -> tuple[list[str], RunDirectory | None]:
    """A row of the table, and the run."""
    script = folder / "replies.jsonl"
    script.write_text("".join(json.dumps({"reply": reply}) + "\n" for reply in replies(agent, task)))
    done = carry_out(run_words(agent, task, script, folder / "runs"))
    if not done.line:
        return [agent, task, done.errors.strip().splitlines()[-1] if done.errors.strip() else f"status {done.status}"], None
    run = find_runs(folder / "runs")[-1]
    steps = run.steps()
    calls = [call for step in steps for call in run.calls(step.number)]
    snapshots = sum(run.manifest(number).exists() for number in range(len(steps) + 1))
    kept = sum(path.stat().st_size for path in run.path.rglob("*") if path.is_file() and "workspace" not in path.parts) / 2**20
    facts = [
        f"{done.line['ended']}, {done.line['verdict']}",
        f"{done.seconds:.0f}",
        f"{done.peak_mb:.0f}",
        str(len(steps)),
        str(len(calls)),
    ]
    return [agent, task, *facts, str(snapshots), f"{kept:.1f}"], run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--agents", default=",".join(AGENTS))
    parser.add_argument("--install", action="store_true", help="install the agents first")
    parser.add_argument("--keep", type=Path, help="a folder for the runs; by default they are removed")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        print("| agent | task | came out | seconds | MB of the sandbox | steps | model calls | snapshots | MB recorded |")
        print("|---|---|---|---|---|---|---|---|---|")
        for agent in arguments.agents.split(","):
            if arguments.install:
                subprocess.run([str(Path(sys.executable).with_name("mlab")), "agents", "install", agent], check=True, stdout=sys.stderr)
            for task in TASKS:
                folder = (arguments.keep or Path(temporary)) / f"{agent}-{task}"
                folder.mkdir(parents=True)
                print(f"| {' | '.join(row(agent, task, folder)[0])} |", flush=True)


if __name__ == "__main__":
    main()
