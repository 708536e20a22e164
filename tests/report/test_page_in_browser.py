"""The page as a reader meets it in a browser: opened from a file, sorted, filtered, folded, dark, small, and without a script."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from mlagentbench.report.page import write_report
from mlagentbench.results.load import scan
from tests.example_runs import ExampleStep, vectorization_steps, write_run
from tests.report.browser import drawn, needs_browser, open_file, tab_of
from tests.report.test_page import HOSTILE, hostile_run

pytestmark = needs_browser
CONTRASTS = """
(() => {
  const parse = (color) => { const [r, g, b, a = 1] = color.match(/[\\d.]+/g).map(Number); return { rgb: [r, g, b], a }; };
  const light = (rgb) => {
    const [r, g, b] = rgb.map((part) => { part /= 255; return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    // A number in a bar stands on the piece before it.
    if (element.matches(".bars text")) return parse(getComputedStyle(element.previousElementSibling).fill).rgb;
    for (let at = element; at; at = at.parentElement) {
      const { rgb, a } = parse(getComputedStyle(at).backgroundColor);
      if (a === 1) return rgb;
      if (a !== 0) return null;
    }
    return [255, 255, 255];
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !element.checkVisibility() || ["SCRIPT", "STYLE", "OPTION"].includes(element.tagName)) continue;
    // The halo around a label is there to be unseen.
    if (element.getAttribute("stroke-width")) continue;
    const style = getComputedStyle(element);
    const back = behind(element);
    const color = parse(element instanceof SVGElement ? style.fill : style.color).rgb;
    const [high, low] = [light(color), light(back)].sort((a, b) => b - a);
    const name = `${element.tagName}.${element.className.baseVal ?? element.className}`;
    found.push([(high + 0.05) / (low + 0.05), `${name}: ${walker.currentNode.data.trim().slice(0, 30)}`]);
  }
  return found;
})()
"""


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return tmp_path / "logs"


def report(logs: Path) -> Path:
    return write_report(scan(logs), logs.parent / "report.html")


def page_of(report: Path, run: str) -> Path:
    return report.with_name("report-runs") / f"{run}.html"


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    logs = tmp_path_factory.mktemp("one") / "logs"
    write_run(logs)
    return report(logs)


def write_some(logs: Path) -> None:
    write_run(logs, "a-slow", vectorization_steps(1.05), verdict="no_improvement", flags=(), started=100.0)
    write_run(logs, "b-fast", vectorization_steps(0.003), started=200.0)
    write_run(logs, "c-invalid", vectorization_steps()[:5], verdict="invalid_submission", ended="limit_steps", agent="react", started=300.0)
    write_run(logs, "d-middle", vectorization_steps(0.1), flags=(), started=400.0)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    logs = tmp_path_factory.mktemp("many") / "logs"
    write_some(logs)
    return report(logs)


def shown_rows(tab: Page) -> list[str]:
    rows = "[...document.querySelectorAll('#table tbody tr')].filter((row) => row.checkVisibility())"
    return list(tab.evaluate(f"{rows}.map((row) => row.querySelector('a').textContent)"))


def sort_by(tab: Page, label: str) -> None:
    tab.locator("#table th button", has_text=re.compile(f"^{label}$")).click()


def sideways(tab: Page) -> int:
    """Pixels by which the page is wider than its window."""
    return int(tab.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


def test_one_run_opens_on_its_verdict(tab: Page, one: Path) -> None:
    open_file(tab, one)

    assert (
        tab.evaluate("document.querySelector('h1').checkVisibility() && document.querySelector('h1').textContent")
        == "Success: 363 times faster"
    )
    assert tab.evaluate("document.querySelector('.chart svg').getBoundingClientRect().width") > 400
    assert tab.evaluate("document.title") == "vectorization: Success: 363 times faster"
    assert tab.evaluate("document.querySelectorAll('.step').length") == 8


def test_steps_open_and_close_one_by_one_and_all_at_once(tab: Page, one: Path) -> None:
    open_file(tab, one)
    opened = "document.querySelectorAll('.step > details[open]').length"
    assert tab.evaluate(opened) == 0

    tab.click(".step:nth-child(4) summary")
    assert tab.evaluate(opened) == 1
    assert tab.evaluate("document.querySelector('.step:nth-child(4) .diff').checkVisibility()")

    tab.click(".unfold")
    assert tab.evaluate(opened) == 8
    tab.wait_for_function("document.querySelector('.unfold').textContent === 'Close all'")
    tab.click(".unfold")
    assert tab.evaluate(opened) == 0


def test_the_keyboard_is_enough(tab: Page, many: Path) -> None:
    open_file(tab, many)

    tab.evaluate("document.querySelector('#table th:nth-child(5) button').focus()")
    tab.keyboard.press("Enter")
    assert shown_rows(tab)[0] == "b-fast"

    tab.evaluate("document.querySelector('#table tbody a').focus()")
    tab.keyboard.press("Enter")
    tab.wait_for_function("location.pathname.endsWith('report-runs/b-fast.html') && document.readyState === 'complete'")
    drawn(tab)

    tab.evaluate("document.querySelector('.step summary').focus()")
    tab.keyboard.press("Enter")
    assert tab.evaluate("document.querySelector('.step details').open")


def test_an_address_leads_to_a_step(tab: Page, one: Path) -> None:
    open_file(tab, one, "#step-5")

    tab.wait_for_function("document.querySelector('.step:nth-child(5) > details').open")
    assert tab.evaluate("document.querySelectorAll('.step > details[open]').length") == 1
    assert abs(tab.evaluate("document.querySelector('.step:nth-child(5)').getBoundingClientRect().top")) < 400


def test_a_point_of_the_chart_leads_to_its_step(tab: Page, one: Path) -> None:
    open_file(tab, one)

    tab.click(".chart a[href='#step-4']")

    tab.wait_for_function("document.querySelector('.step:nth-child(4) > details').open")


def test_the_table_sorts_by_value_and_keeps_what_has_none_last(tab: Page, many: Path) -> None:
    open_file(tab, many)
    assert shown_rows(tab) == ["a-slow", "b-fast", "c-invalid", "d-middle"]

    sort_by(tab, "Improvement")
    assert shown_rows(tab) == ["b-fast", "d-middle", "a-slow", "c-invalid"]
    assert (
        tab.evaluate("document.querySelector('th[aria-sort]').textContent + document.querySelector('th[aria-sort]').ariaSort")
        == "Improvementdescending"
    )

    sort_by(tab, "Improvement")
    assert shown_rows(tab) == ["a-slow", "d-middle", "b-fast", "c-invalid"]

    sort_by(tab, "Outcome")
    assert shown_rows(tab)[0] == "c-invalid"


def test_the_table_filters_by_words_and_by_choice(tab: Page, many: Path) -> None:
    open_file(tab, many)

    tab.evaluate("document.querySelector('#filter').focus()")
    tab.keyboard.insert_text("SUCCESS model")
    assert shown_rows(tab) == ["b-fast"]
    assert tab.evaluate("document.querySelector('#shown').textContent") == "1 of 4 runs"

    tab.keyboard.insert_text(" nothing")
    assert shown_rows(tab) == []
    tab.click("#clear")
    assert len(shown_rows(tab)) == 4

    choice = "document.querySelector('select[data-column=agent]')"
    tab.evaluate(f"{choice}.value = 'react'; {choice}.dispatchEvent(new Event('input', {{bubbles: true}}))")
    assert shown_rows(tab) == ["c-invalid"]


def test_a_run_opens_from_the_table_and_leads_on_and_back(tab: Page, many: Path) -> None:
    open_file(tab, many)
    shown = "document.readyState === 'complete' && document.querySelector('h1').textContent"

    tab.click("a[href='report-runs/c-invalid.html']:visible")
    tab.wait_for_function(f"({shown} || '').startsWith('Invalid submission')")
    assert tab.evaluate("document.querySelector('.steps').checkVisibility()")

    tab.click(".next")
    tab.wait_for_function(f"{shown} === 'Success: 11 times faster'")
    assert not tab.evaluate("document.querySelector('.next')")

    tab.click(".back")
    tab.wait_for_function(f"{shown} === '4 runs of vectorization'")
    assert len(shown_rows(tab)) == 4


def test_the_theme_follows_the_system_until_the_reader_chooses(tab: Page, one: Path) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    tab.emulate_media(color_scheme="dark")
    open_file(tab, one)
    dark = tab.evaluate(ground)
    assert tab.evaluate("document.querySelector('#theme').textContent") == "Light"
    ink = tab.evaluate("getComputedStyle(document.querySelector('.chart text[font-weight=\"600\"]')).fill")

    tab.click("#theme")
    light = tab.evaluate(ground)

    assert (dark, light) == ("rgb(19, 21, 25)", "rgb(251, 250, 247)")
    assert ink != tab.evaluate("getComputedStyle(document.querySelector('.chart text[font-weight=\"600\"]')).fill")
    open_file(tab, one)
    assert tab.evaluate(ground) == light


def test_paper_is_light(tab: Page, one: Path) -> None:
    tab.emulate_media(color_scheme="dark")
    open_file(tab, one)

    tab.emulate_media(media="print")
    ink, button = tab.evaluate("[getComputedStyle(document.body).color, document.querySelector('#theme').checkVisibility()]")

    assert ink == "rgb(31, 35, 40)" and not button


@pytest.mark.parametrize("dark", [False, True])
def test_every_text_has_the_contrast_that_wcag_aa_asks(tab: Page, many: Path, dark: bool) -> None:
    tab.emulate_media(color_scheme="dark" if dark else "light")
    open_file(tab, many)
    contrasts = tab.evaluate(CONTRASTS)
    for run in ("a-slow", "c-invalid"):
        open_file(tab, page_of(many, run))
        tab.click(".unfold")
        contrasts += tab.evaluate(CONTRASTS)

    assert len(contrasts) > 300
    assert [(round(ratio, 2), text) for ratio, text in contrasts if ratio < 4.5] == []


@pytest.mark.parametrize("width", [390, 1440])
def test_nothing_scrolls_sideways(tab: Page, logs: Path, width: int) -> None:
    write_some(logs)
    hostile_run(logs, "hostile", description="long" * 2000)
    steps = [ExampleStep("Execute Script", {"argument" * 20: "x" * 3000}, "y" * 3000, "z" * 3000, {"f" * 200: "w" * 3000})]
    write_run(logs, "long" * 40, steps, reason="r" * 500, agent="agent" * 30, models={"agent": "model" * 40})
    path = report(logs)

    tab.set_viewport_size({"width": width, "height": 900})
    open_file(tab, path)
    assert sideways(tab) == 0
    for run in ("a-slow", "hostile", "long" * 25):
        open_file(tab, page_of(path, run))
        tab.click(".unfold")
        tab.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        assert sideways(tab) == 0, run


def test_what_agents_write_shows_as_text(tab: Page, logs: Path) -> None:
    hostile_run(logs, "one")
    hostile_run(logs, "two")
    overview = report(logs)
    for path in (overview, page_of(overview, "two")):
        open_file(tab, path)
        assert tab.evaluate("typeof hacked") == "undefined"
        assert tab.evaluate("document.querySelectorAll('img, iframe, object, article script, article [onerror]').length") == 0

    written = HOSTILE.replace("\x1b", "␛").replace("\x07", "␇").replace("\u202e", "<U+202E>")
    text = tab.evaluate("document.querySelector('article').textContent")
    assert text.count(written) >= 12
    blocks = tab.evaluate("[...document.querySelectorAll('pre')].map((block) => block.textContent)")
    assert written + "\n" + written in blocks


def test_without_a_script_everything_can_be_read(chromium: Browser, many: Path) -> None:
    with tab_of(chromium, java_script_enabled=False) as tab:
        for path, parts in ((many, "table"), (page_of(many, "b-fast"), ".steps")):
            tab.goto(path.as_uri())
            assert tab.locator("h1").is_visible() and tab.locator(parts).first.is_visible()
