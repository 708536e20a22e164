"""A task with a planted fault is told so, by the fault's name and no other's. One without is in `cli/test_tasks_check.py`."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from mlagentbench.checks import check as check_module
from mlagentbench.checks import task_code
from mlagentbench.checks.check import CheckSettings, check
from mlagentbench.checks.findings import Check, Name
from mlagentbench.data.prepare import prepared
from mlagentbench.errors import TaskError
from mlagentbench.task.catalogue import Task, load_task
from mlagentbench.task.new import new_task
from mlagentbench.task.seeds import SEED

Plant = Callable[[str, str, str], None]
"""Replace a text of a file of the task by another; the text is there once."""

pytestmark = pytest.mark.slow


@pytest.fixture
def task(tmp_path: Path) -> Task:
    """A new task, as `mlab tasks new` makes it."""
    return new_task("my-task", tmp_path)


@pytest.fixture
def plant(task: Task) -> Plant:
    def change(file: str, old: str, new: str) -> None:
        path = task.folder / file
        text = path.read_text()
        assert text.count(old) == 1, f"{old!r} is in {file} {text.count(old)} times"
        path.write_text(text.replace(old, new))

    return change


def checked(task: Task) -> Check:
    return asyncio.run(check(load_task(task.folder), CheckSettings(threads=1)))


def failures(found: Check) -> dict[Name, str]:
    return {finding.name: finding.detail for finding in found.failed}


def leaks(task: Task) -> dict[Name, str]:
    """What the worker of a check finds in a task's data, in this process: nothing is run and nothing graded."""
    with tempfile.TemporaryDirectory() as folder:
        public, private, out = (os.path.join(folder, name) for name in ("public", "private", "proofs"))
        task_code.main(["prepare", str(task.folder), str(SEED), public, private])
        os.mkdir(out)
        task_code.main(["prove", str(task.folder), public, private, out])
        found = task_code.Proofs.model_validate_json(Path(out, task_code.PROOFS).read_bytes()).leaks
    return {finding.name: finding.detail for finding in found if finding.status == "failed"}


# ------------------------------------------------------------------------------------------------ leaks


def test_a_label_column_left_in_for_a_part_of_the_rows_is_caught(task: Task, plant: Plant) -> None:
    some = "test.with_columns(pl.when(pl.int_range(pl.len()) < 30).then(TARGET).otherwise(None).alias(TARGET)).write_csv"
    plant("prepare.py", "test.drop(TARGET).write_csv", some)
    assert "(100% of 30)" in leaks(task)["label column"]


def test_a_column_from_which_the_answers_can_be_read_is_caught(task: Task, plant: Plant) -> None:
    plant("prepare.py", "test.drop(TARGET).write_csv", "test.with_columns(hardness=pl.col(TARGET).log().round(2)).drop(TARGET).write_csv")
    found = leaks(task)
    assert found.keys() == {"proxy column"}
    assert "the column 'hardness' of test.csv tells strength" in found["proxy column"]


def test_ids_in_the_order_of_the_answers_are_caught(task: Task, plant: Plant) -> None:
    plant("prepare.py", "test = frame.head(round(TEST_SHARE * len(frame)))", "test = _sorted(frame.head(round(TEST_SHARE * len(frame))))")
    plant(
        "prepare.py",
        "def write(",
        "def _sorted(test: pl.DataFrame) -> pl.DataFrame:\n"
        "    return test.sort(TARGET).with_columns(id=test['id'].sort()).sample(fraction=1, shuffle=True, seed=1)\n\n\ndef write(",
    )
    found = leaks(task)
    assert found.keys() == {"order"}
    assert "the id" in found["order"]


def test_rows_in_the_order_of_the_answers_are_caught(task: Task, plant: Plant) -> None:
    plant("prepare.py", "test.drop(TARGET).write_csv", "test.sort(TARGET).drop(TARGET).write_csv")
    found = leaks(task)
    assert found.keys() == {"order"}
    assert "the order of rows of test.csv" in found["order"]


@pytest.mark.parametrize(
    "copy, where",
    [
        ('test.select("id", TARGET).write_csv(public / "backup.csv")', "public/backup.csv"),
        ('(public / "notes.txt").write_text("\\n".join(map(str, test[TARGET])))', "public/notes.txt"),
        ('(public / "cache.bin").write_bytes(b"HEAD" + test[TARGET].to_numpy().tobytes())', "public/cache.bin"),
        ('np.savez_compressed(public / "cache.npz", y=test[TARGET].to_numpy().astype("f4"))', "public/cache.npz/y.npy"),
    ],
)
def test_answers_copied_into_public_are_caught_however_they_are_written(task: Task, plant: Plant, copy: str, where: str) -> None:
    plant("prepare.py", '    test.select("id", TARGET).write_csv(private', f'    {copy}\n    test.select("id", TARGET).write_csv(private')
    found = leaks(task)
    assert where in found["copies"]


def test_answers_in_the_starter_and_a_history_of_its_own_are_caught(task: Task) -> None:
    private = prepared(task, "mini", task.folder.parent / "cache").private
    (task.starter / "notes.txt").write_text("what I know:\n" + (private / "answers.csv").read_text())
    assert "starter/notes.txt" in leaks(task)["copies"]
    (task.starter / "notes.txt").unlink()
    (task.starter / ".git").mkdir()
    (task.starter / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    assert ".git" in leaks(task)["copies"]


FILES = """
    import os

    (public / "batches").mkdir()
    for place, (number, strength) in enumerate(sorted({order})):
        path = public / "batches" / f"{{number}}.txt"
        path.write_text({content})
        {more}
"""


@pytest.mark.parametrize(
    "order, content, more, expected",
    [
        ('zip(test["id"], test[TARGET])', '"a batch"', "os.utime(path, (strength * 1e4, strength * 1e4))", "the time of change"),
        ('zip(test["id"], test[TARGET])', '"x" * int(strength * 1000)', "os.utime(path, (0, 0))", "the size"),
    ],
)
def test_files_that_tell_by_their_times_or_sizes_are_caught(
    task: Task, plant: Plant, order: str, content: str, more: str, expected: str
) -> None:
    plant("prepare.py", "    frame.tail(", FILES.format(order=order, content=content, more=more) + "    frame.tail(")
    found = leaks(task)
    assert found.keys() == {"metadata"}
    assert f"{expected} of batches tells strength" in found["metadata"]


# ------------------------------------------------------------------------------------------------ data


def unproven(task: Task) -> dict[Name, str]:
    """What a check finds in a task without proofs: its folder and its data, since nothing is run or graded."""
    (task.folder / "proof.py").unlink()
    found = failures(checked(task))
    assert "has no proof.py" in found.pop("proof")
    return found


def test_a_generator_that_forgets_its_seed_and_data_that_is_not_made_are_caught(task: Task, plant: Plant) -> None:
    plant("prepare.py", "600, np.random.default_rng(seed)", "600, np.random.default_rng(7)")
    plant("task.toml", '["train.csv", "test.csv"]', '["train.csv", "test.csv", "more.csv"]')
    found = unproven(task)
    assert found.keys() == {"seeded", "data"}
    assert "more.csv" in found["data"]


@pytest.mark.parametrize("seed", ["", "[seed, hash('concrete') % 1000]", "[seed, __import__('time').localtime(0).tm_hour]"])
def test_data_that_hangs_on_more_than_the_seed_is_caught(task: Task, plant: Plant, seed: str) -> None:
    plant("prepare.py", "600, np.random.default_rng(seed)", f"600, np.random.default_rng({seed})")
    found = unproven(task)
    assert found.keys() == {"deterministic"}
    assert "answers.csv differs" in found["deterministic"] or "test.csv differs" in found["deterministic"]


def test_a_preparation_that_fails_says_why(task: Task, plant: Plant) -> None:
    plant("prepare.py", "    cement = ", "    raise RuntimeError('no sand')\n    cement = ")
    found = checked(task)
    assert "RuntimeError: no sand" in failures(found)["data"]
    assert found.verdict == "failed"


# ------------------------------------------------------------------------------------------------ the grader, the starter, and proofs


BY_HAND = """
def grade(context):
    import polars as pl

    from mlagentbench.task.tables import align

    submission = context.submission.read_bytes("submission.csv")
    answers = TABLE.answers(context.private)
    columns = {**TABLE.columns}
    found = align(submission, "submission.csv", ids=answers["id"], id_column="id", columns=columns)
    return TABLE.metric(answers, found)
"""
"""A grader that does what `TABLE.grade` does, for faults to be planted in."""


class Fault(NamedTuple):
    """Changes of a task's files, and all that a check must then find wrong: words of the finding, by its name."""

    changes: Sequence[tuple[str, str, str]]
    found: Mapping[Name, str]


LABELS = Fault(
    [("prepare.py", "test.drop(TARGET).write_csv", "test.write_csv")],
    {"label column": "test.csv has the answers in its column 'strength' (100% of 200)", "proxy column": ""},
)
NO_IDS = Fault(
    [("grade.py", "    return TABLE.", '    found["strength"] = pl.read_csv(submission)["strength"].to_numpy()\n    return TABLE.')],
    {"row order": "does not go by the ids", "oracle": "'rows reversed' by", "naive": ""},
)
SWAPPED = Fault(
    [
        ("proof.py", "\nsolution =", "\nother ="),
        ("proof.py", "\nineffective =", "\nsolution ="),
        ("proof.py", "\nother =", "\nineffective ="),
    ],
    {"solution": "no success", "ineffective": "a success for one changed setting"},
)
TAKES_INVALID = Fault(
    [
        ("grade.py", "    submission = context", "    lenient = context"),
        ("grade.py", "    columns = {", '    submission = lenient.replace(b"inf", b"0").replace(b"NaN", b"0")\n    columns = {'),
    ],
    {"invalid": "each of 'NaN', 'infinite' is taken, with a score of"},
)
CRASHES = Fault(
    [("grade.py", "    columns = {", "    pl.read_csv(submission)\n    columns = {")], {"invalid": "'empty' crashes the grader"}
)
SAYS_NOTHING = Fault(
    [
        (
            "grade.py",
            "    found = align(",
            "    from mlagentbench.errors import InvalidSubmission\n\n"
            "    try:\n        align(submission, 'x', ids=answers['id'], id_column='id', columns=columns)\n"
            "    except InvalidSubmission:\n        raise InvalidSubmission('invalid') from None\n    found = align(",
        )
    ],
    {"invalid": "is refused with 'invalid', which does not hold"},
)
FAILING_STARTER = Fault(
    [("starter/train.py", "def main():\n", "def main():\n    raise NotImplementedError('fill me in')\n")],
    {"starter": "NotImplementedError: fill me in", "solution": "", "ineffective": ""},
)
STARTER_LEAVES_NOTHING = Fault(
    [("starter/train.py", '"submission.csv"', '"output.csv"')], {"starter": "left no submission", "solution": "", "ineffective": ""}
)
NO_CONSTANT = Fault(
    [("proof.py", "TABLE.naive,", "lambda data: {'shuffled': TABLE.naive(data)['shuffled']},")],
    {"constant": "no naive submission 'constant'"},
)
RUNNING_STUB = Fault(
    [("task.toml", 'state = "runs"', 'state = "stub"\npredictor = "constant"')], {"starter": 'say state = "runs"', "ineffective": ""}
)


@pytest.mark.parametrize(
    "faults",
    [
        (LABELS, NO_IDS, SAYS_NOTHING, SWAPPED),
        (CRASHES, FAILING_STARTER),
        (STARTER_LEAVES_NOTHING, NO_CONSTANT),
        (RUNNING_STUB, TAKES_INVALID),
    ],
    ids=["labels, ids, reasons, proofs", "crash, failing starter", "nothing left, no constant", "stub, invalid taken"],
)
def test_each_fault_is_told_by_its_name_and_nothing_else_is(task: Task, plant: Plant, faults: Sequence[Fault]) -> None:
    """Faults that do not touch one another are planted together, since each check runs and grades everything."""
    plant("grade.py", "grade = TABLE.grade\n", BY_HAND)
    for fault in faults:
        for change in fault.changes:
            plant(*change)
    found = failures(checked(task))
    expected = {name: words for fault in faults for name, words in fault.found.items()}
    assert found.keys() == expected.keys()
    assert {name: words in found[name] for name, words in expected.items()} == dict.fromkeys(expected, True), found


def test_a_reversed_metric_and_a_starter_whose_luck_is_a_success_are_caught(task: Task, plant: Plant, tmp_path: Path) -> None:
    plant("task.toml", 'direction = "minimize"', 'direction = "maximize"')
    # With the first three seeds it scores the same, by rows in another order: the seed matters, and so all eight are run.
    lucky = "np.roll(list(zip(ids, (predicted + (SEED > 2) * 30 * SEED).round(3), strict=True)), SEED, axis=0)"
    plant("starter/train.py", "zip(ids, predicted.round(3), strict=True)", lucky)
    note = f"open({str(tmp_path / 'graders')!r}, 'a').write(f'{{os.getpid()}} {{context.seed}}\\n')"
    plant("grade.py", "grade = TABLE.grade", f"\n\ndef grade(context):\n    {note}\n    return TABLE.grade(context)\n\n")
    plant("grade.py", "from mlagentbench", "import os\n\nfrom mlagentbench")
    found = failures(checked(task))
    assert {"direction", "oracle", "spread"} <= found.keys()
    assert "is metric.direction reversed?" in found["direction"]
    assert "with 8 seeds" in found["spread"] and "seeds alone can be a success" in found["spread"]
    graders = Counter((tmp_path / "graders").read_text().splitlines())
    by_starters = [line for line in graders if line.endswith("None")]
    assert len(graders) == 3, "one for what must be scored, one for what must be refused, and one for the scripts"
    assert [graders[line] for line in by_starters] == [8 + 2], "with all seeds, and over it the solution and the ineffective change"


def test_a_grader_that_scores_all_alike_is_caught(task: Task, plant: Plant) -> None:
    plant("grade.py", "import Number, TableTask, root_mean_squared_error", "import Number, Score, TableTask")
    plant("grade.py", "root_mean_squared_error", "lambda answers, found: Score(value=1.0)")
    assert {"naive", "constant", "shuffled", "ids", "oracle", "solution"} <= failures(checked(task)).keys()


def test_a_stub_is_compared_with_its_predictor(task: Task, plant: Plant) -> None:
    plant("task.toml", 'state = "runs"', 'state = "stub"\npredictor = "constant"')
    plant("starter/train.py", "def main():\n", "STUB = True\n\n\ndef main():\n    if STUB:\n        raise NotImplementedError\n")
    plant("proof.py", "BETTER = {", 'BETTER = {"STUB = True": "STUB = False", ')
    plant("proof.py", '"RIDGE = 10"}', '"RIDGE = 1e9", "STUB = True": "STUB = False"}')
    found = checked(task)
    assert failures(found) == {}
    assert found.numbers.baseline == found.numbers.constant
    assert found.numbers.starter == ()


# ------------------------------------------------------------------------------------------------ the folder


@pytest.mark.parametrize(
    "file, old, new, name, expected",
    [
        (
            "problem.md",
            "Running `train.py` must leave `submission.csv`, with a",
            "It must leave a table with a",
            "problem",
            "submission.csv",
        ),
        ("task.toml", 'script = "train.py"', 'script = "main.py"', "spec", "main.py"),
        ("task.toml", 'state = "runs"', 'state = "broken"', "spec", "starter.predictor"),
    ],
)
def test_parts_that_do_not_fit_together_are_told(
    task: Task, plant: Plant, file: str, old: str, new: str, name: Name, expected: str
) -> None:
    plant(file, old, new)
    (task.folder / "prepare.py").unlink()
    found = unproven(task)
    assert found.keys() == {name} and expected in found[name]


def test_proofs_that_lack_a_function_are_told(task: Task, plant: Plant) -> None:
    plant("proof.py", "oracle, naive, invalid =", "golden, naive, invalid =")
    assert "has no attribute 'oracle'" in failures(checked(task))["proof"]


def test_extras_that_are_not_installed_are_said_with_the_command(task: Task, plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant("task.toml", "gpu = false", 'gpu = false\nextras = ["vision"]')

    def absent(task: Task) -> None:
        raise TaskError('the task my-task needs torch; install with: pip install "mlagentbench[vision]"')

    monkeypatch.setattr(check_module, "require_extras", absent)
    found = checked(task)
    assert found.verdict == "skipped" and failures(found) == {}
    assert "pip install" in next(finding.detail for finding in found.findings if finding.name == "extras")
