"""Competitions of MLE-bench are prepared, run and graded here; a medal is a success, and no starter is needed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import mlagentbench
from mlagentbench.data.prepare import Prepared, prepare
from mlagentbench.errors import GradingError, TaskError
from mlagentbench.grading.control import Control
from mlagentbench.grading.grade import Graded, Grader, grade_all
from mlagentbench.task.catalogue import Task, find_tasks, load_task
from mlagentbench.task.formats.competition import Leaderboard
from tests.cli.test_cli import here, mlab, script
from tests.support import reply

pytest.importorskip("pandas")

CONFIG = """
id: toy-ships
name: Toy ships
competition_type: simple
awards_medals: true
description: mlebench/competitions/toy-ships/description.md
dataset:
  answers: toy-ships/prepared/private/test.csv
  sample_submission: toy-ships/prepared/public/sample_submission.csv
grader:
  name: root-mean-squared-error
  grade_fn: mlebench.competitions.toy-ships.grade:grade
preparer: mlebench.competitions.toy-ships.prepare:prepare
"""
PREPARE = """
import shutil
from pathlib import Path

from mlebench.utils import read_csv

from .names import TARGET


def prepare(raw: Path, public: Path, private: Path):
    (raw / "unpacked").mkdir()
    train = read_csv(raw / "train.csv")
    test = train[train.index % 4 == 0]
    test.to_csv(private / "test.csv", index=False)
    train[train.index % 4 != 0].to_csv(public / "train.csv", index=False)
    test.drop(columns=[TARGET]).to_csv(public / "test.csv", index=False)
    test[["id", TARGET]].assign(**{TARGET: 0.0}).to_csv(public / "sample_submission.csv", index=False)
    shutil.move(raw / "ships.txt", public / "ships.txt")
"""
GRADE = """
import numpy as np

from mlebench.grade_helpers import InvalidSubmissionError

from .names import TARGET


def grade(submission, answers):
    if len(submission) != len(answers):
        raise InvalidSubmissionError("Submission must have the same length as the answers.")
    joined = submission.merge(answers, on="id", suffixes=("_found", ""), validate="one_to_one")
    return np.sqrt(((joined[f"{TARGET}_found"] - joined[TARGET]) ** 2).mean())
"""
HELPERS = "class InvalidSubmissionError(Exception):\n    pass\n"
UTILS = "import pandas as pd\n\n\ndef read_csv(path):\n    return pd.read_csv(path, float_precision='round_trip')\n"
TEAMS = [round(0.1 + place / 100, 3) for place in range(120)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A competition in a checkout, with raw data where MLE-bench downloads it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    monkeypatch.setenv("MLAB_CACHE", str(tmp_path / "cache"))
    raw = tmp_path / "caches" / "mle-bench" / "data" / "toy-ships" / "raw"
    raw.mkdir(parents=True)
    x = np.random.default_rng(0).normal(size=80).round(3)
    pl.DataFrame({"id": np.arange(80), "x": x, "y": (2 * x).round(3)}).write_csv(raw / "train.csv")
    (raw / "ships.txt").write_text("a ship")
    found = tmp_path / "checkout" / "mlebench" / "competitions" / "toy-ships"
    found.mkdir(parents=True)
    files = {"config.yaml": CONFIG, "prepare.py": PREPARE, "grade.py": GRADE, "names.py": 'TARGET = "y"\n', "description.md": "# Ships\n"}
    board = "scoreNullable,teamId,score\n" + "".join(f"{score},1,{score}\n" for score in TEAMS)
    for name, text in {**files, "leaderboard.csv": board}.items():
        (found / name).write_text(text)
    for name, text in {"grade_helpers.py": HELPERS, "utils.py": UTILS}.items():
        (found.parents[1] / name).write_text(text)
    return found


def graded(task: Task, data: Prepared, tables: Sequence[str | bytes], place: Path) -> list[Graded]:
    """Grade some tables, in one process."""

    async def work() -> list[Graded]:
        async with Grader(task, variant="full", private=data.private) as grader:
            return await grade_all(grader, folders)

    folders = [place / str(number) for number in range(len(tables))]
    for each, table in zip(folders, tables, strict=True):
        each.mkdir(parents=True)
        (each / "submission.csv").write_bytes(table if isinstance(table, bytes) else table.encode())
    return asyncio.run(work())


def submission(data: Prepared, off: float) -> str:
    answers = pl.read_csv(data.private / "test.csv")
    return answers.select("id", y=pl.col("y") + off).write_csv()


def test_its_data_is_prepared_and_its_raw_files_stay(folder: Path, tmp_path: Path) -> None:
    task = load_task(folder)
    assert (task.id, task.spec.metric.direction, task.spec.starter.state) == ("toy-ships", "minimize", "none")
    assert "medal" in task.problem and task.problem.startswith("# Ships")
    data = prepare(task, "full").data
    assert sorted(path.name for path in (data.public / "data").iterdir()) == ["sample_submission.csv", "ships.txt", "test.csv", "train.csv"]
    assert [path.name for path in data.private.iterdir()] == ["test.csv"]
    assert "y" not in pl.read_csv(data.public / "data" / "test.csv").columns
    raw = tmp_path / "caches" / "mle-bench" / "data" / "toy-ships" / "raw"
    assert sorted(path.name for path in raw.iterdir()) == ["ships.txt", "train.csv"]
    with pytest.raises(TaskError, match="mini"):
        prepare(task, "mini")


def test_a_medal_is_a_success(folder: Path, tmp_path: Path) -> None:
    task = load_task(folder)
    data = prepare(task, "full").data
    expected = {0.1: ("gold", 99.2), 0.25: ("silver", 86.7), 0.45: ("bronze", 70), 0.6: (None, 57.5)}
    found = graded(task, data, [submission(data, off) for off in expected], tmp_path / "submissions")
    for (off, (medal, percentile)), each in zip(expected.items(), found, strict=True):
        assert each.score is not None and each.score.value == off, each.reason
        assert each.score.success is (medal is not None) and each.score.details["medal"] == medal
        assert each.score.details["percentile"] == pytest.approx(percentile, abs=0.1)
        assert each.score.note == f"{medal or 'no'} medal, better than {percentile:.1f}% of 120 teams"


REFUSED: Mapping[str | bytes, str] = {
    "id,y\n0,1\n": "InvalidSubmissionError: Submission must have the same length",
    "": "no CSV table",
    b"\x80\x04\x95cos\nsystem\n(S'touch /tmp/owned'\ntR.": "no CSV table",
    "file:///etc/passwd\n": "could not score",
}


def test_what_is_no_submission_is_refused(folder: Path, tmp_path: Path) -> None:
    task = load_task(folder)
    found = graded(task, prepare(task, "full").data, list(REFUSED), tmp_path / "submissions")
    for each, reason in zip(found, REFUSED.values(), strict=True):
        assert each.score is None and each.reason and reason in each.reason


def test_a_file_that_the_grader_cannot_open_is_the_submissions_fault_only_if_the_sample_is_graded(folder: Path) -> None:
    task = load_task(folder)
    data = prepare(task, "full").data
    named = "import os\n\ndef grade(submission, answers):\n    return os.stat('/' if submission['y'][0] == 0 else '/none').st_nlink\n"
    (folder / "submission.csv").write_text("id,y\n1,1\n")

    async def grader_works() -> bool:
        async with Grader(task, variant="full", private=data.private) as grader:
            with pytest.raises(GradingError, match="FileNotFoundError"):
                await grader.grade(folder)
            return await Control(task, "full", data.private, "none", grader).works()

    for grade, works in ((named, True), ("def grade(submission, answers):\n    return len(open('/none').read())\n", False)):
        (folder / "grade.py").write_text(grade)
        assert asyncio.run(grader_works()) is works


def test_a_tie_with_a_threshold_wins_its_medal(folder: Path, tmp_path: Path) -> None:
    board = [0.1] * 10 + [0.2] * 14 + [0.3] * 24 + [0.9] * 72
    (folder / "leaderboard.csv").write_text("score\n" + "".join(f"{score}\n" for score in board))
    task = load_task(folder)
    data = prepare(task, "full").data
    expected = {0.1: "gold", 0.10001: "silver", 0.2: "silver", 0.3: "bronze", 0.300001: "bronze", 0.30001: None}
    found = graded(task, data, [submission(data, off) for off in expected], tmp_path / "submissions")
    assert [each.score.details["medal"] for each in found if each.score] == list(expected.values())


def test_answers_that_cannot_be_read_are_not_the_agents_fault(folder: Path, tmp_path: Path) -> None:
    (folder / "prepare.py").write_text("def prepare(raw, public, private):\n    (private / 'test.csv').write_text('')\n")
    task = load_task(folder)
    (found,) = graded(task, prepare(task, "full").data, ["id,y\n0,1\n"], tmp_path / "submissions")
    assert found.failed and "the answers cannot be read: test.csv is no CSV table" in str(found.reason)


def test_a_competition_has_no_proof_to_check_it_with(folder: Path) -> None:
    refused = here("tasks", "check", "toy-ships", "--task-path", folder)
    assert refused.returncode == 2 and "toy-ships cannot be checked" in " ".join(refused.stderr.split())


@pytest.mark.slow
def test_a_run_is_compared_with_the_leaderboard_and_needs_no_baseline(folder: Path, tmp_path: Path) -> None:
    solve = (
        "import csv\nrows = list(csv.DictReader(open('data/test.csv')))\nwith open('submission.csv', 'w') as file:\n"
        "    file.write('id,y\\n' + ''.join(f\"{row['id']},{2 * float(row['x']) + 0.2}\\n\" for row in rows))\n"
    )
    replies = (
        reply("Write File", json.dumps({"file_name": "solve.py", "content": solve})),
        reply("Execute Script", '{"script_name": "solve.py"}'),
        reply("Final Answer", '{"final_answer": "Done."}'),
    )
    model = script(tmp_path / "replies.yaml", *replies)
    logs = tmp_path / "logs"
    command = ("run", "toy-ships", "--task-path", folder.parent, "--variant", "full", "--model", model, "--log-dir", logs)
    ran = mlab(*command)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (row,) = mlagentbench.load(logs).frame().to_dicts()
    assert row["success"] and row["best_success_10"] and row["counted"] and row["verdict"] == "success"
    assert row["baseline"] is None and row["improvement"] is None and row["score"] == pytest.approx(0.2)
    shown = " ".join(mlab("show", logs).stdout.split())
    assert "Success" in shown and "silver medal, better than 90.8% of 120 teams" in shown and "no baseline" not in shown


def test_what_is_missing_is_said(folder: Path, tmp_path: Path) -> None:
    (folder / "leaderboard.csv").write_text("version https://git-lfs.github.com/spec/v1\n")
    with pytest.raises(TaskError, match="git lfs pull"):
        load_task(folder)
    (folder / "leaderboard.csv").write_text("score\n0.9\n0.5\n")
    assert load_task(folder).spec.metric.direction == "maximize"
    (folder / "prepare.py").write_text("def prepare(raw, public, private):\n    raise ValueError('no raw data')\n")
    with pytest.raises(TaskError, match="ValueError: no raw data"):
        prepare(load_task(folder), "full")
    (folder / "config.yaml").write_text(CONFIG.replace("toy-ships/prepared/private/", "/home/me/"))
    with pytest.raises(TaskError, match=r"dataset\.answers is '/home/me/test.csv', which is in no folder 'private'"):
        load_task(folder)
    (folder / "config.yaml").write_text("name: x\n")
    with pytest.raises(TaskError, match="no configuration"):
        load_task(folder)


def test_what_upstream_does_not_mind_is_let_pass(folder: Path, tmp_path: Path) -> None:
    (folder / "leaderboard.csv").write_text("\ufeffscore,teamId,submissionDate\n0.9,1,2020-01-01\n0.5,2,\n,3,\n", encoding="utf-8")
    (folder / "grade.py").write_text(
        "import sys, numpy as np\n\ndef grade(submission, answers):\n    print('x' * 100000)\n    open('scratch.txt', 'w').close()\n"
        "    if submission['y'][0] < 0:\n        sys.exit(3)\n    return np.float32(submission['y'][0])\n"
    )
    task = load_task(folder)
    assert task.spec.metric.direction == "maximize"
    first, second = graded(task, prepare(task, "full").data, ["id,y\n1,0.5\n", "id,y\n1,-1\n"], tmp_path / "submissions")
    assert first.score is not None and first.score.value == 0.5 and first.score.details["teams"] == 3
    assert second.score is None and second.reason is not None and "SystemExit" in second.reason


def test_a_competition_with_the_name_of_a_built_in_task_is_told_apart(folder: Path) -> None:
    (folder.parent / "spaceship-titanic").symlink_to(folder)
    other = folder.rename(folder.parent / "imdb")
    (folder.parent / "spaceship-titanic").unlink()
    assert load_task(other).id == "mle-imdb"
    assert {"imdb", "mle-imdb"} <= set(find_tasks([folder.parent]))


@pytest.mark.parametrize(
    "teams, places",
    [(9, (1, 1, 3)), (50, (5, 10, 20)), (120, (10, 24, 48)), (600, (11, 50, 100)), (2000, (14, 100, 200))],
)
def test_thresholds_depend_on_the_number_of_teams(teams: int, places: tuple[int, int, int]) -> None:
    board = Leaderboard(tuple(float(teams - place) for place in range(teams)))
    assert [teams - least + 1 for least in board.thresholds.values()] == list(places)
    assert board.medal(float(teams)) == "gold" and board.medal(0.0) is None and not board.lower_is_better


def test_teams_without_a_score_are_teams() -> None:
    """As in MLE-bench, whose places are those of all rows, and whose comparisons with a missing score are false."""
    nan = float("nan")
    board = Leaderboard((0.1, 0.2, 0.3, 0.4, *[nan] * 16))
    assert board.lower_is_better and board.median == pytest.approx(0.25)
    assert board.thresholds == {"gold": 0.2, "silver": 0.4}, "places 2, 4 and 8 of 20"
    assert [board.medal(score) for score in (0.2, 0.3, 0.4, 0.5)] == ["gold", "silver", "silver", None]
    assert (board.percentile(0.4), board.percentile(0.25)) == (80.0, 90.0)
