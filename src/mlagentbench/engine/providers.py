"""Models by Inspect's names: seen to be usable before anything runs, made once, and given their options.

A provider that computes in this process has nobody beside it who knows what its model can read; that is told here from the model's own
configuration, and counted by its own tokenizer. Asked for more, such a model reads nonsense, or fails in ways that take a GPU with it.
"""

from __future__ import annotations

import copy
import importlib.util
import os
import re
import threading
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from inspect_ai.model import ChatMessage, GenerateConfig, ModelAPI, ModelInfo, get_model, set_model_info
from inspect_ai.model import Model as InspectModel
from inspect_ai.tool import Tool, ToolDef, ToolInfo
from pydantic import JsonValue

from mlagentbench.engine.prices import check_prices
from mlagentbench.errors import MLAgentBenchError, ModelUnavailable
from mlagentbench.records import Role
from mlagentbench.run_spec import ModelSpec, RunSpec

IN_PROCESS = ("hf", "nnterp", "transformer_lens", "llama-cpp-python")
"""Providers that compute here, as long as it takes; there is no request that could be given up."""
LOADING = ("hf", "nnterp", "transformer_lens")
"""Those of them that read all of a model's weights when it is made: that is done once."""
PACKAGES = {"hf": ("torch", "transformers", "accelerate"), "vllm": ("vllm",), "sglang": ("sglang",), "bedrock": ("aioboto3",)}
"""What providers need where Inspect finds out only when a model is asked, or after it has begun to read one."""
RUNNING = {"vllm": "VLLM_BASE_URL", "sglang": "SGLANG_BASE_URL"}
"""Those of them that need nothing where a server runs already, and what names it."""
NOT_OPTIONS = ("model", "role", "default", "required", "config", "memoize")
"""What Inspect's function takes beside a model's own options."""

_MARKUP = re.compile(r"\[/?(?:bold|blue|red|green|yellow|dim|italic)\]")
"""What Inspect's messages hold for a terminal."""
LEAVING = 30.0
"""Seconds that a model in this process has to stop computing."""

_counters: WeakKeyDictionary[ModelAPI, Any] = WeakKeyDictionary()


def provider_of(name: str) -> str:
    """The provider of a model's name."""
    return name.split("/")[0]


def check_models(spec: RunSpec) -> None:
    """Raise if a model of a spec cannot be used, before anything runs.

    Raises:
        ModelUnavailable: its provider is unknown, or lacks a package or a key, or refuses an option.
        UsageError: there is a limit of cost, and a model of which no price is known.
    """
    check_prices(spec)
    checked: list[ModelSpec] = []
    for model in spec.models.values():
        if model not in checked:
            check_model(model.name, model.options)
            checked.append(model)


def check_model(name: str, options: Mapping[str, JsonValue] = {}) -> None:
    """See that a model can be had, before anything runs. One whose weights are read when it is made is only looked for.

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
    """A model of Inspect's.

    Args:
        name: its name.
        options: its own.
        at_once: how many questions a model whose weights lie here answers together, for fewer of which it waits two seconds.

    Raises:
        ModelUnavailable: it cannot be had.
    """
    given: dict[str, Any] = dict(options)
    config = GenerateConfig(max_connections=at_once if provider_of(name) in LOADING else None)
    try:
        model = get_model(name, memoize=False, config=config, **given)
    except MLAgentBenchError:
        raise
    except Exception as error:
        # Inspect and the providers' clients each have errors of their own for this.
        message = " ".join(_MARKUP.sub("", str(getattr(error, "message", None) or error)).split())
        raise ModelUnavailable(f"the model {name!r} cannot be used: {message.removeprefix('ERROR: ')[:400]}") from None
    window = window_of(model.api)
    if window is not None:
        # Else Inspect makes it once more, to look it up by its other names.
        set_model_info(str(model), ModelInfo(context_length=window))
    return model


async def make_models(clients: AsyncExitStack, models: Mapping[Role, ModelSpec], at_once: int) -> dict[Role, InspectModel]:
    """Return the models of an evaluation, each made once, and closed with a stack. Not by Inspect's own memory, which leaves clients open.

    Args:
        clients: what closes them.
        models: by role.
        at_once: how many runs go on at once.

    Raises:
        ModelUnavailable: one cannot be had.
    """
    made: list[tuple[ModelSpec, InspectModel]] = []
    for spec in models.values():
        if any(spec == known for known, _ in made):
            continue
        model = await clients.enter_async_context(make_model(spec.name, spec.options, at_once))
        if hasattr(model.api, "hf_chat"):
            clients.callback(_Generating(model.api).stop)
        made.append((spec, model))
    return {role: next(model for known, model in made if known == spec) for role, spec in models.items()}


def window_of(api: ModelAPI) -> int | None:
    """How many tokens a model that lies in this process can read and write in all; None where it does not, or does not say."""
    config = getattr(getattr(api, "model", None), "config", None)
    window = getattr(config, "max_position_embeddings", None)
    return window if isinstance(window, int) and window > 0 else None


def tokens_of(api: ModelAPI, messages: Sequence[ChatMessage], tools: Sequence[ToolInfo | Tool] = ()) -> int | None:
    """How many tokens a prompt is to a model that lies in this process; None where that cannot be told."""
    if not hasattr(api, "hf_chat"):
        return None
    return count(api, api.hf_chat(list(messages), [_info(tool) for tool in tools]))


def count(api: ModelAPI, text: str) -> int | None:
    """How many tokens a text is to a model that lies in this process; None where that cannot be told."""
    if api not in _counters:
        tokenizer = getattr(getattr(api, "tokenizer", None), "backend_tokenizer", None)
        # A copy, since the model's own is used in another thread, and no tokenizer bears two.
        _counters[api] = copy.deepcopy(tokenizer)
    counter = _counters[api]
    return None if counter is None else len(counter.encode(text).ids)


class _Generating:
    """What a model in this process computes in a thread of its own, so that it can be stopped: else Python aborts where it ends meanwhile.

    Args:
        api: whose model it is; from here on it is asked through this.
    """

    def __init__(self, api: Any) -> None:
        self._generate = api.model.generate
        self._computing = threading.Lock()
        self._stopped = False
        api.model.register_forward_pre_hook(self._before_token)
        api.model.generate = self

    def __call__(self, *arguments: Any, **more: Any) -> Any:
        """Generate."""
        with self._computing:
            return self._generate(*arguments, **more)

    def stop(self) -> None:
        """Stop for good, before the next token, and wait for that."""
        self._stopped = True
        if self._computing.acquire(timeout=LEAVING):
            self._computing.release()

    def _before_token(self, module: object, arguments: object) -> None:
        if self._stopped:
            raise InterruptedError("the evaluation is over")


def _info(tool: ToolInfo | Tool) -> ToolInfo:
    if isinstance(tool, ToolInfo):
        return tool
    definition = ToolDef(tool)
    return ToolInfo(name=definition.name, description=definition.description, parameters=definition.parameters)
