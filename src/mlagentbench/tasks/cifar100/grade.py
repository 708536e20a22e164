"""Score predictions by their accuracy, as cifar10 does, over a hundred classes."""

from __future__ import annotations

from mlagentbench.grading.context import GradingContext
from mlagentbench.records import Score
from mlagentbench.tasks.cifar10.grade import accuracy

CLASSES = 100


def grade(context: GradingContext) -> Score:
    """Return the share of the test pictures whose class is right.

    Raises:
        InvalidSubmission: the table lacks pictures or classes, or holds a value that is no probability.
    """
    return accuracy(context, CLASSES)
