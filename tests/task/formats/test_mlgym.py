"""Tasks of MLGym are prepared, run and graded here, by their own evaluate.py in a sandbox."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mlagentbench.data.prepare import prepare
from mlagentbench.errors import TaskError
from mlagentbench.task.catalogue import find_tasks, load_task
from tests.cli.test_cli import mlab, script
from tests.support import reply

CONFIG = """
id: toyShips
name: Toy ships
description: |-
  Predict y from x. The data:
  {{dataset_docs}}
  It lies in /home/agent/workspace/data.
task_entrypoint: {kind}
training_timeout: 60
starter_code:
- data/toy/baseline.py
- data/toy/evaluate.py
- data/toy/helpers
dataset_configs:
- datasets/toy.yaml
{baseline}
evaluation_paths:
- evaluate.py
memory_path: data/toy/memory.json
"""
DATASET = "name: toy\ndescription: train.csv and test.csv, with x and y.\ndata_path: data/toy/tables\nis_local: true\n"
BASELINE = """
import csv
from helpers.rows import rows

with open("submission.csv", "w") as file:
    file.write("y\\n" + "".join("1.0\\n" for _ in rows("test.csv")))
"""
HELPERS = """
import csv

def rows(name):
    with open("/home/agent/workspace/data/" + name) as file:
        return list(csv.DictReader(file))
"""
EVALUATE = """
import argparse, csv, json
from helpers.rows import rows

parser = argparse.ArgumentParser()
parser.add_argument("--submission_file", required=True)
with open(parser.parse_args().submission_file) as file:
    found = [float(row["y"]) for row in csv.DictReader(file)]
answers = [float(row["y"]) for row in rows("answers.csv")]
assert len(found) == len(answers), "another number of rows"
print(json.dumps({"RMSE": (sum((a - b) ** 2 for a, b in zip(found, answers)) / len(answers)) ** 0.5, "rows": len(answers)}))
"""
PLAY = 'import json\nfrom strategy import play\nprint("warming up")\nprint(json.dumps({"Score": sum(play(n) for n in range(4))}))\n'


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with two tasks of tables in one folder, and one of a strategy."""
    monkeypatch.setenv("MLAB_CACHE", str(tmp_path / "cache"))
    files = {
        "configs/tasks/toyShips.yaml": CONFIG.format(kind="CSVSubmissionTasks", baseline="baseline_paths:\n- baseline.py"),
        "configs/tasks/toyShipsL1.yaml": CONFIG.format(kind="CSVSubmissionTasks", baseline="baseline_scores:\n- RMSE: 1.0"),
        "configs/tasks/game.yaml": "id: game\nname: A game\ndescription: Play.\ntask_entrypoint: PythonSubmissionTasks\n"
        "starter_code: [data/game/strategy.py, data/game/evaluate.py]\nbaseline_scores: [{Score: 4}]\nevaluation_paths: [evaluate.py]\n",
        "configs/datasets/toy.yaml": DATASET,
        "data/toy/baseline.py": BASELINE,
        "data/toy/evaluate.py": EVALUATE,
        "data/toy/helpers/rows.py": HELPERS,
        "data/toy/memory.json": "{}",
        "data/toy/direction.txt": "minimize RMSE\n",
        "data/toy/tables/answers.csv": "y\n2.0\n4.0\n",
        "data/toy/tables/test.csv": "x\n1\n2\n",
        "data/game/strategy.py": "def play(turn):\n    return 1\n",
        "data/game/evaluate.py": PLAY,
        "data/game/direction.txt": "maximize\n",
    }
    for name, text in files.items():
        (tmp_path / "MLGym" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "MLGym" / name).write_text(text)
    return tmp_path / "MLGym"


def test_its_tasks_are_found_and_read(checkout: Path) -> None:
    for path in (checkout, checkout / "configs" / "tasks"):
        assert {"toy-ships", "toy-ships-l1", "game"} <= find_tasks([path]).keys()
    task = find_tasks([checkout / "configs" / "tasks" / "toyShips.yaml"])["toy-ships"]
    assert load_task(task.path) == task
    assert (task.spec.metric.name, task.spec.metric.direction, task.spec.limits.script_time) == ("RMSE", "minimize", 60)
    assert "train.csv and test.csv, with x and y." in task.problem and "/home/agent" not in task.problem
    assert sorted(path.name for path in task.starter.iterdir()) == ["baseline.py", "evaluate.py", "helpers"], (
        "and nothing else of its folder"
    )
    assert "answers" in task.notices[0]
    data = prepare(task, "full").data
    assert sorted(path.name for path in (data.public / "data").iterdir()) == ["answers.csv", "test.csv"]


def run(checkout: Path, tmp_path: Path, task: str, file: str, text: str) -> dict[str, object]:
    """What `mlab run` says of an agent that writes one file."""
    written = reply("Write File", json.dumps({"file_name": file, "content": text}))
    model = script(tmp_path / "replies.yaml", written, reply("Final Answer", '{"final_answer": "done"}'))
    found = mlab("run", task, "--task-path", checkout, "--variant", "full", "--model", model, "--log-dir", tmp_path / "runs", "--json")
    assert found.returncode == 0, found.stderr
    assert "lies in the workspace" in found.stderr
    said = dict(json.loads(found.stdout))
    assert "answers_visible" in said["flags"]
    return said


def test_a_table_is_scored_and_compared_with_the_baselines_script(checkout: Path, tmp_path: Path) -> None:
    said = run(checkout, tmp_path, "toy-ships", "submission.csv", "y\n2.0\n3.0\n")
    assert (said["ended"], said["verdict"]) == ("final_answer", "success"), said
    assert said["score"] == pytest.approx(0.5**0.5) and said["baseline"] == pytest.approx(5**0.5), "the starter's, measured here"


def test_without_a_script_the_baselines_score_is_what_counts(checkout: Path, tmp_path: Path) -> None:
    assert run(checkout, tmp_path, "toy-ships-l1", "submission.csv", "y\n2.0\n3.0\n")["verdict"] == "success"
    bad = run(checkout, tmp_path, "toy-ships-l1", "submission.csv", "y\n2.0\n")
    assert bad["verdict"] == "invalid_submission" and "another number of rows" in str(bad["reason"])


def test_code_that_is_submitted_runs_in_the_sandbox_beside_an_evaluation_of_its_own(checkout: Path, tmp_path: Path) -> None:
    said = run(checkout, tmp_path, "game", "strategy.py", "def play(turn):\n    return 2\n")
    assert (said["verdict"], said["score"]) == ("success", 8.0), said
    forged = run(checkout, tmp_path, "game", "evaluate.py", "print('{\"Score\": 1000}')\n")
    assert (forged["verdict"], forged["score"]) == ("no_improvement", 4.0), "its evaluate.py is not the agent's"


def test_a_task_without_data_whose_evaluation_lies_elsewhere_and_prints_much(checkout: Path, tmp_path: Path) -> None:
    (checkout / "configs" / "tasks" / "game.yaml").write_text(
        "id: game\nname: A game {x}\ndescription: Play {it}.\ntask_entrypoint: PythonSubmissionTasks\nbaseline_paths: [strategy.py]\n"
        "starter_code: [data/game/strategy.py, data/game/code/evaluate.py]\nbaseline_scores: [{Score: 4}]\n"
        "evaluation_paths: [evaluate.py]\n"
    )
    (checkout / "data" / "game" / "code").mkdir()
    (checkout / "data" / "game" / "evaluate.py").rename(checkout / "data" / "game" / "code" / "evaluate.py")
    (checkout / "data" / "game" / "code" / "evaluate.py").write_text(PLAY.replace("range(4))}", "range(4))}, indent=2"))
    assert "Play {it}." in load_task(checkout / "data" / "game" / "game").problem
    said = run(checkout, tmp_path, "game", "strategy.py", "def play(turn):\n    return 3\n")
    assert (said["verdict"], said["score"], said["baseline"]) == ("success", 12.0, 4.0)


@pytest.mark.parametrize(
    ("file", "old", "new", "words"),
    [
        ("configs/tasks/toyShips.yaml", "CSVSubmissionTasks", "LMSubmissionTasks", "'LMSubmissionTasks' are not supported"),
        ("configs/tasks/toyShips.yaml", "evaluation_paths", "paths", "KeyError: 'evaluation_paths'"),
        ("configs/tasks/toyShips.yaml", "data/toy/evaluate.py", "data/toy/gone.py", "there is no .*gone.py"),
        ("configs/datasets/toy.yaml", "is_local: true", "is_local: false", "its data is not in the checkout"),
        ("data/toy/direction.txt", "minimize RMSE", "up", "write `maximize score` or `minimize score` into"),
    ],
)
def test_what_cannot_be_read_is_one_line(checkout: Path, file: str, old: str, new: str, words: str) -> None:
    text = (checkout / file).read_text()
    assert old in text
    (checkout / file).write_text(text.replace(old, new))
    with pytest.raises(TaskError, match=words) as error:
        load_task(checkout / "data" / "toy" / "toyShips")
    assert "\n" not in str(error.value)
