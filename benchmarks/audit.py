"""How well the audit judges claims, and how long it takes.

    python benchmarks/audit.py [--quick] [LOGS]

The first part compares its verdicts with those of a person who read five real runs (tests/audit/claims.jsonl). A claim is bad if it is
unsupported or contradicted; precision and recall are of bad claims, with 95% intervals (Wilson), apart for the runs that the rules were
written with and for those that were kept aside. LOGS are the original's logs; by default ../shared/data/original_logs. The second part
audits 200 runs of 50 steps.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from mlagentbench.audit.audit import audit_run
from mlagentbench.audit.claims import judge_claims
from mlagentbench.audit.evidence import history
from mlagentbench.audit.record import Claim
from mlagentbench.original.write import import_logs
from mlagentbench.results.statistics.intervals import success_rate
from mlagentbench.rundir.directory import find_runs
from tests.example_experiment import CONTESTANTS, TASKS, write_experiment

ROOT = Path(__file__).parents[1]
LABELS = ROOT / "tests" / "audit" / "claims.jsonl"
BAD = ("unsupported", "contradicted")


class Judged(NamedTuple):
    """A reader's verdict and the audit's on one statement; `no_claim` where either sees none."""

    read: str
    audited: str


class Agreement(NamedTuple):
    """How well bad claims are found."""

    found: int
    missed: int
    wrongly: int

    @property
    def precision(self) -> float:
        return self.found / (self.found + self.wrongly)

    @property
    def recall(self) -> float:
        return self.found / (self.found + self.missed)


def judged(logs: Path, scratch: Path, *, held_out: bool) -> list[Judged]:
    """Return the verdicts on every labelled statement, and on every other that the audit takes for a claim."""
    labels = [json.loads(line) for line in LABELS.read_text().splitlines()]
    every: list[Judged] = []
    for log in dict.fromkeys(label["log"] for label in labels if label["held_out"] == held_out):
        (run,) = import_logs(logs / log, scratch / log.replace("/", "-"))
        assert run.run is not None, run.reason
        claims = judge_claims(run.run.steps, history(run.run.steps, run.run.info.description))
        every += _paired([label for label in labels if label["log"] == log], claims)
    return every


def _paired(labels: Iterable[dict[str, str]], claims: list[Claim]) -> list[Judged]:
    left = list(claims)
    pairs = []
    for label in labels:
        claim = next((claim for claim in left if _is(claim, label)), None)
        if claim is not None:
            left.remove(claim)
        pairs.append(Judged(label["verdict"], claim.verdict if claim else "no_claim"))
    return pairs + [Judged("no_claim", claim.verdict) for claim in left]


def _is(claim: Claim, label: dict[str, str]) -> bool:
    same = (claim.step, claim.place, claim.value, claim.kind) == (label["step"], label["place"], label["value"], label["kind"])
    return same and (label["quote"] in claim.quote or claim.quote in label["quote"])


def precision_and_recall(every: Iterable[Judged]) -> Agreement:
    """Count how many bad claims are found."""
    pairs = [(pair.read in BAD, pair.audited in BAD) for pair in every]
    return Agreement(pairs.count((True, True)), pairs.count((True, False)), pairs.count((False, True)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="8 runs of 10 steps in the second part")
    parser.add_argument("logs", nargs="?", type=Path, default=ROOT.parent / "shared" / "data" / "original_logs")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        if arguments.logs.exists():
            for held_out in (False, True):
                every = judged(arguments.logs, Path(name), held_out=held_out)
                _print("kept aside" if held_out else "worked with", every)
        else:
            print(f"no claims of real runs: there is no {arguments.logs}")
        _time(Path(name) / "logs", quick=arguments.quick)


def _print(part: str, every: list[Judged]) -> None:
    found = precision_and_recall(every)
    agreed = sum(pair.read == pair.audited for pair in every)
    precision = success_rate(found.found, found.found + found.wrongly)
    recall = success_rate(found.found, found.found + found.missed)
    print(
        f"{part:<11}  {len(every)} statements, {agreed} with the reader's verdict; bad claims: precision {precision.value:.2f}"
        f" [{precision.low:.2f}, {precision.high:.2f}], recall {recall.value:.2f} [{recall.low:.2f}, {recall.high:.2f}]"
    )


def _time(logs: Path, *, quick: bool) -> None:
    length = 10 if quick else 50
    shape = {"tasks": TASKS[:2] if quick else TASKS[:5], "contestants": CONTESTANTS[: 2 if quick else 5], "runs": 2 if quick else 8}
    runs = write_experiment(logs, **shape, steps=length, shortest=length, observation=3000)
    began, used = time.perf_counter(), time.process_time()
    claims = sum(len(audit_run(directory, None).claims) for directory in find_runs(logs))
    seconds, used = time.perf_counter() - began, time.process_time() - used
    print(f"{runs} runs of {length} steps with {claims} claims: audited in {seconds:.1f} s, {used:.1f} s of them of a processor")


if __name__ == "__main__":
    main()
