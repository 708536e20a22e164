"""Score predictions by their accuracy, as cifar10 does, over a hundred classes."""

from __future__ import annotations

from mlagentbench.tasks.cifar10.grade import probabilities

TABLE = probabilities(100)
grade = TABLE.grade
