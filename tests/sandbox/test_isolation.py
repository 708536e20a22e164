"""What a machine can give is found by trying, and a choice that cannot be given says what to do."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mlagentbench.errors import SandboxUnavailable
from mlagentbench.limits import SandboxChoice
from mlagentbench.sandbox.base import SandboxSpec
from mlagentbench.sandbox.isolation import choose, probe
from mlagentbench.sandbox.process import run
from mlagentbench.sandbox.view.environment import gpu_nodes
from tests.sandbox.processes import available


def test_each_way_is_tried_and_told() -> None:
    found = {capability.name: capability for capability in probe()}

    assert list(found) == ["bubblewrap", "docker", "landlock"]
    for capability in found.values():
        assert capability.detail
        assert bool(capability.how_to_get) is not capability.available


@pytest.mark.parametrize("name", ["bubblewrap", "docker", "landlock"])
def test_what_is_found_runs_a_command_and_what_is_not_says_why(name: SandboxChoice, tmp_path: Path) -> None:
    found = next(capability for capability in probe() if capability.name == name)
    assert (name in available()) == found.available, "the promises of each are tested where it works"
    if found.available:
        done = asyncio.run(run(choose(name), ("echo", "hello"), SandboxSpec(tmp_path)))
        assert (done.output, done.exit_code) == ("hello\n", 0)
    else:
        with pytest.raises(SandboxUnavailable, match=re.escape(found.detail)):
            choose(name)
        pytest.skip(f"the promises of {name} are not tested here: {found.detail}")


def test_auto_is_the_first_that_works_and_never_none() -> None:
    available = [capability.name for capability in probe() if capability.available]
    if not available:
        with pytest.raises(SandboxUnavailable, match="--sandbox none"):
            choose("auto")
    else:
        assert choose("auto").isolation == available[0]


def test_none_is_given_when_asked_for() -> None:
    assert choose("none").isolation == "none"


def test_a_missing_program_is_named_with_the_way_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(SandboxUnavailable, match="apt install bubblewrap"):
        choose("bubblewrap")
    with pytest.raises(SandboxUnavailable, match="docker"):
        choose("docker")


def test_a_bubblewrap_that_cannot_start_is_not_chosen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "bwrap").write_text("#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n")
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    with pytest.raises(SandboxUnavailable, match=r"uid map: Permission denied.*apparmor_restrict_unprivileged_userns"):
        choose("bubblewrap")


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(SandboxUnavailable, match="auto, bubblewrap, docker, landlock, none"):
        choose("chroot")  # type: ignore[arg-type]


PROBES = """
import os
from mlagentbench.sandbox.isolation import probe
for _ in range(5):
    before = os.times()
    probe()
    print(sum(os.times()[:4]) - sum(before[:4]))
"""


def test_probing_takes_no_time_worth_naming() -> None:
    # In a process of its own: this one may wait for other tests' processes meanwhile, and count their time. The least of some, since a
    # processor that others use too takes longer for the same.
    measured = subprocess.run([sys.executable, "-c", PROBES], stdout=subprocess.PIPE, check=True).stdout
    assert min(map(float, measured.split())) < 0.2, "seconds of processor time, with that of the programs it tries"


def test_a_gpu_that_is_not_there_is_told_with_those_that_are() -> None:
    count = len(list(Path("/proc/driver/nvidia/gpus").glob("*")))
    there = {0: "this machine has none", 1: "the only one is 0"}.get(count, f"there are 0 to {count - 1}")
    with pytest.raises(SandboxUnavailable, match=f"there is no GPU 99.*{there}"):
        gpu_nodes(("99",))
