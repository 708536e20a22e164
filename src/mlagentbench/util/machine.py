"""Describe the machine and the versions of the software, and measure what is free of its cores, memory and disk."""

from __future__ import annotations

import os
import platform
import shutil
import socket
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from pydantic import JsonValue

ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
"""Environment variables by which numerical libraries use one thread."""
PACKAGES = ("mlagentbench", "inspect_ai", "numpy")
_GROUP = Path("/sys/fs/cgroup")


def versions(packages: Sequence[str] = PACKAGES) -> Mapping[str, str]:
    """Return the versions of Python and of those of some packages that are installed; by default those that results depend on."""
    found = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def cores() -> int:
    """Return how many cores this process may use: the lesser of its affinity and its control group's quota, which psutil does not read."""
    usable = len(os.sched_getaffinity(0))
    quota, _, period = read_text(_GROUP / "cpu.max").partition(" ")
    if quota.isdigit() and period.strip().isdigit():
        usable = min(usable, max(1, int(quota) // int(period)))
    return usable


def free_memory_mb() -> int:
    """Return the free memory in megabytes (2^20 bytes): the lesser of the machine's and the control group's."""
    free = int(psutil.virtual_memory().available)
    limit, used = read_text(_GROUP / "memory.max").strip(), read_text(_GROUP / "memory.current").strip()
    if limit.isdigit() and used.isdigit():
        free = min(free, int(limit) - int(used))
    return free >> 20


def free_disk_mb(folder: Path) -> int:
    """Return the free space on a folder's disk, in megabytes (2^20 bytes)."""
    return shutil.disk_usage(folder).free >> 20


@cache
def boot() -> str:
    """Return an id of this machine since it was started: equal for all processes, and containers, that the same kernel runs."""
    return read_text(Path("/proc/sys/kernel/random/boot_id")).strip() or socket.gethostname()


@cache
def hardware() -> Mapping[str, JsonValue]:
    """Return a fingerprint of the machine; timings can be compared only between machines with the same one."""
    return {
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(psutil.virtual_memory().total / 2**30),
        "gpus": list(_gpus()),
        "system": f"{platform.system()} {platform.machine()}",
    }


def _cpu() -> str:
    """Return the processor's name, which psutil does not know."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _gpus() -> list[str]:
    command = shutil.which("nvidia-smi")
    if command is None:
        return []
    try:
        found = subprocess.run(
            [command, "--query-gpu=name", "--format=csv,noheader"], capture_output=True, text=True, timeout=20, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return []
    return [line.strip() for line in found.stdout.splitlines() if line.strip()]


def read_text(path: Path) -> str:
    """Return a file of the kernel as text; empty where there is none."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
