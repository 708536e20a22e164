"""The fields of a run's spec that a command line gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import click
from click.core import ParameterSource
from pydantic import JsonValue

from mlagentbench.engine.models.prices import read_prices
from mlagentbench.errors import UsageError
from mlagentbench.run_spec import ModelSpec


def spec_fields(options: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a spec: those of a file, overridden by the command line's options.

    An option named `limits__steps` is the field `steps` of the field `limits`.

    Raises:
        UsageError: an option is given twice, or a model's option without a model.
    """
    found = {name: dict(value) if isinstance(value, Mapping) else value for name, value in fields.items()}
    source = click.get_current_context().get_parameter_source
    for name, value in options.items():
        if value is None or (name in found and source(name) is ParameterSource.DEFAULT):
            continue
        if name == "agent_pairs":
            # `--context-steps 5` is `-A context_steps=5`.
            shortcuts = [(key.partition("__")[2], given) for key, given in options.items() if key.startswith("agent_options__")]
            shortcuts = [(key, given) for key, given in shortcuts if given is not None]
            found["agent_options"] = {**found.get("agent_options", {}), **_given_once("agent", [*value, *shortcuts])}
        elif name == "model_pairs":
            _set_model_options(found, _given_once("model", value))
        elif name == "rate_limits":
            found[name] = {**found.get(name, {}), **dict(value)}
        elif name == "gpus":
            if value:
                found["gpus"] = _distinct([gpu for some in value for gpu in some])
        elif name == "experience":
            found[name] = value.resolve()
        elif name == "examples":
            if value:
                found[name] = [path.resolve() for path in value]
        elif name == "prices":
            found[name] = read_prices(value)
        else:
            group, _, field = name.rpartition("__")
            (found.setdefault(group, {}) if group else found)[field] = value
    return found


def _given_once(whose: str, pairs: Sequence[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    """Return the options of an agent or a model as a dictionary.

    Raises:
        UsageError: an option is given twice.
    """
    for name, count in Counter(name for name, _ in pairs).items():
        if count > 1:
            raise UsageError(f"the {whose}'s option {name} is given twice; give it once")
    return dict(pairs)


def _set_model_options(fields: dict[str, Any], options: Mapping[str, JsonValue]) -> None:
    """Set options of the agent's model, in each role that uses it.

    Raises:
        UsageError: no model is named.
    """
    models = fields.get("models", {})
    if not options:
        return
    if "agent" not in models:
        raise UsageError("-M is for a model; name one with --model")
    main = ModelSpec.model_validate(models["agent"]).name
    for role, model in models.items():
        if ModelSpec.model_validate(model).name == main:
            models[role] = {"name": main, "options": options}


def _distinct(gpus: Sequence[str]) -> tuple[str, ...]:
    twice = [gpu for gpu, count in Counter(gpus).items() if count > 1]
    if twice:
        raise UsageError(f"the GPU {twice[0]} is named twice; no two runs share one")
    return tuple(gpus)
