"""The pages as files: what they hold, what they escape, how they link. How they behave is in `test_page_in_browser.py`."""

from __future__ import annotations

import base64
import hashlib
import os
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from mlagentbench.errors import RunNotFound, UsageError
from mlagentbench.report.page import report_pages, write_report
from mlagentbench.results.load import Loaded, load_run, scan
from tests.example_runs import ExampleStep, vectorization_steps, write_run


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return tmp_path / "logs"


def story(html: str) -> str:
    """What a reader reads: the text without markup, style and script."""
    html = re.sub(r"<(style|script)\b.*?</\1>", "", html, flags=re.DOTALL)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", html)))


def pages(logs: Path) -> dict[str, str]:
    """The HTML of each page, by the name of its file."""
    return dict(report_pages(scan(logs), "report.html"))


def first_page(logs: Path) -> str:
    """The page of one run, or the overview of many."""
    return pages(logs)["report.html"]


def test_one_run_is_told_with_its_verdict_figures_and_steps(logs: Path) -> None:
    write_run(logs, cost=0.01)

    told = story(first_page(logs))

    for words in (
        *("Success: 363 times faster", "3.03 ms against 1.10 s for the starter", "ended by its final answer, after 8 steps and 28 s"),
        *("scripted model The model's replies were written beforehand", "measured side by side with the submission, 3 times, ± 13 ms"),
        *("+99.7 %", "24,000 agent 19,800 in, 1,760 out; editor 1,530 in, 910 out", "$0.09", "bubblewrap"),
        *("model 11 s", "scripts 4.6 s", "grading, after the run 9.6 s", "1 step refused, failed or stopped; 1 reply without an action"),
        *("A sliding window view gives the patches without a copy.", "ValueError: matmul", "No valid score after this step"),
        *("1 reply before this one held no action", "Your reply holds no Action. Name one.", "I would run the script now."),
        *("3.0 ms instead of 1.1 s.", "Make the forward pass faster.", "AMD EPYC 9654", "--step 4"),
    ):
        assert words in told, words


def test_a_difference_is_shown_once_and_coloured(logs: Path) -> None:
    write_run(logs)

    html = first_page(logs)

    assert "<del>-        for n in range(batch):" not in html  # adjacent lines are one element
    assert re.search(
        r"<del>-        out = np.zeros.*?\n-        for n in range\(batch\):\n.*?</del><ins>\+        windows", html, re.DOTALL
    )
    assert html.count("+        windows = np.lib.stride_tricks") == 1
    assert html.count("(the difference shown below)") == 2


def test_many_runs_are_a_table_with_a_link_to_each(logs: Path) -> None:
    write_run(logs, "one")
    write_run(logs, "two", verdict="invalid_submission", ended="limit_steps", reason="train.py raised ValueError", flags=())
    write_run(logs, "three", finished=False)

    found = pages(logs)
    html = found["report.html"]

    assert "3 runs of vectorization" in html
    assert "1 success, 1 invalid submission, 1 without a result yet" in html
    for name in ("one", "two", "three"):
        assert f'<a href="report-runs/{name}.html">{name}</a>' in html
    assert sorted(found) == [*(f"report-runs/{name}.html" for name in ("one", "three", "two")), "report.html"]
    assert '<a class="back" href="../report.html">' in found["report-runs/two.html"]


def test_pages_whose_names_would_be_the_same_file_have_different_names(tmp_path: Path) -> None:
    runs = [
        load_run(write_run(tmp_path / folder, name)) for folder, name in (("a", "run?"), ("b", "run-"), ("c", "RUN-"), ("d", "x" * 250))
    ]

    found = [page.name for page in report_pages(Loaded(runs, [], tmp_path), "my report")]

    assert found == [
        *(f"my report-runs/{name}.html" for name in ("run-", "run-~1", "RUN-~2", "x" * 100)),
        "my report",
    ]


def test_runs_that_nobody_is_to_blame_for_are_told_apart(logs: Path) -> None:
    write_run(logs, "one")
    write_run(logs, "two", verdict="ungraded", ended="infrastructure", reason="the provider is down")

    assert "1 success, 1 not graded; 1 of them cancelled, or ended by a failure that is not counted against the agent" in first_page(logs)


def test_few_runs_are_told_one_by_one_and_more_together(logs: Path) -> None:
    for number in range(3):
        write_run(logs, f"run-{number}")
    few = story(first_page(logs))
    write_run(logs, "run-3", vectorization_steps(1.05), verdict="no_improvement")
    more = story(first_page(logs))

    assert "Which agent succeeds most?" not in few and "How did scores develop?" in few
    # Three of four: 30.1 to 95.4 % by Wilson's interval.
    assert "Which agent succeeds most?" in more and "75 % 30 to 95, 1 task" in more
    assert "Which tasks do they succeed at?" not in more, "of a single task the first table says it"
    write_run(logs, "lost", verdict="ungraded", ended="infrastructure", reason="the provider is down")
    assert "75 % 30 to 95, 1 task 60 to 80 with 1 left out" in story(first_page(logs))


def test_tasks_by_agents_are_a_table_with_intervals_and_numbers_of_runs(logs: Path) -> None:
    for task in ("one", "two"):
        for number in range(4):
            write_run(
                logs,
                f"{task}-{number}",
                vectorization_steps(0.5 if number else 1.05),
                verdict=None if number else "no_improvement",
                task=task,
            )

    told = story(first_page(logs))

    assert told.count("75 30 to 95, n 4") == 2
    assert "Average 75 41 to 93, 2 tasks" in told, "Wilson's of six in eight"


def test_a_cost_that_is_not_known_is_called_unknown(logs: Path) -> None:
    for number in range(4):
        write_run(logs, f"run-{number}", agent="free" if number > 1 else "paid", cost=None if number else 0.01)

    html = first_page(logs)

    rows = re.findall(r"<tr><th scope=\"row\"><b>(\w+) .*?</tr>", html.split('class="agents"')[1].split("</table>")[0], re.DOTALL)
    assert rows == ["paid", "free"]
    told = story(html)
    assert "$0.09 unknown for 1 run" in told and re.search(r"free \(context_steps 3\).*? unknown ", told)


def test_runs_that_cannot_be_read_are_named(logs: Path) -> None:
    write_run(logs, "one")
    (write_run(logs, "two").path / "run.json").write_text("{")

    told = story(first_page(logs))

    assert "1 run cannot be read or is a copy, and is missing here" in told and "two/run.json" in told


def test_damage_within_a_run_is_named_where_it_matters(logs: Path) -> None:
    directory = write_run(logs)
    (directory.steps_folder / "0002.json").write_text("{")
    directory.manifest(4).unlink()
    directory.manifest(7).write_bytes(b"torn")

    told = story(first_page(logs))

    assert "unreadable" in told and "0002.json is damaged" in told
    assert "no snapshot of this step" in told
    assert "is damaged" in told


@pytest.mark.parametrize("ended", ["format_failure", "limit_context", "agent_error"])
def test_a_run_without_steps_is_told(logs: Path, ended: str) -> None:
    write_run(logs, steps=[], ended=ended, verdict="no_submission", reason="there is no submission")

    told = story(first_page(logs))

    assert "No step was finished." in told and "No submission" in told


def test_a_file_that_is_no_text_is_named_with_its_size(logs: Path) -> None:
    write_run(logs, steps=[ExampleStep("Execute Script", files={"model.bin": bytes(range(256)) * 10})])

    assert "model.bin added 2.6 kB, no text or too long to compare" in story(first_page(logs))


HOSTILE = "</script><script>hacked = 1</script><img src=x onerror='hacked = 2'>\"'><b>bold</b> \x1b[31mred\x07 \u202eflip {{ 7 * 7 }} &lt;"


def hostile_run(logs: Path, name: str = "run", **more: Any) -> None:
    steps = [
        ExampleStep(
            HOSTILE,
            {HOSTILE: HOSTILE, "file": "<i>short</i>", "code": HOSTILE + "\n" + HOSTILE},
            HOSTILE,
            HOSTILE,
            files={"x<b>.py": HOSTILE, os.fsdecode(b"\xff\xfe.txt"): "surrogates in a name\n"},
            reason=HOSTILE,
            malformed=1,
        ),
        ExampleStep("Final Answer", {"final_answer": HOSTILE}, HOSTILE, HOSTILE, score=0.5),
    ]
    facts = {
        "task": HOSTILE,
        "agent": HOSTILE,
        "models": {"agent": HOSTILE},
        "description": HOSTILE,
        "metric": HOSTILE,
        "isolation": HOSTILE,
    }
    facts |= {"agent_options": {HOSTILE: HOSTILE}, "versions": {HOSTILE: HOSTILE}, "unit": ""}
    write_run(logs, name, steps, reason=HOSTILE, **(facts | more))


def test_what_agents_write_is_text(logs: Path) -> None:
    hostile_run(logs)
    hostile_run(logs, "other")

    found = pages(logs)

    for html in found.values():
        assert "<script>hacked" not in html
        assert "<img" not in html
        assert "<b>bold" not in html and "<i>short" not in html
        assert "\x1b" not in html and "\u202e" not in html
        assert not re.search("[\ud800-\udfff]", html)
    told = story("".join(found.values()))
    assert "</script><script>hacked = 1</script>" in told
    assert "␛[31mred␇ <U+202E>flip {{ 7 * 7 }} &lt;" in told
    assert "x<b>.py" in told and "\ufffd\ufffd.txt" in told


def test_the_policy_allows_this_style_and_script_and_no_other(logs: Path) -> None:
    write_run(logs)

    html = first_page(logs)

    [policy] = re.findall(r'Content-Security-Policy" content="([^"]*)"', html)
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy and "http" not in policy
    for element, directive in (("style", "style-src"), ("script", "script-src")):
        [content] = re.findall(f"<{element}>(.*?)</{element}>", html, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}'" in policy


def test_no_address_leads_out_of_the_page(logs: Path) -> None:
    write_run(logs)

    addresses = re.findall(r'(?:href|src)="([^"]*)"', first_page(logs))

    assert addresses and all(address.startswith("#") or address == "data:," for address in addresses)


def test_a_long_observation_is_cut_and_the_cut_is_named(logs: Path) -> None:
    directory = write_run(logs, steps=[ExampleStep("Execute Script", observation="first\n" + "x" * 50_000 + "\nlast\n")])

    told = story(first_page(logs))

    assert re.search(r"first x+ … 38,\d{3} characters left out; mlab show \S+ --step 1 … x+ last", told)
    assert f"{directory.path} --step 1" in told


def test_the_file_is_written_whole(logs: Path, tmp_path: Path) -> None:
    write_run(logs)
    output = tmp_path / "new folder" / "report.html"

    assert write_report(scan(logs), output) == output
    assert output.read_text(encoding="utf-8").rstrip().endswith("</html>")
    assert [path.name for path in output.parent.iterdir()] == ["report.html"]


def test_a_place_that_cannot_be_written_is_an_error_that_says_what_to_do(logs: Path, tmp_path: Path) -> None:
    write_run(logs)
    (tmp_path / "file").write_text("")

    with pytest.raises(UsageError, match="choose another file with -o"):
        write_report(scan(logs), tmp_path / "file" / "report.html")


def test_no_runs_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RunNotFound):
        write_report(scan(tmp_path), tmp_path / "report.html")


def test_a_score_a_little_off_the_baseline_is_neither_better_nor_worse(logs: Path) -> None:
    write_run(logs, steps=[ExampleStep("Look", score=score) for score in (1.11, 0.5, 1.5)])

    assert re.findall(r'<li class="step" data-status="ok" data-score="(\w+)"', first_page(logs)) == ["same", "better", "worse"]
