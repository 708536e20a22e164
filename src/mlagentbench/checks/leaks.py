"""Check for leaks: does anything that the agent sees give the answers away, so that they need not be learnt?

The lint checks public tables and arrays (for a label column left in, or a column from which the answers can be read off), ids, the order of
rows and files, and the metadata of files; and it searches everything public for parts of the private files. It takes the answers from the
oracle submission, so that a task needs no convention for it. It cannot find answers in the pixels of an image or the words of a text, nor
in formats that only some program can open.
"""

from __future__ import annotations

import os
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import polars as pl

from mlagentbench.checks.dependence import FEW_ROWS, Probe, by_looking_up, by_repeating, by_sorting, telling
from mlagentbench.checks.findings import LEAKS, Finding, Name, failed, ok, skipped, some
from mlagentbench.checks.private_copies import find_copies
from mlagentbench.checks.public_tables import Answers, Array, Clue, PublicArray, PublicTable, columns_of, features, place_of
from mlagentbench.data.prepare import Prepared
from mlagentbench.task.catalogue import Task

PROXY = 0.98
"""How much of the answers, from 0 to 1, makes a column a proxy of the answers. A feature may predict well; it may not be the answer."""
ORDER = 0.8
"""How much of the answers an order must give away to be a leak. It should give away nothing, but neighbours may be alike."""
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
            _telling(columns, answers, (by_sorting, by_looking_up), PROXY),
            "leave it out of the public data, or make it less than the answer",
        )
        found["order"] = _order(answers, tables)
        found["metadata"] = _metadata(data.public, answers)
    return [found[name] for name in LEAKS]


def _telling(columns: list[Clue], answers: Answers, probes: tuple[Probe, ...], bar: float) -> Iterator[str]:
    """Yield a line for each column from which some probe can tell a target."""
    for column in columns:
        for target in answers.targets:
            how = telling(probes, column.values, target, bar)
            if how is not None:
                yield f"{column.name} of {column.place} tells {target.name} ({how:.3f} of 1)"
                break


def _report(name: Name, leaks: Iterator[str], remedy: str) -> Finding:
    found = list(leaks)
    return failed(name, f"{some(found)}; {remedy}") if found else ok(name)


def _label_column(columns: list[Clue], answers: Answers) -> Finding:
    """Find columns with an answer's name that hold the answers, if only for some rows.

    A column of zeros, as in an example submission, holds none.
    """
    left = []
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
                left.append(f"{column.place} has the answers in its column {name!r} ({equal:.0%} of {len(oracle)})")
    return failed("label column", f"{some(left)}; drop the column from what is public") if left else ok("label column")


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
        orders.append(Clue("the order of the ids, as text,", "the answers", np.argsort(np.argsort(answers.ids.to_numpy())).astype(float)))
        for column in features(answers.ids, name, "the answers"):
            (orders if column.values.dtype.kind == "f" else looked_up).append(column)
    leaks = [
        *_telling(orders, answers, (by_sorting,), ORDER),
        *_telling(orders, answers, (by_repeating, by_looking_up), PROXY),
        *_telling(looked_up, answers, (by_looking_up,), PROXY),
    ]
    return _report("order", iter(leaks), "shuffle the rows before they get their ids")


def _metadata(public: Path, answers: Answers) -> Finding:
    """Check the metadata of files that belong to one answer each: times, sizes, folders, and the order on disk and in archives."""
    ids = {value: row for row, value in enumerate(answers.ids.to_list())}
    if answers.id_column is None:
        return skipped("metadata", "rows have no ids by which files could be named")
    orders: list[Clue] = []
    others: list[Clue] = []
    paths = [path for path in sorted(public.rglob("*")) if path.is_file()]
    groups: dict[str, dict[str, os.stat_result]] = {}
    for path in paths:
        name = path.relative_to(public)
        groups.setdefault(name.parts[0] if len(name.parts) > 1 else "public files", {})[name.as_posix()] = path.stat()
    for where, files in groups.items():
        orders += _by_file(ids, {name: found.st_mtime_ns for name, found in files.items()}, "the time of change", where)
        orders += _by_file(ids, {name: found.st_ino for name, found in files.items()}, "the order in which they were made", where)
        others += _by_file(ids, {name: found.st_size for name, found in files.items()}, "the size", where)
        others += _folders(ids, list(files), where)
    for path in paths:
        members = _members(path)
        where = path.relative_to(public).as_posix()
        orders += _by_file(ids, {name: place for place, (name, _, _) in enumerate(members)}, "the order of members", where)
        orders += _by_file(ids, {name: time for name, _, time in members}, "the time of change of members", where)
        others += _by_file(ids, {name: size for name, size, _ in members}, "the size of members", where)
        others += _folders(ids, [name for name, _, _ in members], where)
    leaks = [
        *_telling(orders, answers, (by_sorting,), ORDER),
        *_telling(orders, answers, (by_repeating,), PROXY),
        *_telling(others, answers, (by_sorting, by_looking_up), PROXY),
    ]
    return _report("metadata", iter(leaks), "write files one after the other by id, all of one time, in folders that tell nothing")


def _by_file(ids: dict[str, int], values: dict[str, int], what: str, where: str) -> list[Clue]:
    """Return a number of each file as a column with a number for each answer; nothing if too few files are named by ids."""
    first = min(values.values(), default=0)
    column = np.full(len(ids), np.nan)
    for name, value in values.items():
        row = _row(ids, name)
        if row is not None and np.isnan(column[row]):
            column[row] = value - first  # float64 would round nanoseconds since 1970
    return [Clue(what, where, column)] if (~np.isnan(column)).sum() >= FEW_ROWS else []


def _folders(ids: dict[str, int], names: list[str], where: str) -> list[Clue]:
    column = np.full(len(ids), "", dtype=object)
    for name in names:
        row = _row(ids, name)
        if row is not None:
            # A folder named by an id only names the row, so it cannot give the answer away.
            column[row] = "/".join(part for part in Path(name).parts[:-1] if part not in ids)
    return [Clue("the folder", where, column)] if (column != "").sum() >= FEW_ROWS else []


def _row(ids: dict[str, int], name: str) -> int | None:
    path = Path(name)
    parts: Iterator[str] = iter((name, path.name, path.stem, path.name.partition(".")[0], *reversed(path.parts[:-1])))
    return next((ids[part] for part in parts if part in ids), None)


def _members(path: Path) -> list[tuple[str, int, int]]:
    """Return the names, sizes and times of an archive's files, in their order; nothing for other files and broken archives."""
    readers: tuple[Callable[[Path], list[tuple[str, int, int]]], ...] = (_zip_members, _tar_members)
    for suffixes, reader in zip(((".zip",), (".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz")), readers, strict=True):
        if path.name.endswith(suffixes):
            try:
                return reader(path)
            except (OSError, zipfile.BadZipFile, tarfile.TarError):
                return []
    return []


def _zip_members(path: Path) -> list[tuple[str, int, int]]:
    with zipfile.ZipFile(path) as archive:
        return [
            (member.filename, member.file_size, int("".join(f"{part:02}" for part in member.date_time)))
            for member in archive.infolist()
            if not member.is_dir()
        ]


def _tar_members(path: Path) -> list[tuple[str, int, int]]:
    with tarfile.open(path) as archive:
        return [(member.name, member.size, int(member.mtime)) for member in archive if member.isfile()]
