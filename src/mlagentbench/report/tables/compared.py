"""Build the table that compares columns in pairs."""

from __future__ import annotations

from mlagentbench.report import formatting
from mlagentbench.report.experiment import Experiment
from mlagentbench.report.tables.model import Kind, Row, Table, TextColumn, Value, named
from mlagentbench.report.tables.values import estimate, interval, number
from mlagentbench.results.compare import Comparison
from mlagentbench.results.statistics.inference import Inference


def compared(experiment: Experiment) -> Table:
    """Return the table that compares every pair of columns: on these tasks, and on other tasks of their kind."""
    found = [comparison for comparison in experiment.comparisons if comparison.tasks]
    lacking = sorted({task for comparison in found for task in comparison.left_out})
    few = any(comparison.other_tasks and not comparison.other_tasks.can_tell for comparison in found)
    inference: dict[str, Kind] = {name: "number" for name in ("difference", "low", "high", "p", "p_adjusted", "smallest_p")}
    return Table(
        name="comparisons",
        title="Success rates compared, in percentage points [95% interval] and p",
        columns={
            **{"first": "text", "second": "text"},
            **inference,
            **{f"other_{name}": kind for name, kind in inference.items()},
            **{"tasks": "count", "first_runs": "count", "second_runs": "count"},
            **{"first_rate": "number", "second_rate": "number", "runs_needed": "count", "left_out": "text"},
            **{f"improvement_{name}": "number" for name in ("difference", "low", "high")},
            "improvement_tasks": "count",
        },
        rows=[_comparison(comparison) for comparison in found],
        down=TextColumn("pair", lambda row: f"{named(row['first'])} less {named(row['second'])}", number=False),
        shown=[
            TextColumn("on these tasks", lambda row: _inferred(row, "")),
            TextColumn("on other tasks", lambda row: _inferred(row, "other_")),
            TextColumn("tasks", lambda row: str(row["tasks"])),
            TextColumn("runs needed", lambda row: formatting.NONE if row["runs_needed"] is None else f"{row['runs_needed']:,}"),
        ],
        notes=[
            "On these tasks: what other runs of the same tasks would say (Mantel-Haenszel, exact). On other tasks: what tasks of this kind"
            " would say, each counting once (sign flips).",
            *([f"p is adjusted for the {len(found)} pairs (Holm); the intervals are not."] if len(found) > 1 else []),
            *(["Too few: with these runs or fewer than six tasks, no difference could be significant."] if few else []),
            "Runs needed: of each task by both, to tell such rates apart on these tasks with a power of 80%.",
            *([f"Tasks that some pair does not share: {', '.join(lacking)}."] if lacking else []),
        ],
    )


def _comparison(found: Comparison) -> Row:
    return {
        **{"first": found.first, "second": found.second},
        **_inference("", found.these_tasks, found.p_these_tasks),
        **_inference("other_", found.other_tasks, found.p_other_tasks),
        **{"tasks": len(found.tasks), "first_runs": found.first_runs, "second_runs": found.second_runs},
        **{"first_rate": found.first_rate, "second_rate": found.second_rate, "runs_needed": found.runs_needed},
        "left_out": "; ".join(f"{task}: {why}" for task, why in found.left_out.items()) or None,
        **{f"improvement_{name}": value for name, value in interval("difference", found.improvement).items()},
        "improvement_tasks": len(found.improvement_tasks),
    }


def _inference(prefix: str, found: Inference | None, adjusted: float | None) -> dict[str, Value]:
    assert found is not None
    values = {**interval("difference", found.difference), "p": found.p, "p_adjusted": adjusted, "smallest_p": found.smallest_p}
    return {f"{prefix}{name}": value for name, value in values.items()}


def _inferred(row: Row, prefix: str) -> str:
    """Format a difference with its interval and adjusted p: `+12.5 [3, 22] p = 0.012`."""
    if number(row[f"{prefix}smallest_p"]) > 0.05:
        return "too few"
    own = {name: row[f"{prefix}{name}"] for name in ("difference", "low", "high")}
    return f"{estimate(own, 'difference', signed=True)} {formatting.p_text(number(row[f'{prefix}p_adjusted']))}"
