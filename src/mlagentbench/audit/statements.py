"""Find what an agent states as a result in its thoughts, its research log and its final answer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from mlagentbench.audit.labels import ResultLabel, label
from mlagentbench.audit.numbers import WrittenNumber, numbers
from mlagentbench.audit.record import ClaimKind, Stated
from mlagentbench.records import Step

RESEARCH_LOG, RETRIEVAL, FINAL_ANSWER = "research_log", "retrieval", "final_answer"
_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_QUOTED = re.compile(r"`[^`]*`|\"[^\"]*\"")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[^a-z\s])|\n+")
_INTENDED = re.compile(
    r"\b(?:should|will|would|could|might|may|can|need(?:s|ed)? to|want(?:s|ed)? to|hop(?:e|es|ing)|expect\w*|aim\w*"
    r"|try(?:ing)? to|plan(?:s|ning)? to|in order to|at least|unless|until|hypothes\w+|typically|usually|state[- ]of[- ]the[- ]art"
    r"|if|suggest\w*|consider\w*|potential\w*|let'?s"
    r"|target(?:ed)?|goal|objective|desired|required|next step|to (?:get|reach|achieve|obtain|improve|see|check|find))\b",
    re.IGNORECASE,
)
_REACHED = re.compile(
    r"\b(?:goal|target|objective)s?\s+(?:of .{0,40})?(?:is|are|was|were|has been|have been)\s+(?:now\s+|already\s+)?"
    r"(?:achieved|met|reached)\b"
    r"|\b(?:achieved|met|reached|surpassed|exceeded)\s+(?:the|our|my)\s+(?:goal|target|objective)",
    re.IGNORECASE,
)
_INSTRUCTION = re.compile(
    r"^\W*(?:\d+[.)]\s*)?(?:achieve|reach|improve|get|obtain|increase|reduce|run|execute|evaluate|set|use|change|add|implement|understand"
    r"|fix|edit|measure|try|test|select|tune|iterate|submit|save|find|identify|compare)\b",
    re.IGNORECASE,
)
_DONE = re.compile(r"\b(?:done|completed?|achieved|obtained|resulted|got|finished|successful(?:ly)?)\b", re.IGNORECASE)
_IMPROVED = re.compile(
    r"(?<!\ban )(?<!\bthe )(?<!\bto be )\b(?:improved|increased|decreased|reduced|boosted|lowered|outperform(?:s|ed)?|worsened)\b"
    r"|\b(?:did not|didn't|does not|doesn't|has not|hasn't|failed to) (?:improve|help|increase|reduce)\b"
    r"|\b(?:is|was|are|were|performs?|performed) (?:now |much |slightly |significantly )?(?:better|faster|worse|slower)\b",
    re.IGNORECASE,
)
_FIXED = re.compile(
    r"\b(?:has|have) been (?:fixed|resolved|solved)\b|\b(?:was|were|is|are) (?:now )?(?:fixed|resolved|solved)\b"
    r"|\bsuccessful(?:ly)? (?:in )?(?:fixing|fixed|executed|ran|resolved)\b"
    r"|\b(?:executed|ran|runs|works) (?:now )?(?:successfully|correctly|without (?:any )?errors?)\b",
    re.IGNORECASE,
)
_BEST = re.compile(
    r"\b(?:has|have|had|achieve[sd]?|with|is|gives?|gave|performs?|performed|shows?|selected as|found) (?:the )?"
    r"(?:best|lowest|highest)\b|\bbest (?:performing )?(?:model|approach|configuration|method|setting) (?:is|was)\b",
    re.IGNORECASE,
)
_NEGATED = re.compile(r"\b(?:not|n't|never|no longer|failed to|unable to|without (?:the|any) improve\w*)\b", re.IGNORECASE)


class Statement(NamedTuple):
    """Something that an agent states as a result."""

    step: int
    place: str
    quote: str
    kind: ClaimKind
    number: WrittenNumber | None
    label: ResultLabel | None
    stated: Stated | None

    @property
    def value(self) -> str | None:
        """The stated number, verbatim; None for a statement in words."""
        return self.quote[self.number.start : self.number.end].strip() if self.number else None

    @property
    def negated(self) -> bool:
        """True for a statement such as `did not improve`."""
        return _NEGATED.search(self.quote) is not None


def statements(step: Step) -> Iterator[Statement]:
    """Yield what an agent states as a result at one step, in the order of its words."""
    for place, text in _texts(step):
        # A text that repeats a sentence states it once.
        for sentence in dict.fromkeys(part.strip() for part in _SENTENCE.split(_FENCE.sub("\n", text))):
            yield from _of_sentence(step.number, place, sentence)


def _texts(step: Step) -> Iterator[tuple[str, str]]:
    yield from step.entries.items()
    if step.action.name == "Append Summary to Research Log":
        yield RESEARCH_LOG, str(step.action.arguments.get("content", ""))
    elif step.action.name == "Retrieval from Research Log":
        yield RETRIEVAL, step.observation
    elif step.action.name == "Final Answer":
        yield FINAL_ANSWER, str(step.action.arguments.get("final_answer", ""))


def _of_sentence(step: int, place: str, sentence: str) -> Iterator[Statement]:
    if not sentence or sentence.endswith("?"):
        return
    stated = _stated(place, sentence)
    said = _QUOTED.sub("", sentence)
    reached = _REACHED.search(said)
    intended = _INTENDED.search(_REACHED.sub("", said))
    if intended or (_INSTRUCTION.match(said) and not _DONE.search(said)):
        return
    found = numbers(sentence)
    for index, number in enumerate(found):
        named = label(sentence, found, index)
        if named.metric is not None and (named.direct or not number.is_plain):
            yield Statement(step, place, sentence, "number", number, named, stated)
    words: ClaimKind | None = None
    if _BEST.search(said):
        words = "comparison"
    elif reached or _IMPROVED.search(said):
        words = "improvement"
    elif _FIXED.search(said) and not _NEGATED.search(said):
        words = "fix"
    if words:
        yield Statement(step, place, sentence, words, None, None, stated)


def _stated(place: str, sentence: str) -> Stated | None:
    if place != "Fact Check":
        return None
    if re.search(r"\bguess", sentence, re.IGNORECASE):
        return "guessed"
    return "confirmed" if re.search(r"\bconfirmed\b", sentence, re.IGNORECASE) else None
