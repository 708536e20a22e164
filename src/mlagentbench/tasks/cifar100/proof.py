"""The task's proof: that of cifar10, over a hundred classes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from mlagentbench.data.prepare import Prepared
from mlagentbench.task.proofs import Files, Invalid, table_text
from mlagentbench.tasks.cifar10.grade import TABLE
from mlagentbench.tasks.cifar10.proof import NETWORK, junk_tables, naive_tables, table, truth
from mlagentbench.tasks.cifar100.grade import CLASSES

STARTER = Path(__file__).parent / "starter" / "train.py"


def oracle(data: Prepared) -> Mapping[str, Files]:
    """Return the classes themselves, also in another order."""
    right = table(truth(data), CLASSES)
    return {"certain": {TABLE: table_text(right)}, "other order": {TABLE: table_text(right.reverse())}}


def naive(data: Prepared) -> Mapping[str, Files]:
    """Return submissions that must score worse."""
    return naive_tables(truth(data), CLASSES)


def invalid(data: Prepared) -> Mapping[str, Invalid]:
    """Return submissions that must be refused."""
    return junk_tables(truth(data), CLASSES)


def solution() -> Files:
    """Return a script that must win."""
    return {"train.py": NETWORK}


def ineffective() -> Files:
    """Return a script that must not win: only the batches of its prediction differ from the starter's."""
    starter = STARTER.read_text(encoding="utf-8")
    return {"train.py": starter.replace("images.split(1000)", "images.split(500)")}
