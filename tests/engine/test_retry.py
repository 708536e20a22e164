"""`inspect eval-retry` on our logs: each sample goes on with the run it had begun, and nothing that is done is done again."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from mlagentbench.rundir.directory import RunDirectory, find_runs
from tests import commands
from tests.runner.lives import make_task, write_file
from tests.support import HANGING, reply, wait_until

pytestmark = pytest.mark.slow

LIST = reply("List Files", '{"dir_path": "."}')
END = reply("Final Answer", '{"final_answer": "done"}')
SLEEP = reply("Execute Script", '{"script_name": "sleeper.py"}')
SETTINGS = {"INSPECT_DISPLAY": "none", "COLUMNS": "200"}


def script(path: Path, *replies: str) -> str:
    path.write_text(yaml.safe_dump([{"reply": text} for text in replies]))
    return f"scripted/{path}"


def inspect(*arguments: str | Path, folder: Path, logs: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **SETTINGS, **({} if logs is None else {"INSPECT_LOG_DIR": str(logs)})}
    command = [*commands.INSPECT, *map(str, arguments)]
    finished = commands.run(command, capture_output=True, text=True, timeout=HANGING, cwd=folder, env=environment)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished


def samples(log: Path) -> list[dict[str, Any]]:
    """The samples of a log, by epoch."""
    dumped = inspect("log", "dump", log, folder=log.parent)
    found: list[dict[str, Any]] = json.loads(dumped.stdout)["samples"] or []
    return sorted(found, key=lambda sample: int(sample["epoch"]))


def the_log(folder: Path) -> Path:
    (log,) = folder.glob("*.eval")
    return log


def begin(task: Path, model: str, logs: Path) -> list[str]:
    """A command that begins a run whose scripts see this machine's files."""
    where = ("--task-path", str(task), "--sandbox", "none", "--log-dir", str(logs))
    return [*commands.MLAB, "run", "guess", *where, "--model", model, "--baseline", "paper"]


def end_in_its_script(command: list[str], logs: Path, number: signal.Signals, **how: Any) -> int:
    """Start a run and send it a signal when it has got to its script, which does not wait the next time. Returns how it ended."""
    process = commands.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **how)

    def asleep() -> bool:
        assert process.poll() is None
        return any("asleep" in path.read_text() for path in logs.glob("*/steps/0003.output.txt"))

    wait_until(asleep)
    process.send_signal(number)
    status = process.wait(HANGING)
    (logs.parent / "go").touch()
    return status


def sleeper(folder: Path) -> str:
    """A script that sleeps until a folder has a file `go`; without a sandbox it sees it."""
    wait = f"while not os.path.exists({str(folder / 'go')!r}): time.sleep(0.02)"
    return write_file("sleeper.py", f"import os, time\nprint('asleep', flush=True)\n{wait}\n")


def actions(run: RunDirectory) -> list[str]:
    return [step.action.name for step in run.steps()]


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """A task of no catalogue, so that only the log says where it is."""
    return make_task(tmp_path / "guess")


def test_a_run_of_mlab_that_was_killed_goes_on(tmp_path: Path, task: Path) -> None:
    logs = tmp_path / "runs"
    model = script(tmp_path / "s.yaml", LIST, sleeper(tmp_path), SLEEP, write_file("submission.txt", "12"), END)
    end_in_its_script(begin(task, model, logs), logs, signal.SIGKILL)
    (run,) = find_runs(logs)
    before = run.steps()
    assert len(before) == 2
    inspect("eval-retry", the_log(logs), "--log-dir", tmp_path / "retried", folder=tmp_path)
    (run,) = find_runs(logs)
    assert run.steps()[:2] == before, "no step is done again"
    assert actions(run) == ["List Files", "Write File", "Execute Script", "Write File", "Final Answer"]
    (sample,) = samples(the_log(tmp_path / "retried"))
    assert sample["scores"]["mlagentbench"]["value"]["success"] == 1.0
    assert sample["metadata"]["run"] == run.name
    tools = [message["function"] for message in sample["messages"] if message["role"] == "tool"]
    assert len(tools) == 5, "the log of the retry tells the whole run"


def test_only_the_runs_that_failed_go_on(tmp_path: Path, task: Path) -> None:
    """Of three runs, one loses its last reply's model; the others are left as they are."""
    logs = tmp_path / "runs"
    path = tmp_path / "s.yaml"
    model = script(path, write_file("submission.txt", "12"), LIST)
    start = [*commands.MLAB, "run", "guess", "--task-path", task, "--model", model, "--log-dir", logs, "--runs", "3", "--baseline", "paper"]
    assert commands.run([str(word) for word in start], capture_output=True, timeout=HANGING).returncode == 3
    assert [sample["error"] is not None for sample in samples(the_log(logs))] == [True] * 3
    finished, *failed = find_runs(logs)
    script(path, write_file("submission.txt", "12"), LIST, END)
    command = [*commands.MLAB, "resume", str(finished.path)]
    assert commands.run(command, capture_output=True, timeout=HANGING).returncode == 0
    result, stamp = finished.result, (finished.path / "result.json").stat().st_mtime_ns
    log = next(log for log in sorted(logs.glob("*.eval")))
    inspect("eval-retry", log, "--log-dir", tmp_path / "retried", folder=tmp_path)
    assert len(find_runs(logs)) == 3, "no run is begun anew"
    assert (finished.result, (finished.path / "result.json").stat().st_mtime_ns) == (result, stamp), "what is done is not done again"
    for run in (finished, *failed):
        assert actions(run) == ["Write File", "List Files", "Final Answer"]
        assert run.result is not None and run.result.usage["agent"].calls == 3
    again = the_log(tmp_path / "retried")
    assert [sample["scores"]["mlagentbench"]["value"]["success"] for sample in samples(again)] == [1.0] * 3
    assert {sample["metadata"]["run"] for sample in samples(again)} == {run.name for run in find_runs(logs)}
    inspect("eval-retry", again, "--log-dir", tmp_path / "once-more", folder=tmp_path)
    assert len(find_runs(logs)) == 3
    assert len(samples(the_log(tmp_path / "once-more"))) == 3, "a log in which nothing failed can be retried too"


def test_a_run_of_mlab_that_was_interrupted_goes_on(tmp_path: Path, task: Path) -> None:
    logs = tmp_path / "runs"
    model = script(tmp_path / "s.yaml", LIST, sleeper(tmp_path), SLEEP, END)
    assert end_in_its_script(begin(task, model, logs), logs, signal.SIGINT) == 130
    (run,) = find_runs(logs)
    assert run.result is not None and run.result.outcome.ended == "cancelled"
    inspect("eval-retry", the_log(logs), "--log-dir", tmp_path / "retried", folder=tmp_path)
    assert actions(run) == ["List Files", "Write File", "Execute Script", "Final Answer"]
    assert run.result is not None and run.result.outcome.ended == "final_answer"


def test_a_run_of_inspect_that_was_killed_goes_on(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    model = script(tmp_path / "s.yaml", LIST, sleeper(tmp_path), SLEEP, END)
    command = [*commands.INSPECT, "eval", "mlagentbench/ladder-2", "--model", model, "-T", "variant=mini", "-T", "sandbox=none"]
    environment = {**os.environ, **SETTINGS, "INSPECT_LOG_DIR": str(logs)}
    end_in_its_script(command, logs, signal.SIGKILL, cwd=tmp_path, env=environment)
    inspect("eval-retry", the_log(logs), "--log-dir", tmp_path / "retried", folder=tmp_path, logs=logs)
    (run,) = find_runs(logs)
    assert actions(run) == ["List Files", "Write File", "Execute Script", "Final Answer"]
    (sample,) = samples(the_log(tmp_path / "retried"))
    assert sample["metadata"]["run"] == run.name


def test_a_sample_that_inspect_tries_again_at_once_goes_on(tmp_path: Path) -> None:
    """`--retry-on-error`: the second attempt has the replies that are left, which are none, and neither repeats a step."""
    logs = tmp_path / "logs"
    model = script(tmp_path / "s.yaml", LIST, LIST)
    task = ("mlagentbench/ladder-2", "--model", model, "-T", "variant=mini", "--retry-on-error", "2", "--no-fail-on-error")
    inspect("eval", *task, folder=tmp_path, logs=logs)
    (run,) = find_runs(logs)
    assert actions(run) == ["List Files", "List Files"]
    (sample,) = samples(the_log(logs))
    assert len(sample["error_retries"]) == 2


def test_a_retry_of_a_resumed_run_goes_on_with_that_run(tmp_path: Path, task: Path) -> None:
    logs = tmp_path / "runs"
    path = tmp_path / "s.yaml"
    mlab = commands.MLAB
    start = [*mlab, "run", "guess", "--task-path", str(task), "--model", script(path, LIST), "--log-dir", str(logs), "--baseline", "paper"]
    assert commands.run(start, capture_output=True, timeout=HANGING).returncode == 3
    (run,) = find_runs(logs)
    first = the_log(logs)
    script(path, LIST, LIST)
    assert commands.run([*mlab, "resume", str(run.path)], capture_output=True, timeout=HANGING).returncode == 3
    (second,) = set(logs.glob("*.eval")) - {first}
    script(path, LIST, LIST, END)
    inspect("eval-retry", second, "--log-dir", tmp_path / "retried", folder=tmp_path)
    assert actions(run) == ["List Files", "List Files", "Final Answer"]
    assert len(find_runs(logs)) == 1


def test_a_retry_has_the_agents_options_and_the_experience_of_the_run(tmp_path: Path, task: Path) -> None:
    """One run was killed and goes on with its copy; the folder that it was made of is gone by then."""
    logs, known = tmp_path / "runs", tmp_path / "known"
    known.mkdir()
    (known / "notes.md").write_text("A low rate works.")
    read = reply("Read File", '{"file_name": "experience/notes.md"}')
    model = script(tmp_path / "s.yaml", read, sleeper(tmp_path), SLEEP, read, END)
    command = [*begin(task, model, logs), "--experience", str(known), "--context-steps", "1"]
    end_in_its_script(command, logs, signal.SIGKILL)
    (run,) = find_runs(logs)
    shutil.rmtree(known)
    inspect("eval-retry", the_log(logs), "--log-dir", tmp_path / "retried", folder=tmp_path)
    assert actions(run) == ["Read File", "Write File", "Execute Script", "Read File", "Final Answer"]
    assert [step.observation for step in run.steps() if step.action.name == "Read File"] == ["A low rate works."] * 2
    assert run.calls(5)[0].prompt.count("Observation:") == 1
    assert run.result is not None and "experience" in run.result.outcome.flags


def test_inspects_own_command_takes_them_too(tmp_path: Path) -> None:
    logs, known = tmp_path / "logs", tmp_path / "known"
    known.mkdir()
    (known / "notes.md").write_text("A low rate works.")
    model = script(tmp_path / "s.yaml", reply("Read File", '{"file_name": "experience/notes.md"}'), END)
    task = ("mlagentbench/ladder-2", "--model", model, "-T", "variant=mini", "-T", "experience=known")
    inspect("eval", *task, "-T", 'agent_options={"entries": "thought"}', folder=tmp_path, logs=logs)
    (run,) = find_runs(logs)
    assert run.steps()[0].observation == "A low rate works."
    assert list(run.steps()[0].entries) == ["Thought"]
