"""Turn the runs and gradings of a task's check into findings and numbers. Pure functions."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from mlagentbench.checks.findings import SCORES, Finding, Numbers, failed, ok, skipped
from mlagentbench.errors import GradingError
from mlagentbench.grading.baseline import StarterRun
from mlagentbench.grading.grade import Graded
from mlagentbench.records import Score
from mlagentbench.task.catalogue import Task
from mlagentbench.task.spec import Metric
from mlagentbench.task.success import THRESHOLD, clears_noise, is_success
from mlagentbench.util.text import some

LEAST_INVALID = 6
"""The least number of invalid submissions: an agent can go wrong in at least as many ways."""
EXACT = 1e-9
"""How far two scores may differ and still be equal: relative, and absolute near 0."""
MOST_SPREAD = 0.03
"""The largest standard deviation of the starter's scores, relative to their mean, so that a success, a gain of `THRESHOLD`, is more than
three of them away: nobody has one by trying seeds."""

Ran = StarterRun | GradingError


class Measurements(NamedTuple):
    """The results of everything that was run and graded."""

    starters: tuple[Ran, ...]
    solution: Ran | None
    """The run with `solution()` of `proof.py`; None if there is no such function."""
    ineffective: Ran | None
    oracle: Mapping[str, Graded]
    naive: Mapping[str, Graded]
    invalid: Mapping[str, tuple[Graded, str]]
    """The gradings of invalid submissions by name, each with the words that the reason must contain."""
    reordered: Graded | None
    """The grading of the first oracle table with its rows reversed; None if rows have no ids."""
    moved: Graded | None
    """The grading of the first oracle table with each answer under another's id; None if rows have no ids."""


def judge(task: Task, measured: Measurements) -> tuple[list[Finding], Numbers]:
    """Return the grader's finding, all findings that depend on scores, and the numbers."""
    numbers = _numbers(task, measured)
    mistakes = _mistakes(measured)
    if mistakes:
        # All other findings depend on the grader's scores, so its failure is reported once instead of with each of them.
        found = [f"{mistake} (it came with {some(submissions)})" for mistake, submissions in mistakes.items()]
        return [failed("grader", "; ".join(found)), *(skipped(name, "the grader fails") for name in SCORES)], numbers
    findings = [
        ok("grader"),
        *_starter(task, measured, numbers),
        *_oracle(task, measured, numbers),
        *_naive(task, measured, numbers),
        *_ids(task.spec.metric, measured, numbers),
        _invalid(measured),
        _script("solution", measured, numbers.solution_success, numbers.solution_improvement),
        _script("ineffective", measured, numbers.ineffective_success, numbers.ineffective_improvement),
    ]
    return findings, numbers


def _mistakes(measured: Measurements) -> Mapping[str, list[str]]:
    """Return each error of the grader itself, with the submissions that it failed on. Invalid ones are judged apart (`_invalid`)."""
    runs = {
        **{f"the starter ({seed})": run for seed, run in enumerate(measured.starters)},
        "solution()": measured.solution,
        "ineffective()": measured.ineffective,
    }
    found = [(str(run), name) for name, run in runs.items() if isinstance(run, GradingError)]
    gradings = {f"oracle {name!r}": graded for name, graded in measured.oracle.items()}
    gradings |= {f"naive {name!r}": graded for name, graded in measured.naive.items()}
    derived = {"oracle with its rows reversed": measured.reordered, "oracle with other ids": measured.moved}
    gradings |= {name: graded for name, graded in derived.items() if graded is not None}
    found += [(graded.reason or "it failed", name) for name, graded in gradings.items() if graded.failed]
    mistakes: dict[str, list[str]] = {}
    for mistake, name in found:
        mistakes.setdefault(mistake, []).append(name)
    return mistakes


def _numbers(task: Task, measured: Measurements) -> Numbers:
    spec = task.spec
    ran = [run for run in measured.starters if isinstance(run, StarterRun)]
    scores = [run.score for run in ran if run.score]
    beside = bool(scores) and scores[0].baseline is not None
    baseline = None
    if spec.starter.state != "runs":
        baseline = _value(measured.naive.get(spec.starter.predictor or ""))
    elif scores and not beside:
        baseline = statistics.fmean(score.value for score in scores)
    oracle = _values(measured.oracle)
    solution, ineffective = _score(measured.solution), _score(measured.ineffective)
    return Numbers(
        starter=tuple(score.value for score in scores),
        starter_seconds=tuple(run.execution.seconds for run in ran),
        starter_spread=_spread([score.value for score in scores]),
        baseline=baseline,
        oracle=_best(spec.metric, oracle.values()) if oracle else None,
        constant=_value(measured.naive.get("constant")),
        shuffled=_value(measured.naive.get("shuffled")),
        naive_improvement=max(_naive_improvements(task, measured, baseline), default=None),
        solution=solution.value if solution else None,
        solution_seconds=measured.solution.execution.seconds if isinstance(measured.solution, StarterRun) else None,
        solution_improvement=_improvement(spec.metric, solution, baseline),
        solution_success=_success(spec.metric, solution, baseline),
        ineffective=ineffective.value if ineffective else None,
        ineffective_improvement=_improvement(spec.metric, ineffective, baseline),
        ineffective_success=_success(spec.metric, ineffective, baseline),
        invalid=len(measured.invalid),
        refused=sum(_refusal(graded, words) is None for graded, words in measured.invalid.values()),
    )


def _starter(task: Task, measured: Measurements, numbers: Numbers) -> Iterator[Finding]:
    state = task.spec.starter.state
    reasons = [why for run in measured.starters if (why := _why_not(run)) is not None]
    if state != "runs":
        worked = len(reasons) < len(measured.starters)
        why = f'it is said to be {state}, but leaves a submission that is graded; say state = "runs"'
        yield failed("starter", why) if worked else ok("starter")
        yield skipped("spread", "the starter does not run")
        return
    if reasons:
        yield failed("starter", f"it is said to run, but {reasons[0]}; mend it, or say that it is a stub or broken")
        yield skipped("spread", "there are no scores to compare")
        return
    yield ok("starter")
    spread = numbers.starter_spread
    if spread is None:
        yield skipped("spread", "it is timed beside each submission")
    elif spread > MOST_SPREAD:
        low, high = min(numbers.starter), max(numbers.starter)
        yield failed(
            "spread",
            f"untouched it scores {low:.4g} to {high:.4g} with {len(numbers.starter)} seeds, a standard deviation of {spread:.1%} where"
            f" {MOST_SPREAD:.0%} is the most, so that seeds alone can be a success; make it steadier, or the test set larger",
        )
    else:
        yield ok("spread")


def _oracle(task: Task, measured: Measurements, numbers: Numbers) -> Iterator[Finding]:
    metric = task.spec.metric
    refused = _refused(measured.oracle)
    if refused or numbers.oracle is None:
        yield failed(
            "oracle", f"not graded: {some(refused)}; the right answers must be taken" if refused else "proof.py has no oracle submission"
        )
        yield skipped("direction", "the oracle has no score")
        return
    values, naive = _values(measured.oracle), _values(measured.naive)
    if naive and all(_beats(metric, value, numbers.oracle) for value in naive.values()):
        yield failed("oracle", "it scores worst of all")
        yield failed("direction", f"every naive submission beats the oracle; is metric.direction reversed? it is {metric.direction}")
        return
    rivals = {f"naive {name!r}": value for name, value in naive.items()}
    rivals |= {f"the starter ({seed})": value for seed, value in enumerate(numbers.starter)}
    rivals |= {"ineffective()": numbers.ineffective} if numbers.ineffective is not None else {}
    if task.spec.submission.mode == "file" and numbers.solution is not None:
        rivals["solution()"] = numbers.solution
    beaten = [f"{name!r} by {rival}" for name, one in values.items() for rival, value in rivals.items() if _beats(metric, value, one)]
    if task.spec.submission.mode == "file" and beaten:
        yield failed("oracle", f"beaten: {some(beaten)}; no submission may score better than the right answers")
    elif better := [rival for rival, value in rivals.items() if _beats(metric, value, numbers.oracle)]:
        yield failed("oracle", f"beaten by {some(better)}; the oracle must hold the best that is known")
    elif lost := [name for name, graded in measured.oracle.items() if _success(metric, graded.score, numbers.baseline) is False]:
        yield failed("oracle", f"no success over the baseline: {some([repr(name) for name in lost])}; so nobody can have one")
    else:
        yield ok("oracle")
    yield ok("direction")


def _naive(task: Task, measured: Measurements, numbers: Numbers) -> Iterator[Finding]:
    metric = task.spec.metric
    refused, values = _refused(measured.naive), _values(measured.naive)
    predictor = task.spec.starter.predictor
    as_good = [] if numbers.oracle is None else [repr(name) for name, value in values.items() if not _beats(metric, numbers.oracle, value)]
    won = [
        repr(name)
        for name, graded in measured.naive.items()
        if name != predictor and _success(metric, graded.score, numbers.baseline) and not _within_noise(metric, graded.score)
    ]
    if refused:
        yield failed("naive", f"not graded: {some(refused)}; a poor submission is one all the same")
    elif predictor is not None and predictor not in measured.naive:
        yield failed("naive", f"proof.py has no naive submission {predictor!r}, which starter.predictor names")
    elif as_good:
        yield failed("naive", f"as good as the oracle: {some(as_good)}; the grader does not tell them apart")
    elif won:
        yield failed("naive", f"a success over the starter: {some(won)}; what knows nothing must not be one, so make the starter better")
    else:
        yield ok("naive")
    constants: tuple[Literal["constant", "shuffled"], ...] = ("constant", "shuffled")
    for name in constants:
        value = values.get(name)
        if name not in measured.naive:
            wanted = task.spec.submission.mode == "file"
            why = f"proof.py has no naive submission {name!r}"
            yield failed(name, f"{why}; add it") if wanted else skipped(name, why)
        elif value is None or numbers.oracle is None:
            yield skipped(name, "it has no score, or the oracle has none")
        elif not is_success(metric, numbers.oracle, value):
            yield failed(
                name,
                f"the oracle ({numbers.oracle:.4g}) is not {THRESHOLD:.0%} better than {name} ({value:.4g}); "
                "the metric rewards what knows nothing",
            )
        else:
            yield ok(name)


def _ids(metric: Metric, measured: Measurements, numbers: Numbers) -> Iterator[Finding]:
    """Check that a grader of tables finds rows by their ids."""
    oracle = next(iter(_values(measured.oracle).values()), None)
    if measured.reordered is None or measured.moved is None or oracle is None:
        why = "the rows have no ids, or the submission is no table"
        yield skipped("row order", why)
        yield skipped("ids", why)
        return
    reordered, moved = _value(measured.reordered), _value(measured.moved)
    if reordered is None:
        yield failed("row order", f"the oracle with its rows reversed is refused: {measured.reordered.reason}; find rows by their ids")
    elif not math.isclose(reordered, oracle, rel_tol=EXACT, abs_tol=EXACT):
        yield failed(
            "row order",
            f"the oracle with its rows reversed scores {reordered:.4g} instead of {oracle:.4g}: "
            "the grader does not go by the ids; use align",
        )
    else:
        yield ok("row order")
    if moved is not None and not _beats(metric, oracle, moved):
        yield failed("ids", f"the oracle with each answer under another's id scores as well ({moved:.4g}): the grader ignores the ids")
    else:
        yield ok("ids")


def _invalid(measured: Measurements) -> Finding:
    wrong: dict[str, list[str]] = {}
    for name, (graded, words) in measured.invalid.items():
        if (why := _refusal(graded, words)) is not None:
            wrong.setdefault(why, []).append(repr(name))
    if wrong:
        each = [f"{'each of ' if len(names) > 1 else ''}{some(names)} {why}" for why, names in wrong.items()]
        return failed("invalid", f"{some(each)}; grade.py must raise InvalidSubmission with a reason a person can act on")
    if len(measured.invalid) < LEAST_INVALID:
        return failed(
            "invalid",
            f"proof.py has only {len(measured.invalid)} invalid submissions; add others, up to {LEAST_INVALID} or more",
        )
    return ok("invalid")


def _refusal(graded: Graded, words: str) -> str | None:
    """Return what is wrong with the grading of an invalid submission, which must be refused; None if nothing is."""
    if graded.score is not None:
        return f"is taken, with a score of {graded.score.value:.4g}"
    if graded.failed:
        return f"crashes the grader ({graded.reason})"
    if words not in (graded.reason or ""):
        return f"is refused with {graded.reason!r}, which does not hold {words!r}"
    return None


def _script(name: Literal["solution", "ineffective"], measured: Measurements, success: bool | None, improvement: float | None) -> Finding:
    """Check the run with `solution()`, which must win, or with `ineffective()`, which must change something and yet not win."""
    wins = name == "solution"
    run, untouched = measured.solution if wins else measured.ineffective, measured.starters[0]
    if run is None:
        return skipped(name, f"proof.py has no {name}()")
    why = _why_not(run)
    if why is not None:
        return failed(name, f"with {name}() {why}")
    if isinstance(run, StarterRun) and isinstance(untouched, StarterRun) and run.digest == untouched.digest:
        return failed(name, f"what {name}() leaves is what the starter leaves, so it shows nothing; have it change more")
    if success is None:
        return skipped(name, "there is no baseline to compare with")
    if success is not wins:
        consequence = (
            "no success; so no agent can win" if wins else "a success for one changed setting; train the starter until that gains little"
        )
        return failed(name, f"{name}() is {_gain(improvement)}, {consequence}")
    return ok(name)


def _gain(improvement: float | None) -> str:
    return "better than a baseline of 0" if improvement is None else f"{improvement:+.1%} over the baseline"


def _why_not(run: Ran) -> str | None:
    """Return why a run has no score, as a clause that can follow "but"; None if it has one."""
    if isinstance(run, GradingError):
        return str(run)
    if run.execution.reason != "exit":
        return f"its script was stopped at its limit of {run.execution.reason}"
    if run.execution.exit_code:
        lines = run.execution.output.strip().splitlines()
        return f"its script failed: {lines[-1].strip() if lines else f'exit status {run.execution.exit_code}'}"
    if run.score is None:
        return f"what it leaves is not graded: {run.reason}"
    return None


def _spread(values: Sequence[float]) -> float | None:
    """Return the sample standard deviation relative to the mean; None for fewer than two values."""
    if len(values) < 2:
        return None
    deviation, mean = statistics.stdev(values), abs(statistics.fmean(values))
    return deviation / mean if mean else math.inf if deviation else 0.0


def _naive_improvements(task: Task, measured: Measurements, baseline: float | None) -> Iterator[float]:
    for name, graded in measured.naive.items():
        improvement = None if name == task.spec.starter.predictor else _improvement(task.spec.metric, graded.score, baseline)
        if improvement is not None:
            yield improvement


def _within_noise(metric: Metric, score: Score | None) -> bool:
    """Return whether a score is compared with the starter measured beside it, and is better by no more than the noise."""
    return score is not None and score.baseline is not None and clears_noise(metric, score.value, score.baseline) is False


def _improvement(metric: Metric, score: Score | None, baseline: float | None) -> float | None:
    beside = _beside(score, baseline)
    return None if score is None or beside is None else metric.improvement(score.value, beside)


def _success(metric: Metric, score: Score | None, baseline: float | None) -> bool | None:
    """Return whether a score is a success; a timed one is none within the scatter of its trials. None if there is nothing to compare."""
    if score is not None and score.baseline is not None and clears_noise(metric, score.value, score.baseline) is False:
        return False
    beside = _beside(score, baseline)
    return None if score is None or beside is None else is_success(metric, score.value, beside)


def _beside(score: Score | None, baseline: float | None) -> float | None:
    """Return what to compare a score with: the starter's score measured beside it, else the baseline."""
    return score.baseline.value if score is not None and score.baseline is not None else baseline


def _score(run: Ran | None) -> Score | None:
    return run.score if isinstance(run, StarterRun) else None


def _values(gradings: Mapping[str, Graded]) -> dict[str, float]:
    """Return the scores of those submissions that have one."""
    return {name: graded.score.value for name, graded in gradings.items() if graded.score}


def _refused(gradings: Mapping[str, Graded]) -> list[str]:
    return [f"{name!r} ({graded.reason})" for name, graded in gradings.items() if graded.score is None]


def _value(graded: Graded | None) -> float | None:
    return graded.score.value if graded and graded.score else None


def _beats(metric: Metric, one: float, other: float) -> bool:
    """Return whether one score is better than another, by more than `EXACT`."""
    if math.isclose(one, other, rel_tol=EXACT, abs_tol=EXACT):
        return False
    return one > other if metric.direction == "maximize" else one < other


def _best(metric: Metric, values: Iterable[float]) -> float:
    return max(values) if metric.direction == "maximize" else min(values)
