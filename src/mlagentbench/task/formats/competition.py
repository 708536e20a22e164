"""Read competitions of MLE-bench (arXiv 2410.07095) as tasks of this package.

    mlebench/competitions/<id>/   in a checkout of MLE-bench
      config.yaml                 the name, the answers' file, and the functions that prepare and grade
      description.md              the description
      prepare.py                  prepare(raw, public, private)
      grade.py                    grade(submission, answers) -> float, over pandas frames
      leaderboard.csv             the scores of Kaggle's private leaderboard, best first

A competition has no starter: a submission is a success if it would have won a medal, by MLE-bench's rule. Nothing of such a folder is
imported or run here.
"""

from __future__ import annotations

import csv
import datetime
import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Literal, NamedTuple, get_args

import yaml

from mlagentbench.errors import TaskError
from mlagentbench.task.formats.original import BUILT_IN, our_name
from mlagentbench.task.spec import Metric, Starter, SubmissionSpec, TaskSpec

PUBLISHED = datetime.date(2024, 10, 9)
"""The day of arXiv 2410.07095. The competitions themselves are older, and their test rows are part of Kaggle's public training data."""
STARTER = BUILT_IN / "_competition" / "starter"
DATA = "data"
"""The folder of the workspace that holds the public data."""
PUBLIC = "public"
"""The folder of the public files, which prepare.py fills."""
PRIVATE = "private"
"""The folder of the answers, which prepare.py fills."""
SUBMISSION = "submission.csv"
LARGE_FILE = "version https://git-lfs"
"""How a file begins that Git LFS has not fetched yet."""

Medal = Literal["gold", "silver", "bronze"]
MEDALS: tuple[Medal, ...] = get_args(Medal)


class Leaderboard(NamedTuple):
    """The final scores of a competition's teams, best first; NaN for a team without a score, which counts as a team all the same."""

    scores: tuple[float, ...]

    @property
    def lower_is_better(self) -> bool:
        """Whether lower scores are better: the first is lower than the last."""
        known = self._known
        return known[0] < known[-1]

    @property
    def thresholds(self) -> Mapping[Medal, float]:
        """The least good score that wins each medal, by Kaggle's rule for this number of teams (kaggle.com/progression).

        A medal whose last place went to a team without a score is left out: nobody wins it.
        """
        teams = len(self.scores)
        if teams < 250:
            places = (teams // 10 if teams < 100 else 10, teams // 5, teams * 2 // 5)
        else:
            gold = 10 + teams // 500
            places = (gold, 50, 100) if teams < 1000 else (gold, teams // 20, teams // 10)
        last: dict[Medal, float] = dict(zip(MEDALS, (self.scores[max(1, place) - 1] for place in places), strict=True))
        return {medal: least for medal, least in last.items() if not math.isnan(least)}

    @property
    def median(self) -> float:
        """The median of the scores that there are."""
        return statistics.median(self._known)

    def medal(self, score: float) -> Medal | None:
        """Return the medal that a score wins; None for none."""
        return next((medal for medal, least in self.thresholds.items() if not self._better(least, score)), None)

    def percentile(self, score: float) -> float:
        """Return the percentage of the teams with a worse score."""
        return 100 * sum(math.isnan(other) or self._better(score, other) for other in self.scores) / len(self.scores)

    @property
    def _known(self) -> Sequence[float]:
        return [score for score in self.scores if not math.isnan(score)]

    def _better(self, one: float, other: float) -> bool:
        return one < other if self.lower_is_better else one > other


def is_competition(folder: Path) -> bool:
    """Return whether a folder is a competition of MLE-bench."""
    return all((folder / name).is_file() for name in ("config.yaml", "prepare.py", "grade.py")) and not (folder / "task.toml").exists()


def task_id(folder: Path) -> str:
    """Return the id by which a competition is run: its folder's name in lower case, after `mle-` where a built-in task has this name."""
    name = our_name(folder.name)
    return f"mle-{name}" if (BUILT_IN / name.replace("-", "_")).is_dir() else name


def read_competition(folder: Path) -> TaskSpec:
    """Read the spec of a competition.

    Raises:
        TaskError: a file is missing, or does not say what it must.
    """
    config = read_config(folder)
    lower = read_leaderboard(folder).lower_is_better
    return TaskSpec(
        id=task_id(folder),
        title=str(config["name"]),
        category="competition",
        modality="of MLE-bench's layout",
        published=PUBLISHED,
        metric=Metric(name=str(config["grader"]["name"]), direction="minimize" if lower else "maximize"),
        submission=SubmissionSpec(mode="file", files=(SUBMISSION,), required=(SUBMISSION,)),
        starter=Starter(state="none"),
        read_only=(DATA,),
        extras=("tabular",),
        answers_public=True,
    )


def read_config(folder: Path) -> Mapping[str, Any]:
    """Read `config.yaml`.

    Raises:
        TaskError: it cannot be read, or lacks a part.
    """
    path = folder / "config.yaml"
    try:
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
        grader, dataset = config["grader"], config["dataset"]
        for value in (
            config["name"],
            grader["name"],
            grader["grade_fn"],
            config["preparer"],
            dataset["answers"],
            dataset["sample_submission"],
        ):
            if not isinstance(value, str):
                raise TypeError(f"{value!r} is no text")
        for key, parent in (("answers", PRIVATE), ("sample_submission", PUBLIC)):
            if parent not in PurePosixPath(dataset[key]).parts[:-1]:
                raise ValueError(f"dataset.{key} is {dataset[key]!r}, which is in no folder {parent!r}")
    except (OSError, UnicodeDecodeError, yaml.YAMLError, KeyError, TypeError, ValueError) as error:
        raise TaskError(f"{path} is no configuration of a competition of MLE-bench: {type(error).__name__}: {error}") from None
    return config  # type: ignore[no-any-return]


def read_leaderboard(folder: Path) -> Leaderboard:
    """Read `leaderboard.csv`.

    Raises:
        TaskError: it is missing, is not fetched yet, or has no scores.
    """
    path = folder / "leaderboard.csv"
    try:
        text = path.read_text(encoding="utf-8-sig")
        if text.startswith(LARGE_FILE):
            raise TaskError(f"{path} is not fetched yet; run `git lfs pull` in the checkout of MLE-bench")
        scores = [float(row["score"] or "nan") for row in csv.DictReader(text.splitlines())]
    except (OSError, UnicodeDecodeError, KeyError, TypeError, ValueError) as error:
        raise TaskError(f"{path} is no leaderboard with a column 'score': {type(error).__name__}: {error}") from None
    if all(map(math.isnan, scores)):
        raise TaskError(f"{path} has no scores")
    return Leaderboard(tuple(scores))


def answers(folder: Path, private: Path) -> Path:
    """Return the answers' file, in the folder of the private data.

    Raises:
        TaskError: as for `read_config`.
    """
    return private / _below(PRIVATE, read_config(folder)["dataset"]["answers"])


def sample(folder: Path, public: Path) -> Path:
    """Return the sample submission, which is a valid one, in the folder of the public data.

    Raises:
        TaskError: as for `read_config`.
    """
    return public / DATA / _below(PUBLIC, read_config(folder)["dataset"]["sample_submission"])


def _below(parent: str, name: str) -> PurePosixPath:
    parts = PurePosixPath(name).parts
    return PurePosixPath(*parts[parts.index(parent) + 1 :])


def problem(folder: Path) -> str:
    """Return the description that the agent is given: the competition's own, and where its files are here.

    Raises:
        TaskError: there is none.
    """
    path = folder / "description.md"
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TaskError(f"{path} cannot be read: {error}") from None
    if text.startswith(LARGE_FILE):
        raise TaskError(f"{path} is not fetched yet; run `git lfs pull` in the checkout of MLE-bench")
    metric = read_config(folder)["grader"]["name"]
    return (
        f"{text.rstrip()}\n\n---\n\nThe competition's files are in the folder `{DATA}`, with a sample submission. They are split anew, so"
        f" Kaggle's own test rows are not among them. Write your predictions for all test rows to `{SUBMISSION}`, in the form of the"
        f" sample submission. It is graded by {metric}, and is a success if it would have won a medal.\n"
    )


def notices(folder: Path) -> Sequence[str]:
    """Return warnings of what such a task cannot guarantee, a line each."""
    return (
        "its prepare.py and grade.py run with your rights; the submission is read as a table and never executed",
        "its answers are part of a public data set, which a model may have read, and its medals are those of Kaggle's own test rows",
    )
