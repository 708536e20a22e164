"""The fields of a run's spec that a command line gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import click
from click.core import ParameterSource
from pydantic import JsonValue

from mlagentbench.cli.options import AGENT_SHORTCUT_NAMES, agent_options, given_once
from mlagentbench.engine.models.prices import read_prices
from mlagentbench.errors import UsageError
from mlagentbench.run_spec import ModelSpec


def spec_fields(options: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a spec: those of a file, overridden by the command line's options.

    An option named `limits__steps` is the field `steps` of the field `limits`.

    Args:
        options: the command's options by name.
        fields: the file's fields.

    Raises:
        UsageError: an option is given twice, or a model's option without a model.
    """
    found = {name: dict(value) if isinstance(value, Mapping) else value for name, value in fields.items()}
    shortcuts = {name: options[name] for name in AGENT_SHORTCUT_NAMES}
    source = click.get_current_context().get_parameter_source
    for name, value in options.items():
        if name in shortcuts or value is None or (name in found and source(name) is ParameterSource.DEFAULT):
            continue
        if name == "agent_pairs":
            found["agent_options"] = {**found.get("agent_options", {}), **agent_options(value, shortcuts)}
        elif name == "model_pairs":
            _set_model_options(found, given_once("model", value))
        elif name == "gpus":
            if value:
                found["gpus"] = _distinct([gpu for some in value for gpu in some])
        elif name == "experience":
            found[name] = value.resolve()
        elif name == "prices":
            found[name] = read_prices(value)
        else:
            group, _, field = name.rpartition("__")
            (found.setdefault(group, {}) if group else found)[field] = value
    return found


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
