"""Every number of the overview's tables is the same number of the CSV files, rounded."""

from __future__ import annotations

import csv
import io
import json
import random
import re
import statistics
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser

import pytest

from mlagentbench.cli.main import run as mlab
from tests.example_experiment import CONTESTANTS, TASKS, write_experiment

pytestmark = pytest.mark.slow

NUMBER = re.compile(r"[+\u2212-]?\d[\d,]*(?:\.\d+)?")


class Tables(HTMLParser):
    """The cells of each table of a page: by the table's class and number, its rows of texts, a cell's parts apart."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, list[list[list[str]]]]] = []
        self._open = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "table":
            self.found.append((dict(attrs).get("class") or "", []))
        elif tag == "tr" and self.found:
            self.found[-1][1].append([])
        elif tag in ("td", "th"):
            self.found[-1][1][-1].append([])
            self._open = True

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._open = False

    def handle_data(self, text: str) -> None:
        if self._open and text.strip():
            self.found[-1][1][-1][-1].append(text.strip())


def numbers(text: str) -> list[float]:
    return [float(each.replace(",", "").replace("\N{MINUS SIGN}", "-")) for each in NUMBER.findall(text)]


def rounded(row: Mapping[str, str], *names: str, scale: float = 100.0) -> list[float]:
    return [scale * float(row[name]) for name in names]


def joined(cell: list[str]) -> str:
    return "".join(cell)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Tables, Mapping[str, list[dict[str, str]]]]:
    """The page and the CSV files of an experiment with cells of unequal counts."""
    logs = tmp_path_factory.mktemp("unequal") / "logs"
    chance = random.Random(5)
    for number, task in enumerate(TASKS[:5]):
        for place, contestant in enumerate(CONTESTANTS[:3]):
            part = logs.with_name(f"part-{number}-{place}")
            write_experiment(part, tasks=[task], contestants=[contestant], runs=chance.randint(1, 5), steps=4, seed=10 * number + place)
            logs.mkdir(exist_ok=True)
            for run in part.iterdir():
                if (run / "run.json").exists():
                    name = f"{place}-{run.name}"
                    for file in ("run.json", "result.json"):
                        (run / file).write_text((run / file).read_text().replace(f'"run": "{run.name}"', f'"run": "{name}"'))
                    run.rename(logs / name)
    assert mlab(["report", str(logs), "--tables", str(logs / "tables")]) == 0
    page = Tables()
    page.feed((logs / "report.html").read_text())
    files = {path.stem: list(csv.DictReader(io.StringIO(path.read_text()))) for path in (logs / "tables").glob("*.csv")}
    return page, files


def cells(page: Tables, place: int) -> Iterator[tuple[str, str, list[str]]]:
    """The line, the column (agent and model) and the parts of each cell of the page's heat map of that number."""
    head, *lines = [table for kind, table in page.found if kind == "heat"][place]
    columns = [", ".join((each[0], joined(each[1:]))) for each in head[1:]]
    for line in lines:
        for column, cell in zip(columns, line[1:], strict=True):
            yield line[0][0] if line[0][0] == "Average" else joined(line[0]), column, cell


@pytest.mark.parametrize(
    ("place", "name", "key", "value", "count"),
    [
        (0, "success", "task", "rate", "runs"),
        (1, "categories", "category", "rate", "runs"),
        (2, "improvement", "task", "improvement", "valid"),
    ],
)
def test_each_cell_of_a_heat_map_is_its_row_of_the_csv(
    written: tuple[Tables, Mapping[str, list[dict[str, str]]]], place: int, name: str, key: str, value: str, count: str
) -> None:
    page, files = written
    compared = 0
    for line, column, cell in cells(page, place):
        rows = [
            row for row in files[name] if row["column"] == column and (row[key] or "Average") and line.startswith(row[key] or "Average")
        ]
        [row] = rows if len(rows) == 1 else [row for row in rows if row[key]]
        if not row[value]:
            assert not numbers(cell[0]), cell
            continue
        assert numbers(cell[0]) == pytest.approx(rounded(row, value), abs=0.51), (line, column, cell, row)
        bounds = numbers(cell[1]) if len(cell) > 1 and " to " in cell[1] else []
        if bounds:
            assert bounds[:2] == pytest.approx(rounded(row, "low", "high"), abs=0.51), (line, column, cell, row)
        else:
            assert round(100 * float(row["low"])) == round(100 * float(row["high"])), (line, column, cell, row)
        if said := re.search(r"n (\d+)", " ".join(cell)):
            assert said[1] == row[count], (line, column, cell, row)
        compared += 1
    assert compared >= 6


def test_each_amount_of_an_agent_is_that_of_the_csv(written: tuple[Tables, Mapping[str, list[dict[str, str]]]]) -> None:
    page, files = written
    head, *lines = next(table for kind, table in page.found if kind == "agents")
    place = {joined(each): number for number, each in enumerate(head)}
    costs = {row["column"]: row for row in files["cost"]}
    rates = {row["column"]: row for row in files["success"] if not row["task"]}
    gains = {row["column"]: row for row in files["improvement"] if not row["task"]}
    assert len(lines) == len(costs) == 3
    for line in lines:
        column = ", ".join((line[0][0], joined(line[0][1:])))

        def shown(label: str, line: list[list[str]] = line) -> list[float]:
            return numbers(line[place[label]][0])

        assert shown("Runs") == [float(costs[column]["runs"])]
        assert shown("Success") == pytest.approx(rounded(rates[column], "rate"), abs=0.051)
        assert shown("Improvement") == pytest.approx(rounded(gains[column], "improvement"), abs=0.051)
        assert shown("Steps a run") == pytest.approx(rounded(costs[column], "steps", scale=1), rel=0.006)
        assert shown("Tokens a run") == pytest.approx(rounded(costs[column], "tokens", scale=1), abs=0.51)
        assert numbers(line[place["Success"]][1])[:2] == pytest.approx(rounded(rates[column], "low", "high"), abs=0.51)
        assert numbers(line[place["Improvement"]][1])[:2] == pytest.approx(rounded(gains[column], "low", "high"), abs=0.51)


def test_each_run_on_the_page_is_its_row_of_the_csv(written: tuple[Tables, Mapping[str, list[dict[str, str]]]]) -> None:
    page, files = written
    table = page.found[-1][1]
    head = {joined(each): number for number, each in enumerate(table[0])}
    runs = sorted(files["runs"], key=lambda row: (row["started"], row["run"]))
    lines = [line for line in table[1:] if len(line) == len(head)]
    assert len(lines) == len(runs)
    for line, row in zip(lines, runs, strict=True):
        assert numbers(joined(line[head["Steps"]])) == [float(row["steps"])], (line, row)
        assert numbers(joined(line[head["Tokens"]])) == [float(row["tokens"])], (line, row)
        if row["improvement"]:
            assert numbers(joined(line[head["Improvement"]])) == pytest.approx(rounded(row, "improvement"), abs=0.51), (line, row)
        if row["score"]:
            assert numbers(joined(line[head["Score"]]))[:1] == pytest.approx([float(row["score"])], rel=0.006), (line, row)


def test_the_files_are_what_the_results_make_by_hand(written: tuple[Tables, Mapping[str, list[dict[str, str]]]]) -> None:
    _, files = written
    gains: dict[tuple[str, str], list[float | None]] = {}
    tokens: dict[tuple[str, str], list[int]] = {}
    for row in files["runs"]:
        with open(f"{row['path']}/result.json") as file:
            result = json.load(file)
        if result["outcome"]["ended"] == "infrastructure":
            continue
        cell = (row["task"], f"{row['agent']}, {row['model']}")
        gain = None
        if result["score"] is not None:
            change = result["score"]["value"] - result["baseline"]["value"]
            gain = (change if row["direction"] == "maximize" else -change) / abs(result["baseline"]["value"])
        gains.setdefault(cell, []).append(gain)
        used = sum(usage["input_tokens"] + usage["output_tokens"] for usage in result["usage"].values())
        tokens.setdefault(cell, []).append(used)
    rates = {cell: sum(gain is not None and gain > 0.1 for gain in found) / len(found) for cell, found in gains.items()}
    means = {cell: statistics.fmean([gain for gain in found if gain is not None] or [0.0]) for cell, found in gains.items()}
    spent = {cell: statistics.fmean(found) for cell, found in tokens.items()}

    def average(by_cell: Mapping[tuple[str, str], float], column: str) -> float:
        return statistics.fmean(value for (_, name), value in by_cell.items() if name == column)

    compared = 0
    for name, value, ours in (("success", "rate", rates), ("improvement", "improvement", means)):
        for row in files[name]:
            cell = (row["task"], row["column"])
            if row["task"] and cell not in ours:
                assert not row[value] and row["runs"] == "0"
                continue
            assert float(row[value]) == pytest.approx(ours[cell] if row["task"] else average(ours, row["column"])), row
            compared += 1
    for row in files["cost"]:
        assert float(row["tokens"]) == pytest.approx(average(spent, row["column"]))
    assert compared > 30
