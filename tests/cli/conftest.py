"""Commands of these tests ask no provider."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _lean(lean: None) -> None:
    """As for every one."""
