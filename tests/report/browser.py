"""Open pages in the Chromium of the system, which Playwright drives. No browser is downloaded, and without one such tests are skipped."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

PATIENCE = 300_000
"""Milliseconds to wait for the browser, which on a busy machine stands still for long."""
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def executable() -> str | None:
    """Return a browser of the Chromium family on the PATH."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


needs_browser = pytest.mark.skipif(
    executable() is None, reason="no Chromium or Chrome is on the PATH; `make test` installs one where it may"
)


@contextmanager
def browser() -> Iterator[Browser]:
    """Start a headless browser, and end it. Meanwhile `asyncio.run` refuses to run, because Playwright has a loop in this thread."""
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=executable(), timeout=PATIENCE)


def open_file(page: Page, path: Path, anchor: str = "") -> None:
    """Open a file, and wait until it is loaded and has drawn."""
    # From one part of a page to another there would be no loading to wait for.
    page.goto("about:blank")
    page.goto(path.resolve().as_uri() + anchor)
    drawn(page)


def drawn(page: Page) -> None:
    """Wait until a page has drawn: before it has, the browser may drop what is pressed and clicked."""
    page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")


@contextmanager
def tab_of(browser: Browser, **options: Any) -> Iterator[Page]:
    """Open a tab of a fresh profile, which must end without an error, a warning, a dialog or a request."""
    with browser.new_context(**options) as context:
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        complaints = Complaints(page)
        yield page
        assert complaints == []


class Complaints(list[str]):
    """Errors, warnings, dialogs, and requests for anything but files that are pages, of a page from now on."""

    def __init__(self, page: Page) -> None:
        page.on("console", lambda message: self._add(message.type in ("error", "warning", "assert"), message.text))
        page.on("pageerror", lambda error: self._add(True, str(error)))
        page.on("dialog", lambda dialog: (self._add(True, f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: self._add(not self._is_allowed(request.url, request.resource_type), request.url))

    def _add(self, bad: bool, text: str) -> None:
        if bad:
            self.append(text)

    def _is_allowed(self, url: str, kind: str) -> bool:
        return url.startswith(("about:", "data:")) or (kind == "document" and url.startswith("file:"))
