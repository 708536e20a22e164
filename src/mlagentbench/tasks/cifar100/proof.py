"""The task's proof: that of cifar10, over a hundred classes."""

from __future__ import annotations

from collections.abc import Mapping

from mlagentbench import Files, Invalid, Prepared, edited_starter
from mlagentbench.tasks.cifar10.proof import NETWORK, refused, uninformed
from mlagentbench.tasks.cifar100.grade import TABLE

oracle = TABLE.oracle


def naive(data: Prepared) -> Mapping[str, Files]:
    """Return submissions that must score worse."""
    return uninformed(TABLE, data)


def invalid(data: Prepared) -> Mapping[str, Invalid]:
    """Return submissions that must be refused."""
    return refused(TABLE, data)


def solution() -> Files:
    """Return a script that must win."""
    return {"train.py": NETWORK}


def ineffective() -> Files:
    """Return a script that must not win: twice as many epochs, which the rules forbid and which gain little."""
    return edited_starter(__file__, {"EPOCHS = 10": "EPOCHS = 20"})
