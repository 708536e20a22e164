"""What a command finds in its environment: nothing of the harness's, so that no key leaks.

Covered: the variables, and the nodes of GPUs (NVIDIA's). Not covered: GPUs of other makers.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from mlagentbench.errors import SandboxUnavailable
from mlagentbench.sandbox.base import Box

COMMON = {
    "LANG": "C.UTF-8",
    "USER": "agent",
    "LOGNAME": "agent",
    "PYTHONUNBUFFERED": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "MPLBACKEND": "Agg",
}
PASSED = ("LD_LIBRARY_PATH",)
"""Variables of the harness that programs need to start on some machines, and that hold no secret."""
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"

_DRIVER = Path("/proc/driver/nvidia/gpus")
_SHARED_NODES = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset", "/dev/nvidia-caps")


class Gpus(NamedTuple):
    """The device nodes of some GPUs, and how CUDA counts them once only these are visible."""

    nodes: tuple[Path, ...] = ()
    visible: str = ""


def variables() -> dict[str, str]:
    """The variables that every sandbox sets, without PATH and HOME."""
    return {**COMMON, **{name: os.environ[name] for name in PASSED if name in os.environ}}


def host_environment(box: Box) -> Mapping[str, str]:
    """The environment of a command that sees the host's file system: its programs, none of its secrets."""
    path = f"{Path(os.path.abspath(box.python)).parent}:{os.environ.get('PATH', SYSTEM_PATH)}"
    gpus = {"CUDA_VISIBLE_DEVICES": ",".join(box.gpus), "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    return {**variables(), "PATH": path, **gpus, **box.environment}


def own_command(command: tuple[str, ...], box: Box) -> tuple[str, ...]:
    """The command with the box's interpreter for `python`."""
    if command[0] in ("python", "python3"):
        return (os.path.abspath(box.python), *command[1:])
    return command


def gpu_nodes(indices: tuple[str, ...]) -> Gpus:
    """The nodes of GPUs, by their place in the order of their PCI addresses, as `nvidia-smi` counts, or by UUID.

    CUDA counts from 0 what it can open, in the same order.

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
    """Return what is wrong with the name of a GPU that is not there, and which there are."""
    if not count:
        return f"there is no GPU {index}: this machine has none that can be opened (see `nvidia-smi`); leave --gpu out"
    there = "the only one is 0" if count == 1 else f"there are 0 to {count - 1}"
    return f"there is no GPU {index} here; {there} (see `nvidia-smi`); name another with --gpu"


def _cards() -> list[dict[str, str]]:
    """What the driver says of each card that we may open."""
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
    except OSError:  # no such node, or a control group that keeps it from us
        return False
    return True
