"""Use private parts of Inspect, and replace a method of models of transformers: what neither library offers otherwise.

No other module of this package does. tests/engine/test_compat.py fails when one of these parts changes.
"""

from __future__ import annotations

import logging
import threading
from typing import Any

from inspect_ai._view import view as inspect_view
from inspect_ai.agent._bridge.sandbox import service as bridge_service
from inspect_ai.model import Model
from inspect_ai.model._generate_config import active_generate_config
from inspect_ai.model._model import init_active_model, init_model_roles
from inspect_ai.util import sandbox_service
from inspect_ai.util._display import init_display_type

LEAVING = 30.0
"""Seconds to wait for a model in this process to stop computing."""


def hide_display() -> None:
    """Have Inspect print nothing: only `eval`, which runs an event loop of its own, has an option for it."""
    init_display_type("none")
    logging.getLogger("inspect_ai").setLevel(logging.ERROR)


def use_model(model: Model) -> None:
    """Make `get_model()` return a model for every role, in the running asyncio task."""
    init_active_model(model, active_generate_config())
    init_model_roles({})


def serve_viewer(log_dir: str, host: str, port: int) -> None:
    """Serve Inspect's viewer on a free port.

    Inspect would kill the process with the id that it once recorded for this port, whatever that process is now.
    """
    inspect_view.view_acquire_port = lambda app_dir, port: None
    inspect_view.view(log_dir=log_dir, host=host, port=port)


def look_often_for_requests(seconds: float) -> None:
    """Have agent bridges look for requests of their agents every so many seconds.

    Inspect looks every 2 seconds, which every call of an agent's would take longer.
    """

    async def often(**settings: Any) -> None:
        await sandbox_service(**{**settings, "polling_interval": seconds})

    bridge_service.sandbox_service = often  # type: ignore[assignment, attr-defined]


class StoppableGeneration:
    """Makes the generation of a model in this process stoppable. It runs in a thread, and Python would abort if it exited meanwhile.

    Args:
        model: a model of transformers; its `generate` is replaced by this object.
    """

    def __init__(self, model: Any) -> None:
        self._generate = model.generate
        self._computing = threading.Lock()
        self._stopped = False
        model.register_forward_pre_hook(self._before_token)
        model.generate = self

    def __call__(self, *arguments: object, **more: object) -> Any:
        """Generate, as the model's own method does."""
        with self._computing:
            return self._generate(*arguments, **more)

    def stop(self) -> None:
        """Stop generation for good before the next token, and wait until it has stopped."""
        self._stopped = True
        if self._computing.acquire(timeout=LEAVING):
            self._computing.release()

    def _before_token(self, module: object, arguments: object) -> None:
        if self._stopped:
            raise InterruptedError("the evaluation is over")
