"""An experiment on a cluster of which a node dies half way: the report is that of the same experiment on one machine, but for times."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from pathlib import Path

import psutil
import pytest

from tests.experiments.executors import slurm_cluster
from tests.experiments.executors.ray_cluster import RayCluster
from tests.experiments.executors.slurm_cluster import SlurmCluster
from tests.experiments.test_whole_experiment import FILE, WORKER, Place, write_file
from tests.support import HANGING, reply, wait_until
from tests.tiny_task import tiny_task

pytestmark = pytest.mark.slow
RUNS = 2 * 2 * 2
HELD = """
import os, time
from pathlib import Path

folder = Path({folder})
if (folder / "held").exists():
    (folder / f"waiting-{{os.getpid()}}").touch()
while (folder / "held").exists():
    time.sleep(0.05)
"""
"""A script that waits while there is a file `held`, so that its run is not over when a node dies, however late this process notices."""


def node_of_a_worker(logs: Path) -> str:
    """Return the node on which runs of a log directory are carried out."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            command, variables = process.cmdline(), process.environ()
            if command[1:3] == WORKER and str(logs) in " ".join(command):
                return variables.get("SLURMD_NODENAME") or variables["RAY_RAYLET_PID"]
    raise AssertionError("nothing is carried out")


def test_the_report_is_the_same_on_every_executor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if reason := slurm_cluster.missing():
        pytest.skip(reason)
    pytest.importorskip("ray")
    monkeypatch.setenv("MLAB_CACHE", str(tmp_path / "cache"))
    place, held = Place(tmp_path), tmp_path / "held"
    tiny_task(tmp_path / "tasks" / "guess", train=HELD.format(folder=repr(str(tmp_path))))
    script = reply("Execute Script", '{"script_name": "train.py"}')
    place.model("good", write_file("1"), script, write_file("12"))
    place.model("bad", write_file("12"), script, write_file("3"))
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
            held.touch()
            with place.start("run", name, "--executor", name, "--batch", "2", "--cpus", "2") as process:
                try:
                    wait_until(lambda name=name: place.done(name) == RUNS // 2 and list(tmp_path.glob("waiting-*")))
                    began = time.monotonic()
                    cluster.kill_node(node_of_a_worker(tmp_path / name))
                    held.unlink()
                    output, _ = process.communicate(timeout=HANGING)
                except BaseException:
                    process.kill()
                    raise
            assert process.returncode == 0, output
            print(f"{name}: {time.monotonic() - began:.0f} s from the death of the node to the end")
            found = place.report(name, "tokens")
            assert found.keys() == expected.keys()
            assert [table for table in found if found[table] != expected[table]] == []
        finally:
            held.unlink(missing_ok=True)
            for waiting in tmp_path.glob("waiting-*"):
                waiting.unlink()
            cluster.close()
            shutil.rmtree(home, ignore_errors=True)
