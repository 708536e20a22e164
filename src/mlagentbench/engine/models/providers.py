"""Check that models are usable before anything runs, and make them, each once and with its options.

For a model that runs in this process, no server checks the length of prompts. It is checked here, with the context window from the model's
own configuration and its own tokenizer: with more tokens than that, such a model writes nonsense, or fails in ways that break the GPU.
"""

from __future__ import annotations

import copy
import importlib.util
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from inspect_ai.model import ChatMessage, GenerateConfig, ModelAPI, ModelInfo, get_model, set_model_info
from inspect_ai.model import Model as InspectModel
from inspect_ai.tool import Tool, ToolDef, ToolInfo
from pydantic import JsonValue

from mlagentbench.engine.compat import StoppableGeneration
from mlagentbench.engine.models.prices import check_prices
from mlagentbench.errors import MLAgentBenchError, ModelUnavailable
from mlagentbench.run_spec import ModelSpec, RunSpec

IN_PROCESS = ("hf", "nnterp", "transformer_lens", "llama-cpp-python")
"""Providers that run the model in this process. Their requests have no timeout, since nothing could be aborted."""
LOADING = ("hf", "nnterp", "transformer_lens")
"""Those of them that load all weights when a model is made, so that it must be made only once."""
PACKAGES = {"hf": ("torch", "transformers", "accelerate"), "vllm": ("vllm",), "sglang": ("sglang",), "bedrock": ("aioboto3",)}
"""Packages that providers need, where Inspect reports a missing one only when a model is asked, or while it is loaded."""
RUNNING = {"vllm": "VLLM_BASE_URL", "sglang": "SGLANG_BASE_URL"}
"""Providers that need no package if a server is running already, and the environment variable with its URL."""
NOT_OPTIONS = ("model", "role", "default", "required", "config", "memoize")
"""The parameters of Inspect's `get_model` that are not options of a model."""

_MARKUP = re.compile(r"\[/?(?:bold|blue|red|green|yellow|dim|italic)\]")
"""Matches the terminal markup in Inspect's messages."""

_counters: WeakKeyDictionary[ModelAPI, Any] = WeakKeyDictionary()


def provider_of(name: str) -> str:
    """Return the provider in a model's name."""
    return name.split("/")[0]


def check_models(spec: RunSpec) -> None:
    """Raise an error if a model of a spec cannot be used, before anything runs.

    Raises:
        ModelUnavailable: a provider is unknown, or lacks a package or a key, or refuses an option.
        UsageError: the cost is limited, and the price of a model is not known.
    """
    check_prices(spec)
    checked: list[ModelSpec] = []
    for model in spec.models.values():
        if model not in checked:
            check_model(model.name, model.options)
            checked.append(model)


def check_model(name: str, options: Mapping[str, JsonValue] = {}) -> None:
    """Raise ModelUnavailable if a model cannot be used. A model whose weights would be loaded is not made; only its folder is checked.

    Raises:
        ModelUnavailable: its provider is unknown, or lacks a package or a key, or refuses an option.
    """
    for option in options:
        if option == "api_key":
            raise ModelUnavailable("a key is no option of a model, since options are recorded; set it in the environment")
        if option in NOT_OPTIONS:
            raise ModelUnavailable(f"a model has no option {option!r}")
    provider = provider_of(name)
    runs = provider in RUNNING and ("base_url" in options or RUNNING[provider] in os.environ)
    missing = [package for package in PACKAGES.get(provider, ()) if not runs and importlib.util.find_spec(package) is None]
    if missing:
        raise ModelUnavailable(f"the model {name!r} cannot be used: it needs {' and '.join(missing)}; pip install {' '.join(missing)}")
    if provider not in LOADING:
        make_model(name, options)
        return
    place = str(options.get("model_path", name.partition("/")[2]))
    if place.startswith(("/", "./", "../", "~")) and not Path(place).is_dir():
        raise ModelUnavailable(f"the model {name!r} cannot be used: there is no folder {place}")


def make_model(name: str, options: Mapping[str, JsonValue] = {}, at_once: int | None = None) -> InspectModel:
    """Make an Inspect model.

    Args:
        name: the model's name.
        options: the model's options.
        at_once: the batch size of a model whose weights are loaded here. It waits up to two seconds for a batch to fill.

    Raises:
        ModelUnavailable: the model cannot be made.
    """
    given: dict[str, Any] = dict(options)
    config = GenerateConfig(max_connections=at_once if provider_of(name) in LOADING else None)
    try:
        model = get_model(name, memoize=False, config=config, **given)
    except MLAgentBenchError:
        raise
    except Exception as error:
        # Inspect and each provider's client raise exceptions of their own for this.
        message = " ".join(_MARKUP.sub("", str(getattr(error, "message", None) or error)).split())
        raise ModelUnavailable(f"the model {name!r} cannot be used: {message.removeprefix('ERROR: ')[:400]}") from None
    client: Any = getattr(model.api, "client", None)
    if hasattr(client, "max_retries"):
        # The clients of OpenAI and Anthropic would ask again twice, past the rate limit that runs share.
        client.max_retries = 0
    window = window_of(model.api)
    if window is not None:
        # Without this, Inspect would make the model a second time to look up its canonical name.
        set_model_info(str(model), ModelInfo(context_length=window))
    return model


async def make_models(clients: AsyncExitStack, models: Iterable[ModelSpec], at_once: int) -> Callable[[ModelSpec], InspectModel]:
    """Make the models of an evaluation, each once. Inspect's own memoization is not used, since it leaves clients open.

    Returns:
        A function from a spec to its model.

    Raises:
        ModelUnavailable: a model cannot be made.
    """
    made: list[tuple[ModelSpec, InspectModel]] = []
    for spec in models:
        if any(spec == known for known, _ in made):
            continue
        model = await clients.enter_async_context(make_model(spec.name, spec.options, at_once))
        if provider_of(spec.name) == "hf":
            api: Any = model.api
            clients.callback(StoppableGeneration(api.model).stop)
        made.append((spec, model))
    return lambda spec: next(model for known, model in made if known == spec)


def window_of(api: ModelAPI) -> int | None:
    """Return the context window in tokens of a model in this process; None for other models, or if its configuration does not say."""
    config = getattr(getattr(api, "model", None), "config", None)
    window = getattr(config, "max_position_embeddings", None)
    return window if isinstance(window, int) and window > 0 else None


def tokens_of(api: ModelAPI, messages: Sequence[ChatMessage], tools: Sequence[ToolInfo | Tool] = ()) -> int | None:
    """Return the number of tokens of a prompt for a model in this process; None if it cannot be counted."""
    if not hasattr(api, "hf_chat"):
        return None
    return count(api, api.hf_chat(list(messages), [_info(tool) for tool in tools]))


def count(api: ModelAPI, text: str) -> int | None:
    """Return the number of tokens of a text for a model in this process; None if it cannot be counted."""
    if api not in _counters:
        tokenizer = getattr(getattr(api, "tokenizer", None), "backend_tokenizer", None)
        # A copy, since the model uses its tokenizer in another thread, and tokenizers are not thread-safe.
        _counters[api] = copy.deepcopy(tokenizer)
    counter = _counters[api]
    return None if counter is None else len(counter.encode(text).ids)


def _info(tool: ToolInfo | Tool) -> ToolInfo:
    if isinstance(tool, ToolInfo):
        return tool
    definition = ToolDef(tool)
    return ToolInfo(name=definition.name, description=definition.description, parameters=definition.parameters)
