"""Many runs from one command: at once, on GPUs, interrupted, told as they end."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import IO

import pytest
import yaml

from mlagentbench.limits import ScriptLimits
from mlagentbench.rundir.directory import RunDirectory, find_runs
from tests import commands
from tests.cli.test_cli import complaint, here, mlab
from tests.support import reply
from tests.tiny_task import tiny_task

pytestmark = pytest.mark.slow

GRADE = """\
from mlagentbench.records import Score


def grade(context):
    with context.submission.open("notes.txt") as file:
        return Score(value=float(len(file.read().splitlines())))
"""
TRAIN = """\
import os, sys, time
began = time.time()
{wait}
time.sleep(float(sys.argv[1]) if len(sys.argv) > 1 else {seconds})
print("gpu", os.environ["CUDA_VISIBLE_DEVICES"], began, time.time())
{then}
"""
NOTE = reply("Write File", '{"file_name": "notes.txt", "content": "one\\ntwo\\n"}')
RUN = reply("Execute Script", '{"script_name": "train.py"}')
END = reply("Final Answer", '{"final_answer": "done"}')
CONTROL = re.compile(rb"\x1b\[[0-9;?]*[a-zA-Z]")
"""What moves a terminal's cursor and gives colours."""


class Place:
    """Where a test's tasks and runs lie, and the command that does them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.logs = folder / "runs"
        self.model = folder / "replies.yaml"
        self.replies(NOTE, RUN, END)

    def replies(self, *replies: str) -> None:
        self.model.write_text(yaml.safe_dump([{"reply": text} for text in replies]))

    def task(
        self, name: str, *, gpu: bool = True, seconds: float = 0.5, wait: str = "", then: str = "", prepare: str = "", grade: str = GRADE
    ) -> None:
        folder = self.folder / "tasks" / name
        keys = {"gpu": str(gpu).lower()}
        tiny_task(folder, file="notes.txt", keys=keys, grade=grade, train=TRAIN.format(seconds=seconds, wait=wait, then=then))
        if prepare:
            (folder / "prepare.py").write_text(prepare)

    def arguments(self, *arguments: str) -> list[str]:
        task_path = ("--task-path", str(self.folder / "tasks"))
        return [
            "run",
            *task_path,
            "--model",
            f"scripted/{self.model}",
            "--sandbox",
            "none",
            "--baseline",
            "none",
            "--log-dir",
            str(self.logs),
            *arguments,
        ]

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return mlab(*self.arguments(*arguments))

    def start(self, *arguments: str, stderr: int | IO[str] = subprocess.PIPE) -> subprocess.Popen[str]:
        command = [*commands.MLAB, *self.arguments(*arguments)]
        return commands.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True)

    def runs(self) -> list[RunDirectory]:
        return find_runs(self.logs) if list(self.logs.glob("*/run.json")) else []

    def mark(self) -> str:
        """A line of a script that leaves a mark."""
        (self.folder / "marks").mkdir(exist_ok=True)
        return f"open({str(self.folder / 'marks')!r} + '/' + str(os.getpid()), 'w').close()"

    def wait_for_marks(self, count: int | str) -> str:
        """A line of a script that waits for so many marks."""
        return f"while len(os.listdir({str(self.folder / 'marks')!r})) < {count}: time.sleep(0.02)"

    def wait_until_scripts_run(self, count: int) -> None:
        deadline = time.monotonic() + 300
        while len({workspace for workspace, words in _alive(self) if "train.py" in words}) < count:
            assert time.monotonic() < deadline
            time.sleep(0.05)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


class Used:
    """A script's time on a GPU, as it told it itself."""

    def __init__(self, run: RunDirectory) -> None:
        (told,) = [step.observation for step in run.steps() if step.action.name == "Execute Script"]
        match = re.search(r"gpu (\S*) (\d+\.\d+) (\d+\.\d+)$", told.strip())
        assert match, told
        self.gpu, self.began, self.ended = match[1], float(match[2]), float(match[3])
        self.task = run.info.spec.task
        assert run.info.spec.gpus == ((self.gpu,) if self.gpu else ()), "the run says what it was given"


def test_each_run_has_a_gpu_to_itself_and_all_of_them_are_used(place: Place) -> None:
    # The first waits for the second and the third for the fourth, so that either pair is there at once.
    count = f"begun = len(os.listdir({str(place.folder / 'marks')!r}))"
    place.task("learn", seconds=0, wait=f"{place.mark()}\n{count}\n{place.wait_for_marks('min(begun + begun % 2, 4)')}")
    finished = place.run("learn", "--runs", "5", "--parallel", "5", "--gpus", "7,9", "--no-score-steps", "--json")
    assert finished.returncode == 0, finished.stderr
    used = sorted((Used(run) for run in place.runs()), key=lambda one: one.began)
    assert len(used) == 5
    for gpu in ("7", "9"):
        of_one = [one for one in used if one.gpu == gpu]
        assert len(of_one) >= 2
        assert all(earlier.ended <= later.began for earlier, later in pairwise(of_one)), "two runs shared a GPU"
    assert used[1].began < used[0].ended, "two GPUs are worth two runs at once"


def test_a_task_without_use_for_a_gpu_gets_none_and_waits_for_none(place: Place) -> None:
    place.task("count", gpu=False, seconds=0.1, then=place.mark())
    place.task("learn", wait=place.wait_for_marks(2))
    finished = place.run("learn", "count", "--runs", "2", "--parallel", "2", "--gpu", "7", "--no-score-steps", "--json")
    assert finished.returncode == 0, finished.stderr
    used = [Used(run) for run in place.runs()]
    learned = sorted((one for one in used if one.task == "learn"), key=lambda one: one.began)
    assert [one.gpu for one in learned] == ["7", "7"]
    counted = [one for one in used if one.task == "count"]
    assert [one.gpu for one in counted] == ["", ""]
    assert all(one.ended < learned[1].began for one in counted), "they passed the one that waited for the GPU"


def test_a_gpu_that_is_not_there_is_said_before_anything_runs(place: Place) -> None:
    place.task("learn")
    finished = place.run("learn", "--gpus", "0,99", "--sandbox", "auto")
    assert finished.returncode in (2, 3)
    assert "there is no GPU" in finished.stderr or "no sandbox" in finished.stderr
    assert not place.runs()


def test_a_run_is_told_as_soon_as_it_ends(place: Place) -> None:
    go = place.folder / "go"
    others_wait = f"while not os.path.exists({str(go)!r}): time.sleep(0.02)"
    first = f"try: open({str(place.folder / 'first')!r}, 'x').close()\nexcept FileExistsError:\n    {others_wait}"
    place.task("count", seconds=0, wait=first)
    process = place.start("count", "--runs", "3", "--parallel", "1", "--no-score-steps", "--json")
    assert process.stdout is not None
    told = json.loads(process.stdout.readline())
    assert (told["score"], told["ended"]) == (2.0, "final_answer")
    assert process.poll() is None
    assert sum(run.result is not None for run in place.runs()) == 1, "others were still to come"
    go.touch()
    rest, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    assert len({json.loads(line)["run"] for line in rest.splitlines()} | {told["run"]}) == 3
    assert "\x1b" not in errors


def test_runs_go_on_when_nobody_reads_their_lines_any_more(place: Place) -> None:
    place.task("count", seconds=0.3)
    process = place.start("count", "--runs", "3", "--parallel", "1", "--no-score-steps", "--json")
    assert process.stdout is not None and process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    with process.stderr:
        errors = process.stderr.read()
    assert process.wait(300) == 0, errors
    assert "Traceback" not in errors and "Broken" not in errors
    assert [run.result.outcome.ended for run in place.runs() if run.result] == ["final_answer"] * 3


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_interrupt_grades_what_goes_on_and_starts_nothing_more(place: Place, number: signal.Signals) -> None:
    place.task("count", seconds=600)
    process = place.start("count", "--runs", "5", "--parallel", "2", "--json")
    place.wait_until_scripts_run(2)
    process.send_signal(number)
    output, errors = process.communicate(timeout=300)
    assert process.returncode == 130, errors
    told = [json.loads(line) for line in output.splitlines()]
    assert [(run["ended"], run["score"], run["steps"]) for run in told] == [("cancelled", 2.0, 1)] * 2
    assert len(place.runs()) == 2, "a run that was not started left nothing"
    assert "3 runs not started" in errors
    assert "Traceback" not in errors


def test_the_second_interrupt_stops_at_once(place: Place) -> None:
    place.task("count", seconds=600, grade="import time\n\n\ndef grade(context):\n    time.sleep(600)\n")
    with (place.folder / "errors.txt").open("w+") as said:
        process = place.start("count", "--runs", "8", "--parallel", "4", "--json", stderr=said)
        place.wait_until_scripts_run(4)
        process.send_signal(signal.SIGINT)
        deadline = time.monotonic() + 300
        while "Interrupt again to stop at once" not in Path(said.name).read_text():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=300)
    errors = Path(said.name).read_text()
    assert process.returncode == 130, errors
    assert "Traceback" not in errors, errors
    assert output == "", "none is graded"
    assert [len(run.steps()) for run in place.runs()] == [1] * 4, "every finished step is kept"
    assert not _alive(place), "no script is left"


def test_data_that_cannot_be_prepared_is_told_before_anything_runs(place: Place) -> None:
    place.task("count", seconds=0)
    place.task("broken", prepare="def full(public, private):\n    raise OSError('the data is gone')\n")
    finished = place.run("broken", "count", "--runs", "2", "--no-score-steps", "--json")
    assert finished.returncode == 2, finished.stderr
    assert finished.stdout == "" and not place.runs()
    assert "mlab: broken cannot be prepared: prepare.py raised OSError: the data is gone" in finished.stderr


def test_without_a_terminal_there_are_plain_lines(place: Place) -> None:
    place.task("count", seconds=0)
    finished = place.run("count", "--runs", "3", "--no-score-steps")
    assert finished.returncode == 0, finished.stderr
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", finished.stdout + finished.stderr)
    for number in (1, 2, 3):
        assert re.search(rf"count {number} .* Write File", finished.stdout), finished.stdout
        assert re.search(rf"count {number}  no success: points 2\.00", finished.stdout)
    assert "count: 3 runs: 3 no success" in finished.stdout


def test_on_a_terminal_a_table_moves_and_leaves_the_results(place: Place) -> None:
    go = place.folder / "go"
    place.task("count", seconds=0, wait=f"while not os.path.exists({str(go)!r}): time.sleep(0.05)")

    def see(output: bytes) -> None:
        if "12 running (5 not shown) · 0 over".encode() in CONTROL.sub(b"", output):
            go.touch()

    arguments = place.arguments("count", "--runs", "12", "--parallel", "12", "--no-score-steps")
    code, output = _on_a_terminal(arguments, height=10, width=110, see=see)
    assert go.exists(), output
    assert code == 0, output
    assert "\x1b[?25l" in output and "\x1b[?25h" in output, "the cursor was hidden, and is back"
    plain = CONTROL.sub(b"", output.encode()).decode()
    assert re.search(r"12 over: 12 no success", plain)
    assert max(_heights(output)) == 9, "it leaves a line for the cursor"
    assert "count: 12 runs: 12 no success" in plain.replace("\r\n", "\n").split("12 over")[-1]


LIMITS = {
    "--script-time": ("90s", "seconds", 90.0),
    "--memory": ("1.5g", "memory_mb", 1536),
    "--processes": ("40", "processes", 40),
    "--file-size": ("7", "file_mb", 7),
    "--workspace-size": ("300MB", "workspace_mb", 300),
    "--workspace-files": ("99", "workspace_files", 99),
    "--output": ("8", "output_kb", 8),
}


def test_a_user_sets_each_limit_of_scripts_and_the_task_the_others(place: Place) -> None:
    place.task("count", seconds=0)
    given = [word for option, (text, _, _) in LIMITS.items() for word in (option, text)]
    assert place.run("count", *given, "--working-time", "1h", "--no-score-steps", "--json").returncode == 0
    (run,) = place.runs()
    assert asdict(run.info.spec.script_limits) == {name: value for _, name, value in LIMITS.values()}
    assert run.info.spec.limits.working_time == 3600
    assert place.run("count", "--memory", "100m", "--no-score-steps", "--json").returncode == 0
    (other,) = (found for found in place.runs() if found.name != run.name)
    own = other.info.spec.script_limits
    assert own.memory_mb == 100 and own.processes == ScriptLimits().processes


def test_the_limits_that_a_user_sets_hold(place: Place) -> None:
    place.task("count", seconds=600)
    place.replies(RUN, END)
    assert place.run("count", "--script-time", "2s", "--no-score-steps", "--json").returncode == 0
    (slow,) = place.runs()
    assert slow.steps()[0].status == "limit_time"
    place.replies(
        reply("Write File", json.dumps({"file_name": "train.py", "content": "held = b'x' * (150 << 20)\nprint(len(held))\n"})),
        RUN,
        reply("Write File", json.dumps({"file_name": "train.py", "content": "print('x' * 100_000)\n"})),
        RUN,
        END,
    )
    assert place.run("count", "--memory", "100m", "--output", "4", "--no-score-steps", "--json").returncode == 0
    (run,) = (found for found in place.runs() if found.name != slow.name)
    hungry, loud = (step for step in run.steps() if step.action.name == "Execute Script")
    assert (hungry.status, loud.status) == ("limit_memory", "ok")
    assert len(loud.observation) < 6000


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("--memory", "much"), "'much' is no size"),
        (("--memory", "0"), "'0' is no size"),
        (("--file-size", "-1"), "'-1' is no size"),
        (("--output", "0"), "--output"),
        (("--gpus", "0,"), "has no name"),
        (("--gpus", "0,1,0"), "named twice"),
        (("--gpus", "0", "--gpu", "0"), "named twice"),
    ],
)
def test_a_limit_or_gpu_that_cannot_be_meant_is_one_line(place: Place, arguments: tuple[str, ...], words: str) -> None:
    place.task("count")
    finished = here(*place.arguments("count", *arguments))
    assert finished.returncode == 2
    assert words in complaint(finished)
    assert not place.runs()


def test_the_help_has_its_options_in_groups() -> None:
    shown = here("run", "--help").stdout
    headings = re.findall(r"^(\S.*):$", shown, re.MULTILINE)
    assert headings == [
        "The agent",
        "Runs",
        "Limits of a run",
        "Limits of each script (by default the task's own)",
        "Where scripts run",
        "With a person",
        "Files and output",
    ]
    limits = shown.partition("Limits of each script")[2].partition("Where scripts run")[0]
    assert re.findall(r"^  (--[a-z-]+)", limits, re.MULTILINE) == list(LIMITS)


def _alive(place: Place) -> list[tuple[str, str]]:
    """The working directory and the command of each process that works in one of the runs' workspaces."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (folder := os.readlink(process / "cwd")).startswith(str(place.logs)):
                found.append((folder, (process / "cmdline").read_text()))
        except OSError:
            continue
    return found


def _on_a_terminal(arguments: list[str], *, height: int, width: int, see: Callable[[bytes], None]) -> tuple[int, str]:
    """The exit status, and all that a terminal of a size was sent; what has come so far is seen each time that more comes."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    command = [*commands.MLAB, *arguments]
    process = commands.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env={**environment, "TERM": "xterm-256color"})
    os.close(theirs)
    output = b""
    for part in _read(ours, time.monotonic() + 600):
        output += part
        see(output)
    os.close(ours)
    return process.wait(300), output.decode(errors="replace")


def _read(terminal: int, deadline: float) -> Iterator[bytes]:
    while select.select([terminal], [], [], max(0.0, deadline - time.monotonic()))[0]:
        try:
            data = os.read(terminal, 1 << 16)
        except OSError:  # nobody has the other end any more
            return
        yield data


def _heights(output: str) -> list[int]:
    """The lines of each frame, by how many the next one takes back."""
    return [len(re.findall(r"\x1b\[1A", match)) + 1 for match in re.findall(r"\r\x1b\[2K((?:\x1b\[1A\x1b\[2K)+)", output)]
