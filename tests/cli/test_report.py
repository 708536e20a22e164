"""`mlab report`: its tables in a terminal and a pipe, as JSON, and as files."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from tests.cli.test_cli import complaint, mlab
from tests.cli.test_show import on_a_terminal
from tests.example_runs import write_run
from tests.report.test_tables import GPT, write


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    for number, accuracy in enumerate((0.6, 0.6, 0.5, None)):
        write(tmp_path / "logs", f"gpt-{number}", accuracy)
        write(tmp_path / "logs", f"\x1b[31mopus-{number}", accuracy, model="anthropic/\x1b]0;owned\x07opus")
    return tmp_path / "logs"


def test_a_report_tells_its_tables_and_where_the_page_is(logs: Path) -> None:
    told = mlab("report", logs, environment={"COLUMNS": "80"}).stdout
    assert "8 runs of 1 task by 2 agents; 8 counted" in told
    assert "imdb                50 [15, 85] n=4  50 [15, 85] n=4" in told
    assert "How runs ended, in runs" in told and "Success rates compared" in told
    assert (
        f"page    {logs / 'report.html'}" in told.replace("\n", " ").replace("  page", "\npage  ").splitlines()[-1] or "report.html" in told
    )
    assert "\x1b" not in told and "\x07" not in told
    assert all(len(line) <= 80 for line in told.splitlines() if "report.html" not in line)


def test_a_terminal_has_colour(logs: Path) -> None:
    told = on_a_terminal("report", str(logs), "--no-page", TERM="xterm-256color")
    assert "\x1b[1m" in told, "titles are bold"
    assert "\x1b]0;owned" not in told and "\x1b[31mopus" not in told


def test_few_runs_are_told_one_by_one(tmp_path: Path) -> None:
    write_run(tmp_path / "logs", "one")
    write_run(tmp_path / "logs", "two", finished=False)
    told = " ".join(mlab("report", tmp_path / "logs", "--no-page").stdout.split())
    assert "one success: 3.03 ms against 1.10 s: 363 times faster" in told
    assert "two no result yet" in told
    assert "Success rate" not in told, "rates of so few say nothing"
    assert "1 run not counted: 1 without a result yet." in told
    assert "scripted model: 1 of 1 counted run" in told
    assert not (tmp_path / "logs" / "report.html").exists()


def test_figures_are_files_that_are_told_of(tmp_path: Path) -> None:
    write_run(tmp_path / "logs", "one")
    told = mlab("report", tmp_path / "logs", "--no-page", "--figures", tmp_path / "figures").stdout
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == ["score-one.pdf", "score-one.png", "score-one.svg"]
    assert f"figures {tmp_path / 'figures'}" in told

    write_run(tmp_path / "none", "one", steps=[], verdict="no_submission")
    assert (
        "no figures: no chart would say anything" in mlab("report", tmp_path / "none", "--no-page", "--figures", tmp_path / "empty").stdout
    )


def test_one_pair_is_asked_for(logs: Path) -> None:
    for number in range(2):
        write(logs, f"third-{number}", 0.5, model="scripted/third")
    told = json.loads(mlab("report", logs, "--no-page", "--json", "--compare", f"{GPT},scripted/third").stdout)
    (pair,) = told["tables"]["comparisons"]["rows"]
    assert (pair["first"], pair["second"], pair["p"]) == (f"research, {GPT}", "research, scripted/third", pair["p_adjusted"])


def test_json_is_one_object_and_nothing_else_and_tables_are_files(logs: Path, tmp_path: Path) -> None:
    write(logs, "early", 0.6, published="2024-05-01", task="cifar10", model="scripted/one")
    folder = tmp_path / "tables"
    formats = [option for name in ("csv", "parquet", "latex", "markdown", "json") for option in ("--format", name)]
    cutoffs = ("--cutoff", f"{GPT}=2024-05-01", "--cutoff", "scripted/one=2024-05-01")
    told = json.loads(mlab("report", logs, "--no-page", "--json", "--tables", folder, *formats, *cutoffs).stdout)
    assert told["page"] is None
    assert len(told["runs"]) == 9
    rows = told["tables"]["success"]["rows"]
    assert (rows[0]["task"], rows[0]["rate"], rows[0]["successes"], rows[0]["runs"]) == ("imdb", 0.5, 2, 4)
    periods = {(row["model"], row["published"]): row["rate"] for row in told["tables"]["cutoffs"]["rows"]}
    assert periods == {("scripted/one", "published before the cutoff"): 1.0, (GPT, "unknown date of the task"): 0.5}
    for suffix in (".csv", ".parquet", ".tex", ".md", ".json"):
        assert (folder / f"success{suffix}").is_file()
    assert pl.read_csv(folder / "runs.csv")["improvement"].null_count() == 2
    assert len(pl.read_parquet(folder / "steps.parquet")) == 9
    shares = {(row["model"], row["level"]): row["share"] for row in told["tables"]["profiles"]["rows"]}
    assert shares[GPT, 0.1] == rows[0]["rate"]
    budgets = pl.read_csv(folder / "budgets.csv").filter(pl.col("model") == GPT).sort("budget")
    assert budgets.filter(pl.col("spent") == "steps")["rate"].to_list()[-1] == rows[0]["rate"]
    attempts = pl.read_csv(folder / "attempts.csv").filter((pl.col("model") == GPT) & (pl.col("k") == 2))
    assert attempts["pass_at_k"].to_list() == [pytest.approx(5 / 6)], "of 4 runs, 2 successes: one of 6 pairs has none"
    assert "over" in (folder / "probability-of-improvement.md").read_text()
    assert {path.name for path in folder.glob("*.md")}.isdisjoint({"runs.md", "steps.md"})


@pytest.mark.parametrize(
    "options, told",
    [
        (("--no-page", "-o", "page.html"), "--no-page and --output exclude each other"),
        (("--format", "csv"), "say where to write them with --tables DIR"),
        (("--compare", f"{GPT},vendor/none"), r"'research, anthropic/\x1b]0;owned\x07opus'; 'research, openai/gpt-4o'"),
        (("--cutoff", "openai/gpt-4o"), "is not of the form MODEL=YYYY-MM-DD"),
        (("--cutoff", "openai/gpt-5=2024-05-01"), "no run is by the model 'openai/gpt-5'"),
    ],
)
def test_what_is_asked_wrongly_is_one_line(logs: Path, options: tuple[str, ...], told: str) -> None:
    assert told in complaint(mlab("report", logs, *options))
