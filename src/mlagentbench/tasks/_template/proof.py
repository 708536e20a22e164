"""The task's proof: submissions that must win, must not, and must be refused, and scripts that must win and must not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from mlagentbench.data.prepare import Prepared
from mlagentbench.task.proofs import Files, Invalid, invalid_tables, shuffled, table_text

STARTER = Path(__file__).parent / "starter" / "train.py"
LINEAR = """    return np.column_stack([np.ones(len(x)), x])
"""
BETTER = """    cement, water, fly_ash, age, plasticizer = x.T
    terms = [water / (cement + 0.3 * fly_ash), np.log(age), cement / 100, fly_ash / 100, plasticizer]
    terms += [one * other for place, one in enumerate(terms) for other in terms[place:]]
    return np.column_stack([np.ones(len(x)), *terms])
"""


def oracle(data: Prepared) -> Mapping[str, Files]:
    """Return the answers themselves."""
    return {"answers": _files(_answers(data))}


def naive(data: Prepared) -> Mapping[str, Files]:
    """Return the mean of the known strengths, and the answers under each other's ids."""
    answers, known = _answers(data), pl.read_csv(data.public / "train.csv")["strength"]
    return {
        "constant": _files(answers.with_columns(strength=pl.lit(known.mean()))),
        "shuffled": _files(shuffled(answers, "id")),
    }


def invalid(data: Prepared) -> Mapping[str, Invalid]:
    """Return tables that must be refused."""
    return dict(invalid_tables(table_text(_answers(data)), id_column="id", number_column="strength"))


def solution() -> Files:
    """Return a script that must win: it uses the ratio of water to binder, the logarithm of age, and products of all."""
    return {"train.py": STARTER.read_text(encoding="utf-8").replace(LINEAR, BETTER)}


def ineffective() -> Files:
    """Return a script that must not win: it changes next to nothing."""
    return {"train.py": STARTER.read_text(encoding="utf-8").replace("RIDGE = 1e-3", "RIDGE = 1e-2")}


def _answers(data: Prepared) -> pl.DataFrame:
    return pl.read_csv(data.private / "answers.csv")


def _files(frame: pl.DataFrame) -> Files:
    return {"submission.csv": table_text(frame)}
