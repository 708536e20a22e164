"""The private parts of Inspect that engine/compat.py uses are there, and do what they are used for; so is the method of transformers."""

from __future__ import annotations

import ast
import asyncio
import inspect
import threading
from pathlib import Path
from typing import Any, cast

import anyio
import pytest
from inspect_ai._view import view as inspect_view
from inspect_ai.agent import AgentState, SandboxAgentBridge
from inspect_ai.agent._bridge.sandbox import service as bridge_service
from inspect_ai.model import get_model
from inspect_ai.util import display_type, sandbox_service

import mlagentbench
from mlagentbench.engine import compat
from tests.support import HANGING

SOURCES = Path(mlagentbench.__file__).parent
PRIVATE = ("asyncio", "inspect_ai", "transformers")


def test_inspect_prints_nothing() -> None:
    compat.hide_display()
    assert display_type() == "none"


def test_the_active_model_is_the_one_of_the_task_that_sets_it() -> None:
    async def named(name: str) -> list[str]:
        compat.use_model(get_model(f"mockllm/{name}", memoize=False))
        await asyncio.sleep(0)
        return [get_model().name, get_model(role="fast").name]

    async def story() -> list[list[str]]:
        return await asyncio.gather(named("one"), named("two"))

    assert asyncio.run(story()) == [["one", "one"], ["two", "two"]]


def test_bridges_look_for_requests_as_often_as_they_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bridge_service, "sandbox_service", bridge_service.sandbox_service)
    asked: list[object] = []

    async def service(**settings: object) -> None:
        asked.append(settings["polling_interval"])

    monkeypatch.setattr(compat, "sandbox_service", service)
    compat.look_often_for_requests(0.2)
    bridge = SandboxAgentBridge(AgentState(messages=[]), None, None, None, 0, None)
    asyncio.run(bridge_service.run_model_service(cast(Any, None), None, None, bridge, "one", anyio.Event()))
    assert asked == [0.2]
    assert "polling_interval" in inspect.signature(sandbox_service).parameters


def test_the_viewer_calls_the_function_that_is_replaced() -> None:
    assert "view_acquire_port(view_data_dir(), port)" in inspect.getsource(inspect_view.view)


class Model:
    """What `StoppableGeneration` needs of a model."""

    def __init__(self) -> None:
        self.started = threading.Event()

    def register_forward_pre_hook(self, hook: object) -> None:
        self.hook = hook

    def generate(self) -> None:
        while True:
            self.started.set()
            self.hook(self, ())


def test_generation_stops_before_the_next_token() -> None:
    model = Model()
    stoppable = compat.StoppableGeneration(model)

    def generate() -> None:
        with pytest.raises(InterruptedError):
            model.generate()

    thread = threading.Thread(target=generate)
    thread.start()
    assert model.started.wait(HANGING)
    stoppable.stop()
    thread.join(HANGING)
    assert not thread.is_alive()


def test_models_of_transformers_have_what_is_replaced() -> None:
    transformers = pytest.importorskip("transformers")
    assert callable(transformers.GPT2LMHeadModel.generate) and callable(transformers.GPT2LMHeadModel.register_forward_pre_hook)


def test_no_other_module_uses_private_parts() -> None:
    used = set()
    for path in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.ImportFrom):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.Attribute):
                names = [ast.unparse(node)]
            else:
                continue
            used |= {path for name in names if name.split(".")[0] in PRIVATE and "._" in name and ".__" not in name}
    assert used == {SOURCES / "engine" / "compat.py"}
