"""Task folders of the original's layout run and are graded here, and what they cannot promise is said."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from mlagentbench.cli.main import run as mlab
from mlagentbench.data.prepare import prepare
from mlagentbench.errors import GradingError, TaskError
from mlagentbench.grading.grade import grade
from mlagentbench.results.load import load
from mlagentbench.task.catalogue import find_task, find_tasks, load_task
from mlagentbench.task.spec import UNGRADED
from tests import commands

TRAIN = """
import csv

rows = list(csv.DictReader(open("train.csv")))
mean = sum(float(row["y"]) for row in rows) / len(rows)
with open("submission.csv", "w") as file:
    file.write("id,y\\n" + "".join(f"{number},{mean}\\n" for number in range(3)))
"""

EVAL = """
import csv
import os


def get_score(submission_folder="../env"):
    print("a grader that talks")
    with open(os.path.join(submission_folder, "submission.csv")) as file:
        given = [float(row["y"]) for row in csv.DictReader(file)]
    with open(os.path.join(os.path.dirname(os.path.realpath(__file__)), "answer.csv")) as file:
        wanted = [float(row["y"]) for row in csv.DictReader(file)]
    return sum(abs(one - other) for one, other in zip(given, wanted, strict=True)) / len(wanted)
"""

PREPARE = """
import os

os.makedirs("../env/data")
with open("../env/data/more.csv", "w") as file:
    file.write("id,y\\n2,5\\n")
with open("answer.csv", "w") as file:
    file.write("id,y\\n0,1\\n1,2\\n2,6\\n")
"""


def write_task(folder: Path, **files: str) -> Path:
    """A small regression task; `files` are those of scripts/ to write otherwise, by name with `_` for the dot; an empty one is left out."""
    (folder / "env").mkdir(parents=True)
    (folder / "scripts").mkdir()
    (folder / "env" / "train.py").write_text(TRAIN)
    (folder / "env" / "train.csv").write_text("id,y\n0,1\n1,3\n")
    scripts = {
        "eval.py": EVAL,
        "answer.csv": "id,y\n0,1\n1,2\n2,6\n",
        "research_problem.txt": "Predict y as well as you can. Write it to submission.csv.",
        "direction.txt": "minimize\n",
        **{name.replace("_", ".") if name.count("_") == 1 else name.replace("__", "_"): text for name, text in files.items()},
    }
    for name, text in scripts.items():
        if text:
            (folder / "scripts" / name).write_text(text)
    return folder


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of this test's own."""
    monkeypatch.setenv("MLAB_CACHE", str(tmp_path / "cache"))


def test_a_task_runs_and_is_graded_end_to_end(tmp_path: Path) -> None:
    write_task(tmp_path / "tasks" / "Small_Regression")
    logs = tmp_path / "runs"
    arguments = ["run", "small-regression", "--task-path", str(tmp_path / "tasks"), "--variant", "full", "--agent", "baseline"]
    command = [*commands.MLAB, *arguments, "--log-dir", str(logs), "--baseline", "none"]
    shown = commands.run(command, check=True, capture_output=True, text=True).stdout
    assert "small-regression: its eval.py runs in the grader's process, with your rights and beside the answers" in " ".join(shown.split())
    (run,) = load(logs)
    # The mean of 1 and 3 against 1, 2 and 6: (1 + 0 + 4) / 3.
    assert run.score == pytest.approx(5 / 3)
    assert run.info.direction == "minimize"
    assert run.info.description.startswith("Predict y as well as you can. Write it to submission.csv.\n\nOne script may run for at most")
    assert run.info.isolation != "none"
    assert set(run.files(0) or {}) == {"train.py", "train.csv"}, "its scripts and answers are not the agent's"


def test_the_catalogue_shows_what_such_a_task_cannot_promise(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = "import importlib, pickle\nfrom datasets import load_dataset\n" + EVAL.replace("os.path.realpath(__file__)", "__file__").replace(
        '"answer.csv"', '"../env/answer.csv"'
    )
    write_task(tmp_path / "task", eval_py=code, read_only__files_txt="train.csv\n", prepare_py=PREPARE)
    (tmp_path / "task" / "scripts" / "read_only_files.txt").write_text("train.csv\n")
    assert mlab(["tasks", "show", "task", "--task-path", str(tmp_path / "task"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)

    assert told["spec"]["submission"]["required"] == ["submission.csv"]
    assert told["spec"]["answers_public"] is True
    assert [notice.split(":")[0] for notice in told["notices"]] == [
        "its eval.py runs in the grader's process, with your rights and beside the answers",
        "its eval.py imports or runs what the agent left",
        "its eval.py loads what the agent left by ways that can run code (pickle, checkpoints)",
        "its eval.py reads files of env/, which agents see",
        "its eval.py takes the answers from a public data set, which scripts can know or load",
        "its prepare.py runs with your rights and with the network",
        "its read_only_files.txt is not enforced",
    ]
    assert mlab(["tasks", "show", "task", "--task-path", str(tmp_path / "task")]) == 0
    assert "note" in capsys.readouterr().out


def test_a_plain_grader_is_told_from_one_that_runs_code(tmp_path: Path) -> None:
    task = load_task(write_task(tmp_path / "task", eval_py='import sys\nsys.path.append("../env")\n' + EVAL))
    assert list(task.notices) == ["its eval.py runs in the grader's process, with your rights and beside the answers"]


def test_a_task_without_a_grader_is_one_that_is_not_graded(tmp_path: Path) -> None:
    task = load_task(write_task(tmp_path / "task", eval_py="", direction_txt=""))
    assert task.spec.metric.name == UNGRADED
    assert task.notices[0] == "it has no scripts/eval.py: its runs are not graded"


def test_a_task_must_say_which_way_is_better(tmp_path: Path) -> None:
    folder = write_task(tmp_path / "task", direction_txt="")
    with pytest.raises(TaskError, match=r"write maximize or minimize into .*scripts/direction\.txt"):
        load_task(folder)
    (folder / "scripts" / "direction.txt").write_text("down")
    with pytest.raises(TaskError, match="says 'down'"):
        load_task(folder)


def test_the_papers_tasks_know_it_and_are_told_from_those_of_that_name_here(tmp_path: Path) -> None:
    write_task(tmp_path / "amp-parkinsons-disease-progression-prediction", direction_txt="")
    write_task(tmp_path / "CLRS", direction_txt="")
    found = find_tasks([tmp_path])

    ours, theirs = found["parkinsons-disease"].spec, found["original-parkinsons-disease"].spec
    assert theirs.metric.direction == ours.metric.direction == "minimize"
    assert theirs.paper == ours.paper
    assert found["original-clrs"].spec.metric.direction == "maximize"
    assert find_task("clrs", [tmp_path]).folder.name == "clrs"


def test_the_research_problem_may_stand_beside_the_tasks(tmp_path: Path) -> None:
    folder = write_task(tmp_path / "task", research__problem_txt="")
    (folder / "scripts" / "research_problem.txt").unlink(missing_ok=True)
    (tmp_path / "tasks.json").write_text(json.dumps({"debug": {"research_problem": "Make it better.", "benchmark_folder_name": "task"}}))
    assert load_task(folder).problem == "Make it better."
    (tmp_path / "tasks.json").unlink()
    with pytest.raises(TaskError, match="says nowhere what the task is"):
        load_task(folder)


def test_preparing_puts_new_data_before_agents_and_keeps_the_answers(tmp_path: Path) -> None:
    folder = write_task(tmp_path / "task", prepare_py=PREPARE, answer_csv="")
    before = sorted(path.relative_to(folder) for path in folder.rglob("*"))
    data = prepare(load_task(folder), "full").data

    assert [path.name for path in data.public.iterdir()] == ["data"]
    assert (data.private / "task" / "scripts" / "answer.csv").exists()
    assert sorted(path.relative_to(folder) for path in folder.rglob("*")) == before, "the user's folder is left as it was"

    (tmp_path / "submission").mkdir()
    (tmp_path / "submission" / "submission.csv").write_text("id,y\n0,1\n1,2\n2,3\n")
    graded = asyncio.run(grade(load_task(folder), tmp_path / "submission", private=data.private))
    # Against 1, 2 and 6, which only the copy holds.
    assert graded.score is not None and graded.score.value == 1.0


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        ('input("Consent?")', "asks a question; do it by hand: cd "),
        ("raise ValueError('no kaggle key')", "failed: ValueError: no kaggle key; mend it"),
        ('open("../env/train.csv", "w").close()', "changes env/train.csv, which runs begin with"),
    ],
)
def test_a_preparation_that_cannot_be_done_here_says_what_to_do(tmp_path: Path, script: str, complaint: str) -> None:
    with pytest.raises(TaskError) as told:
        prepare(load_task(write_task(tmp_path / "task", prepare_py=script)), "full")
    assert complaint in str(told.value)
    done = write_task(tmp_path / "done", prepare_py=script)
    (done / "scripts" / "prepared").write_text("success")
    assert not any(prepare(load_task(done), "full").data.private.iterdir())


@pytest.mark.parametrize(
    ("script", "verdict", "reason"),
    [
        ("def get_score(folder): raise KeyError('SalePrice')", "invalid_submission", "eval.py could not score it: KeyError: 'SalePrice'"),
        ("def get_score(folder): return float('nan')", "invalid_submission", "eval.py gave nan, which is no score"),
        ("def get_score(folder): return 'good'", "invalid_submission", "eval.py gave 'good', which is no number"),
        ("def get_score(folder): return open('/no/answers').read()", "ungraded", "/no/answers"),
        ("import a_package_that_is_missing\ndef get_score(folder): return 1", "ungraded", "a_package_that_is_missing"),
        ("score = 1", "ungraded", "has no function get_score"),
    ],
)
def test_a_fault_of_the_grader_is_not_the_submissions(tmp_path: Path, script: str, verdict: str, reason: str) -> None:
    task = load_task(write_task(tmp_path / "task", eval_py=script))
    submission = tmp_path / "submission"
    submission.mkdir()
    (submission / "submission.csv").write_text("id,y\n")
    if verdict == "ungraded":
        with pytest.raises(GradingError, match=reason):
            asyncio.run(grade(task, submission))
    else:
        graded = asyncio.run(grade(task, submission))
        assert (graded.score, graded.reason) == (None, reason)
