"""The grader of tasks of the original's layout: their own `scripts/eval.py`, in the grader's process.

`get_score(submission_folder)` returns a number or raises, as in the original. It may import or unpickle the submission: such tasks' notices
say so.
"""

from __future__ import annotations

import importlib.util
import math
import os
import sys
from collections.abc import Callable
from pathlib import Path

from mlagentbench import GradingContext, InvalidSubmission, Score

LARGEST = 1 << 37
"""The most bytes of a submission, which is the whole workspace, checkpoints included."""


def grade(folder: Path, context: GradingContext) -> Score:
    """Have `eval.py` score a copy of the submission.

    Args:
        folder: the task's folder.
        context: as for any grader. Its private folder holds the task if it was prepared, in the original's layout.

    Raises:
        InvalidSubmission: `eval.py` raised because of the submission, or gave no finite number.
    """
    if (prepared := context.private / "task").is_dir():
        folder = prepared
    submission = context.scratch / "submission"
    context.submission.copy_to(submission, LARGEST)
    # It may download files into the working directory, which must not be the user's.
    os.chdir(context.scratch)
    try:
        value = _scorer(folder / "scripts" / "eval.py")(str(submission))
    except InvalidSubmission:
        raise
    except Exception as error:
        if _is_own_fault(error, submission):
            raise
        # The original's graders raise to say what the submission lacks.
        raise InvalidSubmission(f"eval.py could not score it: {type(error).__name__}: {error}") from error
    finally:
        os.chdir("/")
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise InvalidSubmission(f"eval.py gave {value!r:.80}, which is no number") from None
    if not math.isfinite(number):
        raise InvalidSubmission(f"eval.py gave {number}, which is no score")
    return Score(value=number)


def _scorer(path: Path) -> Callable[[str], object]:
    """Load `get_score` from `eval.py` anew, so that it can import the modules beside it, as in the original."""
    spec = importlib.util.spec_from_file_location("mlagentbench_original_eval", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise RuntimeError(f"{path} is missing: the task has no grader")
    module = importlib.util.module_from_spec(spec)
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    spec.loader.exec_module(module)
    scorer = getattr(module, "get_score", None)
    if not callable(scorer):
        raise RuntimeError(f"{path} has no function get_score")
    return scorer  # type: ignore[no-any-return]


def _is_own_fault(error: Exception, submission: Path) -> bool:
    """Return whether an error is the grader's own, such as a missing package or file outside of the submission, or too little memory."""
    if isinstance(error, ImportError | RuntimeError | MemoryError):
        return True
    name = getattr(error, "filename", None)
    return isinstance(error, OSError) and name is not None and not Path(os.fsdecode(name)).absolute().is_relative_to(submission)
