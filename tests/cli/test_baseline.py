"""`mlab baseline`: the starter's own score, once measured, and what cannot be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_cli import mlab
from tests.grading.test_baseline import make


@pytest.fixture
def tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A starter that scores 10 and 11, and one that fails."""
    monkeypatch.setenv("MLAB_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "tasks"
    folder.mkdir()
    for name, train in (("count", None), ("broken", "1 / 0")):
        task = make(tmp_path / name, **({"train": train} if train else {}))
        text = (task.folder / "task.toml").read_text()
        (task.folder / "task.toml").write_text(text.replace('id = "count"', f'id = "{name}"'))
        task.folder.rename(folder / name)
    return folder


def test_a_baseline_is_measured_once_and_a_task_without_one_holds_up_no_other(tasks: Path) -> None:
    common = ("baseline", "broken", "count", "--task-path", tasks, "--variant", "mini", "--sandbox", "none", "--runs", "2")
    first = mlab(*common)
    shown = " ".join(first.stdout.split())
    assert first.returncode == 3
    assert "broken has no baseline: the starter of broken has no score to compare with: it left no submission, and said at last" in shown
    assert "count, run 1 of 2: 10.0 in" in shown and "count, run 2 of 2: 11.0 in" in shown
    assert "10.5 ± 5.5 2" in shown and "measured on this machine" in shown and "cores" in shown and "scripts in none" in shown
    again = mlab("baseline", "count", *common[3:])
    shown = " ".join(again.stdout.split())
    assert again.returncode == 0 and "run 1 of" not in shown
    assert "count: was measured in 2 runs before; --runs adds more, --again does it anew" in shown and "10.5 ± 5.5 2" in shown
    told = json.loads(mlab("baseline", "count", *common[3:], "--json").stdout)
    assert told["baseline"] == {"value": 10.5, "values": [10.0, 11.0], "source": "measured"}
    assert told["spread"] == pytest.approx(5.47, abs=0.01) and told["measured_before"] is True and len(told["seconds"]) == 2
    assert told["hardware"]["cores"] >= 1 and told["isolation"] == "none"
    assert json.loads(mlab("baseline", "count", *common[3:], "--again", "--json").stdout)["measured_before"] is False
