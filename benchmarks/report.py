"""What the report's pages weigh, and how long they take to write and to open: 200 runs of 50 steps, as an experiment has them.

Opening the overview is measured in a headless Chromium, where there is one, until it has drawn. Times are of one machine.

    python benchmarks/report.py [--quick]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from mlagentbench.report.charts.figures import write_figures
from mlagentbench.report.page import write_report
from mlagentbench.results.load import load, scan
from tests.example_experiment import CONTESTANTS, TASKS, write_experiment
from tests.report.browser import browser, executable, open_file

OBSERVATION = 3000
"""Characters that a step is told."""


def opened(page: Path) -> list[float]:
    """Seconds to open a page, three times."""
    seconds = []
    with browser() as chromium:
        tab = chromium.new_page()
        for _ in range(3):
            began = time.perf_counter()
            open_file(tab, page)
            seconds.append(time.perf_counter() - began)
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="8 runs of 10 steps")
    quick = parser.parse_args().quick
    with tempfile.TemporaryDirectory() as name:
        logs = Path(name) / "logs"
        length = 10 if quick else 50
        shape = {"tasks": TASKS[:2] if quick else TASKS[:5], "contestants": CONTESTANTS[: 2 if quick else 5], "runs": 2 if quick else 8}
        runs = write_experiment(logs, **shape, steps=length, shortest=length, observation=OBSERVATION)
        began, cpu = time.perf_counter(), time.process_time()
        page = write_report(scan(logs), Path(name) / "report.html")
        took = f"{time.perf_counter() - began:.1f} s ({time.process_time() - cpu:.1f} s of CPU)"
        print(f"{runs} runs of {length} steps: pages written in {took}")
        weights = [path.stat().st_size / 1e6 for path in page.with_name("report-runs").iterdir()]
        print(f"  the overview weighs {page.stat().st_size / 1e6:.2f} MB, the largest page of a run {max(weights):.2f} MB")
        began = time.perf_counter()
        written = write_figures(load(logs), Path(name) / "figures")
        print(f"  {len(written)} files of figures in {time.perf_counter() - began:.1f} s")
        if executable() is not None:
            times = ", ".join(f"{seconds:.2f}" for seconds in opened(page))
            print(f"  opened in {times} s")


if __name__ == "__main__":
    main()
