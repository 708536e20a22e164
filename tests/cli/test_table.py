"""The table of many runs: what it shows, and that it fits."""

from __future__ import annotations

import io
import re
import time
from pathlib import Path

from rich.cells import cell_len
from rich.console import Console

from mlagentbench.cli.output.run_table import RunTable
from mlagentbench.data.prepare import Prepared
from mlagentbench.records import Action, Outcome, Result, Score, Step, Usage
from mlagentbench.runner.preflight import ReadyRun, make_spec
from mlagentbench.sandbox.plain import PlainSandbox
from mlagentbench.task.catalogue import find_task

VECTORIZATION = find_task("vectorization")
PLAN = ReadyRun(make_spec(VECTORIZATION), Path("runs"), VECTORIZATION, PlainSandbox(), Prepared(Path("public"), Path("private")), None)


def shown(table: RunTable, width: int = 120, height: int = 24) -> list[str]:
    console = Console(file=io.StringIO(), width=width, height=height, force_terminal=True, legacy_windows=False)
    with console.capture() as capture:
        console.print(table, end="")
    return [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in capture.get().splitlines()]


def step(number: int, observation: str = "done", action: str = "Execute Script", tokens: int = 100) -> Step:
    return Step(
        number=number,
        action=Action(name=action, arguments={"script_name": "train.py"}),
        observation=observation,
        status="ok",
        started=0.0,
        seconds=1.0,
        usage=Usage(input_tokens=tokens, calls=1),
    )


def result(number: int, verdict: str = "success", ended: str = "final_answer") -> Result:
    return Result.model_validate(
        {
            "run": f"run-{number}",
            "outcome": Outcome.model_validate({"ended": ended, "verdict": verdict, "flags": ()}),
            "score": Score(value=0.5) if verdict == "success" else None,
            "success": verdict == "success",
            "improvement": 0.634 if verdict == "success" else None,
            "steps": 7,
            "seconds": 61.0,
            "usage": {"agent": Usage(input_tokens=1000, calls=1)},
        }
    )


def test_a_run_is_a_line_with_all_that_is_known_of_it() -> None:
    table = RunTable(8)
    row = table.start(PLAN, 3)
    row.on_step(step(12, "epoch 1\naccuracy 0.52\n", tokens=12345))
    row.on_status("Execute Script train.py")
    lines = shown(table)
    assert lines[0].split() == ["task", "run", "step", "tokens", "for", "now", "last"]
    for part in ("vectorization", " 3 ", "12/50", "12,345", "Execute Script train.py", "✓ accuracy 0.52"):
        assert part in lines[1]
    assert "1 running · 7 waiting · 0 over · 12,345 tokens" in lines[2]
    row.on_output("epoch 1\nepoch 2: loss 0.3\n")
    assert "epoch 2: loss 0.3" in shown(table)[1]


def test_a_hundred_runs_fit_and_those_are_shown_that_something_happened_to() -> None:
    table = RunTable(100)
    rows = [table.start(PLAN, number) for number in range(1, 101)]
    for number in (17, 3, 99):
        rows[number - 1].on_status("at this very moment")
    for height in (5, 10, 24, 50):
        lines = shown(table, height=height)
        assert len(lines) <= height - 1, "with a line for the cursor, so that nothing scrolls"
        assert f"100 running ({100 - (height - 3)} not shown)" in lines[-1]
    busy = [line for line in shown(table, height=8) if "at this very moment" in line]
    assert [int(line.split()[1]) for line in busy] == [3, 17, 99], "in their own order"


def test_runs_that_are_over_become_counts_and_the_last_of_them_fill_what_is_left() -> None:
    table = RunTable(100)
    for number in range(1, 101):
        table.start(PLAN, number)
    for number in range(1, 61):
        table.end(PLAN, number, result(number))
    for number in range(61, 91):
        table.end(PLAN, number, result(number, "no_submission"))
    for number in range(91, 96):
        table.end(PLAN, number, result(number, "ungraded", "infrastructure"))
    lines = shown(table, height=12)
    assert len(lines) == 11
    assert [int(line.split()[1]) for line in lines[1:-1]] == [96, 97, 98, 99, 100, 95, 94, 93, 92]
    assert "5 running · 95 over: 60 success, 30 no submission, 5 not the agent's · 95,000 tokens" in lines[-1]
    table = RunTable(2)
    table.end(PLAN, 1, result(1))
    assert "success: 500 ms (+63.4 %)" in shown(table)[1]
    assert "1 min 01 s" in shown(table)[1]


def test_no_line_is_wider_than_the_terminal_whatever_a_run_says() -> None:
    table = RunTable(2)
    row = table.start(PLAN, 1)
    row.on_status("\x1b[31mred\x1b[0m and\nmore " + "字" * 200)
    row.on_output("\x1b]0;title\x07" + "長" * 300 + "\n")
    row.on_step(step(1, "\x1b[2J" + "é" * 500))
    for width in (20, 40, 60, 89, 90, 120, 250):
        for line in shown(table, width=width):
            assert cell_len(line) <= width
            assert "\x1b" not in line and "\x07" not in line


def test_a_hundred_runs_are_drawn_in_a_few_milliseconds() -> None:
    table = RunTable(100)
    for number in range(1, 101):
        table.start(PLAN, number).on_step(step(1, "accuracy 0.52"))
    shown(table, height=60)
    started = time.process_time()
    for _ in range(20):
        shown(table, height=60)
    assert (time.process_time() - started) / 20 < 0.02
