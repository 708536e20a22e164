"""A run that is ended at any moment and gone on with: its task, its script, its process, and what must be equal in the end.

    python -m tests.runner.lives LOGS TASK SCRIPT TOLD [POINT [LAST]]

carries the run of a script out in one process without Inspect: a new one, or the one that LOGS holds. To the file TOLD it writes 0 when it
begins, and the number of each step that its agent was shown. At the POINT-th change of names or flush to disk it kills itself; with 0 it
writes their number beside TOLD. With LAST it does so at every third point up to that one, in a new process and in LOGS-POINT each time.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, get_args

from mlagentbench import ScriptedModel, ScriptedReply, Step
from mlagentbench.environment import SilentListener
from mlagentbench.model import Models, Script
from mlagentbench.records import Role
from mlagentbench.rundir.directory import RunDirectory
from mlagentbench.runner.resume import is_over
from mlagentbench.task.catalogue import load_task
from mlagentbench.workspace.paths import Workspace
from mlagentbench.workspace.snapshots.snapshots import Manifest, SnapshotStore
from tests.plans import make_plan, resumed
from tests.support import reply
from tests.tiny_task import tiny_task

TRAIN = """
import os, subprocess
subprocess.Popen(["sleep", "60"])
os.makedirs("kept", exist_ok=True)
for number in range(8):
    with open(f"kept/{number}", "w") as file:
        file.write(str(number) * 500)
os.chmod("kept/3", 0o600)
if not os.path.lexists("link"):
    os.symlink("kept/3", "link")
os.remove("kept/7")
with open("runs.txt", "a") as file:
    file.write("ran\\n")
print("trained")
"""
CHANGED = TRAIN.replace("500", "700")


EVERY = 3
"""Of how many points one is tried."""
CHANGES = ("link", "replace", "rename", "unlink", "remove", "mkdir", "fsync", "fdatasync", "symlink")


def write_file(name: str, content: str) -> str:
    return reply("Write File", json.dumps({"file_name": name, "content": content}))


EXECUTE = reply("Execute Script", '{"script_name": "train.py"}')
REPLIES = (
    write_file("notes.txt", "to do"),
    EXECUTE,
    reply("Append Summary to Research Log", '{"content": "It trained once."}'),
    write_file("train.py", CHANGED),
    EXECUTE,
    reply("Retrieval from Research Log", '{"current_plan": "train"}'),
    reply("Undo Edit Script", '{"script_name": "train.py"}'),
    write_file("submission.txt", "12.5"),
    EXECUTE,
    reply("Final Answer", '{"final_answer": "It is done."}'),
)
"""The agent's, a step each; `fast` has one too."""


def make_task(folder: Path, *, seconds: float = 0.0) -> Path:
    """A small task, whose script takes some time."""
    return tiny_task(folder, train=f"import time\ntime.sleep({seconds})\n{TRAIN}")


def make_script(path: Path, replies: Sequence[str] = REPLIES) -> Path:
    """A script's file."""
    items: list[Mapping[str, str]] = [{"reply": text} for text in replies]
    items.append({"reply": "It trained once.", "role": "fast"})
    path.write_text("".join(json.dumps(item) + "\n" for item in items))
    return path


def models(script: Script, replies: Mapping[Role, int]) -> Models:
    """A script's models, after so many replies."""
    return Models(**{role: ScriptedModel(script, role, replies.get(role, 0)) for role in get_args(Role)})


def scripted(replies: Sequence[str]) -> Script:
    """Replies of the agent, and one of `fast`."""
    return Script([*(ScriptedReply(reply=text) for text in replies), ScriptedReply(reply="It trained once.", role="fast")])


class Told(SilentListener):
    """Writes down each step that the agent is shown."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._tell(0)

    def on_step(self, step: Step) -> None:
        self._tell(step.number)

    def _tell(self, number: int) -> None:
        with self._path.open("a") as file:
            file.write(f"{number}\n")


def content_of(directory: RunDirectory) -> dict[str, Any]:
    """What two runs of one script have in common, whatever ended their processes in between."""
    steps = directory.steps()
    result = directory.result
    return {
        "steps": [(step.action, _untimed(step.observation), step.status, step.entries, step.memory) for step in steps],
        "details": [{key: value for key, value in step.details.items() if key != "output_bytes"} for step in steps],
        "questions": [
            [(call.role, call.purpose, _untimed(call.prompt), call.reply) for call in directory.calls(step.number)] for step in steps
        ],
        "snapshots": [Manifest.load(directory.manifest(number)).digest for number in range(len(steps) + 1)],
        "result": result and (result.outcome, result.score, result.final_answer, result.steps, result.step_scores),
    }


def workspace_digest(directory: RunDirectory) -> str:
    """The workspace as it lies there now."""
    return SnapshotStore(directory.objects).take(Workspace(directory.workspace, {})).digest


def _untimed(text: str) -> str:
    return re.sub(r"ran for [0-9.]+ seconds", "ran for a while", text)


def before_each_change(do: Callable[..., None], patch: Callable[[Any, str, Any], None] = setattr) -> None:
    """Have something done before each change of names and each flush; it is given the function's name and arguments."""

    def wrapped(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            do(name, *args, **kwargs)
            return function(*args, **kwargs)

        return call

    for name in CHANGES:
        patch(os, name, wrapped(name, getattr(os, name)))


def _die_at(point: int) -> Callable[[], int]:
    """Kill this process at the point-th change of names or flush; 0 for none. Gives the count."""
    count = 0

    def counted(*_: Any, **__: Any) -> None:
        nonlocal count
        count += 1
        if count == point:
            os.kill(os.getpid(), signal.SIGKILL)

    before_each_change(counted)
    return lambda: count


def main(logs: Path, task: Path, script: Path, told: Path, point: int | None = None) -> None:
    """Begin the run of a log directory, or go on with it."""
    count = _die_at(point) if point is not None else lambda: 0
    runs = [RunDirectory(path.parent) for path in logs.glob("*/run.json")]
    begun = next((run for run in runs if run.info.spec.model_names["agent"] == f"scripted/{script}"), None)
    plan = make_plan(load_task(task), logs, agent="research", sandbox="none")
    if begun is not None and is_over(begun, plan.spec.limits):
        return
    with resumed(begun.path) if begun else nullcontext(plan) as plan:
        replies = plan.continues.replies() if plan.continues else {}
        asyncio.run(plan.conduct(models(Script.load(script), replies), listener=Told(told)))
    if point == 0:
        told.with_suffix(".points").write_text(str(count()))


def at_each(logs: Path, task: Path, script: Path, told: Path, points: range) -> None:
    """The same at each of some points, each in a process of its own that has no more to import."""
    for point in points:
        if os.fork() == 0:
            main(logs.with_name(f"{logs.name}-{point}"), task, script, told, point)
            os._exit(0)
        _, status = os.wait()
        if not os.WIFSIGNALED(status):
            sys.exit(f"the process of point {point} was not killed")


if __name__ == "__main__":
    paths = [Path(argument) for argument in sys.argv[1:5]]
    numbers = [int(argument) for argument in sys.argv[5:]]
    if len(numbers) == 2:
        at_each(*paths, range(numbers[0], numbers[1] + 1, EVERY))
    else:
        main(*paths, *numbers)
