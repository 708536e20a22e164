"""An experiment on a cluster of which a node dies half way: the report is that of the same experiment on one machine, but for times."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path

import pytest

from tests.experiments.executors import slurm_cluster
from tests.experiments.executors.clusters import wait_for
from tests.experiments.executors.ray_cluster import RayCluster
from tests.experiments.executors.slurm_cluster import SlurmCluster
from tests.experiments.test_whole_experiment import FILE, Place

pytestmark = pytest.mark.slow
RUNS = 2 * 2 * 2


def test_the_report_is_the_same_on_every_executor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if reason := slurm_cluster.missing():
        pytest.skip(reason)
    pytest.importorskip("ray")
    monkeypatch.setenv("MLAB_CACHE", str(tmp_path / "cache"))
    place = Place(tmp_path)
    place.file(FILE.replace("runs = 3", "runs = 1"))
    place.mlab("run", "local")
    assert place.done("local") == RUNS
    # What a killed process had asked for the step in progress is asked again, and both count.
    expected = place.report("local", "tokens")
    for name in ("slurm", "ray"):
        home = Path(tempfile.mkdtemp(prefix="mlab-"))  # `tmp_path` is too long for the names of Slurm's sockets
        cluster = SlurmCluster(home) if name == "slurm" else RayCluster()
        try:
            if name == "slurm":
                monkeypatch.setenv("SLURM_CONF", str(home / "slurm.conf"))
            else:
                monkeypatch.setenv("RAY_ADDRESS", cluster.address)
            with place.start("run", name, "--executor", name, "--batch", "2") as process:
                wait_for(lambda name=name: place.done(name) >= RUNS // 4, 180)
                done = place.done(name)
                cluster.kill_node(cluster.node)
                began = time.monotonic()
                output, _ = process.communicate(timeout=400)
            assert process.returncode == 0, output
            print(f"{name}: node killed after {done} runs, {time.monotonic() - began:.0f} s to the end")
            assert done < RUNS
            found = place.report(name, "tokens")
            assert found.keys() == expected.keys()
            assert [table for table in found if found[table] != expected[table]] == []
        finally:
            cluster.close()
            shutil.rmtree(home, ignore_errors=True)
