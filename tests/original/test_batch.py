"""Whatever one log holds, the others are imported, it is named, and nothing is read or written elsewhere."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mlagentbench.cli.main import run as mlab
from mlagentbench.errors import UsageError
from mlagentbench.original import write
from mlagentbench.original.write import import_logs
from mlagentbench.results.frames import runs_frame, steps_frame
from mlagentbench.results.load import load
from tests.original.logs import OriginalLog, example


def log_at(folder: Path, number: int = 0, **options: str) -> OriginalLog:
    """Write a run, each number another one."""
    log = example(folder, **options)
    log.steps[0]["timestamp"] += number / 100
    log.end(files={"train.py": f"seed = {number}\n"})
    return log


@pytest.fixture(autouse=True)
def cleared(tmp_path: Path) -> Iterator[None]:
    """Remove what is nested deeper than pytest can remove."""
    yield
    subprocess.run(["rm", "-rf", tmp_path / "logs"], check=True)


def nest(folder: Path, name: str, depth: int) -> None:
    """Make folders within folders."""
    held = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=held)
        inner = os.open(name, os.O_RDONLY, dir_fd=held)
        os.close(held)
        held = inner
    os.close(held)


def become_folder(path: Path) -> None:
    """Put a folder where a file was."""
    path.unlink()
    path.mkdir()


ODD: dict[str, Callable[[OriginalLog], None]] = {
    "the trace is a folder": lambda log: become_folder(log.env / "trace.json"),
    "the output is a folder": lambda log: become_folder(log.root / "log"),
    "the workspace is deeper than Python recurses": lambda log: nest(log.env / "traces" / "step_final_files", "d", 1100),
    "the run holds paths that no call takes": lambda log: nest(log.root, "d" * 250, 20),
}


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_log_is_imported_beside_the_others(tmp_path: Path, odd: str) -> None:
    log_at(tmp_path / "logs" / "good", 1)
    ODD[odd](log_at(tmp_path / "logs" / "odd", 2))
    found = import_logs(tmp_path / "logs", tmp_path / "runs")
    assert [(each.state, len(each.run.steps) if each.run else 0) for each in found] == [("new", 3), ("new", 3)]
    shutil.rmtree(tmp_path / "runs")  # what a person would do with it afterwards


def test_what_cannot_be_imported_is_named_and_the_exit_status_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs = tmp_path / "logs"
    log_at(logs / "good", 1)
    log_at(logs / "a task", 2, task="x" * 5000)
    log_at(logs / "an agent", 3, agent="A" * 400)
    (logs / "empty" / "env_log").mkdir(parents=True)
    (logs / "deep").mkdir()
    nest(logs / "deep", "d" * 250, 20)

    assert mlab(["import", str(logs), "--log-dir", str(tmp_path / "runs")]) == 3
    shown = capsys.readouterr()
    assert "5 logs: 4 failed, 1 new" in shown.out
    assert "Traceback" not in shown.out + shown.err
    failed = dict(line.split("  not imported: ") for line in shown.out.splitlines() if "not imported" in line)
    assert list(failed)[:3] == ["a task", "an agent", "empty"]
    assert "a run's name would have 5,043 characters" in failed["a task"]
    assert "File name too long" in list(failed.values())[3]
    assert [run.info.spec.agent for run in load(tmp_path / "runs")] == ["research"]

    assert mlab(["import", str(logs), "--log-dir", str(tmp_path / "runs"), "--json"]) == 3
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert sorted(each["state"] for each in told) == ["failed"] * 4 + ["there already"]


def test_an_import_that_fails_keeps_what_was_imported_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = log_at(tmp_path / "log")
    import_logs(log.root, tmp_path / "runs")
    before = {path: path.read_bytes() for path in (tmp_path / "runs").rglob("*") if path.is_file() and path.name != "lock"}
    log.turn("List Files", {"dir_path": "."}, "train.py")
    log.end()
    with monkeypatch.context() as patch:
        patch.setattr(write, "write_eval_log", lambda run: 1 / 0)
        (found,) = import_logs(log.root, tmp_path / "runs")

    assert (found.state, found.reason) == ("failed", "it cannot be read as a run: ZeroDivisionError: division by zero")
    after = {path: path.read_bytes() for path in (tmp_path / "runs").rglob("*") if path.is_file() and path.name != "lock"}
    assert {path for path in after if path not in before and "objects" not in path.parts} == set()
    assert before.items() <= after.items()


def test_what_a_killed_import_had_put_aside_is_put_back(tmp_path: Path) -> None:
    (found,) = import_logs(log_at(tmp_path / "log").root, tmp_path / "runs")
    assert found.run is not None
    aside = tmp_path / "runs" / ".replaced-1"
    aside.mkdir()
    found.run.directory.path.rename(aside / found.run.name)
    (found.run.directory.path / "steps").mkdir(parents=True)  # the new one, half written
    shutil.copy(aside / found.run.name / "run.json", found.run.directory.path)

    import_logs(log_at(tmp_path / "another log", 1).root, tmp_path / "runs")
    assert not aside.exists()
    assert [len(run.steps) for run in load(tmp_path / "runs")] == [3, 3]


def test_two_imports_into_one_log_directory_do_not_meet(tmp_path: Path) -> None:
    log = log_at(tmp_path / "log").root

    def import_too(*_: object) -> None:
        with pytest.raises(UsageError, match="another process imports into"):
            import_logs(log, tmp_path / "runs")

    (found,) = import_logs(log, tmp_path / "runs", on_imported=import_too)
    assert found.state == "new"
    assert import_logs(log, tmp_path / "runs")[0].state == "there already"


def test_logs_with_names_that_no_text_can_hold_are_imported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [b"bytes \xff\xfe", b"two\nlines", b"\x1b[31mred", "half \u2028".encode()]
    for number, name in enumerate(names):
        log_at(tmp_path / "logs" / os.fsdecode(name), number)
    for arguments in ([], ["--json"]):
        assert mlab(["import", str(tmp_path / "logs"), "--log-dir", str(tmp_path / "runs"), *arguments]) == 0
    assert "\x1b[31m" not in capsys.readouterr().out
    assert len(load(tmp_path / "runs")) == 4


JSON_BOMBS = (
    "[" * 100_000,
    '{"steps": ' * 500 + "1" + "}" * 500,
    '{"steps": [{"action": {"name": "a", "args": ' + "9" * 5000 + "}}]}",
    "1e999",
)
TEXTS = (
    "",
    "\0" * 50,
    "\ud800 \udfff",
    '{"steps": [{"action": {"name": "\\ud800", "args": {"\\udc00": -1e999}}, "timestamp": 1e400}]}',
    "NaN",
)


def damage(path: Path, random_: random.Random) -> None:
    """Make one file of a log something else."""
    kind = random_.choice(("cut", "bytes", "text", "bomb", "folder", "link", "loop", "pipe", "numbers", "gone"))
    data = path.read_bytes()
    path.unlink()
    match kind:
        case "cut":
            path.write_bytes(data[: random_.randrange(len(data) + 1)])
        case "bytes":
            at = random_.randrange(len(data) + 1)
            path.write_bytes(data[:at] + random_.randbytes(8) + data[at + 8 :])
        case "text":
            path.write_text(random_.choice(TEXTS), encoding="utf-8", errors="surrogatepass")
        case "bomb":
            path.write_text(random_.choice(JSON_BOMBS))
        case "folder":
            (path / "within\n\udcff").mkdir(parents=True)
        case "link":
            path.symlink_to(random_.choice(("/etc/passwd", "/", "/dev/zero", "nowhere")))
        case "loop":
            path.symlink_to(path.name)
        case "pipe":
            os.mkfifo(path)
        case "numbers":
            path.write_bytes(b"".join(bytes([c]) if not 48 <= c < 58 or random_.random() < 0.9 else b"9" * 400 for c in data))
        case "gone":
            pass


def test_damaged_logs_are_imported_or_named(tmp_path: Path) -> None:
    logs, random_ = tmp_path / "logs", random.Random(7)
    for number in range(40):
        log = log_at(logs / str(number), number, agent=random_.choice(("ResearchAgent", "AutoGPTAgent", "LangChainAgent")))
        files = sorted(path for path in log.root.rglob("*") if path.is_file())
        for path in random_.sample(files, random_.choice((1, 1, 2, 5, len(files)))):
            damage(path, random_)
    log_at(logs / "whole", 40)
    kept = {path: path.lstat().st_mtime_ns for path in logs.rglob("*")}

    found = import_logs(logs, tmp_path / "runs")
    assert [each.state for each in found if each.logs.name == "whole"] == ["new"]
    assert {each.state for each in found} <= {"new", "failed"}
    assert all(each.run or each.reason for each in found)
    assert len(steps_frame(load(tmp_path / "runs"))) > 0
    assert len(runs_frame(load(tmp_path / "runs"))) == sum(each.run is not None for each in found)
    assert {path: path.lstat().st_mtime_ns for path in logs.rglob("*")} == kept
    assert sorted(path.name for path in tmp_path.iterdir()) == ["logs", "runs"]
    texts = [path for path in (tmp_path / "runs").rglob("*") if path.is_file() and path.suffix in (".json", ".jsonl")]
    assert not any(b"root:" in path.read_bytes() for path in texts)
