"""A browser for the tests that look at the page, started once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.report.browser import Page, browser, executable


@pytest.fixture(scope="session")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A tab of a headless browser. Whatever a test opens in it must leave no error and ask nothing of a network."""
    if executable() is None:
        pytest.skip("no Chromium or Chrome is on the PATH; `make test` installs one where it may")
    with browser(tmp_path_factory.mktemp("profile")) as tab:
        yield tab


@pytest.fixture
def tab(page: Page) -> Iterator[Page]:
    """A tab that must end without an error, a warning, a dialog or a request."""
    yield page
    assert page.problems() == []
    assert page.requests() == []
