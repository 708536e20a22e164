"""Inspect's models as this package's `Model`s: any provider, with Inspect's retries, rate limits, caching and counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from inspect_ai.model import ChatMessageUser, GenerateConfig, ModelOutput, get_model, get_model_info
from inspect_ai.model import Model as InspectModel
from inspect_ai.util import LimitExceededError

from mlagentbench.engine.scripted import turn
from mlagentbench.errors import LimitName, LimitReached, MLAgentBenchError, ModelFailed, ModelUnavailable
from mlagentbench.model import GenerateOptions, Models, Reply
from mlagentbench.records import Role, Usage

LIMITS: dict[str, LimitName] = {"token": "limit_tokens", "cost": "limit_cost", "time": "limit_time", "working": "limit_time"}
"""Inspect's limits by our names."""


class RoleModel:
    """An Inspect model that speaks as one role of one run."""

    def __init__(self, model: InspectModel, role: Role, position: int = 0) -> None:
        self._model = model
        self._role = role
        self._position = position

    @property
    def name(self) -> str:
        """As a user would write it, for example `openai/gpt-4o`."""
        return str(self._model)

    @property
    def context_tokens(self) -> int | None:
        """How many tokens it can read and write in all, by Inspect's tables."""
        known = get_model_info(self._model)
        return known.context_length if known else None

    async def generate(self, prompt: str, options: GenerateOptions = GenerateOptions()) -> Reply:
        """Answer a prompt.

        Raises:
            ModelFailed: the provider failed for good, or refused the request.
            LimitReached: the prompt is too long for the model, or a limit set through Inspect was reached.
        """
        config = GenerateConfig(temperature=options.temperature, max_tokens=options.max_tokens, stop_seqs=list(options.stop) or None)
        try:
            with turn(self._role, self._position):
                output = await self._model.generate([ChatMessageUser(content=prompt)], config=config)
        except MLAgentBenchError:
            raise
        except LimitExceededError as limit:
            raise LimitReached(LIMITS.get(limit.type, "limit_steps"), str(limit)) from None
        except Exception as error:
            # Providers raise whatever their clients raise; by now Inspect has retried what is worth retrying.
            raise ModelFailed(f"{self.name} failed: {type(error).__name__}: {' '.join(str(error).split())[:300]}") from error
        self._position += 1
        return self._reply(output)

    def _reply(self, output: ModelOutput) -> Reply:
        if output.stop_reason == "model_length":
            raise LimitReached("limit_context", f"the prompt is longer than {self.name} can read")
        counted = output.usage
        usage = Usage(
            input_tokens=counted.input_tokens if counted else 0,
            output_tokens=counted.output_tokens if counted else 0,
            cache_read_tokens=(counted.input_tokens_cache_read or 0) if counted else 0,
            cache_write_tokens=(counted.input_tokens_cache_write or 0) if counted else 0,
            calls=1,
            cost=counted.total_cost if counted else None,
        )
        return Reply(output.completion, usage, self.name, truncated=output.stop_reason == "max_tokens")


def current_models(replies: Mapping[Role, int] = {}) -> Models:
    """The models of the sample that is running: the evaluation's, and those of the roles `fast` and `editor`, which fall back to it.

    Args:
        replies: how many replies each role has given before, in a run that goes on.
    """
    main = get_model()
    roles: tuple[Role, ...] = get_args(Role)
    models = {role: main if role == "agent" else get_model(role=role, default=main) for role in roles}
    return Models(**{role: RoleModel(model, role, replies.get(role, 0)) for role, model in models.items()})


def check_model(name: str) -> None:
    """See that a model can be had, before anything runs.

    Raises:
        ModelUnavailable: its provider is unknown, or lacks a package or a key.
    """
    try:
        get_model(name)
    except MLAgentBenchError:
        raise
    except Exception as error:
        # Inspect and the providers' clients each have errors of their own for this.
        message = " ".join(str(getattr(error, "message", None) or error).split())
        raise ModelUnavailable(f"the model {name!r} cannot be used: {message[:400]}") from None
