"""Make the environment variables of a command, and find the device nodes of its GPUs (NVIDIA's).

The harness's variables are not passed on, but for those in `PASSED`, so that no API key leaks. Not covered: GPUs of other makers.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from mlagentbench.errors import SandboxUnavailable
from mlagentbench.sandbox.base import SandboxSpec

COMMON = {
    "LANG": "C.UTF-8",
    "USER": "agent",
    "LOGNAME": "agent",
    "PYTHONUNBUFFERED": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "MPLBACKEND": "Agg",
}
PASSED = ("LD_LIBRARY_PATH",)
"""Variables of the harness that are passed on: programs on some machines need them to start, and they hold no secret."""
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"

_DRIVER = Path("/proc/driver/nvidia/gpus")
_SHARED_NODES = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset", "/dev/nvidia-caps")


class Gpus(NamedTuple):
    """The device nodes of some GPUs, and CUDA_VISIBLE_DEVICES where only these can be opened."""

    nodes: tuple[Path, ...] = ()
    visible: str = ""


def variables() -> dict[str, str]:
    """Return the variables that every sandbox sets, without PATH and HOME."""
    return {**COMMON, **{name: os.environ[name] for name in PASSED if name in os.environ}}


def host_environment(spec: SandboxSpec) -> Mapping[str, str]:
    """Return the environment of a command that sees the host's file system: the host's PATH, but none of its secrets."""
    path = f"{Path(os.path.abspath(spec.python)).parent}:{os.environ.get('PATH', SYSTEM_PATH)}"
    gpus = {"CUDA_VISIBLE_DEVICES": ",".join(spec.gpus), "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    return {**variables(), "PATH": path, **gpus, **spec.environment}


def own_command(command: tuple[str, ...], spec: SandboxSpec) -> tuple[str, ...]:
    """Return the command, with the path of `spec.python` where its first word is `python` or `python3`."""
    if command[0] in ("python", "python3"):
        return (os.path.abspath(spec.python), *command[1:])
    return command


def gpu_nodes(indices: tuple[str, ...]) -> Gpus:
    """Find the device nodes of GPUs.

    Args:
        indices: numbers in the order of PCI addresses, as in `nvidia-smi`, or UUIDs. In the sandbox CUDA counts the GPUs that it can open
            from 0, in the same order.

    Raises:
        SandboxUnavailable: this machine has no such GPU.
    """
    if not indices:
        return Gpus()
    cards = _cards()
    chosen = []
    for index in indices:
        match = [place for place, card in enumerate(cards) if index in (str(place), card.get("GPU UUID"))]
        if not match:
            raise SandboxUnavailable(_no_such_gpu(index, len(cards)))
        chosen.append(match[0])
    nodes = [Path(f"/dev/nvidia{cards[place]['Device Minor']}") for place in sorted(set(chosen))]
    shared = [Path(node) for node in _SHARED_NODES if os.path.exists(node)]
    return Gpus((*nodes, *shared), ",".join(map(str, range(len(nodes)))))


def _no_such_gpu(index: str, count: int) -> str:
    """Return the message for a GPU that does not exist, with those that do."""
    if not count:
        return f"there is no GPU {index}: this machine has none that can be opened (see `nvidia-smi`); leave --gpu out"
    there = "the only one is 0" if count == 1 else f"there are 0 to {count - 1}"
    return f"there is no GPU {index} here; {there} (see `nvidia-smi`); name another with --gpu"


def _cards() -> list[dict[str, str]]:
    """Read the driver's information on each card that this process can open."""
    cards = []
    for information in sorted(_DRIVER.glob("*/information")):
        lines = (line.partition(":") for line in information.read_text().splitlines())
        card = {key.strip(): value.strip() for key, _, value in lines}
        if _can_open(f"/dev/nvidia{card.get('Device Minor')}"):
            cards.append(card)
    return cards


def _can_open(node: str) -> bool:
    try:
        os.close(os.open(node, os.O_RDWR))
    except OSError:  # the node does not exist, or a control group denies it
        return False
    return True
