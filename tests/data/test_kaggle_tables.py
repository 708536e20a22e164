"""The four tasks whose data are tables of Kaggle's, prepared in full from a server that stands for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import polars as pl
import pytest

from mlagentbench.data.prepare import prepare
from mlagentbench.errors import TaskError
from mlagentbench.task.catalogue import BUILT_IN, Task, load_task
from mlagentbench.tasks.feedback.essays import essays
from mlagentbench.tasks.house_price.houses import houses
from mlagentbench.tasks.parkinsons_disease.visits import tables
from mlagentbench.tasks.spaceship_titanic.passengers import passengers
from tests.mirror import Mirror
from tests.tasks.by_hand import score

pytest.importorskip("kagglesdk")


def trials() -> Mapping[str, pl.DataFrame]:
    """The tables of the AMP-PD challenge, by their names there."""
    made = tables(seed=7)
    names = ("train_clinical_data.csv", "train_proteins.csv", "train_peptides.csv", "supplemental_clinical_data.csv")
    return dict(zip(names, made, strict=True))


class Competition(NamedTuple):
    """What a task takes from Kaggle."""

    slug: str
    files: Callable[[], Mapping[str, pl.DataFrame]]
    answers: str
    """The column of ids of its answers."""
    test: int
    """Rows of its test, or patients."""


COMPETITIONS = {
    "house_price": Competition("home-data-for-ml-course", lambda: {"train.csv": houses(101, seed=7)}, "Id", 21),
    "spaceship_titanic": Competition("spaceship-titanic", lambda: {"train.csv": passengers(101, seed=7)}, "PassengerId", 21),
    "parkinsons_disease": Competition("amp-parkinsons-disease-progression-prediction", trials, "prediction_id", 24),
    "feedback": Competition("feedback-prize-english-language-learning", lambda: {"train.csv": essays(101, seed=7)}, "text_id", 2),
}


@pytest.fixture(params=COMPETITIONS)
def task(request: pytest.FixtureRequest) -> Task:
    return load_task(BUILT_IN / request.param)


def serve(task: Task, mirror: Mirror, *, accepted: bool = True) -> Competition:
    competition = COMPETITIONS[task.folder.name]
    left_behind = {"test.csv": b"Id\n1\n", "sample_submission.csv": b"Id,SalePrice\n1,2\n"}
    wanted = {name: frame.write_csv().encode() for name, frame in competition.files().items()}
    mirror.competition(competition.slug, {**left_behind, **wanted}, accepted=accepted)
    return competition


def test_the_real_data_are_fetched_parted_and_the_same_when_prepared_again(task: Task, mirror: Mirror, tmp_path: Path) -> None:
    competition = serve(task, mirror)
    made = []
    for _ in range(2):
        data = prepare(task, "full", tmp_path / "cache", force=True).data
        made.append({path.name: path.read_bytes() for path in (*data.public.iterdir(), *data.private.iterdir())})
    assert made[0] == made[1], "preparing again must not split the split"
    assert {path.name for path in data.public.iterdir()} == set(task.spec.read_only)
    assert [path.name for path in data.private.iterdir()] == ["answers.csv"]
    answers = pl.read_csv(data.private / "answers.csv", infer_schema=False)
    units = answers[competition.answers].str.extract(r"^(\d+)_").n_unique() if task.id == "parkinsons-disease" else len(answers)
    assert units == competition.test
    best = 1.0 if task.spec.metric.direction == "maximize" else 0.0
    assert score(task, data, answers, tmp_path / "submission").value == best
    sample = (data.public / "sample_submission.csv").read_bytes()
    assert score(task, data, {"submission.csv": sample}, tmp_path / "submission").value != best


def test_rules_that_nobody_accepted_stop_it_with_their_page(task: Task, mirror: Mirror, tmp_path: Path) -> None:
    serve(task, mirror, accepted=False)
    assert task.spec.data is not None and task.spec.data.consent is not None
    with pytest.raises(TaskError, match=task.spec.data.consent):
        prepare(task, "full", tmp_path / "cache")
