"""Parse the original's logs of model calls: prompts, replies and token counts, one call after another in a file.

The original counts tokens with one tokenizer (cl100k_base) for all models, including the text that a provider requires around the prompt.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from mlagentbench.records import ModelCall, Role, Usage

_PROMPT = re.compile(r"(?:\A|\n)={10,}prompt={10,}\n")
_REPLY = re.compile(r"\n={10,}(?P<model>[^\n]*?) response \((?P<limit>[^\n]*?)\)={10,}\n")
_TOKENS = re.compile(
    r"\n={10,}tokens={10,}\nNumber of prompt tokens: (?P<prompt>[0-9]{1,9})\nNumber of sampled tokens: (?P<reply>[0-9]{1,9})"
    r"\s*(?=\n={10,}prompt={10,}\n|\Z)"
)

_COUNTS_BEGUN = re.compile(r"\n={10,}(?:t[a-z]*(?:=+(?:\n(?:N[^\n]*\n?){0,2}\s*)?)?)?\Z")
"""Matches the end of a log that breaks off within the token counts of a call."""


class LoggedCall(NamedTuple):
    """A model call as it was logged."""

    prompt: str
    reply: str
    model: str
    """The model's name in the log; empty if it has none."""
    input_tokens: int
    output_tokens: int
    whole: bool
    """False if the log breaks off within the call."""

    def as_call(self, role: Role, purpose: str, models: dict[Role, str], rejected: str | None = None) -> ModelCall:
        """Return the call as a run's record.

        Args:
            role: the role of the model.
            purpose: what the call was made for.
            models: the models' names by role, for a call without one.
            rejected: why the reply was rejected; None if it was not.
        """
        usage = Usage(input_tokens=self.input_tokens, output_tokens=self.output_tokens, calls=1)
        # Some versions of the original wrote an object's repr in place of the name.
        model = self.model if self.model and not self.model.startswith("<") else models.get(role, models["agent"])
        return ModelCall(
            role=role, model=model, purpose=purpose, prompt=self.prompt, reply=self.reply, usage=usage, seconds=0.0, rejected=rejected
        )


def read_calls(text: str) -> list[LoggedCall]:
    """Return the calls in a log. A call that breaks off is included as far as it goes, without token counts."""
    found = []
    at = _PROMPT.search(text)
    while at is not None:
        start = at.end()
        # The next call is searched for after this one's token counts, since a prompt may quote a log.
        tokens = _TOKENS.search(text, start)
        following = _PROMPT.search(text, tokens.end() if tokens else start)
        broken = tokens is None or _breaks_off(text, start, tokens.start())
        if broken:
            following = _PROMPT.search(text, start)
        end = tokens.start() if tokens and not broken else following.start() if following else len(text)
        found.append(_call(text[start:end], None if broken else tokens))
        at = following
    return found


def _breaks_off(text: str, start: int, end: int) -> bool:
    """Return whether a call breaks off, so that the counts found belong to a later call.

    A prompt that quotes a log, in contrast, contains prompts and replies in pairs.
    """
    # The search starts one character earlier, since that may be the line end with which a heading begins.
    prompts = [match.start() for match in _PROMPT.finditer(text, start - 1, end)]
    replies = [match.start() for match in _REPLY.finditer(text, start - 1, end)]
    if not prompts:
        return False
    return len(replies) <= len(prompts) or replies[0] < prompts[0]


def _call(text: str, tokens: re.Match[str] | None) -> LoggedCall:
    replies = list(_REPLY.finditer(text))
    if not replies:
        return LoggedCall(text, "", "", 0, 0, whole=False)
    last = replies[-1]
    reply = text[last.end() :] if tokens else _COUNTS_BEGUN.sub("", text[last.end() :])
    counts = (int(tokens["prompt"]), int(tokens["reply"])) if tokens else (0, 0)
    return LoggedCall(text[: last.start()], reply, last["model"].strip(), *counts, whole=tokens is not None)
