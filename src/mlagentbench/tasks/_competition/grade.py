"""Grade competitions of MLE-bench: their own `grade.py` over the submission, which is read as a table, in the grader's process.

A score is compared with Kaggle's private leaderboard, as MLE-bench does: a medal is a success.
"""

from __future__ import annotations

import io
import json
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING

from mlagentbench import GradingContext, InvalidSubmission, Score
from mlagentbench.errors import TaskError
from mlagentbench.task.formats.competition import SUBMISSION, read_config, read_leaderboard
from mlagentbench.task.formats.competition import answers as answers_file
from mlagentbench.tasks._competition.imports import function

if TYPE_CHECKING:
    import pandas as pd

LARGEST = 4 << 30
"""The most bytes of a submission; masks of many pictures are long."""
DIGITS = 5
"""Decimal places of a score, as in MLE-bench."""


def grade(folder: Path, context: GradingContext) -> Score:
    """Have `grade.py` score the submission, and say which medal it would have won.

    Args:
        folder: the competition's folder.
        context: as for any grader.

    Raises:
        InvalidSubmission: it is no table, or `grade.py` refused it or gave no finite number.
    """
    config, leaderboard = read_config(folder), read_leaderboard(folder)
    grader = function(folder, config["grader"]["grade_fn"])
    answers = _answers(answers_file(folder, context.private))
    submission = _table(context.submission.read_bytes(SUBMISSION, LARGEST), SUBMISSION)
    os.chdir(context.scratch)
    try:
        value = grader(submission, answers)
    except (ImportError, MemoryError, OSError):
        raise  # the submission's fault or the machine's: the caller has the sample submission graded to find out
    except (Exception, SystemExit) as error:
        # Graders raise InvalidSubmissionError, or whatever comes of data that they did not expect; MLE-bench treats both alike.
        raise InvalidSubmission(f"grade.py could not score it: {type(error).__name__}: {error}") from error
    finally:
        os.chdir("/")
    try:
        score = round(float(value), DIGITS)
    except (TypeError, ValueError, OverflowError):
        raise InvalidSubmission(f"grade.py gave {value!r:.80}, which is no number") from None
    if not math.isfinite(score):
        raise InvalidSubmission(f"grade.py gave {score}, which is no score")
    medal, percentile = leaderboard.medal(score), leaderboard.percentile(score)
    return Score(
        value=score,
        success=medal is not None,
        note=f"{f'{medal} medal' if medal else 'no medal'}, better than {percentile:.1f}% of {len(leaderboard.scores):,} teams",
        details={
            "medal": medal,
            "percentile": round(percentile, 2),
            "teams": len(leaderboard.scores),
            "median": leaderboard.median,
            **{f"{name}_threshold": least for name, least in leaderboard.thresholds.items()},
        },
    )


def _table(data: bytes, name: str) -> pd.DataFrame:
    """Return a CSV file as MLE-bench reads it. Given bytes, pandas neither opens other files nor unpacks or unpickles any.

    Raises:
        InvalidSubmission: it is no CSV file.
    """
    import pandas as pd

    try:
        return pd.read_csv(io.BytesIO(data), float_precision="round_trip")
    except (ValueError, pd.errors.ParserError) as error:
        raise InvalidSubmission(f"{name} is no CSV table: {error}") from None


def _answers(path: Path) -> object:
    """Return the answers: a table, or for a JSON Lines file a list of objects.

    Raises:
        TaskError: they are no table.
    """
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    try:
        return _table(path.read_bytes(), path.name)
    except InvalidSubmission as error:
        raise TaskError(f"the answers cannot be read: {error}") from None
