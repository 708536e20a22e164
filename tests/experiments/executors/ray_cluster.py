"""A real Ray cluster on this machine: a head, and two nodes with two GPUs each that run the jobs."""

from __future__ import annotations

import signal
from typing import Any

import psutil

from mlagentbench.experiments.executors.ray import RayExecutor

STORE = 80 << 20
"""Bytes of a node's object store, which these tests hardly use; the least that Ray takes."""


class RayCluster:
    """Starts the nodes; `close` ends them."""

    kills_jobs_with_driver = True

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        head = {"num_cpus": 0, "num_gpus": 0, "object_store_memory": STORE, "include_dashboard": False}
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
                self._nodes.append(self._cluster.add_node(num_cpus=16, num_gpus=2, object_store_memory=STORE))
        finally:
            signal.signal(signal.SIGINT, before)

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
