"""Runs written as the environment writes them, without a model or a sandbox: for tests of what reads runs."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mlagentbench.records import Action, Baseline, ModelCall, Outcome, Result, Score, Step, StepScore, Usage
from mlagentbench.run_spec import RunInfo, RunSpec
from mlagentbench.rundir.directory import RunDirectory, prepare_log_directory
from mlagentbench.workspace.paths import Workspace
from mlagentbench.workspace.snapshots.snapshots import Manifest, SnapshotStore

LOOPS = '''"""A convolution layer in numpy, and a timing of its forward pass."""

import numpy as np


class Conv2DLayer:
    def forward(self, x):
        batch, _, height, width = x.shape
        padded = np.pad(x, ((0, 0), (0, 0), (self.padding,) * 2, (self.padding,) * 2))
        out = np.zeros((batch, self.out_channels, height, width))
        for n in range(batch):
            for o in range(self.out_channels):
                for i in range(height):
                    for j in range(width):
                        patch = padded[n, :, i : i + self.kernel_size, j : j + self.kernel_size]
                        out[n, o, i, j] = np.sum(patch * self.weights[o]) + self.biases[o]
        return out
'''

WINDOWS = '''"""A convolution layer in numpy, and a timing of its forward pass."""

import numpy as np


class Conv2DLayer:
    def forward(self, x):
        batch, _, height, width = x.shape
        padded = np.pad(x, ((0, 0), (0, 0), (self.padding,) * 2, (self.padding,) * 2))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (self.kernel_size, self.kernel_size), axis=(2, 3))
        patches = windows.transpose(0, 2, 3, 1, 4, 5).reshape(batch * height * width, -1)
        out = patches @ self.weights.reshape(self.out_channels, -1).T + self.biases
        return out.reshape(batch, height, width, self.out_channels).transpose(0, 3, 1, 2)
'''

BROKEN = WINDOWS.replace(".reshape(self.out_channels, -1).T + self", ".reshape(self.out_channels, -1) + self")


FAILURE = """Traceback (most recent call last):
  File "/workspace/train.py", line 24, in <module>
    main()
  File "/workspace/train.py", line 13, in forward
    out = patches @ self.weights.reshape(self.out_channels, -1) + self.biases
ValueError: matmul: Input operand 1 has a mismatch in its core dimension 0 (size 16 is different from 27)
exit status 1
"""


@dataclass
class ExampleStep:
    """One step to write."""

    action: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    observation: str = ""
    thought: str = ""
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    """What the step leaves in the workspace."""
    score: float | None = None
    rung: int | None = None
    reason: str | None = None
    status: Any = "ok"
    seconds: float = 2.0
    malformed: int = 0
    tokens: int | None = None
    """Of its prompt; by default a few more each step."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """What the action records beside its observation."""


def vectorization_steps(fast: float = 0.00303) -> list[ExampleStep]:
    """The research agent on vectorization: it looks, runs the baseline, edits, fails, mends, runs, and ends."""
    instruction = (
        "In Conv2DLayer.forward replace the loops: take all patches under the kernel with numpy.lib.stride_tricks.sliding_window_view, "
        "lay each out as one row of a matrix, multiply that matrix with the weights, add the biases, and bring the result into shape."
    )
    names = {"script_name": "train.py", "save_name": "train.py"}
    return [
        ExampleStep("List Files", {"dir_path": "."}, "train.py\n", "I look at what is in the working directory first.", score=1.1),
        ExampleStep(
            "Inspect Script Lines",
            {"script_name": "train.py", "start_line_number": 1, "end_line_number": 75},
            "Lines 1 to 17 of 17 in train.py:\n" + "\n".join(f"{n:>4} {line}" for n, line in enumerate(LOOPS.splitlines(), 1)),
            "I read the layer before I change it.",
            score=1.1,
        ),
        ExampleStep(
            "Execute Script",
            {"script_name": "train.py"},
            "forward pass 1: 1.0962 s\nforward pass 2: 1.1021 s\nforward pass 3: 1.0987 s\nmedian: 1.0987 s\nexit status 0\n",
            "I run the script unchanged, so that I know what I improve on.",
            files={"submission.csv": "1.0987\n"},
            score=1.1,
            seconds=5.2,
        ),
        ExampleStep(
            "Edit Script (AI)",
            {**names, "edit_instruction": instruction},
            "The edited script is saved as train.py. The change:\n" + _diff(LOOPS, BROKEN),
            "A convolution is a matrix product of patches and kernels. A sliding window view gives the patches without a copy.",
            files={"train.py": BROKEN},
            reason="train.py raised ValueError: matmul: size 16 is different from 27",
            seconds=6.4,
        ),
        ExampleStep(
            "Execute Script",
            {"script_name": "train.py"},
            FAILURE,
            "I run the edited script to see its time.",
            status="error",
            reason="train.py raised ValueError: matmul: size 16 is different from 27",
        ),
        ExampleStep(
            "Edit Script (AI)",
            {
                **names,
                "edit_instruction": "Transpose the weights: they are (out_channels, patch), the product needs (patch, out_channels).",
            },
            "The edited script is saved as train.py. The change:\n" + _diff(BROKEN, WINDOWS).rstrip(),
            "The weights have to be transposed, so that the inner dimensions agree.",
            files={"train.py": WINDOWS},
            score=fast,
            malformed=1,
            seconds=5.9,
        ),
        ExampleStep(
            "Execute Script",
            {"script_name": "train.py"},
            "forward pass 1: 0.0033 s\nforward pass 2: 0.0030 s\nforward pass 3: 0.0030 s\nmedian: 0.0030 s\nexit status 0\n",
            "I run again; the time should be milliseconds.",
            files={"submission.csv": "0.0030\n"},
            score=fast,
        ),
        ExampleStep(
            "Final Answer",
            {"final_answer": "The forward pass is one matrix product over a sliding window view: 3.0 ms instead of 1.1 s."},
            "The run is over.",
            "The plan is done, and the result is confirmed by the last run.",
            score=fast,
        ),
    ]


def write_run(
    logs: Path,
    name: str = "20260131-101500-vectorization-research-3f9a",
    steps: Sequence[ExampleStep] | None = None,
    *,
    baseline: Baseline | None = Baseline(value=1.1, values=(1.096, 1.1, 1.104), source="side_by_side"),
    flags: tuple[Any, ...] = ("scripted_model",),
    ended: Any = "final_answer",
    verdict: Any = None,
    reason: str | None = None,
    finished: bool = True,
    cost: float | None = None,
    snapshots: bool = True,
    **info: Any,
) -> RunDirectory:
    """Write a run, and its result unless it is not `finished`. By default: vectorization, made 363 times faster."""
    steps = vectorization_steps() if steps is None else steps
    directory = RunDirectory.create(prepare_log_directory(logs), run_info(name, **info))
    directory.workspace.joinpath("train.py").write_text(LOOPS)
    manifest = _snapshot(directory, 0, None) if snapshots else None
    for number, step in enumerate(steps, start=1):
        for path, content in step.files.items():
            file = directory.workspace / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content)
        manifest = _snapshot(directory, number, manifest) if snapshots else None
        _calls(directory, number, step)
        directory.publish_step(_step(number, step, directory.info.started, cost))
    if finished:
        directory.write_result(
            _result(directory, steps, baseline, Outcome(ended=ended, verdict=verdict or "success", flags=flags, reason=reason), cost)
        )
    return directory


def run_info(name: str, **changed: Any) -> RunInfo:
    """What a run of vectorization was asked to do."""
    facts: dict[str, Any] = {
        "run": name,
        "task": "vectorization",
        "variant": "mini",
        "agent": "research",
        "agent_options": {"context_steps": 3},
        "models": {"agent": "scripted/demo.yaml", "fast": "scripted/demo.yaml", "editor": "scripted/demo.yaml"},
        "description": "`train.py` holds a 2D convolution layer in numpy, with plain Python loops.\n\nMake the forward pass faster.",
        "metric": "seconds per forward pass",
        "unit": "s",
        "direction": "minimize",
        "isolation": "bubblewrap",
        "limits": {"steps": 50, "time": 18000},
        "started": 1769854500.0,
        "versions": {"python": "3.11.2", "mlagentbench": "0.1.0", "numpy": "2.3.4"},
        "hardware": {"cpu": "AMD EPYC 9654", "cores": 2, "memory_gb": 8, "gpus": []},
    }
    facts |= changed
    spec = {field: facts.pop(field) for field in RunSpec.model_fields if field in facts}
    return RunInfo(spec=RunSpec.model_validate(spec), **facts)


def entries(thought: str) -> Mapping[str, str]:
    """What the research agent writes before it acts."""
    return {
        "Reflection": "The last observation is clear, and holds no surprise.",
        "Research Plan and Status": "1. Look. Done.\n2. Run it, for a baseline.\n3. Replace the loops.\n4. Compare, and submit.",
        "Fact Check": "The baseline is confirmed by an observation; that a product is faster is a guess until it is run.",
        "Thought": thought,
    }


def _step(number: int, step: ExampleStep, started: float, cost: float | None) -> Step:
    executes = step.action == "Execute Script"
    return Step(
        number=number,
        entries=entries(step.thought) if step.thought else {},
        action=Action(name=step.action, arguments=step.arguments),
        observation=step.observation,
        status=step.status,
        started=started + 10 * number,
        seconds=step.seconds,
        model_seconds=step.seconds * 0.4,
        script_seconds=step.seconds * 0.5 if executes else 0.0,
        usage=_usage(number, cost, step.tokens),
        malformed=step.malformed,
        details=step.details,
    )


def _usage(number: int, cost: float | None, tokens: int | None = None) -> Usage:
    return Usage(input_tokens=1800 + 150 * number if tokens is None else tokens, output_tokens=220, calls=1, cost=cost)


def _calls(directory: RunDirectory, number: int, step: ExampleStep) -> None:
    call = ModelCall(
        role="agent", model="scripted/demo.yaml", purpose="agent", prompt="Reply now.", reply="", usage=_usage(number, None), seconds=0.8
    )
    for _ in range(step.malformed):
        rejected = call.model_copy(update={"reply": "I would run the script now.", "rejected": "Your reply holds no Action. Name one."})
        directory.append_call(number, rejected)
    directory.append_call(number, call.model_copy(update={"reply": f"Thought: {step.thought}\nAction: {step.action}\n"}))


def _result(
    directory: RunDirectory, steps: Sequence[ExampleStep], baseline: Baseline | None, outcome: Outcome, cost: float | None
) -> Result:
    info = directory.info
    scores = tuple(_step_score(info, number, step, baseline) for number, step in enumerate(steps, start=1))
    last = scores[-1] if scores else None
    seconds = sum(step.seconds for step in steps)
    agent = Usage.total(_usage(number, cost, step.tokens) for number, step in enumerate(steps, start=1))
    return Result(
        run=directory.name,
        outcome=outcome,
        final_answer=next((str(step.arguments.get("final_answer", "")) for step in steps if step.action == "Final Answer"), None),
        score=Score(value=last.value, rung=last.rung) if last and last.value is not None else None,
        baseline=baseline,
        improvement=last.improvement if last else None,
        success=outcome.verdict == "success",
        step_scores=scores,
        steps=len(steps),
        seconds=seconds,
        model_seconds=seconds * 0.4,
        script_seconds=sum(step.seconds * 0.5 for step in steps if step.action == "Execute Script"),
        grading_seconds=9.6,
        usage={"agent": agent, "editor": Usage(input_tokens=1530, output_tokens=910, calls=2, cost=cost)},
    )


def _step_score(info: RunInfo, number: int, step: ExampleStep, baseline: Baseline | None) -> StepScore:
    improvement = None
    if step.score is not None and baseline is not None and baseline.value:
        change = step.score - baseline.value if info.direction == "maximize" else baseline.value - step.score
        improvement = change / abs(baseline.value)
    return StepScore(step=number, value=step.score, improvement=improvement, reason=step.reason, rung=step.rung)


def _snapshot(directory: RunDirectory, number: int, before: Manifest | None) -> Manifest:
    manifest = SnapshotStore(directory.objects).take(Workspace(directory.workspace), before)
    manifest.save(directory.manifest(number))
    return manifest


def _diff(before: str, after: str) -> str:
    return "".join(difflib.unified_diff(before.splitlines(True), after.splitlines(True), "train.py", "train.py"))
