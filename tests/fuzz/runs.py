"""Log directories in which runs are damaged: every command must name each, count the others, and never fail or wait.

    python -m tests.fuzz.runs                      500 damaged directories beside healthy ones; some minutes
    python -m tests.fuzz.runs --cases 100 --seed 7

A case is named by its number, from which its damage is drawn: `--only 17` does it again and shows what the commands say. Most
damages are `certain`: no reader can miss them. A flipped bit of a text, or a lost last step, is none of these, and need not be named.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import mlagentbench
from mlagentbench.cli.main import run as mlab
from tests.example_experiment import CONTESTANTS, TASKS, write_experiment
from tests.example_runs import vectorization_steps, write_run
from tests.fuzz.damage_bytes import flipped
from tests.tiny_task import tiny_task

FREE = ("hardware", "agent_options", "options", "arguments", "memory", "details", "entries", "versions", "spec")
"""Keys below which values may be of many types."""
REQUIRED: Mapping[str, Sequence[str]] = {
    "run.json": ("run", "spec", "description", "metric", "unit", "direction", "isolation", "started", "versions", "hardware"),
    "result.json": ("run", "outcome", "steps", "seconds"),
    "0001.json": ("number", "action", "observation", "started", "seconds"),
}
NUMBERS: Mapping[str, Sequence[Sequence[Any]]] = {
    "run.json": [("started",)],
    "result.json": [
        *(("score", "value"), ("improvement",), ("baseline", "value"), ("baseline", "values", 0), ("step_scores", 0, "value")),
        *(("step_scores", 0, "improvement"), ("steps",), ("seconds",), ("usage", "agent", "input_tokens"), ("usage", "agent", "cost")),
    ],
    "0001.json": [("number",), ("started",), ("seconds",), ("script_seconds",), ("usage", "output_tokens"), ("malformed",)],
}
EXTREMES = (float("nan"), float("inf"), float("-inf"), 1e300, -1e308, 1.7e308, 10**25, -(10**400), "1e999")
EACH = 50
"""Damaged runs in one log directory."""
WITHIN = 600
"""Seconds within which each command of a case must be done."""

Change = Callable[[Random, Path], bool]
"""Damages a file, and returns whether no reader can miss it."""


class Case(NamedTuple):
    """One damage."""

    run: Path
    kind: str
    file: str
    certain: bool


def damage(run: Path, chance: Random) -> Case:
    """Damage one thing in a run's directory."""
    kind = chance.choice(sorted(DAMAGES))
    suffixes, change = DAMAGES[kind]
    files = [path for path in sorted(run.rglob("*")) if path.is_file() and "workspace" not in path.parts]
    file = chance.choice([path for path in files if path.name.endswith(suffixes) or (path.parent.name == "snapshots" and "" in suffixes)])
    return Case(run, kind, str(file.relative_to(run)), change(chance, file))


def _is_torn_calls(file: Path) -> bool:
    """Return whether a killed process may have left a file of calls such as this, in which its torn last line is dropped."""
    return file.name.endswith((".jsonl", ".txt")) or file.name == "lock"


def _written(content: Callable[[Random, bytes], bytes], *, torn: bool = True) -> Change:
    def change(chance: Random, file: Path) -> bool:
        file.write_bytes(content(chance, file.read_bytes()))
        return not (torn and _is_torn_calls(file)) and not file.name.endswith(".txt")

    return change


def _replaced(make: Callable[[Path], object]) -> Change:
    def change(chance: Random, file: Path) -> bool:
        file.unlink()
        make(file)
        return file.name != "lock"

    return change


def _folder_replaced(make: Callable[[Path], object]) -> Change:
    def change(chance: Random, file: Path) -> bool:
        folder = file.parent if file.parent.name in ("steps", "snapshots") else file.parent / "workspace"
        shutil.rmtree(folder)
        make(folder)
        return True

    return change


def _json(edit: Callable[[Random, Any, str], bool]) -> Change:
    def change(chance: Random, file: Path) -> bool:
        record = json.loads(file.read_text())
        certain = edit(chance, record, file.name)
        file.write_text(json.dumps(record))
        return certain

    return change


def _other_type(chance: Random, record: Any, name: str) -> bool:
    holder, free = record, False
    while True:
        key = chance.choice(list(holder)) if isinstance(holder, dict) else chance.randrange(len(holder))
        if not isinstance(holder[key], dict | list) or not holder[key] or chance.random() < 0.3:
            break
        holder, free = holder[key], free or key in FREE
    value = chance.choice(([[{}]], {"a": [1]}, None, True, -1, "text", [], {}, 1e300))
    holder[key] = value
    return not free and value == [[{}]]


def _extreme(chance: Random, record: Any, name: str) -> bool:
    *path, key = chance.choice(NUMBERS[name])
    for part in path:
        record = record[part]
    record[key] = chance.choice(EXTREMES)
    return True


def _without(chance: Random, record: Any, name: str) -> bool:
    del record[chance.choice(REQUIRED[name])]
    return True


def _with_another(chance: Random, record: Any, name: str) -> bool:
    record[chance.choice(("extra", "", "schema", "é"))] = chance.choice((1, None, {}, "x"))
    return True


def _of_another_version(chance: Random, record: Any, name: str) -> bool:
    record["schema_version"] = chance.choice((0, 3, 99, -1, "2", None, [2], 1.5))
    return True


def _contradicted(chance: Random, record: Any, name: str) -> bool:
    record["improvement"] += chance.choice((0.5, -0.5, 1e-3, 99.0))
    return True


def _no_model(chance: Random, record: Any, name: str) -> bool:
    record["spec"]["models"] = {}
    return True


def _twice(chance: Random, content: bytes) -> bytes:
    """Write a key twice, of which readers take the last."""
    return content.replace(b"{", b'{"seconds": [], "run": 7, "number": "x", ', 1)


def _enormous(chance: Random, file: Path) -> bool:
    os.truncate(file, 1 << chance.choice((29, 33, 40)))
    return not file.name.endswith(".txt") and file.name != "lock"


def _unreadable(chance: Random, file: Path) -> bool:
    file.chmod(0)
    return os.geteuid() != 0 and file.name != "lock" and not file.name.endswith(".txt")


def _another_step(chance: Random, file: Path) -> bool:
    name = chance.choice(("0099", "9999999", "9" * 30, "9" * 200))
    shutil.copy(file.parent / "0001.json", file.parent / f"{name}.json")
    return True


def _strange_names(chance: Random, file: Path) -> bool:
    for name in ("junk", ".0001.json.swp", "0001.json~", "1.json", "١٢٣٤.json", "0001.json.d", os.fsdecode(b"\xff\xfe")):
        (file.parent / name).write_text("{")
    (file.parent / "9.json").mkdir()
    return False


def _deep(chance: Random, file: Path) -> bool:
    os.makedirs(file.parent.parent / "workspace" / "/".join(["d"] * 500))
    return False


def _gone(chance: Random, file: Path) -> bool:
    file.unlink()
    return file.name in ("run.json", "0001.json")


def _run_replaced(make: Callable[[Path], object]) -> Change:
    def change(chance: Random, file: Path) -> bool:
        shutil.rmtree(file.parent)
        make(file.parent)
        return True

    return change


def _copied(chance: Random, file: Path) -> bool:
    shutil.copytree(file.parent, file.parent.with_name(f"copy-of-{file.parent.name}"))
    return True


def _nested(chance: Random, content: bytes) -> bytes:
    return chance.choice((b"[" * 100_000, b'{"a":' * 100_000, b"[" * 200 + b"]" * 200)) + b"\n"


ANY, RECORDS, TEXTS = (".json", ".jsonl", ".txt", "lock", ""), (".json",), (".json", ".jsonl")
NAMED = tuple(REQUIRED)
DAMAGES: Mapping[str, tuple[tuple[str, ...], Change]] = {
    "cut": ((".json", ".jsonl", ""), _written(lambda chance, old: old[: chance.randrange(max(1, len(old) - 2))])),
    "emptied": (ANY, _written(lambda chance, old: b"")),
    "binary": (ANY, _written(lambda chance, old: chance.randbytes(200))),
    "flipped bits": (ANY, lambda chance, file: _written(flipped)(chance, file) and False),
    "not UTF-8": (TEXTS, _written(lambda chance, old: old.replace(b": ", b': "\xff\xfe\xed\xa0\x80', 1), torn=False)),
    "NUL bytes": (TEXTS, _written(lambda chance, old: old.replace(b'"', b"\0", 1), torn=False)),
    "nested": (ANY, _written(_nested)),
    "key twice": (RECORDS, lambda chance, file: _written(_twice)(chance, file) and False),
    "enormous": (ANY, _enormous),
    "folder": (ANY, _replaced(Path.mkdir)),
    "pipe": (ANY, _replaced(os.mkfifo)),
    "link to nowhere": (ANY, _replaced(lambda path: path.symlink_to("nowhere"))),
    "link to itself": (ANY, _replaced(lambda path: path.symlink_to(path.name))),
    "link to a device": (RECORDS, _replaced(lambda path: path.symlink_to("/dev/zero"))),
    "no permission": (ANY, _unreadable),
    "gone": (ANY, _gone),
    "other type": (NAMED, _json(_other_type)),
    "extreme number": (NAMED, _json(_extreme)),
    "key gone": (NAMED, _json(_without)),
    "another key": (NAMED, _json(_with_another)),
    "another version": (("run.json", "result.json"), _json(_of_another_version)),
    "contradiction": (("result.json",), _json(_contradicted)),
    "no model": (("run.json",), _json(_no_model)),
    "another step": (("0001.json",), _another_step),
    "strange names": (("0001.json",), _strange_names),
    "deep folders": (("0001.json",), _deep),
    "no folder": ((".json", ""), _folder_replaced(lambda path: None)),
    "folder is a file": ((".json", ""), _folder_replaced(Path.touch)),
    "folder is a pipe": ((".json", ""), _folder_replaced(os.mkfifo)),
    "folder is a loop": ((".json", ""), _folder_replaced(lambda path: path.symlink_to(path.name))),
    "run is a loop": (("run.json",), _run_replaced(lambda path: path.symlink_to(path.name))),
    "run is lost": (("run.json",), _run_replaced(lambda path: path.symlink_to("nowhere"))),
    "copy": (("run.json",), _copied),
}
OF_A_FILE = ("emptied", "binary", "nested", "folder", "pipe", "link to nowhere", "link to itself")
"""Damages after which nothing of the file is left: every command names it."""


class Log(NamedTuple):
    """A log directory with damaged runs beside healthy ones."""

    path: Path
    healthy: int
    cases: list[Case]


def write_log(folder: Path, cases: Sequence[int], seed: int) -> Log:
    """Write a log directory with a damaged run for each number of a case, and with healthy runs of other tasks."""
    logs = folder / "logs"
    healthy = write_experiment(logs, tasks=TASKS[:2], contestants=CONTESTANTS[:2], runs=2, steps=3)
    template = folder / "template"
    task = tiny_task(folder / "number", file="submission.csv", direction="minimize")
    how = {"task": "number", "task_folder": str(task), "limits": {"steps": 3, "time": 60}, "verdict": "no_improvement", "cost": 0.01}
    whole = write_run(template, "whole", steps=vectorization_steps()[:3], ended="limit_steps", **how)
    whole.append_output(1, "printed\n")
    (whole.path / "lock").touch()
    done = []
    for number in cases:
        run = logs / f"case-{number:04d}"
        shutil.copytree(whole.path, run)
        for file in ("run.json", "result.json"):
            (run / file).write_text((run / file).read_text().replace('"run": "whole"', f'"run": "{run.name}"'))
        done.append(damage(run, Random(f"{seed}:{number}")))
    shutil.copytree(template / "objects", logs / "objects", dirs_exist_ok=True)
    return Log(logs, healthy, done)


class Told(NamedTuple):
    """A command's exit status and all that it says; `told` is the traceback's error if it did not end well."""

    command: str
    status: int
    told: str
    failed: bool


def ask(*command: str | Path) -> Told:
    """Run a command of `mlab` in this process, within `WITHIN` seconds."""
    said, words = io.StringIO(), [str(word) for word in command]
    signal.signal(signal.SIGALRM, _late)
    signal.alarm(WITHIN)
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            status = mlab(words)
    except Exception as error:
        return Told(" ".join(words[:1]), -1, f"{type(error).__name__}: {error}", True)
    finally:
        signal.alarm(0)
    return Told(" ".join(words[:1]), status, said.getvalue(), status not in (0, 2, 3) or "Traceback" in said.getvalue())


def _late(*_: object) -> None:
    raise TimeoutError(f"not done within {WITHIN} seconds")


def faults_together(log: Log) -> Iterator[str]:
    """Yield a line for whatever a report of the whole log directory, or the frames of all runs, leave to be desired."""
    page, tables = log.path / "page.html", log.path.parent / "tables"
    printed = ask("report", log.path, "-o", page, "--tables", tables, "--figures", log.path.parent / "figures")
    as_json = ask("report", log.path, "--no-page", "--json")
    for told in (printed, as_json, ask("audit", log.path)):
        if told.failed:
            yield f"mlab {told.command}: {told.told[-1000:]}"
    if printed.failed or as_json.failed:
        return
    if printed.status != 0 or not page.exists():
        yield f"mlab report: there is no page: {printed.told[-1000:]}"
        return
    found = json.loads(as_json.told)
    logs = mlagentbench.load(log.path)
    runs = logs.frame()
    if not runs.height == len(logs.runs) == len(found["runs"]) or logs.steps_frame().is_empty():
        yield "the frames lack runs"
    logs.columns()
    logs.comparisons()
    names = [row["run"] for row in found["runs"] if not row["run"].startswith("case-") and row["counted"]]
    if len(names) != log.healthy:
        yield f"{len(names)} healthy runs are counted of {log.healthy}"
    places = {
        "terminal": printed.told,
        "page": page.read_text(),
        "--json": "\n".join(found["unreadable"]),
        "load": "\n".join((*logs.unreadable, *(line for run in logs.runs for line in run.problems))),
    }
    for case in log.cases:
        for place, text in places.items() if case.certain else ():
            if not re.search(rf"/{case.run.name}[/ ,]", text):
                yield f"{case.run.name} ({case.kind}, {case.file}) is not named: {place}"


def faults_of(case: Case) -> Iterator[str]:
    """Yield a line for each command that a damaged run makes fail, or that does not name it."""
    shown = (("show", case.run), ("show", case.run, "--json", "--calls", "--diff", "--files"), ("audit", case.run))
    for command in (*shown, ("grade", case.run, "--every-step"), ("resume", case.run, "--json")):
        told = ask(*command)
        if told.failed:
            yield f"{case.run.name} ({case.kind}, {case.file}): mlab {told.command}: {told.told[-600:]}"
        if case.certain and case.kind in OF_A_FILE and Path(case.file).name not in told.told and told.command != "audit":
            yield f"{case.run.name} ({case.kind}, {case.file}) is not named: mlab {told.command}: {told.told[-600:]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=500, help="how many directories to damage (default: 500)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="this case alone")
    chosen = parser.parse_args()
    os.environ["COLUMNS"] = "1000"
    started, faults, kinds, certain = time.monotonic(), 0, Counter[str](), 0
    cases = range(chosen.cases) if chosen.only is None else [chosen.only]
    for first in range(0, len(cases), EACH):
        with tempfile.TemporaryDirectory() as folder:
            log = write_log(Path(folder), cases[first : first + EACH], chosen.seed)
            if chosen.only is not None:
                print(log.cases[0], ask("report", log.path, "--no-page").told, ask("show", log.cases[0].run).told, sep="\n")
            for fault in (*faults_together(log), *(line for case in log.cases for line in faults_of(case))):
                print(fault, flush=True)
                faults += 1
            kinds.update(case.kind for case in log.cases)
            certain += sum(case.certain for case in log.cases)
            print(
                f"{kinds.total()} damaged directories of {len(kinds)} kinds, {certain} of which no reader can miss: {faults} faults; "
                f"{time.monotonic() - started:.0f} s",
                flush=True,
            )
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
