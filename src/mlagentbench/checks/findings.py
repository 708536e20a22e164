"""The records of a task's check: findings by name, and the numbers measured."""

from __future__ import annotations

from typing import Literal, get_args

from mlagentbench.records import Record, Variant

Status = Literal["ok", "failed", "skipped"]

ScoreFinding = Literal[
    "starter",
    "spread",
    "oracle",
    "direction",
    "naive",
    "constant",
    "shuffled",
    "row order",
    "ids",
    "invalid",
    "solution",
    "ineffective",
]
"""The names of the findings that depend on scores."""

LeakFinding = Literal["label column", "proxy column", "order", "metadata", "duplicates", "copies"]
"""The names of the findings on leaks."""

Name = Literal["spec", "problem", "extras", "data", "deterministic", "seeded", "proof", "grader", ScoreFinding, LeakFinding]

SCORES: tuple[ScoreFinding, ...] = get_args(ScoreFinding)
LEAKS: tuple[LeakFinding, ...] = get_args(LeakFinding)


class Finding(Record):
    """The result of one of the checks."""

    name: Name
    status: Status
    detail: str = ""
    """In one line: what is wrong and what to do if it failed, why if it was skipped; empty if all is well."""


class Numbers(Record):
    """The numbers measured, scores in the metric's unit; None for those not measured."""

    starter: tuple[float, ...] = ()
    """The starter's scores, one a run; runs without a score are left out."""
    starter_seconds: tuple[float, ...] = ()
    starter_spread: float | None = None
    """The standard deviation of the starter's scores over their mean; None for fewer than two."""
    baseline: float | None = None
    """What `solution` and `ineffective` are compared with: the starter's mean score, or the predictor's if the starter does not run. None
    if the grader measures the starter beside each submission."""
    oracle: float | None = None
    """The score of the best oracle submission."""
    constant: float | None = None
    shuffled: float | None = None
    naive_improvement: float | None = None
    """That of the best naive submission but the one that stands for the starter, relative as `solution_improvement`."""
    solution: float | None = None
    solution_seconds: float | None = None
    solution_improvement: float | None = None
    """Relative to the baseline, or to the starter measured beside it; None also for a baseline of 0."""
    solution_success: bool | None = None
    ineffective: float | None = None
    ineffective_improvement: float | None = None
    ineffective_success: bool | None = None
    invalid: int = 0
    """The number of submissions that must be refused."""
    refused: int = 0
    """How many of them were refused, for the right reason."""


class Check(Record):
    """The findings of a task's check."""

    task: str
    variant: Variant
    findings: tuple[Finding, ...]
    numbers: Numbers = Numbers()
    seconds: float = 0.0

    @property
    def verdict(self) -> Status:
        """`failed` if any finding failed; `skipped` if packages were missing, so that nothing could be run; else `ok`."""
        if self.failed:
            return "failed"
        return "skipped" if self.status("extras") == "skipped" else "ok"

    @property
    def failed(self) -> tuple[Finding, ...]:
        """The failed findings."""
        return tuple(finding for finding in self.findings if finding.status == "failed")

    def status(self, name: Name) -> Status | None:
        """Return the status of a finding; None if there is no such finding."""
        return next((finding.status for finding in self.findings if finding.name == name), None)


def ok(name: Name) -> Finding:
    """Return a finding that all is well."""
    return Finding(name=name, status="ok")


def failed(name: Name, detail: str) -> Finding:
    """Return a finding that something is wrong."""
    return Finding(name=name, status="failed", detail=" ".join(detail.split()))


def skipped(name: Name, detail: str) -> Finding:
    """Return a finding that something could not be checked, or does not apply to the task."""
    return Finding(name=name, status="skipped", detail=" ".join(detail.split()))
