"""What a check of a task comes to: findings by name, and the numbers it measured."""

from __future__ import annotations

from typing import Literal

from mlagentbench.records import Record, Variant

Status = Literal["ok", "failed", "skipped"]

Name = Literal[
    "spec",
    "problem",
    "extras",
    "data",
    "deterministic",
    "seeded",
    "starter",
    "spread",
    "proof",
    "grader",
    "gold",
    "direction",
    "naive",
    "constant",
    "shuffled",
    "row order",
    "ids",
    "junk",
    "good",
    "lazy",
    "label column",
    "oracle",
    "order",
    "metadata",
    "copies",
]
"""What is looked at, in the order in which it is told."""

LEAKS: tuple[Name, ...] = ("label column", "oracle", "order", "metadata", "copies")
"""Those of the leak lint."""


class Finding(Record):
    """One thing that was looked at, and how it was found."""

    name: Name
    status: Status
    detail: str = ""
    """Of a failed one what is wrong and what to do, of a skipped one why, in one line."""


class Numbers(Record):
    """What was measured, scores in the metric's unit; None where it was not."""

    starter: tuple[float, ...] = ()
    """The starter's scores, a run each."""
    starter_seconds: tuple[float, ...] = ()
    baseline: float | None = None
    """What `good` and `lazy` are compared with: the starter's mean, or the predictor's score that stands for it. None where the grader
    measures the starter beside each submission."""
    gold: float | None = None
    """The best of the gold submissions."""
    constant: float | None = None
    shuffled: float | None = None
    good: float | None = None
    good_seconds: float | None = None
    good_improvement: float | None = None
    """Relative to the baseline, or to the starter that was measured beside it; None also over a baseline of 0."""
    good_success: bool | None = None
    lazy: float | None = None
    lazy_improvement: float | None = None
    lazy_success: bool | None = None
    junk: int = 0
    """Submissions that must be refused."""
    refused: int = 0
    """Of these, those that were, for the reason they must be."""


class Check(Record):
    """A task's findings."""

    task: str
    variant: Variant
    findings: tuple[Finding, ...]
    numbers: Numbers = Numbers()
    seconds: float = 0.0

    @property
    def verdict(self) -> Status:
        """`failed` with any failed finding; `skipped` where nothing could be tried; else `ok`."""
        if self.failed:
            return "failed"
        return "skipped" if self.status("extras") == "skipped" else "ok"

    @property
    def failed(self) -> tuple[Finding, ...]:
        """The failed findings."""
        return tuple(finding for finding in self.findings if finding.status == "failed")

    def status(self, name: Name) -> Status | None:
        """How something was found; None where it was not looked at."""
        return next((finding.status for finding in self.findings if finding.name == name), None)


def ok(name: Name, detail: str = "") -> Finding:
    """All is well."""
    return Finding(name=name, status="ok", detail=detail)


def failed(name: Name, detail: str) -> Finding:
    """Something is wrong."""
    return Finding(name=name, status="failed", detail=" ".join(detail.split()))


def skipped(name: Name, detail: str) -> Finding:
    """It could not be looked at, or makes no sense for the task."""
    return Finding(name=name, status="skipped", detail=" ".join(detail.split()))


def some(values: list[str], most: int = 3) -> str:
    """The first few of some things, and how many more there are."""
    more = f" and {len(values) - most} more" if len(values) > most else ""
    return ", ".join(values[:most]) + more
