"""The benchmarks go on working: the quick form of each runs to its end, whatever it measures on a machine that does other things too."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests import commands

HERE = Path(__file__).parent
INSTALLING = {"real_agents"}
"""They install from registries; `tests/engine/test_real_agents.py` uses what they are made of."""
BENCHMARKS = [
    path for path in sorted((HERE.parent / "benchmarks").glob("*.py")) if path.stem not in INSTALLING and '"__main__"' in path.read_text()
]
ASKING_PROVIDERS = {"bridge"}
"""They need the providers' packages, for which the others do not wait."""
ARGUMENTS = {"replies": [str(HERE / "agents" / "data" / "real_replies.jsonl")]}
"""What a benchmark is given that has no quick form."""


@pytest.mark.slow
@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda path: path.stem)
def test_a_benchmark_runs_to_its_end(benchmark: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if benchmark.stem in ASKING_PROVIDERS:
        request.getfixturevalue("providers")
    command = [sys.executable, str(benchmark), *ARGUMENTS.get(benchmark.stem, ["--quick"])]
    done = commands.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() and not list(tmp_path.iterdir()), "it prints what it measured, and leaves nothing behind"
