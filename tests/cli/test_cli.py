"""The command line, as a user meets it: real processes, their output and their exit status."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from unittest import mock

import click
import pytest
import yaml

from mlagentbench.cli import main
from mlagentbench.cli.tasks.group import tasks
from mlagentbench.rundir.directory import RunDirectory, find_runs
from tests import commands
from tests.runner.lives import make_task
from tests.support import reply

REPOSITORY = Path(__file__).parents[2]
END = reply("Final Answer", '{"final_answer": "done"}')
LIST = reply("List Files", '{"dir_path": "."}')


QUICK = ("agents", "cache", "doctor", "report", "show", "tasks", "verify", "--help")
"""Commands that carry out no runs."""


def mlab(
    *arguments: str | Path, environment: Mapping[str, str] | None = None, timeout: float = 600, folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command: in this process if it carries out no run, else in one of its own."""
    command = [str(argument) for argument in arguments]
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    kept |= {"COLUMNS": "120", **(environment or {})}
    if command[0] not in QUICK or command[:2] == ["tasks", "check"]:
        return commands.run([*commands.MLAB, *command], capture_output=True, text=True, timeout=timeout, env=kept, cwd=folder)
    with mock.patch.dict(os.environ, kept, clear=True), contextlib.chdir(folder or "."):
        return here(*command)


def here(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command in this process."""
    command = [str(argument) for argument in arguments]
    with contextlib.redirect_stdout(io.StringIO()) as output, contextlib.redirect_stderr(io.StringIO()) as errors:
        status = main.run(command)
    return subprocess.CompletedProcess(command, status, output.getvalue(), errors.getvalue())


def run(folder: Path, logs: Path | None = None) -> tuple[str | Path, ...]:
    """A command that runs a task which takes no time: its starter is a submission already."""
    task = make_task(folder / "tasks" / "guess")
    (task / "starter" / "submission.txt").write_text("10")
    return (
        "run",
        "guess",
        "--task-path",
        folder / "tasks",
        "--variant",
        "mini",
        "--baseline",
        "paper",
        "--log-dir",
        logs or folder / "runs",
    )


def complaint(finished: subprocess.CompletedProcess[str]) -> str:
    """The one line on standard error."""
    assert finished.stdout == ""
    assert finished.stderr.startswith("mlab: ")
    assert finished.stderr.count("\n") == 1, finished.stderr
    return finished.stderr


def script(path: Path, *replies: str | Mapping[str, object]) -> str:
    path.write_text(yaml.safe_dump([item if isinstance(item, Mapping) else {"reply": item} for item in replies]))
    return f"scripted/{path}"


def test_the_help_lists_every_command_as_it_describes_itself_and_waits_for_no_engine() -> None:
    shown = mlab("--help").stdout
    for group in (main.mlab, tasks):
        context = click.Context(group)
        for section in group.lazy.values():
            for name, lazy in section.items():
                command = group.get_command(context, name)
                assert command is not None
                assert command.get_short_help_str(limit=100).removesuffix(".") == lazy.help.removesuffix(".")
    assert all(f"  {name} " in shown for name in main.mlab.list_commands(click.Context(main.mlab)))
    code = "import sys; from mlagentbench.cli.main import run; run(['--help']); assert 'inspect_ai' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_tasks_are_listed() -> None:
    listed = json.loads(mlab("tasks", "list", "--json").stdout)
    found = next(task for task in listed if task["id"] == "vectorization")
    assert (found["direction"], found["unit"]) == ("minimize", "s")
    assert "vectorization" in mlab("tasks", "list").stdout


def test_a_task_that_cannot_be_read_is_named_beside_the_others(tmp_path: Path) -> None:
    make_task(tmp_path / "good")
    config = (
        "{name: x, grader: {name: y, grade_fn: a:b}, preparer: a:b, dataset: {answers: x/private/a.csv, sample_submission: x/public/a.csv}}"
    )
    for name, text in {"toy-ships": "name: x", "日本": config}.items():  # competitions of MLE-bench
        (tmp_path / name).mkdir()
        files = {"config.yaml": text, "leaderboard.csv": "score\n1\n2\n", "prepare.py": "", "grade.py": ""}
        for file, content in files.items():
            (tmp_path / name / file).write_text(content)
    for more in ((), ("--json",)):
        listed = mlab("tasks", "list", "--task-path", tmp_path, *more)
        assert listed.returncode == 3 and "good" in listed.stdout and "vectorization" in listed.stdout
        unnamed, unread = sorted(listed.stderr.splitlines(), key=len)
        assert unread == f"{tmp_path}/toy-ships/config.yaml is no configuration of a competition of MLE-bench: KeyError: 'grader'"
        assert unnamed.startswith(f"{tmp_path}/日本: id: String should match pattern")


SEVERAL = "log directory or run, and 2 were given; to take every run in it: mlab"


@pytest.mark.parametrize(
    "command, expected",
    [
        ("show", "show takes one run, and 2 were given; name one, or compare all of them: mlab report runs"),
        ("resume", "resume takes one run, and 2 were given; name one, or compare all of them: mlab report runs"),
        *((command, f"{command} takes one {SEVERAL} {command} runs") for command in ("audit", "grade", "report", "verify", "view")),
    ],
)
def test_what_a_shell_makes_of_all_runs_is_one_line_that_says_what_to_name(command: str, expected: str, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / "runs" / name).mkdir(parents=True)
    with contextlib.chdir(tmp_path):
        finished = here(command, "runs/a", "runs/b")
    assert finished.returncode == 2 and complaint(finished) == f"mlab: {expected}\n"


def test_a_task_is_shown_with_what_the_agent_is_told() -> None:
    shown = json.loads(mlab("tasks", "show", "vectorization", "--json").stdout)
    assert "Conv2DLayer" in shown["problem"]
    assert shown["spec"]["paper"]["baseline"] == 6.1742
    assert "Conv2DLayer" in mlab("tasks", "show", "vectorization").stdout


@pytest.mark.parametrize(
    "arguments, expected",
    [
        (("tasks", "show", "vectorisation"), "there is no task 'vectorisation'"),
        (("run", "flying", "--model", "scripted/demo"), "there is no task 'flying'"),
        (("run", "vectorization", "--agent", "reserch", "--model", "scripted/demo"), "did you mean 'research'"),
        (("run", "vectorization", "-A", "colour=red", "--model", "scripted/demo"), "has no option 'colour'"),
        (("run", "vectorization"), "needs a model"),
        (("run", "vectorization", "--model", "nobody/nothing"), "'nobody/nothing' cannot be used"),
        (("run", "vectorization", "--model", "scripted/nowhere.yaml"), "cannot read the scripted replies in nowhere.yaml"),
        (("run", "vectorization", "--model", "scripted/demo", "--fast-model", "nobody/nothing"), "'nobody/nothing' cannot be used"),
        (("run", "vectorization", "--model", "scripted/demo", "--time", "soon"), "'soon' is no time"),
        (("run", "vectorization", "--model", "scripted/demo", "--rate-limit", "openai/gpt-4o"), "'openai/gpt-4o' is no rate limit"),
        (("run", "vectorization", "--model", "scripted/demo", "--rate-limit", "openai/gpt-4o=0"), "'openai/gpt-4o=0' is no rate limit"),
        (("run", "vectorization", "--model", "scripted/demo", "--runs", "0"), "--runs"),
        (("run", "vectorization", "--modle", "scripted/demo"), "--modle"),
        (("run",), "TASK"),
        (("fly",), "fly"),
        (("report", "nowhere"), "nowhere"),
    ],
)
def test_what_is_asked_wrongly_is_one_line_and_status_2(arguments: tuple[str, ...], expected: str, tmp_path: Path) -> None:
    finished = here(*arguments, *(("--log-dir", tmp_path / "runs") if arguments[0] == "run" else ()))
    assert expected in complaint(finished)
    assert finished.returncode == 2
    assert not list((tmp_path / "runs").glob("*/run.json"))


@pytest.mark.parametrize("model", ["openai/gpt-4o", "anthropic/claude-sonnet-4-0"])
def test_a_model_that_lacks_its_key_or_package_is_one_line(model: str, tmp_path: Path) -> None:
    finished = mlab("run", "vectorization", "--model", model, "--log-dir", tmp_path, environment={"PYTHONPATH": ""})
    assert finished.returncode == 2
    line = complaint(finished)
    assert "_API_KEY" in line or "pip install" in line


def test_a_log_directory_that_cannot_be_written_is_one_line() -> None:
    finished = here("run", "vectorization", "--model", "scripted/demo", "--log-dir", "/proc/runs")
    assert "cannot write to the log directory /proc/runs" in complaint(finished)
    assert finished.returncode == 2


def test_a_model_that_fails_ends_the_run_as_infrastructure_and_status_3(tmp_path: Path) -> None:
    model = script(tmp_path / "short.yaml", LIST)
    finished = mlab(*run(tmp_path), "--model", model, "--json")
    assert finished.returncode == 3, finished.stderr
    (line,) = finished.stdout.splitlines()
    told = json.loads(line)
    assert (told["ended"], told["steps"]) == ("infrastructure", 1)
    assert "has 1 replies for the role 'agent'" in told["reason"]
    assert told["verdict"] == "no_improvement", "the last snapshot is graded all the same"


def test_an_unexpected_prompt_stops_a_script(tmp_path: Path) -> None:
    model = script(tmp_path / "strict.yaml", LIST, {"reply": END, "expect": "a file that is not there"})
    finished = mlab(*run(tmp_path), "--model", model, "--json")
    assert finished.returncode == 3
    assert "expects 'a file that is not there'" in json.loads(finished.stdout)["reason"]


def test_replies_that_cannot_be_parsed_end_as_format_failure(tmp_path: Path) -> None:
    model = script(tmp_path / "talk.yaml", *["I would rather talk."] * 5)
    finished = mlab(*run(tmp_path), "--model", model, "--json")
    told = json.loads(finished.stdout)
    assert finished.returncode == 0, "the agent's fault is a result, not a failure"
    assert (told["ended"], told["steps"], told["success"]) == ("format_failure", 0, False)
    calls = RunDirectory(Path(told["log"])).calls(1)
    assert len(calls) == 5
    assert all(call.rejected for call in calls)


def test_the_json_of_a_run_has_every_key(tmp_path: Path) -> None:
    model = script(tmp_path / "end.yaml", END)
    finished = mlab(*run(tmp_path), "--model", model, "--json")
    told = json.loads(finished.stdout)
    keys = "run task variant agent model ended verdict flags score baseline improvement success steps seconds tokens cost isolation log"
    assert set(keys.split()) <= set(told)
    assert told["cost"] is None
    assert "scripted_model" in told["flags"]
    assert Path(told["log"], "result.json").is_file()
    assert list((tmp_path / "runs").glob("*.eval"))


SLEEPER = "import time\nopen('asleep', 'w').close()\ntime.sleep(600)\n"


def start_sleeping(tmp_path: Path) -> tuple[subprocess.Popen[str], Path]:
    """A run whose third step sleeps in a script, when it has got there."""
    model = script(
        tmp_path / "sleep.yaml",
        LIST,
        reply("Write File", json.dumps({"file_name": "sleeper.py", "content": SLEEPER})),
        reply("Execute Script", '{"script_name": "sleeper.py"}'),
        END,
    )
    logs = tmp_path / "runs"
    command = [*commands.MLAB, *map(str, run(tmp_path)), "--model", model]
    process = commands.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
    while not list(logs.glob("*/workspace/asleep")):
        assert process.poll() is None, process.stdout and process.stdout.read()
        time.sleep(0.05)
    return process, logs


def test_an_interrupt_grades_the_run_and_keeps_its_steps(tmp_path: Path) -> None:
    process, logs = start_sleeping(tmp_path)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 130, output
    (directory,) = find_runs(logs)
    assert [step.action.name for step in directory.steps()] == ["List Files", "Write File"]
    result = directory.result
    assert result is not None
    assert (result.outcome.ended, result.outcome.verdict) == ("cancelled", "no_improvement")
    assert "Stopping" in output


def test_a_second_interrupt_stops_at_once_and_loses_no_finished_step(tmp_path: Path) -> None:
    process, logs = start_sleeping(tmp_path)
    assert process.stdout is not None
    process.send_signal(signal.SIGINT)
    output = ""
    while "Stopping" not in output:
        line = process.stdout.readline()
        assert line, output
        output += line
    process.send_signal(signal.SIGINT)
    output += process.communicate(timeout=300)[0]
    assert process.returncode == 130, output
    assert "Traceback" not in output
    (directory,) = find_runs(logs)
    assert len(directory.steps()) == 2


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap, which makes a small disk for this test, is not installed")
def test_who_fills_the_disk_is_at_a_limit_and_loses_no_finished_step(tmp_path: Path) -> None:
    fill = "import os\nopen('big', 'wb').write(os.urandom(3_000_000))\nprint('filled')\n"
    model = script(
        tmp_path / "fill.yaml",
        LIST,
        reply("Write File", json.dumps({"file_name": "fill.py", "content": fill})),
        reply("Execute Script", '{"script_name": "fill.py"}'),
        LIST,
        END,
    )
    command = shlex.join([sys.executable, "-m", "mlagentbench", *map(str, run(tmp_path, Path("/mnt/runs")))])
    command += f" --sandbox none --model {model} --json"
    small = ["bwrap", "--dev-bind", "/", "/", "--size", "5000000", "--tmpfs", "/mnt"]
    shell = f"{command}; echo status $?; ls /mnt/runs/*/steps/*.json"
    finished = subprocess.run([*small, "sh", "-c", shell], capture_output=True, text=True, timeout=600)
    assert "status 0" in finished.stdout, finished.stdout + finished.stderr
    assert "Traceback" not in finished.stderr
    assert '"ended": "limit_storage"' in finished.stdout
    assert "0001.json" in finished.stdout
    assert "0002.json" in finished.stdout


@pytest.fixture
def without_bubblewrap(tmp_path: Path) -> dict[str, str]:
    """An environment whose PATH has no bwrap."""
    (tmp_path / "bin").mkdir()
    return {"PATH": str(tmp_path / "bin")}


def test_without_bubblewrap_a_run_stops_with_how_to_get_it(tmp_path: Path, without_bubblewrap: dict[str, str]) -> None:
    arguments = ("run", "vectorization", "--sandbox", "bubblewrap", "--model", "scripted/demo", "--log-dir", tmp_path / "runs")
    finished = mlab(*arguments, environment=without_bubblewrap)
    assert finished.returncode == 2
    assert "bubblewrap" in complaint(finished) and "apt" in finished.stderr


def test_a_run_without_a_sandbox_says_so_and_is_flagged(tmp_path: Path) -> None:
    model = script(tmp_path / "end.yaml", END)
    finished = mlab(*run(tmp_path), "--sandbox", "none", "--model", model, "--json")
    assert finished.returncode == 0
    assert "No sandbox" in finished.stderr
    told = json.loads(finished.stdout)
    assert told["isolation"] == "none"
    assert "unsandboxed" in told["flags"]


def test_a_run_is_shown_in_the_terminal(tmp_path: Path) -> None:
    model = script(tmp_path / "write.yaml", reply("Write File", '{"file_name": "a.txt", "content": "red \\u001b[31m"}'), END)
    mlab(*run(tmp_path), "--model", model, "--no-score-steps", "--json")
    (directory,) = find_runs(tmp_path / "runs")
    shown = mlab("show", directory.path).stdout
    assert "Write File" in shown and "Final Answer" in shown
    whole = mlab("show", directory.path, "--step", "1", "--diff", "--calls").stdout
    assert "added: a.txt" in whole
    assert "Files after the step: 3" in whole
    assert "+red " in whole
    assert "\x1b" not in whole, "an escape of the agent's does nothing to the terminal"
    assert "the prompt" in whole
    assert "has 2 steps, and no step 9" in complaint(mlab("show", directory.path, "--step", "9"))


def test_doctor_names_keys_and_never_shows_them() -> None:
    finished = mlab("doctor", "--json", environment={"OPENAI_API_KEY": "sk-very-secret"})
    told = json.loads(finished.stdout)
    assert "OPENAI_API_KEY" in told["keys"]
    assert "very-secret" not in finished.stdout
    assert {"bubblewrap"} <= {found["name"] for found in told["isolation"]}
    assert "very-secret" not in mlab("doctor", environment={"OPENAI_API_KEY": "sk-very-secret"}).stdout
