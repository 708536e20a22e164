"""Damaged runs: whatever became of the files of one, each command names it in a line and goes on with the rest."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mlagentbench.cli.main import run as mlab
from mlagentbench.rundir.directory import RunDirectory
from tests.example_runs import vectorization_steps, write_run
from tests.tiny_task import tiny_task

CASES = 16
"""Damages that are tried; the seed makes them the same every time."""


def _other_json(change: Callable[[random.Random, object], object]) -> Callable[[Path, random.Random], None]:
    """A damage to one value of a JSON file, or of the first line of a file of lines."""

    def damage(path: Path, chance: random.Random) -> None:
        try:
            first, *rest = path.read_text().split("\n") if path.suffix == ".jsonl" else [path.read_text()]
            record = json.loads(first)
        except ValueError:
            path.write_bytes(b"\x00" * 10)  # a snapshot
            return
        holder = record
        while True:
            key = chance.choice(list(holder))
            if not isinstance(holder[key], dict) or not holder[key] or chance.random() < 0.3:
                break
            holder = holder[key]
        holder[key] = change(chance, holder[key])
        path.write_text("\n".join([json.dumps(record), *rest]))

    return damage


def _link(path: Path, target: str) -> None:
    path.unlink()
    path.symlink_to(target)


def _folder(path: Path, chance: random.Random) -> None:
    path.unlink()
    path.mkdir()


def _pipe(path: Path, chance: random.Random) -> None:
    path.unlink()
    os.mkfifo(path)


DAMAGES: dict[str, Callable[[Path, random.Random], object]] = {
    "cut": lambda path, chance: path.write_bytes(path.read_bytes()[: chance.randrange(1, path.stat().st_size)]),
    "emptied": lambda path, chance: path.write_bytes(b""),
    "folder": _folder,
    "pipe": _pipe,
    "lost link": lambda path, chance: _link(path, "nowhere"),
    "loop": lambda path, chance: _link(path, path.name),
    "binary": lambda path, chance: path.write_bytes(chance.randbytes(200)),
    "nested": lambda path, chance: path.write_text("[" * 100_000 + "\n"),
    "other type": _other_json(lambda chance, old: chance.choice([None, [], {}, "text", 7, -1, True, {"a": [1]}])),
    "odd number": _other_json(lambda chance, old: chance.choice([float("nan"), float("inf"), 1e300, -1e300, 10**400, -(2**70)])),
}
CERTAIN = ("emptied", "folder", "pipe", "lost link", "loop", "binary", "nested")
"""Damages after which no file that is read is whole."""


def outcome(capfd: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str]:
    """A command's exit status and all that it says. What no door catches is a traceback to a user, and fails the test."""
    status = mlab([str(argument) for argument in arguments])
    said = capfd.readouterr()
    return status, " ".join((said.out + said.err).split())


@pytest.fixture
def whole(tmp_path: Path) -> RunDirectory:
    """A run of few steps, as a template."""
    task = tiny_task(tmp_path / "number", file="submission.csv", direction="minimize")
    limits = {"steps": 3, "time": 60}
    steps = vectorization_steps()[:3]
    run = write_run(tmp_path / "template", "a-run", steps=steps, ended="limit_steps", task="number", task_folder=str(task), limits=limits)
    run.append_output(3, "printed")
    (run.path / "lock").touch()
    return run


def test_no_damage_is_a_traceback_and_each_is_named(
    whole: RunDirectory, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    chance = random.Random(20240722)
    files = sorted(path.relative_to(whole.path) for path in whole.path.rglob("*") if path.is_file() and "workspace" not in path.parts)
    for case in range(CASES):
        logs = tmp_path / f"logs-{case}"
        shutil.copytree(whole.path.parent, logs)
        file, kind = chance.choice(files), chance.choice(sorted(DAMAGES))
        DAMAGES[kind](logs / whole.name / file, chance)
        run, told = logs / whole.name, {}
        commands = (
            ("show", run, "--calls", "--diff", "--files"),
            ("show", run, "--json", "--calls"),
            ("report", logs, "--no-page"),
            ("grade", logs, "--every-step"),
            ("resume", run, "--json"),
        )
        for command in commands:
            status, told[command[0]] = outcome(capfd, *command)
            assert status in (0, 2, 3), (case, file, kind, command, told)
        # An empty file of calls, or a torn one, is what a killed process leaves; a script may have printed anything; the lock says nothing.
        silent = file.name == "lock" or (file.name.endswith((".txt", ".jsonl")) and kind in ("emptied", "binary", "nested"))
        if kind in CERTAIN and not silent:
            for name, words in told.items():
                assert file.name in words and "damaged" in words, (case, str(file), kind, name, words)
        shutil.rmtree(logs)


@pytest.mark.parametrize("command", ["show", "report"])
@pytest.mark.parametrize(
    "content, what",
    [
        ('{"run": ', "is damaged: Invalid JSON"),
        ('{"schema_version": 99, "news": 1}', "cannot be read: its schema version is 99, and this mlagentbench knows 1"),
    ],
)
def test_a_damaged_result_is_not_a_run_in_progress(
    whole: RunDirectory, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str, content: str, what: str
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    (whole.path / "result.json").write_text(content)
    _, told = outcome(capfd, command, whole.path, *(["--no-page"] if command == "report" else []))
    assert f"result.json {what}" in told
    assert "cannot be read" in told and "in progress" not in told and "No result yet" not in told


def test_a_run_that_has_lost_its_description_is_not_left_out_in_silence(whole: RunDirectory, capfd: pytest.CaptureFixture[str]) -> None:
    write_run(whole.path.parent, "other")
    (whole.path / "run.json").unlink()
    _, told = outcome(capfd, "report", whole.path.parent, "--no-page")
    assert "a-run holds no run: it has no run.json" in told and "1 run of 1 task" in told
