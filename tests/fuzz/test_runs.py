"""Some tens of the damaged directories of `tests/fuzz/runs.py`: none makes a command fail, and each is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.runs import DAMAGES, faults_of, faults_together, write_log


@pytest.mark.slow
def test_no_damaged_run_stops_a_report_and_each_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    log = write_log(tmp_path, range(40), seed=2)

    assert len({case.kind for case in log.cases}) > len(DAMAGES) / 2
    assert sum(case.certain for case in log.cases) > 20
    assert [*faults_together(log)] == []
    assert [line for case in log.cases[::4] for line in faults_of(case)] == []
