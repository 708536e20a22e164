"""A real Ray cluster on this machine: a head, and two nodes with two GPUs each that run the jobs."""

from __future__ import annotations

import os
import signal
from typing import Any

import psutil

from mlagentbench.experiments.executors.ray import RayExecutor
from tests.support import HANGING

STORE = 80 << 20
"""Bytes of a node's object store, which these tests hardly use; the least that Ray takes."""
PATIENT = {
    "RAY_health_check_timeout_ms": "600000",
    "RAY_health_check_period_ms": "500",
    "RAY_worker_register_timeout_seconds": "600",
    "RAY_agent_register_timeout_ms": "600000",
    "RAY_gcs_server_port_wait_time_s": "600",
    "RAY_gcs_server_request_timeout_seconds": "600",
}
"""Variables with which Ray gives up no node and no worker that a busy machine lets stand still. It asks each node often how it is: one that
was killed refuses the connection."""


class RayCluster:
    """Starts the nodes; `close` ends them."""

    kills_jobs_with_driver = True

    def __init__(self) -> None:
        os.environ.update(PATIENT)
        from ray.cluster_utils import Cluster

        head = {"num_cpus": 0, "num_gpus": 0, "object_store_memory": STORE, "include_dashboard": False, "wait": False}
        self._cluster: Any = Cluster(initialize_head=True, head_node_args=head)
        self._nodes: list[Any] = []
        self.setup = f"from mlagentbench.experiments.executors.ray import RayExecutor\nexecutor = RayExecutor({self._cluster.address!r})\n"
        self.restore()
        self.address: str = self._cluster.address

    @property
    def node(self) -> str:
        """One of the nodes that run jobs."""
        return str(self._nodes[0].all_processes["raylet"][0].process.pid)

    def executor(self) -> RayExecutor:
        return RayExecutor(self._cluster.address)

    def restore(self) -> None:
        """Start the nodes that are missing, as a shell's script does in its background: interrupts are ignored there."""
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            while len(self._nodes) < 2:
                self._nodes.append(self._cluster.add_node(wait=False, num_cpus=16, num_gpus=2, object_store_memory=STORE))
        finally:
            signal.signal(signal.SIGINT, before)
        self._cluster.wait_for_nodes(HANGING)

    def kill_worker(self, launcher: int) -> None:
        psutil.Process(launcher).parent().kill()

    def kill_node(self, node: str) -> None:
        for each in self._nodes:
            if str(each.all_processes["raylet"][0].process.pid) == node:
                self._nodes.remove(each)
                self._cluster.remove_node(each, allow_graceful=False)
                return
        raise AssertionError(f"there is no node {node}")

    def close(self) -> None:
        self._cluster.shutdown()
