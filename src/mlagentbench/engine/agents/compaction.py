"""Compact long histories with Inspect's strategies: clear old tool results, and summarise if that frees too little."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal, get_args

from inspect_ai.model import ChatMessage, ChatMessageTool, CompactionEdit, CompactionSummary, ModelOutput

from mlagentbench.engine.agents.conversation import Conversation, dumped, model_asking
from mlagentbench.engine.models.model import InspectRequest

Compaction = Literal["edit", "summary", "none"]
"""How to compact: clear old results, and summarise if that frees too little; summarise at once; or not at all."""

THRESHOLD = 0.8
"""The fraction of the context window above which a history is compacted before the next question; the rest is for the reply."""
ENOUGH = 0.5
"""The fraction of a history that may remain after old results are cleared; if more remains, it is summarised too."""
KEPT_RESULTS = 5
"""How many of the last results are not cleared."""
CHARACTERS_A_TOKEN = 3
"""Characters per token, for an estimate. Fewer than in prose, since tool results are full of numbers and code."""


def check_compaction(name: str) -> Compaction:
    """Return a compaction by its name.

    Raises:
        ValueError: there is no compaction of that name.
    """
    for known in get_args(Compaction):
        if name == known:
            return name  # type: ignore[return-value]
    raise ValueError(f"compaction is one of {', '.join(get_args(Compaction))}, not {name!r}")


def estimated(messages: Sequence[ChatMessage], counted: int) -> int:
    """Estimate the tokens of a history: those counted with its last reply, plus an estimate for the results since."""
    since = 0
    for message in reversed(messages):
        if message.role == "assistant":
            break
        since += _size([message])
    return counted + since // CHARACTERS_A_TOKEN if counted else _size(messages) // CHARACTERS_A_TOKEN


def is_full(tokens: int, context: int | None) -> bool:
    """Return whether a history should be compacted before the next question."""
    return context is not None and tokens > context * THRESHOLD


async def compacted(messages: Sequence[ChatMessage], how: Compaction, conversation: Conversation, *, forced: bool) -> list[ChatMessage]:
    """Return a shorter history of the same task.

    Args:
        messages: the history; every tool call in it must have a result.
        how: the compaction.
        conversation: asks the model for the summary.
        forced: whether the history is too long for the model to read, even to summarise it, so that results are cleared in any case.

    Raises:
        LimitReached: as by `Conversation.ask`, while asking for the summary.
        ModelFailed: likewise.
    """

    async def ask(question: InspectRequest) -> ModelOutput:
        return (await conversation.ask(question, purpose="compaction")).output

    model = model_asking(ask)
    shorter = list(messages)
    if how == "edit" or forced:
        shorter, _ = await CompactionEdit(keep_tool_uses=KEPT_RESULTS).compact(model, shorter, [])
    if how == "summary" or _size(shorter) > ENOUGH * _size(messages):
        shorter, _ = await CompactionSummary().compact(model, shorter, [])
    return shorter


def _size(messages: Sequence[ChatMessage]) -> int:
    return sum(len(message.text) if isinstance(message, ChatMessageTool) else len(json.dumps(dumped([message]))) for message in messages)
