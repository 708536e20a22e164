"""What all tests of imports share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No prepared data, wherever the tests run."""
    monkeypatch.setenv("MLAB_CACHE", str(tmp_path / "cache"))
