"""A browser for the tests that look at the page, started once for each of their files."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.report.browser import browser, tab_of


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """A headless browser. Other files' tests need `asyncio.run`, so it ends with this one's."""
    with browser() as started:
        yield started


@pytest.fixture
def tab(chromium: Browser) -> Iterator[Page]:
    with tab_of(chromium, viewport={"width": 1440, "height": 900}) as page:
        yield page
        page.evaluate("0")
