"""What it costs a run that its agent is a program in a sandbox behind Inspect's bridge: to start, and for every call of its model.

The model is scripted and answers at once, and the agent is a few lines of Python whose every call asks for one command that does nothing.
`start` is the time from the run's begin to its second request, once for each run. `call` is the median time of the further steps: request,
reply, command, and a snapshot. `looks` is how often this process looks for requests: Inspect's own is 2 s, and this package's 0.2 s.
`processor` is the time of all processes of the run. The other rows are the sandbox alone.

    python benchmarks/bridge.py [--quick]
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import statistics
import tempfile
import time
from pathlib import Path

import mlagentbench
from mlagentbench import ScriptedModel
from mlagentbench.engine.agents import bridged
from mlagentbench.sandbox.base import SandboxSpec
from mlagentbench.sandbox.box import Box
from mlagentbench.sandbox.isolation import choose

AGENT = """
import json, os, subprocess, urllib.request
messages = [{"role": "user", "content": os.environ["MLAB_TASK"]}]
tools = [{"type": "function", "function": {"name": "shell", "description": "Run.", "parameters": {"type": "object", "properties": {}}}}]
while True:
    body = json.dumps({"model": "inspect", "messages": messages, "tools": tools}).encode()
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, {"Content-Type": "application/json"})
    message = json.load(urllib.request.urlopen(request))["choices"][0]["message"]
    messages.append({name: value for name, value in message.items() if value is not None})
    if not message.get("tool_calls"):
        break
    for call in message["tool_calls"]:
        subprocess.run(["true"])
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": "done"})
"""
CALL = json.dumps({"tool_calls": [{"name": "shell", "arguments": {}}]})
INTERVALS = (2.0, 0.2)
EXECUTED = 100
"""Commands that the sandbox alone executes."""


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description="Measure what the agent bridge costs a run.")
    parser.add_argument("--quick", action="store_true", help="one short run")
    quick = parser.parse_args().quick
    with tempfile.TemporaryDirectory() as folder:
        os.environ["MLAB_CACHE"] = f"{folder}/cache"
        asyncio.run(measure_box(Path(folder) / "box"))
        print(f"{'looks':>8}{'calls':>8}{'start':>9}{'call':>9}{'processor':>11}")
        for interval in INTERVALS[-1:] if quick else INTERVALS:
            measure_run(Path(folder), interval, calls=4 if quick else 30)


async def measure_box(folder: Path) -> None:
    """Print the times of a sandbox alone."""
    for name in ("workspace", "home"):
        (folder / name).mkdir(parents=True)
    times = [time.perf_counter()]
    box = await Box.open(choose("bubblewrap"), SandboxSpec(folder / "workspace", home=folder / "home"))
    times.append(time.perf_counter())
    for _ in range(EXECUTED):
        await box.execute(("true",))
    times.append(time.perf_counter())
    with box.frozen():
        times.append(time.perf_counter())
    box.close()
    times.append(time.perf_counter())
    started, executed, frozen, closed = (1000 * (after - before) for before, after in itertools.pairwise(times))
    print(
        f"sandbox: start {started:.0f} ms, a command {executed / EXECUTED:.1f} ms, freeze {frozen:.1f} ms, thaw and close {closed:.0f} ms"
    )


def measure_run(folder: Path, interval: float, calls: int) -> None:
    """Carry a run out, and print what a call took."""
    bridged.LOOK = interval
    (folder / "agent.py").write_text(AGENT)
    before = sum(os.times()[:4])
    model = ScriptedModel([CALL] * calls + ["It is done."])
    logs = mlagentbench.run(
        task="vectorization",
        variant="mini",
        agent=f"cmd:python {folder}/agent.py",
        models={"agent": model},
        baseline="none",
        score_steps=False,
        log_directory=folder / f"runs-{interval}",
    )
    first, *others = logs.runs[0].steps[:calls]
    processor = sum(os.times()[:4]) - before
    call = statistics.median(step.seconds for step in others)
    print(f"{interval:>6.1f} s{calls:>8}{first.seconds:>7.1f} s{call:>7.2f} s{processor:>9.1f} s")


if __name__ == "__main__":
    main()
