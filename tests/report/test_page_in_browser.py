"""The page as a reader meets it in a browser: opened from a file, sorted, filtered, folded, dark, small, and without a script."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mlagentbench.report.page import write_report
from mlagentbench.results.load import scan
from tests.example_runs import ExampleStep, vectorization_steps, write_run
from tests.report.browser import Page
from tests.report.test_page import HOSTILE, hostile_run

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


@pytest.fixture
def one(logs: Path) -> Path:
    write_run(logs)
    return report(logs)


def write_some(logs: Path) -> None:
    write_run(logs, "a-slow", vectorization_steps(1.05), verdict="no_improvement", flags=(), started=100.0)
    write_run(logs, "b-fast", vectorization_steps(0.003), started=200.0)
    write_run(logs, "c-invalid", vectorization_steps()[:5], verdict="invalid_submission", ended="limit_steps", agent="react", started=300.0)
    write_run(logs, "d-middle", vectorization_steps(0.1), flags=(), started=400.0)


@pytest.fixture
def many(logs: Path) -> Path:
    write_some(logs)
    return report(logs)


def shown_rows(tab: Page) -> list[str]:
    rows = "[...document.querySelectorAll('#table tbody tr')].filter((row) => row.checkVisibility())"
    return list(tab.evaluate(f"{rows}.map((row) => row.querySelector('a').textContent)"))


def sort_by(tab: Page, label: str) -> None:
    number = tab.evaluate(f"[...document.querySelectorAll('#table th')].findIndex((head) => head.textContent === {json.dumps(label)}) + 1")
    tab.click(f"#table th:nth-child({number}) button")


def sideways(tab: Page) -> int:
    """Pixels by which the page is wider than its window."""
    return int(tab.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


def test_one_run_opens_on_its_verdict(tab: Page, one: Path) -> None:
    tab.open(one)

    assert (
        tab.evaluate("document.querySelector('h1').checkVisibility() && document.querySelector('h1').textContent")
        == "Success: 363 times faster"
    )
    assert tab.evaluate("document.querySelector('.chart svg').getBoundingClientRect().width") > 400
    assert tab.evaluate("document.title") == "vectorization: Success: 363 times faster"
    assert tab.evaluate("document.querySelectorAll('.step').length") == 8


def test_steps_open_and_close_one_by_one_and_all_at_once(tab: Page, one: Path) -> None:
    tab.open(one)
    opened = "document.querySelectorAll('.step > details[open]').length"
    assert tab.evaluate(opened) == 0

    tab.click(".step:nth-child(4) summary")
    assert tab.evaluate(opened) == 1
    assert tab.evaluate("document.querySelector('.step:nth-child(4) .diff').checkVisibility()")

    tab.click(".unfold")
    assert tab.evaluate(opened) == 8
    tab.wait("document.querySelector('.unfold').textContent === 'Close all'")
    tab.click(".unfold")
    assert tab.evaluate(opened) == 0


def test_the_keyboard_is_enough(tab: Page, many: Path) -> None:
    tab.open(many)

    tab.evaluate("document.querySelector('#table th:nth-child(5) button').focus()")
    tab.press("Enter", 13, "\r")
    assert shown_rows(tab)[0] == "b-fast"

    tab.evaluate("document.querySelector('#table tbody a').focus()")
    tab.press("Enter", 13, "\r")
    tab.wait("location.pathname.endsWith('report-runs/b-fast.html') && document.readyState === 'complete'")

    tab.evaluate("document.querySelector('.step summary').focus()")
    tab.press("Enter", 13, "\r")
    assert tab.evaluate("document.querySelector('.step details').open")


def test_an_address_leads_to_a_step(tab: Page, one: Path) -> None:
    tab.open(one, anchor="#step-5")

    tab.wait("document.querySelector('.step:nth-child(5) > details').open")
    assert tab.evaluate("document.querySelectorAll('.step > details[open]').length") == 1
    assert abs(tab.evaluate("document.querySelector('.step:nth-child(5)').getBoundingClientRect().top")) < 400


def test_a_point_of_the_chart_leads_to_its_step(tab: Page, one: Path) -> None:
    tab.open(one)

    tab.click(".chart a[href='#step-4']")

    tab.wait("document.querySelector('.step:nth-child(4) > details').open")


def test_the_table_sorts_by_value_and_keeps_what_has_none_last(tab: Page, many: Path) -> None:
    tab.open(many)
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
    tab.open(many)

    tab.evaluate("document.querySelector('#filter').focus()")
    tab.type("SUCCESS model")
    assert shown_rows(tab) == ["b-fast"]
    assert tab.evaluate("document.querySelector('#shown').textContent") == "1 of 4 runs"

    tab.type(" nothing")
    assert shown_rows(tab) == []
    tab.click("#clear")
    assert len(shown_rows(tab)) == 4

    choice = "document.querySelector('select[data-column=agent]')"
    tab.evaluate(f"{choice}.value = 'react'; {choice}.dispatchEvent(new Event('input', {{bubbles: true}}))")
    assert shown_rows(tab) == ["c-invalid"]


def test_a_run_opens_from_the_table_and_leads_on_and_back(tab: Page, many: Path) -> None:
    tab.open(many)
    shown = "document.readyState === 'complete' && document.querySelector('h1').textContent"

    tab.click("a[href='report-runs/c-invalid.html']")
    tab.wait(f"({shown} || '').startsWith('Invalid submission')")
    assert tab.evaluate("document.querySelector('.steps').checkVisibility()")

    tab.click(".next")
    tab.wait(f"{shown} === 'Success: 11 times faster'")
    assert not tab.evaluate("document.querySelector('.next')")

    tab.click(".back")
    tab.wait(f"{shown} === '4 runs of vectorization'")
    assert len(shown_rows(tab)) == 4


def test_the_theme_follows_the_system_until_the_reader_chooses(tab: Page, one: Path) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    tab.open(one)
    tab.evaluate("localStorage.clear()")
    tab.open(one, dark=True)
    dark = tab.evaluate(ground)
    assert tab.evaluate("document.querySelector('#theme').textContent") == "Light"
    ink = tab.evaluate("getComputedStyle(document.querySelector('.chart text[font-weight=\"600\"]')).fill")

    tab.click("#theme")
    light = tab.evaluate(ground)

    assert (dark, light) == ("rgb(19, 21, 25)", "rgb(251, 250, 247)")
    assert ink != tab.evaluate("getComputedStyle(document.querySelector('.chart text[font-weight=\"600\"]')).fill")
    tab.open(one, dark=True)
    assert tab.evaluate(ground) == light
    tab.evaluate("localStorage.clear()")


def test_paper_is_light(tab: Page, one: Path) -> None:
    tab.open(one, dark=True)

    tab.send("Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    ink, button = tab.evaluate("[getComputedStyle(document.body).color, document.querySelector('#theme').checkVisibility()]")
    tab.send("Emulation.setEmulatedMedia", media="")

    assert ink == "rgb(31, 35, 40)" and not button


@pytest.mark.parametrize("dark", [False, True])
def test_every_text_has_the_contrast_that_wcag_aa_asks(tab: Page, many: Path, dark: bool) -> None:
    tab.open(many, dark=dark)
    contrasts = tab.evaluate(CONTRASTS)
    for run in ("a-slow", "c-invalid"):
        tab.open(page_of(many, run), dark=dark)
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

    tab.open(path, width=width)
    assert sideways(tab) == 0
    for run in ("a-slow", "hostile", "long" * 25):
        tab.open(page_of(path, run), width=width)
        tab.click(".unfold")
        tab.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        assert sideways(tab) == 0, run


def test_what_agents_write_shows_as_text(tab: Page, logs: Path) -> None:
    hostile_run(logs, "one")
    hostile_run(logs, "two")
    overview = report(logs)
    for path in (overview, page_of(overview, "two")):
        tab.open(path)
        assert tab.evaluate("typeof hacked") == "undefined"
        assert tab.evaluate("document.querySelectorAll('img, iframe, object, article script, article [onerror]').length") == 0

    written = HOSTILE.replace("\x1b", "␛").replace("\x07", "␇").replace("\u202e", "<U+202E>")
    text = tab.evaluate("document.querySelector('article').textContent")
    assert text.count(written) >= 12
    blocks = tab.evaluate("[...document.querySelectorAll('pre')].map((block) => block.textContent)")
    assert written + "\n" + written in blocks


def test_without_a_script_everything_can_be_read(page: Page, many: Path) -> None:
    for path in (many, page_of(many, "b-fast")):
        page.open(path, script=False)
        document = page.send("DOM.getDocument", depth=0)["root"]["nodeId"]
        for selector in ("h1", "table" if path == many else ".steps"):
            node = page.send("DOM.querySelector", nodeId=document, selector=selector)["nodeId"]
            assert page.send("DOM.getBoxModel", nodeId=node)["model"]["height"] > 0
        assert page.requests() == []
