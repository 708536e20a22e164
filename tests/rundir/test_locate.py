"""Runs by what a user calls them."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlagentbench.errors import RunNotFound, UsageError
from mlagentbench.rundir.directory import RunDirectory, prepare_log_directory
from mlagentbench.rundir.locate import locate
from tests.support import run_info


def test_a_run_is_named_by_its_path_its_id_or_the_beginning_of_one(tmp_path: Path) -> None:
    prepare_log_directory(tmp_path)
    for name in ("a-run", "a-run-2", "b-run"):
        RunDirectory.create(tmp_path, run_info(name))
    assert locate(str(tmp_path / "a-run"), Path("elsewhere")) == tmp_path / "a-run"
    assert locate("b", tmp_path).name == "b-run"
    assert locate("a-run", tmp_path).name == "a-run", "a whole id is no beginning of another"
    with pytest.raises(UsageError, match=r"2 runs in .* begin with 'a'; name one: a-run, a-run-2$"):
        locate("a", tmp_path)
    for nothing in ("c", ""):
        with pytest.raises(RunNotFound, match=f"no directory '{nothing}', and no run in .* whose id begins so"):
            locate(nothing, tmp_path)
