"""Tables for LaTeX: compiled, they fit a page, and they say what the tables say."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from mlagentbench.report.experiment import Experiment
from mlagentbench.report.tables.build import tables
from mlagentbench.report.tables.curves import curves
from mlagentbench.report.tables.latex import latex
from mlagentbench.report.tables.model import Row, Table, TextColumn
from mlagentbench.results.load import load
from tests.example_experiment import CONTESTANTS, TASKS, Contestant, write_experiment

needs_tex = pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no pdflatex is on the PATH (Debian: texlive-latex-base)")
LONG = [Contestant(f"agent-{number}", f"vendor/{'a-model-of-a-long-name-' * number}1", 0.4, 3000, 20, 0.01) for number in (1, 2, 3)]


def compiled(folder: Path, found: Sequence[Table]) -> str:
    """The log of a document of these tables; without an error."""
    body = "\n".join(latex(table) for table in found)
    source = rf"\documentclass{{article}}\usepackage{{array,booktabs,rotating}}\begin{{document}}{body}\end{{document}}"
    (folder / "all.tex").write_text(source, encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
    # TeX breaks the lines of its log in words otherwise.
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, errors="replace", env={"PATH": "/usr/bin:/bin", "max_print_line": "10000"}
    )
    assert done.returncode == 0, re.findall(r"^!.*(?:\n.*){3}", done.stdout, re.M)
    return done.stdout


def misfits(log: str) -> list[str]:
    return re.findall(r"Overfull \\hbox.*|Float too large.*|Missing character.*", log)


@needs_tex
@pytest.mark.parametrize("contestants", [CONTESTANTS, (*CONTESTANTS, *LONG)], ids=["six agents", "nine agents with long names"])
def test_every_table_of_an_experiment_fits_its_page(tmp_path: Path, contestants: Sequence[Contestant]) -> None:
    write_experiment(tmp_path / "logs", tasks=TASKS[2:], contestants=contestants, runs=2, steps=3)
    experiment = Experiment.of(load(tmp_path / "logs"))
    found = [*tables(experiment, {}), *curves(experiment)]

    assert {"success", "improvement", "comparisons", "budgets"} <= {table.name for table in found}
    assert misfits(compiled(tmp_path, found)) == []


def listed(*texts: str) -> Table:
    rows: list[Row] = [{"name": text, "reason": text} for text in texts]
    reason = TextColumn("why", lambda row: str(row["reason"]), number=False)
    return Table("t", "A list", {"name": "text", "reason": "text"}, rows, TextColumn("name", lambda row: str(row["name"]), False), [reason])


@needs_tex
def test_long_texts_are_broken_and_long_tables_go_on_on_the_next_page(tmp_path: Path) -> None:
    texts = [
        "a/path/to/some_file.py:12 " * 8,
        "x" * 300,
        "W" * 90,
        r"\input{/etc/passwd} 50% $x_1$ [b]",
        "one\x1b[31m",
        "\N{SNOWMAN} 漢字 é µ",
    ]
    table = listed(*texts, *(f"run-{number}-of-an-agent-that-has-a-name" for number in range(100)))

    assert misfits(compiled(tmp_path, [table])) == []
    assert latex(table).count(r"\begin{sidewaystable}") > 3
    assert latex(table).count("run-99") == 0 and "run-" + r"\allowbreak{}99" in latex(table)


def test_a_narrow_table_stands_upright_a_wider_one_is_turned_and_the_widest_is_split() -> None:
    def of(columns: int) -> str:
        rows: list[Row] = [{"task": "imdb", "column": f"agent {number}", "rate": 50} for number in range(columns)]
        cell = TextColumn("", lambda row: f"{row['rate']} [20, 80] n=8")
        down = TextColumn("task", lambda row: str(row["task"]), number=False)
        kinds = {"task": "text", "column": "text", "rate": "number"}
        return latex(Table("t", "Rates", kinds, rows, down, [cell], across="column"))  # type: ignore[arg-type]

    assert of(2).count(r"\begin{table}") == 1 and "sideways" not in of(2).split("\n", 1)[1]
    assert of(5).count(r"\begin{sidewaystable}") == 1
    wide = of(12)
    assert wide.count(r"\begin{tabular}") > 1 and "Rates (1 of " in wide and r"\label{tab:t-2}" in wide
    assert wide.count("50 {[}20, 80] n=8") == 12, "nothing is lost"
