"""What the tests of snapshots start from."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.workspace.support import Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)
