"""The overview of an experiment as a reader meets it in a browser: its tables, its pictures, and the ways through it."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.example_experiment import CONTESTANTS, TASKS, Contestant, write_experiment
from tests.report.browser import needs_browser, open_file
from tests.report.test_page_in_browser import CONTRASTS, report, sideways

pytestmark = needs_browser


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return tmp_path / "logs"


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four tasks by three agents, three runs each."""
    logs = tmp_path_factory.mktemp("experiment") / "logs"
    write_experiment(logs, tasks=TASKS[:4], contestants=CONTESTANTS[1:4], runs=3, steps=5, seed=2)
    return report(logs)


@pytest.mark.parametrize("dark", [False, True])
def test_every_text_of_an_experiment_has_the_contrast_that_wcag_aa_asks(tab: Page, experiment: Path, dark: bool) -> None:
    tab.emulate_media(color_scheme="dark" if dark else "light")
    open_file(tab, experiment)
    contrasts = tab.evaluate(CONTRASTS)

    assert len(contrasts) > 250
    assert [(round(ratio, 2), text) for ratio, text in contrasts if ratio < 4.5] == []


def test_many_columns_scroll_in_their_box_and_tasks_stay_in_sight(tab: Page, logs: Path) -> None:
    contestants = [Contestant("agent" * 6, f"vendor/{'model-' * number}x", 0.5, 1000, 2.0, None) for number in range(1, 14)]
    write_experiment(logs, tasks=TASKS[:2], contestants=contestants, runs=1, steps=2)
    tab.set_viewport_size({"width": 390, "height": 900})
    open_file(tab, report(logs))
    assert sideways(tab) == 0

    tab.set_viewport_size({"width": 1440, "height": 900})

    assert sideways(tab) == 0
    box = "document.querySelector('.scroll:has(.heat)')"
    assert tab.evaluate(f"{box}.scrollWidth > {box}.clientWidth + 100")
    task = "document.querySelector('.heat tbody th').getBoundingClientRect().left"
    before = tab.evaluate(task)
    tab.evaluate(f"{box}.scrollLeft = 400")
    assert tab.evaluate(task) == before
    cells = "[...document.querySelectorAll('.heat tbody td')]"
    assert tab.evaluate(f"{cells}.every((cell) => [...cell.children].every((line) => line.scrollWidth <= cell.clientWidth))")


def test_the_contents_lead_to_their_parts(tab: Page, experiment: Path) -> None:
    open_file(tab, experiment)
    links = tab.evaluate("[...document.querySelectorAll('.contents a')].map((link) => link.getAttribute('href'))")
    assert links == [
        "#agents",
        "#pairs",
        "#success",
        "#categories",
        "#improvement",
        "#tradeoff",
        "#budget",
        "#attempts",
        "#outcomes",
        "#thresholds",
        "#curves",
        "#all",
    ]

    for link in links[:-2]:
        tab.click(f".contents a[href='{link}']")
        tab.wait_for_function(f"Math.abs(document.querySelector('{link}').getBoundingClientRect().top) < 60")


def test_a_point_of_a_task_leads_to_its_run(tab: Page, experiment: Path) -> None:
    open_file(tab, experiment)
    run = tab.evaluate("document.querySelector('details:has(#curves) .pictures a').getAttribute('href')")

    tab.click("summary:has(#curves)")
    tab.click("details:has(#curves) .pictures a")

    tab.wait_for_function(f"location.pathname.endsWith('/{run}') && document.querySelector('.steps')?.checkVisibility()")


def test_a_link_opens_the_folded_part_that_it_leads_to(tab: Page, experiment: Path) -> None:
    open_file(tab, experiment)
    assert not tab.evaluate("document.querySelector('details:has(#curves)').open")

    tab.click(".contents a[href='#curves']")

    tab.wait_for_function("document.querySelector('details:has(#curves)').open")
    open_file(tab, experiment, "#thresholds")
    assert tab.evaluate("document.querySelector('details:has(#thresholds)').open")


@pytest.mark.parametrize("width", [390, 1440])
def test_an_experiment_stays_within_its_window_and_no_picture_is_cut(tab: Page, experiment: Path, width: int) -> None:
    tab.set_viewport_size({"width": width, "height": 900})
    open_file(tab, experiment)
    ends = tab.evaluate("[...document.querySelectorAll('.agents td:nth-child(3) b')].map((each) => each.getBoundingClientRect().right)")
    assert ends and max(ends) <= width, "success is in sight without scrolling"
    tab.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")

    assert sideways(tab) == 0
    # A pixel may be lost to rounding.
    assert (
        tab.evaluate("[...document.querySelectorAll('.pictures .chart')].filter((box) => box.scrollWidth > box.clientWidth + 1).length")
        == 0
    )


def test_the_tables_are_tables_with_heads_for_every_cell(tab: Page, experiment: Path) -> None:
    open_file(tab, experiment)

    for table in ("#agents", "#pairs", "#success", "#improvement", "#categories"):
        within = f"document.querySelector('{table}').closest('section')"
        rows = f"[...{within}.querySelectorAll('tbody tr')]"
        assert tab.evaluate(f"{rows}.length") >= 2
        assert tab.evaluate(f"{rows}.every((row) => row.children[0].scope === 'row')")
        heads = tab.evaluate(f"{within}.querySelectorAll('thead th[scope=col]').length")
        assert tab.evaluate(f"{rows}.every((row) => row.children.length === {heads})")
