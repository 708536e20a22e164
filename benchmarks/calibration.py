"""Whether the statistics keep their promises: simulated false successes, coverage of intervals, false positives and power.

    python benchmarks/calibration.py            some minutes
    python benchmarks/calibration.py --quick    some seconds, with a fortieth of the draws

Everything is simulated with a truth that is known, from a fixed seed, and shown beside its nominal value.

- **False successes**: how often another run of the unchanged starter is a success, for scores that are normal with a standard deviation of
  some percent of their mean, over a baseline of some seeds.
- **Test rows**: the same for a test set of so many rows, of which the starter gets 20% wrong: a starter that predicts the same with every
  seed, or one whose error rate varies by some percent, against a submission that is as good and wrong on other rows.
- **Best step**: the same for ten runs of the unchanged starter as ten submissions of one run: at the last, and at the best of them, which
  is chosen on the hidden test.
- **Coverage**: how often a 95% interval holds the truth. Improvements are normal, or exponential, which is as skewed as real ones are.
- **Shared baselines**: how often intervals of improvements and success rates hold the truth where all runs are compared with one
  measurement of the starter, if that is taken as exact, and as they are.
- **Tests**: how often agents that are equal are told apart at the 5% level, and how often agents that differ are, for tasks that are the
  same for both (these tasks) and for tasks whose differences scatter (other tasks).
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable, Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t

from mlagentbench.records import Baseline
from mlagentbench.results.statistics import robust
from mlagentbench.results.statistics.inference import TaskCounts, on_other_tasks, on_these_tasks, power_of, runs_needed
from mlagentbench.results.statistics.intervals import Tally, average_pass_at_k, average_rate, success_rate
from mlagentbench.task.sampling import row_score
from mlagentbench.task.spec import Metric
from mlagentbench.task.success import clears_noise, gain_error, is_success

ACCURACY = Metric(name="accuracy", direction="maximize")
ERROR_RATE = Metric(name="error rate", direction="minimize")
SEEDS = 5
SUBMISSIONS = 10
"""How many submissions an agent leaves, of which the best is chosen."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a fortieth of the draws")
    draws = 50 if parser.parse_args().quick else 2000
    random = np.random.default_rng(0)
    table("False successes of the unchanged starter (nominal: at most 5%)", false_successes(random, draws))
    table("False successes over test rows of submissions as good as the starter (nominal: at most 5%)", row_errors(random, draws // 2))
    table("Success of the unchanged starter at the last and the best of ten submissions, over five seeds", best_steps(random, draws))
    table("Coverage of 95% intervals", coverage(random, draws))
    table("Coverage of 95% intervals where eight runs share a baseline of some seeds", shared_baselines(random, draws // 2))
    table("Tests at the 5% level", tests(random, draws // 4))


def false_successes(random: np.random.Generator, draws: int) -> Iterable[Sequence[str]]:
    """Yield a row for each noise and number of seeds: how often either rule calls the starter a success."""
    yield "noise", "seeds", "10% alone", "noise-calibrated"
    for noise in (0.01, 0.03, 0.05, 0.1, 0.2):
        for seeds in (2, 3, 5, 8):
            scores = random.normal(1.0, noise, (draws, seeds + 1))
            paper, calibrated = 0, 0
            for row in scores.tolist():
                baseline = Baseline(value=float(np.mean(row[1:])), values=tuple(row[1:]), source="measured")
                paper += is_success(ACCURACY, row[0], baseline.value)
                calibrated += bool(clears_noise(ACCURACY, row[0], baseline))
            yield f"{noise:.0%}", str(seeds), share(paper, draws), share(calibrated, draws)


def row_errors(random: np.random.Generator, draws: int) -> Iterable[Sequence[str]]:
    """Yield a row for each number of test rows and noise of seeds: how often a submission as good as the starter is a success."""
    yield "test rows", "noise of seeds", "10% alone", "with the seeds' margin alone", "noise-calibrated (seeds and rows)"
    for rows in (100, 500, 2000):
        for noise in (0.0, 0.1):
            found = np.zeros(3, dtype=int)
            for _ in range(draws):
                hard = random.beta(0.5, 2.0, rows)  # 20% on average, of which some rows are nearly always wrong
                levels = 1 + noise * random.standard_normal(SEEDS + 1)
                runs = [row_score(random.random(rows) < hard * level) for level in levels]
                ours, seeds = runs[0], runs[1:] if noise else [runs[1]] * SEEDS
                baseline = Baseline(
                    value=float(np.mean([each.value for each in seeds])),
                    values=tuple(each.value for each in seeds),
                    source="measured",
                    resampled=tuple(np.mean([each.resampled for each in seeds], axis=0).tolist()),
                )
                error = gain_error(ours, baseline)
                found += (
                    is_success(ERROR_RATE, ours.value, baseline.value),
                    bool(clears_noise(ERROR_RATE, ours.value, baseline)),
                    bool(clears_noise(ERROR_RATE, ours.value, baseline, error)),
                )
            yield f"{rows:,}", f"{noise:.0%}", *(share(int(each), draws) for each in found)


def best_steps(random: np.random.Generator, draws: int) -> Iterable[Sequence[str]]:
    """Yield a row for each noise and rule: how often the last, and the best of `SUBMISSIONS` runs of the starter, is a success."""
    yield "noise", "rule", "last step", "best step, chosen on the hidden test (optimistic)"
    for noise in (0.05, 0.1, 0.2):
        scores = random.normal(1.0, noise, (draws, SUBMISSIONS + 5))
        found: dict[str, list[tuple[bool, bool]]] = {"10% alone": [], "noise-calibrated": []}
        for row in scores.tolist():
            seeds, last, best = row[SUBMISSIONS:], row[SUBMISSIONS - 1], max(row[:SUBMISSIONS])
            baseline = Baseline(value=float(np.mean(seeds)), values=tuple(seeds), source="measured")
            found["10% alone"].append((is_success(ACCURACY, last, baseline.value), is_success(ACCURACY, best, baseline.value)))
            found["noise-calibrated"].append((bool(clears_noise(ACCURACY, last, baseline)), bool(clears_noise(ACCURACY, best, baseline))))
        for rule, each in found.items():
            at_last, at_best = map(sum, zip(*each, strict=True))
            yield f"{noise:.0%}", rule, share(at_last, draws), share(at_best, draws)


def coverage(random: np.random.Generator, draws: int) -> Iterable[Sequence[str]]:
    """Yield a row for each kind of interval and number of tasks and runs: how often it holds the truth."""
    yield "interval", "tasks", "runs", "held"
    for runs in (2, 3, 8, 32):
        rates = random.random(draws)
        held = [_holds(success_rate(int(found), runs), rate) for found, rate in zip(random.binomial(runs, rates), rates, strict=True)]
        yield "success rate", "1", str(runs), share(sum(held), draws)
    for tasks, runs in ((2, 3), (2, 8), (5, 8), (13, 3), (13, 8)):
        rates = random.random((draws, tasks))
        found = random.binomial(runs, rates)
        held = [_holds(average_rate([(int(each), runs) for each in row]), truth.mean()) for row, truth in zip(found, rates, strict=True)]
        yield "average success rate", str(tasks), str(runs), share(sum(held), draws)
    for tasks, runs, k in ((1, 8, 3), (5, 8, 3), (13, 3, 2), (13, 8, 3)):
        rates = random.random((draws, tasks))
        found = random.binomial(runs, rates)
        truths = (1 - (1 - rates) ** k).mean(axis=1)
        held = [_holds(average_pass_at_k([(int(each), runs) for each in row], k), truth) for row, truth in zip(found, truths, strict=True)]
        yield f"pass@{k}", str(tasks), str(runs), share(sum(held), draws)
    for name, draw in (("normal", random.normal), ("exponential", random.exponential)):
        for tasks, runs in ((1, 3), (1, 8), (1, 32), (2, 3), (2, 8), (5, 8), (13, 3), (13, 8)):
            values = draw(*((1.0, 1.0) if name == "normal" else (1.0,)), size=(draws // 4, tasks, runs))
            held = [_holds(robust.average(one.tolist()), 1.0) for one in values]
            yield f"average improvement, {name}", str(tasks), str(runs), share(sum(held), draws // 4)
    for name, statistic in (("median", robust.median), ("interquartile mean", robust.interquartile_mean)):
        for tasks, runs in ((1, 5), (1, 8), (5, 8), (13, 3)):
            held = [_holds(statistic(one.tolist()), 0.0) for one in random.normal(0.0, 1.0, (draws // 8, tasks, runs))]
            yield f"{name}, normal", str(tasks), str(runs), share(sum(held), draws // 8)
    unequal = [random.exponential(1.0, (draws // 4, runs)) for runs in (2, 3, 8, 20)]
    held = [_holds(robust.average([group[row].tolist() for group in unequal]), 1.0) for row in range(draws // 4)]
    yield "average improvement, exponential", "4", "2, 3, 8, 20", share(sum(held), draws // 4)


def shared_baselines(random: np.random.Generator, draws: int) -> Iterable[Sequence[str]]:
    """Yield a row for each noise and number of seeds: how often intervals hold the truth, of a baseline taken as exact and as measured.

    The agent's scores are 15% better than the starter's on average, with the starter's noise, so that many are about as good as a success.
    """
    yield "noise", "seeds", "improvement, exact", "improvement, measured", "success rate, exact", "success rate, measured"
    for noise in (0.05, 0.1):
        for seeds in (3, 5):
            values, scores = random.normal(1.0, noise, (draws, seeds)), random.normal(1.15, noise, (draws, 8))
            held = np.zeros(4, dtype=int)
            for starter, runs in zip(values, scores, strict=True):
                measured = starter.mean()
                improvements = (runs / measured - 1).tolist()
                moves = ((starter - measured) * runs.mean() / measured**2).tolist()
                margin = t.ppf(0.975, seeds - 1) * starter.std(ddof=1) / math.sqrt(seeds)
                successes, fewest, most = (int((runs > 1.1 * bound).sum()) for bound in (measured, measured + margin, measured - margin))
                rate = 1 - NormalDist(1.15, noise).cdf(1.1)
                held += [
                    _holds(robust.average([improvements]), 0.15),
                    _holds(robust.average([improvements], [[moves]]), 0.15),
                    _holds(average_rate([(successes, 8)]), rate),
                    _holds(average_rate([Tally(successes, 8, fewest, most)]), rate),
                ]
            yield f"{noise:.0%}", str(seeds), *(share(int(count), draws) for count in held)


def tests(random: np.random.Generator, draws: int) -> Iterable[Sequence[str]]:
    """Yield a row for each question and setting: how often the test rejects equal rates, and its computed power."""
    yield "question", "tasks", "runs", "rates", "told apart", "nominal"
    for tasks, runs, first, second in (
        (1, 8, 0.5, 0.5),
        (2, 8, 0.5, 0.5),
        (8, 8, 0.2, 0.2),
        (13, 3, 0.3, 0.3),
        (1, 8, 0.9, 0.2),
        (5, 8, 0.5, 0.25),
        (13, 8, 0.4, 0.25),
    ):
        found = random.binomial(runs, (first, second), (draws, tasks, 2))
        apart = sum(_told_apart(row, runs) for row in found)
        ones, others = np.full(tasks, first), np.full(tasks, second)
        nominal = "at most 5%" if first == second else f"{power_of(ones, others, runs):.0%}"
        yield "these tasks", str(tasks), str(runs), f"{first:.0%}, {second:.0%}", share(apart, draws), nominal
        needed = runs_needed([(first, second)] * tasks)
        if needed is not None:
            apart = sum(_told_apart(row, needed) for row in random.binomial(needed, (first, second), (draws, tasks, 2)))
            yield "these tasks", str(tasks), f"{needed} (needed)", f"{first:.0%}, {second:.0%}", share(apart, draws), "80%"
    for tasks, mean in ((2, 0.0), (6, 0.0), (8, 0.0), (13, 0.0), (13, 0.3)):
        differences = np.clip(random.normal(mean, 0.3, (draws, tasks)), -1, 1)
        apart = sum((test := on_other_tasks(row.tolist())) is not None and test.p <= 0.05 for row in differences)
        yield "other tasks", str(tasks), "-", f"{mean:+.0%} ± 30%", share(apart, draws), "at most 5%" if mean == 0 else "-"


def _told_apart(found: NDArray[np.int64], runs: int) -> bool:
    test = on_these_tasks([TaskCounts(int(one), runs, int(other), runs) for one, other in found])
    return test is not None and test.p <= 0.05


def _holds(interval: tuple[float, float, float] | None, truth: float) -> bool:
    return interval is not None and interval[1] <= truth <= interval[2]


def share(count: int, of: int) -> str:
    return f"{count / of:.1%}"


def table(title: str, rows: Iterable[Sequence[str]]) -> None:
    """Print rows as a Markdown table, the first of them as its head."""
    head, *body = rows
    print(f"\n{title}\n\n| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for row in body:
        print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
