"""What the task proves itself with: what cifar10 does, over a hundred classes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from mlagentbench.data.prepare import Prepared
from mlagentbench.tasks.cifar10.grade import TABLE
from mlagentbench.tasks.cifar10.proof import NETWORK, junk_tables, naive_tables, table, truth
from mlagentbench.tasks.cifar100.grade import CLASSES
from mlagentbench.tasks.proofs import Files, Junk, table_text

STARTER = Path(__file__).parent / "starter" / "train.py"


def gold(data: Prepared) -> Mapping[str, Files]:
    """The classes themselves, also in another order."""
    right = table(truth(data), CLASSES)
    return {"certain": {TABLE: table_text(right)}, "other order": {TABLE: table_text(right.reverse())}}


def naive(data: Prepared) -> Mapping[str, Files]:
    """Submissions that know nothing."""
    return naive_tables(truth(data), CLASSES)


def junk(data: Prepared) -> Mapping[str, Junk]:
    """Submissions that must be refused."""
    return junk_tables(truth(data), CLASSES)


def good() -> Files:
    """What a good agent writes."""
    return {"train.py": NETWORK}


def lazy() -> Files:
    """What an agent writes that changes nothing that counts."""
    starter = STARTER.read_text(encoding="utf-8")
    return {"train.py": starter.replace("images.split(1000)", "images.split(500)")}
