"""Long histories made short, by Inspect's strategies: old tool results are cleared, and if that frees too little, a summary is made."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal, get_args

from inspect_ai.model import ChatMessage, ChatMessageTool, CompactionEdit, CompactionSummary

from mlagentbench.engine.conversation import Conversation, dumped, environment_model

Compaction = Literal["edit", "summary", "none"]
"""How: old results cleared first and a summary where that frees too little; a summary at once; or not at all."""

THRESHOLD = 0.8
"""The part of what a model can read above which a history is compacted before the next question; the rest is for the reply."""
ENOUGH = 0.5
"""The part of a history that may remain after old results are cleared; where more does, it is summarised too."""
KEPT_RESULTS = 5
"""How many of the last results are not cleared."""
CHARACTERS_A_TOKEN = 3
"""Fewer than in prose: what is not counted yet is results, full of numbers and code."""


def check_compaction(name: str) -> Compaction:
    """A way of compaction, by its name.

    Raises:
        ValueError: there is none of that name.
    """
    for known in get_args(Compaction):
        if name == known:
            return name  # type: ignore[return-value]
    raise ValueError(f"compaction is one of {', '.join(get_args(Compaction))}, not {name!r}")


def estimated(messages: Sequence[ChatMessage], counted: int) -> int:
    """The tokens of a history: those counted with its last reply, and about so many for the results since."""
    since = 0
    for message in reversed(messages):
        if message.role == "assistant":
            break
        since += _size([message])
    return counted + since // CHARACTERS_A_TOKEN if counted else _size(messages) // CHARACTERS_A_TOKEN


def is_full(tokens: int, context: int | None) -> bool:
    """Whether a history should be compacted before the next question."""
    return context is not None and tokens > context * THRESHOLD


async def compacted(messages: Sequence[ChatMessage], how: Compaction, conversation: Conversation, *, forced: bool) -> list[ChatMessage]:
    """A shorter history of the same task.

    Args:
        messages: the history; every tool call in it is answered.
        how: in which way.
        conversation: asks for the summary.
        forced: whether the history is too long to be read even for a summary.

    Raises:
        LimitReached: of a summary, as any question's.
        ModelFailed: likewise.
    """
    model = environment_model(conversation, "compaction")
    shorter = list(messages)
    if how == "edit" or forced:
        shorter, _ = await CompactionEdit(keep_tool_uses=KEPT_RESULTS).compact(model, shorter, [])
    if how == "summary" or _size(shorter) > ENOUGH * _size(messages):
        shorter, _ = await CompactionSummary().compact(model, shorter, [])
    return shorter


def _size(messages: Sequence[ChatMessage]) -> int:
    return sum(len(message.text) if isinstance(message, ChatMessageTool) else len(json.dumps(dumped([message]))) for message in messages)
