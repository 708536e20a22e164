"""Write tables to files: CSV, Parquet, JSON, LaTeX and Markdown.

The first three have raw values, for programs; the other two have formatted values, for papers and web pages. Texts that agents wrote are
escaped where the format has a syntax.

polars prints Markdown without escaping.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from mlagentbench.errors import UsageError
from mlagentbench.report.experiment import Experiment
from mlagentbench.report.formatting import visible
from mlagentbench.report.tables.latex import latex
from mlagentbench.report.tables.model import Kind, Table, TextTable, grid
from mlagentbench.util.atomic import replace

if TYPE_CHECKING:
    import polars as pl

Format = Literal["csv", "parquet", "json", "latex", "markdown"]
FORMATS: tuple[Format, ...] = get_args(Format)
SUFFIXES: Mapping[Format, str] = {"csv": ".csv", "parquet": ".parquet", "json": ".json", "latex": ".tex", "markdown": ".md"}
FOR_PROGRAMS: tuple[Format, ...] = ("csv", "parquet", "json")


def write_tables(folder: Path, tables: Iterable[Table], frames: Mapping[str, pl.DataFrame], formats: Iterable[Format]) -> list[Path]:
    """Write tables, and data frames in the formats for programs, to one file each.

    Args:
        folder: the folder to write to; it is created if it does not exist.
        tables: the tables, written as `<name>.<suffix>`.
        frames: data frames by the name of their file, written only in the formats for programs.
        formats: the file formats.

    Returns:
        The files.

    Raises:
        UsageError: a file cannot be written.
    """
    tables, written = list(tables), []
    for form in dict.fromkeys(formats):
        contents = {table.name: encoded(table, form) for table in tables}
        if form in FOR_PROGRAMS:
            contents |= {name: _encode(frame, form) for name, frame in frames.items()}
        for name, content in contents.items():
            written.append(_write(folder / f"{name}{SUFFIXES[form]}", content))
    return written


def encoded(table: Table, form: Format) -> bytes:
    """Return a table in a file format."""
    if form == "latex":
        return latex(table).encode()
    if form == "markdown":
        return markdown(table).encode()
    if form == "json":
        return (json.dumps(as_object(table), indent=1) + "\n").encode()
    return _encode(frame(table), form)


def frame(table: Table) -> pl.DataFrame:
    """Return a table as a data frame of raw values. Its columns have their types even if all values are missing."""
    import polars as pl

    types: Mapping[Kind, Any] = {"text": pl.String, "count": pl.Int64, "number": pl.Float64}
    return pl.DataFrame(list(table.rows), schema={name: types[kind] for name, kind in table.columns.items()})


def as_object(table: Table) -> dict[str, Any]:
    """Return a table for JSON: its title, its notes, and its rows of raw values."""
    return {"title": table.title, "notes": list(table.notes), "rows": rows(frame(table))}


def report_object(experiment: Experiment, tables: Iterable[Table], damage: Iterable[str]) -> dict[str, Any]:
    """Return a whole report for JSON: its notices, its unreadable runs, its tables by name, and a row for each run."""
    from mlagentbench.results.frames import runs_frame

    return {
        "notices": [notice._asdict() for notice in experiment.notices()],
        "unreadable": list(damage),
        "tables": {table.name: as_object(table) for table in tables},
        "runs": rows(runs_frame(experiment.runs)),
    }


def rows(frame: pl.DataFrame) -> list[dict[str, Any]]:
    """Return a data frame's rows for JSON: times become text, and infinity becomes null."""
    found: list[dict[str, Any]] = json.loads(frame.write_json())
    return found


def markdown(table: Table) -> str:
    """Return a table in GitHub's Markdown, with its title above and its notes below."""
    return "\n\n".join([f"**{_markdown(table.title)}**", pipe_table(grid(table)), *map(_markdown, table.notes)]) + "\n"


def pipe_table(shown: TextTable) -> str:
    """Return the lines of a Markdown table."""
    rule = "|".join("---:" if number else "---" for number in shown.numbers)
    lines = [f"| {' | '.join(map(_markdown, line))} |" for line in (shown.headings, *shown.lines)]
    return "\n".join([lines[0], f"|{rule}|", *lines[1:]])


def _encode(frame: pl.DataFrame, form: Format) -> bytes:
    """Return a data frame in a format for programs. CSV has no lists: their items are joined by spaces."""
    import polars as pl

    buffer = io.BytesIO()
    if form == "parquet":
        frame.write_parquet(buffer)
    elif form == "json":
        frame.write_json(buffer)
    else:
        frame.with_columns(pl.col(name).list.join(" ") for name, kind in frame.schema.items() if kind == pl.List).write_csv(buffer)
    return buffer.getvalue()


def _write(path: Path, content: bytes) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace(path, content, durable=False)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}; choose another folder with --tables") from None
    return path


def _markdown(text: str) -> str:
    return re.sub(r"([\\|`*_<>]|\](?=\())", r"\\\1", " ".join(visible(text).split()))
