"""An experiment, whole: two tasks, three agents, two runs of each, from `mlab run` to the tables and the page."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest
import yaml

import mlagentbench
from mlagentbench.task.catalogue import find_task
from mlagentbench.task.proofs import Files
from tests.cli.test_cli import mlab
from tests.report.browser import Complaints, browser, needs_browser, open_file
from tests.support import made_once, reply

pytestmark = pytest.mark.slow

TASKS = ("ladder-2", "pydoc-lm")
RUNS = 2
RUN = reply("Execute Script", '{"script_name": "train.py"}')
TRY = reply("Execute Script", '{"script_name": "try.py"}')
END = reply("Final Answer", '{"final_answer": "Done."}')


def files(task: str, solution: str) -> Files:
    """A solution of a task's proof, or its ineffective change."""
    return getattr(find_task(task).module("proof"), solution)()  # type: ignore[no-any-return]


def write(written: Files) -> list[str]:
    return [reply("Write File", json.dumps({"file_name": name, "content": text})) for name, text in written.items()]


SCRIPTS = {
    "ladder-2": {
        # It stumbles first, over a script that does not run.
        "careful": [*write({"try.py": "import nothing_of_this_name\n"}), TRY, TRY, *write(files("ladder-2", "solution")), RUN, END],
        "hasty": [*write(files("ladder-2", "ineffective")), RUN, END],
    },
    "pydoc-lm": {
        "careful": [*write(files("pydoc-lm", "solution")), RUN, END],
        # What it leaves is no model.
        "hasty": [RUN, *write({"model.py": "raise SystemExit\n"}), END],
    },
}
AGENTS = {"careful": "research", "hasty": "react"}


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log directory of the runs."""
    return made_once(tmp_path_factory, "experiment", carry_out) / "runs"


def carry_out(folder: Path) -> None:
    """Make the runs as a user does: a command for each task and agent, one log directory."""
    environment = {"MLAB_CACHE": str(folder / "cache")}
    more = ("--variant", "mini", "--runs", str(RUNS), "--json", "--log-dir", folder / "runs")
    for task, scripts in SCRIPTS.items():
        for name, replies in scripts.items():
            script = folder / task / f"{name}.yaml"
            script.parent.mkdir(exist_ok=True)
            script.write_text(yaml.safe_dump([{"reply": text} for text in replies]))
            # Named the same for both tasks, as one model would be.
            finished = mlab(
                "run",
                task,
                "--agent",
                AGENTS[name],
                "--model",
                f"scripted/{name}.yaml",
                *more,
                environment=environment,
                folder=script.parent,
            )
            assert finished.returncode == 0, finished.stderr
            assert len(finished.stdout.splitlines()) == RUNS
        finished = mlab("run", task, "--agent", "baseline", *more, environment=environment)
        assert finished.returncode == 0, finished.stderr


def test_every_run_ends_in_a_typed_outcome_and_its_counts_are_right(logs: Path) -> None:
    found = mlagentbench.load(logs)
    assert not found.unreadable and len(found.runs) == len(TASKS) * 3 * RUNS
    ended = Counter((run.info.spec.task, run.info.spec.agent, run.result.outcome.verdict) for run in found.runs if run.result)
    assert ended == {
        ("ladder-2", "research", "success"): RUNS,
        ("ladder-2", "react", "no_improvement"): RUNS,
        ("ladder-2", "baseline", "no_improvement"): RUNS,
        ("pydoc-lm", "research", "success"): RUNS,
        ("pydoc-lm", "react", "invalid_submission"): RUNS,
        ("pydoc-lm", "baseline", "no_improvement"): RUNS,
    }
    table = found.frame()
    stumbled = table.filter(task="ladder-2", agent="research")
    assert stumbled["failed_executions"].to_list() == stumbled["debugging_streak"].to_list() == [2] * RUNS
    assert stumbled["executions"].to_list() == [3] * RUNS
    assert stumbled["edits"].to_list() == [1 + len(files("ladder-2", "solution"))] * RUNS


def test_the_tables_say_who_succeeds_where_and_how_sure_that_is(logs: Path, tmp_path: Path) -> None:
    finished = mlab("report", logs, "-o", tmp_path / "report.html", "--tables", tmp_path / "tables", "--figures", tmp_path / "figures")
    assert finished.returncode == 0, finished.stderr
    rates = re.findall(r"^(ladder-2|pydoc-lm) +(.*)$", finished.stdout.split("Improvement over")[0], re.MULTILINE)
    assert [(task, re.findall(r"(\d+) \[", row)) for task, row in rates] == [
        ("ladder-2", ["100", "0", "0"]),
        ("pydoc-lm", ["100", "0", "0"]),
    ]
    assert "[34, 100] n=2" in finished.stdout, "Wilson's interval for 2 of 2"
    assert (tmp_path / "tables" / "success.csv").is_file()
    assert {path.suffix for path in (tmp_path / "figures").iterdir()} == {".pdf", ".svg", ".png"}


@needs_browser
def test_the_page_opens_and_tells_the_story_of_each_run(logs: Path, tmp_path: Path) -> None:
    assert mlab("report", logs, "-o", tmp_path / "report.html").returncode == 0
    with browser() as chromium:
        page = chromium.new_page()
        complaints = Complaints(page)
        open_file(page, tmp_path / "report.html")
        assert page.locator("#table tbody tr").count() == len(TASKS) * 3 * RUNS
        text = page.inner_text("body")
        assert "invalid submission" in text and "100" in text
        page.click("#table tbody tr td a")
        page.wait_for_selector("article.run .step")
        assert complaints == []
