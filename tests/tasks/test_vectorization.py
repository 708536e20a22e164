"""The grader of vectorization: what it times, what it checks, and what it cannot be told."""

from __future__ import annotations

import asyncio
import shutil
import textwrap
from pathlib import Path

import numpy as np
import pytest

from mlagentbench.errors import GradingError
from mlagentbench.grading.baseline import write_files
from mlagentbench.grading.grade import Graded, grade
from mlagentbench.limits import SandboxChoice
from mlagentbench.sandbox.isolation import probe
from mlagentbench.task.catalogue import Task, load_task
from mlagentbench.task.success import clears_noise, is_success
from mlagentbench.tasks.vectorization import proof
from mlagentbench.tasks.vectorization.grade import odd_cases
from mlagentbench.tasks.vectorization.layer import Case, draw, reference

SANDBOX: SandboxChoice = "auto" if any(found.available for found in probe()) else "none"


def graded(task: Task, folder: Path, files: proof.Files, *, sandbox: SandboxChoice = SANDBOX) -> Graded:
    write_files(folder, files)
    return asyncio.run(grade(task, folder, variant="mini", sandbox=sandbox))


def test_a_vectorized_layer_succeeds_by_far_whatever_its_script_prints_and_writes(task: Task, tmp_path: Path) -> None:
    """That the starter is as fast as itself, and that no delay is left out, is in the task's proofs."""
    files = {"train.py": proof.solution()["train.py"] + "\nprint('0.0000001')\n", "submission.csv": "0.0000001\n"}
    found = graded(task, tmp_path, files)
    assert found.score is not None and found.score.baseline is not None, found.reason
    assert found.score.value > 0.00001
    improvement = task.spec.metric.improvement(found.score.value, found.score.baseline.value)
    assert improvement is not None and improvement > 0.9
    assert is_success(task.spec.metric, found.score.value, found.score.baseline.value)
    assert found.score.baseline.source == "side_by_side"
    trials = found.score.details["trials"]
    assert isinstance(trials, int) and len(found.score.baseline.values) == trials >= 5, "more than five on a machine that is not steady"
    assert bool(found.score.details["lacking"]) is (SANDBOX == "none")


@pytest.mark.parametrize("name", ["works on", "other process", "own library", "other package"])
def test_work_done_elsewhere_is_seen_without_a_sandbox_too(task: Task, tmp_path: Path, name: str) -> None:
    found = graded(task, tmp_path, proof.INVALID[name].files, sandbox="none")
    assert found.score is None
    assert found.reason is not None and proof.INVALID[name].reason in found.reason


def test_a_starter_that_fails_is_the_tasks_bug(task: Task, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(task.folder, broken)
    (broken / "starter" / "train.py").write_text(proof.INVALID["no biases"].files["train.py"])
    with pytest.raises(GradingError, match="wrong numbers"):
        graded(load_task(broken), tmp_path / "submission", proof.solution())


def test_the_reference_is_the_convolution_of_the_textbook() -> None:
    """One number of it, by hand: batch 0, output channel 1, row 1, column 2 at stride 2, padding 1, kernel size 3."""
    case = Case(batch=2, in_channels=2, height=5, width=7, out_channels=3, kernel_size=3, stride=2, padding=1)
    inputs = draw(case, np.random.default_rng(0))
    out = reference(case, inputs)
    assert out.shape == (2, 3, 3, 4)
    patch = inputs.x[0, :, 1:4, 3:6]  # rows from 1 * 2 - 1, columns from 2 * 2 - 1
    assert out[0, 1, 1, 2] == pytest.approx((patch * inputs.weights[1]).sum() + inputs.biases[1])


def test_the_odd_cases_hold_every_stride_padding_and_kernel_size_and_differ_each_time() -> None:
    first, second = (odd_cases(np.random.default_rng(seed)) for seed in (1, 2))
    assert first != second
    for cases in (first, second):
        assert {case.stride for case in cases} == {1, 2, 3}
        assert {case.padding for case in cases} == {0, 1, 2}
        assert {case.kernel_size for case in cases} == {1, 2, 3, 4, 5}
        for case in cases:
            assert min(reference(case, draw(case, np.random.default_rng(0))).shape) > 0


PATCHES = """
import sys, time
import numpy as np

time.perf_counter = time.process_time = time.monotonic = lambda: 0.0
frame = sys._getframe()
while frame:
    for name in ("plain", "send", "receive"):
        if name in frame.f_globals:
            frame.f_globals[name] = lambda *given, name=name, was=frame.f_globals[name]: given[0] if name == "plain" else was(*given)
    frame = frame.f_back
"""
"""Stops the clocks, and takes the place of what hands the answers over."""

WAITS = """
import os, threading
kept = []

def yielding(work):
    done = threading.Thread(target=lambda: kept.append(work()))
    done.start()
    while done.is_alive():
        os.sched_yield()
    done.join()
    return kept.pop()
"""
"""Has the main thread wait for the core, which is taken off its time, while another one works."""

ATTEMPTS = {
    "the biases alone, from a patched server": proof.layer(proof.OFFSETS.partition("for u")[0], top=PATCHES),
    "what the same memory held before": proof.layer(
        "key = (id(x), x.shape)\nif key not in known:\n"
        + textwrap.indent(proof.WINDOWS, "    ")
        + "    known[key] = out\nout = known[key]",
        top="known = {}",
    ),
    "a pass over half of the channels": proof.layer(proof.WINDOWS.replace("x = np.pad", "x = x.copy(); x[:, 1:] = 0; x = np.pad")),
}


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_a_layer_that_returns_something_else_sooner_is_refused(task: Task, tmp_path: Path, attempt: str) -> None:
    found = graded(task, tmp_path, ATTEMPTS[attempt])
    assert found.score is None and found.reason is not None and "wrong numbers" in found.reason


def test_a_thread_that_waits_while_another_works_is_no_faster(task: Task, tmp_path: Path) -> None:
    starter = (task.starter / "train.py").read_text()
    waits = starter.replace("import numpy as np\n", f"import numpy as np\n{WAITS}", 1)
    waits = waits.replace(
        "def forward(self, x):", "def forward(self, x):\n        return yielding(lambda: self.work(x))\n\n    def work(self, x):", 1
    )
    found = graded(task, tmp_path, {"train.py": waits})
    assert found.score is not None and found.score.baseline is not None, found.reason
    # Beyond what the starter's own times vary by, which other work on the machine makes more than the tenth of a success.
    assert clears_noise(task.spec.metric, found.score.value, found.score.baseline) is False
