"""Many runs laid out: columns, what each needed, and what must be said beside the numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlagentbench.records import Baseline
from mlagentbench.report.experiment import Experiment, Notice
from mlagentbench.results.load import load
from tests.example_runs import ExampleStep, vectorization_steps, write_run


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return tmp_path / "logs"


def titles(experiment: Experiment) -> list[str]:
    return [told.title for told in experiment.notices()]


def test_runs_stand_in_columns_that_are_not_mixed(logs: Path) -> None:
    write_run(logs, "a")
    write_run(logs, "b", isolation="none")
    write_run(logs, "c", agent="react")

    experiment = Experiment.of(load(logs))

    assert [(row.agent, row.under, row.runs) for row in experiment.leaderboard] == [
        ("research (context_steps 3)", "bubblewrap", 1),
        ("research (context_steps 3)", "none", 1),
        ("react (context_steps 3)", "bubblewrap", 1),
    ]
    assert Notice(
        "Different isolation", "bubblewrap, none. Runs that differ in it stand in columns of their own; compare across them with care."
    ) in (experiment.notices())


def test_columns_whose_runs_had_other_mini_data_are_named(logs: Path) -> None:
    for agent in ("research", "react"):
        for seed in (1, 2):
            write_run(logs, f"{agent}-{seed}", agent=agent, mini_seed=seed, flags=())
    experiment = Experiment.of(load(logs))
    assert "Different mini seeds between columns" not in titles(experiment), "each column has runs of both"
    write_run(logs, "react-3", agent="react", mini_seed=3, flags=())
    (notice,) = (each for each in Experiment.of(load(logs)).notices() if each.title == "Different mini seeds between columns")
    assert "react (context_steps 3), scripted/demo.yaml: 1, 2, 3" in notice.text
    assert "research (context_steps 3), scripted/demo.yaml: 1, 2)" in notice.text


def test_what_is_not_counted_is_named_and_in_no_mean(logs: Path) -> None:
    write_run(logs, "one", flags=())
    write_run(logs, "two", [ExampleStep("Look", seconds=9000.0)], ended="infrastructure", verdict="ungraded", flags=())
    write_run(logs, "three", finished=False)

    experiment = Experiment.of(load(logs))

    [row] = experiment.leaderboard
    assert (row.runs, dict(row.apart)) == (1, {"infrastructure": 1, "unfinished": 1})
    assert row.seconds is not None and row.seconds.value == sum(step.seconds for step in vectorization_steps())
    assert experiment.counted == 1
    assert titles(experiment) == ["2 runs not counted"]


def test_flags_are_counted_once_a_run(logs: Path) -> None:
    write_run(logs, "one", flags=("within_noise", "scripted_model"))
    write_run(logs, "two", flags=("within_noise",))

    assert sorted(titles(Experiment.of(load(logs)))) == ["scripted model: 1 of 2 counted runs", "within the noise: 2 of 2 counted runs"]


def test_an_unknown_cost_is_not_nothing(logs: Path) -> None:
    write_run(logs, "one", cost=0.01)
    write_run(logs, "two")

    [row] = Experiment.of(load(logs)).leaderboard

    # Eight steps and one call of the editor, a cent each.
    assert row.cost is not None and row.cost.value == pytest.approx(0.09)
    assert (row.priced, row.runs) == (1, 2)


def test_thresholds_count_the_last_and_the_best_step(logs: Path) -> None:
    baseline = Baseline(value=1.0, values=(1.0, 1.0), source="measured")
    # 25% better at best, 12% at last.
    steps = [ExampleStep("Look", score=score) for score in (1.0, 0.75, 0.88)]
    write_run(logs, "one", steps, baseline=baseline)

    found = {
        round(each.threshold, 2): (each.last and each.last.value, each.best and each.best.value)
        for each in Experiment.of(load(logs)).thresholds
    }

    assert found == {0.05: (1, 1), 0.1: (1, 1), 0.15: (0, 1), 0.2: (0, 1), 0.3: (0, 0)}


def test_categories_that_say_nothing_new_are_left_out(logs: Path) -> None:
    for number, (task, category) in enumerate([("a", "canonical"), ("b", "classic Kaggle")]):
        write_run(logs, f"run-{number}", task=task, category=category)
    assert Experiment.of(load(logs)).categories == {}

    write_run(logs, "run-2", task="c", category="canonical")

    assert list(Experiment.of(load(logs)).categories) == ["canonical", "classic Kaggle"]


def test_the_scores_of_a_tasks_runs_lead_to_them(logs: Path) -> None:
    directory = write_run(logs, "one")

    [curve] = Experiment.of(load(logs)).score_curves("vectorization", {directory.path: "#run-one"})

    assert (curve.link, curve.steps, curve.values[-1]) == ("#run-one", 8, 0.00303)
