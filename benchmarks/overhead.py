"""What the framework costs a step: milliseconds around the model and the scripts, over 50 and 400 steps, beside a bare loop, in one run.

The model is scripted and answers at once, and no script is run, so all the time between the first step and the last is the framework's: the
prompt, Inspect's bookkeeping, reading the reply, the action, the records, the snapshot. The bare loop does what cannot be left out (fill a
prompt, read the reply, do the action on the same files) and keeps nothing.

    python benchmarks/overhead.py [--quick]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from pathlib import Path

from mlagentbench.actions import ACTIONS
from mlagentbench.agents.base import render
from mlagentbench.agents.reply.response import parse_response
from mlagentbench.agents.research import ENTRIES
from mlagentbench.engine.evaluate import evaluate
from mlagentbench.records import Step
from mlagentbench.rundir.directory import RunDirectory
from mlagentbench.runner.preflight import make_spec, ready_run
from mlagentbench.runner.run_once import RunHooks
from mlagentbench.task.catalogue import find_task

TASK = "house-price"
"""Nothing is graded, since the run leaves no submission."""
THOUGHTS = "".join(
    f"{entry.name}: {'The last observation confirms what was expected, and the plan goes on. ' * 4}\n\n" for entry in ENTRIES
)
CYCLE = (
    ("List Files", {"dir_path": "."}),
    ("Inspect Script Lines", {"script_name": "train.py", "start_line_number": 1, "end_line_number": 60}),
    ("Write File", {"file_name": "notes.txt", "content": "The plan goes on.\n" * 20}),
    ("Append File", {"file_name": "notes.txt", "content": "It does.\n"}),
)


def reply(number: int) -> str:
    name, arguments = CYCLE[number % len(CYCLE)]
    return f"{THOUGHTS}Action: {name}\nAction Input: {json.dumps(arguments)}\n"


def framework(steps: int, folder: Path) -> list[Step]:
    """The steps of a run through the whole product."""
    script = folder / f"{steps}.jsonl"
    last = f"{THOUGHTS}Action: Final Answer\nAction Input: {json.dumps({'final_answer': 'done'})}\n"
    script.write_text("".join(json.dumps({"reply": text}) + "\n" for text in [*(reply(number) for number in range(steps - 1)), last]))
    found: list[RunDirectory] = []
    given = {
        "variant": "mini",
        "models": {"agent": f"scripted/{script}"},
        "limits": {"steps": steps},
        "score_steps": False,
        "baseline": "paper",
    }
    ready = asyncio.run(ready_run(make_spec(find_task(TASK), given), folder / f"logs-{steps}"))
    evaluate([ready], RunHooks(finished=lambda ready, _, result: found.append(RunDirectory(ready.log_directory / result.run))))
    return found[0].steps()


def bare(steps: int, folder: Path) -> float:
    """Milliseconds a step of a loop that only prompts, reads and acts."""
    workspace = folder / "bare"
    workspace.mkdir(exist_ok=True)
    task = find_task(TASK)
    (workspace / "train.py").write_bytes((task.starter / "train.py").read_bytes())
    entries = [entry.name for entry in ENTRIES]
    started = time.perf_counter()
    instructions = render(
        "research.md", task=task.problem, actions=list(ACTIONS.values()), entries=ENTRIES, adaptive=False, steps=steps, hours="5 hours"
    )
    history: list[str] = []
    for number in range(steps):
        prompt = instructions + "".join(history[-3:])
        response = parse_response(reply(number), entries, ACTIONS)
        arguments = response.arguments
        if response.action == "List Files":
            observation = "\n".join(path.name for path in workspace.iterdir())
        elif response.action == "Inspect Script Lines":
            observation = "\n".join((workspace / "train.py").read_text().splitlines()[:60])
        else:
            with (workspace / "notes.txt").open("w" if response.action == "Write File" else "a") as file:
                file.write(str(arguments["content"]))
            observation = "done"
        history.append(f"{prompt[-1:]}{reply(number)}\nObservation:\n{observation}\n")
    return 1000 * (time.perf_counter() - started) / steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="only 30 steps")
    counts = (30,) if parser.parse_args().quick else (50, 400)
    print(f"{'steps':>6} {'ms a step':>10} {'first 25':>9} {'last 25':>9} {'bare loop':>10} {'ratio':>6}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for steps in counts:
            taken = [1000 * step.seconds for step in framework(steps, folder)[1:]]
            mean, first, last = sum(taken) / len(taken), sum(taken[:25]) / 25, sum(taken[-25:]) / 25
            loop = bare(steps, folder)
            print(f"{steps:>6} {mean:>10.2f} {first:>9.2f} {last:>9.2f} {loop:>10.2f} {mean / loop:>6.1f}")


if __name__ == "__main__":
    main()
