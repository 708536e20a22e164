"""Find the conditions that runs must share to be counted together, and what else they differ in."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Literal, NamedTuple

from pydantic import JsonValue

from mlagentbench.records import Baseline
from mlagentbench.results.load import Run
from mlagentbench.run_spec import RunInfo

Mixable = Literal["isolation", "hardware"]
ANY: Mapping[Mixable, str] = {"isolation": "any isolation", "hardware": "any hardware"}
"""The value of a condition that may differ within a cell."""


class Conditions(NamedTuple):
    """What runs must share to be compared."""

    task: str
    variant: str
    agent: str
    """The agent with its options, its model's options, its other models, what it was given to read, whether it is imported or forked."""
    model: str
    isolation: str
    hardware: str
    limits: tuple[tuple[str, float], ...] = ()
    """The limits of the run and of its scripts by name, in the units of `RunLimits` and `ScriptLimits`, without those that are None."""


def agent_words(info: RunInfo) -> str:
    """Return an agent's name with what distinguishes it from others of that name: `research (fast openai/gpt-4o-mini, research_log true)`.

    Forked runs are distinguished because they are no independent tries: each shares its first steps with another run.
    """
    others, main = ("fast", "editor"), info.spec.model("agent")
    apart = [f"{role} {name}" for role, name in info.spec.model_names.items() if role in others and name != main.name]
    for options in (info.spec.agent_options, main.options):
        apart += [f"{name} {value if isinstance(value, str) else json.dumps(value)}" for name, value in sorted(options.items())]
    if info.experience is not None:
        apart.append(f"with experience {info.experience.digest[:8]}")
    if info.examples:
        apart.append(f"with examples {' '.join(example.digest[:8] for example in info.examples)}")
    if info.spec.documents is not None:
        apart.append(f"with documents {info.documents.digest[:8] if info.documents else info.spec.documents}")
    if info.imported is not None:
        apart.append("imported")
    if info.parent is not None:
        apart.append("forked")
    return f"{info.spec.agent} ({', '.join(apart)})" if apart else info.spec.agent


def hardware_words(info: RunInfo) -> str:
    """Return the processor and the GPUs of a run's machine; empty if they are not known."""
    gpus = info.hardware.get("gpus")
    return ", ".join(str(part) for part in (info.hardware.get("cpu"), *(gpus if isinstance(gpus, list) else ())) if part)


def conditions(info: RunInfo) -> Conditions:
    """Return the conditions that a run must share with others to be compared with them."""
    return Conditions(
        info.spec.task,
        info.spec.variant,
        agent_words(info),
        info.spec.model_names["agent"],
        info.isolation,
        hardware_words(info),
        tuple(_limits(info)),
    )


def _limits(info: RunInfo) -> Iterable[tuple[str, float]]:
    for prefix, limits in (("limit", info.spec.limits), ("script limit", info.spec.script_limits)):
        yield from ((f"{prefix} {name}", value) for name, value in asdict(limits).items() if value is not None)


def differing_limits(found: Iterable[Conditions]) -> list[str]:
    """Return the names of the limits that are not the same for all runs of some task; tasks have limits of their own."""
    values: dict[tuple[str, str], set[float | None]] = {}
    found = list(found)
    names = dict.fromkeys(name for each in found for name, _ in each.limits)
    for each in found:
        limits = dict(each.limits)
        for name in names:
            values.setdefault((name, each.task), set()).add(limits.get(name))
    return list(dict.fromkeys(name for (name, _), different in values.items() if len(different) > 1))


def limit_words(found: Conditions, names: Iterable[str]) -> list[str]:
    """Return some limits in words: `limit steps 50`, and `no limit tokens` for one that is not set."""
    limits = dict(found.limits)
    return [f"{name} {limits[name]:g}" if name in limits else f"no {name}" for name in names]


def differences(runs: Iterable[Run]) -> tuple[str, ...]:
    """Return what the runs of a cell differ in besides their conditions, a line each; unknown values are ignored."""
    values: dict[str, dict[str, None]] = {}
    for run in runs:
        info, baseline = run.info, run.result.baseline if run.result else None
        facts: dict[str, JsonValue] = {
            **{f"version of {name}": value for name, value in info.versions.items()},
            "isolation": info.isolation,
            "hardware": hardware_words(info) or None,
            "mini seed": "none" if info.spec.mini_seed is None else str(info.spec.mini_seed),
            "prepared data": f"{info.data}, of digest {info.data_digest[:12]}" if info.data_digest else info.data,
            "baseline": _baseline_words(baseline) if baseline else None,
        }
        for name, value in facts.items():
            if value is not None:
                values.setdefault(name, {})[value if isinstance(value, str) else json.dumps(value)] = None
    return tuple(f"{name} differs: {', '.join(found)}" for name, found in values.items() if len(found) > 1)


def _baseline_words(baseline: Baseline) -> str:
    """Return a baseline's source, and its value unless each run has one of its own."""
    return baseline.source if baseline.source == "side_by_side" else f"{baseline.source} {baseline.value:.6g}"
