"""The original's logs of model calls: prompt, reply and its own count of tokens, one call after another in a file.

Its counts are those of one tokenizer (cl100k_base) for all models, of the prompt with the words that the model's provider wants around it.
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
"""The end of a log that breaks off in a call's counts."""


class LoggedCall(NamedTuple):
    """One call as it was logged."""

    prompt: str
    reply: str
    model: str
    """As the log names it; empty where it does not."""
    input_tokens: int
    output_tokens: int
    whole: bool
    """False where the log breaks off in it."""

    def as_call(self, role: Role, purpose: str, models: dict[Role, str], rejected: str | None = None) -> ModelCall:
        """As a run keeps it."""
        usage = Usage(input_tokens=self.input_tokens, output_tokens=self.output_tokens, calls=1)
        # Some versions wrote an object's address where the name belongs.
        model = self.model if self.model and not self.model.startswith("<") else models.get(role, models["agent"])
        return ModelCall(
            role=role, model=model, purpose=purpose, prompt=self.prompt, reply=self.reply, usage=usage, seconds=0.0, rejected=rejected
        )


def read_calls(text: str) -> list[LoggedCall]:
    """The calls of a log. One that breaks off is kept as far as it goes, without tokens."""
    found = []
    at = _PROMPT.search(text)
    while at is not None:
        start = at.end()
        # A prompt may quote a log, and so the next call begins after the counts of this one, not where the words stand.
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
    """Whether a call breaks off, and what follows is another's; a prompt that quotes a log holds prompts and replies in pairs."""
    # From the last character of the line before, which may be the line end that a heading begins with.
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
