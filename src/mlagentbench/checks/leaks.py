"""Check for leaks: does anything that the agent sees give the answers away, so that they need not be learnt?

The lint checks public tables and arrays (for a label column left in, or a column from which the answers can be read off), ids, the order of
rows and files, what files and pictures carry beside their content, and copies of test rows among others. And it searches everything public
for parts of the private files. It takes the answers from the oracle submission, so that a task needs no convention for it. It cannot find
answers inside pictures or the words of texts, nor in formats that only some program can open.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np
import polars as pl

from mlagentbench.checks.dependence import FEW_ROWS, LACK_OF_FIT, Probe, by_averaging, by_looking_up, by_repeating, by_sorting, telling
from mlagentbench.checks.duplicates import duplicates
from mlagentbench.checks.file_clues import FileClues, Sketch, read_files
from mlagentbench.checks.findings import LEAKS, Finding, Name, failed, ok, skipped
from mlagentbench.checks.parts import Clue, parts_of_text
from mlagentbench.checks.private_copies import find_copies
from mlagentbench.checks.public_files import Array, PublicArray, PublicTable
from mlagentbench.checks.public_tables import Answers, columns_of, neighbours_of, place_of
from mlagentbench.data.prepare import Prepared
from mlagentbench.task.catalogue import Task
from mlagentbench.util.text import some

PROXY = 0.98
"""How much of the answers, from 0 to 1, makes a column a proxy of the answers. A feature may predict well; it may not be the answer."""
ORDER = 0.8
"""How much of the answers an order must give away to be a leak. It should give away nothing, but neighbours may be alike."""
COPIED = 0.9
"""How much of the answers must stand beside copies of test rows to be a leak: a few rows are near others by chance."""
EXACT = 0.9999
"""How much of the answers a column must tell of other rows than its own to be a leak: all, since neighbours may be alike."""
AGREES = 0.5
"""The share of answers, beyond what the commonest one explains, that a column with an answer's name may hold."""


def lint(task: Task, data: Prepared, answers: Answers | None, tables: list[PublicTable], grids: list[PublicArray]) -> list[Finding]:
    """Check a task's public files for leaks, and return a finding for each kind of leak.

    Args:
        task: the task.
        data: its prepared data, as `prepare.py` left it.
        answers: the oracle table; None if submissions are no tables.
        tables: the public tables.
        grids: the public arrays.
    """
    if task.preparer is None:
        return [skipped(name, "the task has no data") for name in LEAKS]
    found: dict[Name, Finding] = {"copies": find_copies(task, data.public, data.private, answers)}
    if answers is None or not answers.targets or answers.rows < FEW_ROWS:
        why = "the submission is no table" if answers is None else "there are too few answers, or all are alike"
        found |= {name: skipped(name, why) for name in LEAKS if name != "copies"}
    else:
        sources: list[PublicTable | PublicArray] = [*tables, *grids]
        columns = [column for source in sources for column in columns_of(source, answers)]
        found["label column"] = _label_column(columns, answers)
        found["proxy column"] = _report(
            "proxy column",
            chain(
                _telling(columns, answers, (by_sorting, by_looking_up), PROXY),
                _telling((column for column in columns if column.whole is None), answers, (by_averaging,), 1 - LACK_OF_FIT),
                _telling(chain.from_iterable(neighbours_of(table, answers) for table in tables), answers, (by_sorting,), EXACT),
            ),
            "leave it out of the public data, or make it less than the answer",
        )
        found["order"] = _order(answers, tables)
        files = read_files(data.public, answers, tables)
        found["metadata"] = _metadata(files, answers)
        found["duplicates"] = _duplicates(answers, tables, grids, files.sketches)
    return [found[name] for name in LEAKS]


def _telling(columns: Iterable[Clue], answers: Answers, probes: tuple[Probe, ...], bar: float) -> Iterator[str]:
    """Yield a line for each column from which some probe can tell a target. The parts of such a column are not looked at."""
    known: set[tuple[str, str | None]] = set()
    for column in columns:
        if (column.place, column.whole) in known:
            continue
        for target in answers.targets:
            how = telling(probes, column.values, target, bar)
            if how is not None:
                known.add((column.place, column.name))
                yield f"{column.name} of {column.place} tells {target.name} ({how:.3f} of 1)"
                break


def _report(name: Name, leaks: Iterator[str], remedy: str) -> Finding:
    found = list(leaks)
    return failed(name, f"{some(found)}; {remedy}") if found else ok(name)


def _label_column(columns: list[Clue], answers: Answers) -> Finding:
    """Find columns with an answer's name that hold the answers, if only for some rows."""
    left = list(_answers_in(columns, answers))
    return failed("label column", f"{some(left)}; drop the column from what is public") if left else ok("label column")


def _answers_in(columns: Iterable[Clue], answers: Answers) -> Iterator[str]:
    """Yield a line for each column with an answer's name that holds the answers; one of zeros, as in a sample submission, holds none."""
    for column in columns:
        for name in answers.values.columns:
            if column.raw is None or column.name != f"the column {name!r}":
                continue
            there = column.raw != ""
            oracle = answers.frame[name].str.strip_chars().to_numpy()[there]
            if len(oracle) < FEW_ROWS:
                continue
            equal = _same(column.raw[there], oracle)
            commonest = max(np.unique(oracle.astype(str), return_counts=True)[1]) / len(oracle)
            if equal > commonest + AGREES * (1 - commonest):
                yield f"{column.place} has the answers in its column {name!r} ({equal:.0%} of {len(oracle)})"


def _same(one: Array, other: Array) -> float:
    """Return the share of rows in which two columns of text are equal, as text or as numbers."""
    left, right = (pl.Series(list(each), dtype=pl.String) for each in (one, other))
    numbers = (left.cast(pl.Float64, strict=False) == right.cast(pl.Float64, strict=False)).fill_null(False)
    return float(((left == right) | numbers).mean() or 0.0)  # type: ignore[arg-type]


def _order(answers: Answers, tables: list[PublicTable]) -> Finding:
    orders = [Clue("the order of rows", "the oracle submission", np.arange(answers.rows, dtype=np.float64))]
    for table in tables:
        place = place_of(table, answers)
        if place is not None:
            orders.append(Clue("the order of rows", table.name, place))
    looked_up: list[Clue] = []
    if answers.id_column is not None:
        name = f"the id ({answers.id_column!r})"
        for column in parts_of_text(answers.ids, name, "the answers"):
            (orders if column.values.dtype.kind == "f" else looked_up).append(column)
    leaks = [
        *_telling(orders, answers, (by_sorting,), ORDER),
        *_telling(orders, answers, (by_repeating, by_looking_up), PROXY),
        *_telling(looked_up, answers, (by_looking_up,), PROXY),
    ]
    return _report("order", iter(leaks), "shuffle the rows before they get their ids")


def _metadata(files: FileClues, answers: Answers) -> Finding:
    """Check what files that belong to one answer each tell beside their content."""
    leaks = [
        *_telling(files.orders, answers, (by_sorting,), ORDER),
        *_telling(files.orders, answers, (by_repeating,), PROXY),
        *_telling(files.others, answers, (by_sorting, by_looking_up), PROXY),
    ]
    remedy = (
        "write files one after the other by id, all of one time, in folders that tell nothing, and nothing beside the content into them"
    )
    return _report("metadata", iter(leaks), remedy)


def _duplicates(answers: Answers, tables: list[PublicTable], grids: list[PublicArray], sketches: list[Sketch]) -> Finding:
    """Check rows and files of which another with a known answer is a copy, or all but a copy."""
    found = list(duplicates(answers, tables, grids, sketches))
    leaks = [*_telling(found, answers, (by_sorting, by_looking_up), COPIED), *_answers_in(found, answers)]
    return _report(
        "duplicates",
        iter(dict.fromkeys(leaks)),
        "keep all copies of a row, and all rows of a group with one answer, on one side of the split",
    )
