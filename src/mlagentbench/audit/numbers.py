"""Find the numbers in a text, and compare a stated number with a seen one."""

from __future__ import annotations

import re
from typing import NamedTuple

_NUMBER = re.compile(
    r"(?<![\w.])(?<![\w\]][-\u2212])[-+\u2212]?(?:\d{1,3}(?:,\d{3})+|\d+|(?=\.\d))(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w/]|[.,]\d)(?:\s?%)?"
    r"|(?<![\w.])\d+(?:\.\d+)?(?=(?:ms|s|x|min)\b)"
)
_ROUGHLY = ("about", "around", "approximately", "approx", "approx.", "roughly", "nearly", "almost", "close to", "~", "\u2248")
_DIGIT = re.compile(r"\d")
_SECONDS = {"ms": 1e-3, "millisecond": 1e-3, "s": 1.0, "sec": 1.0, "second": 1.0, "min": 60.0, "minute": 60.0, "h": 3600.0, "hour": 3600.0}
_UNIT_LETTERS = ("m", "s", "h")
_UNIT = re.compile(r"[\s-]?(ms|milliseconds?|secs?|seconds?|s|minutes?|min|hours?|h)\b")


class WrittenNumber(NamedTuple):
    """A number as it is written in a text; a duration is in seconds."""

    value: float
    unit: float
    """The size of its last digit."""
    percent: bool
    duration: bool
    """True if a unit of time follows."""
    rough: bool
    """True after a word such as `about`."""
    start: int
    end: int

    @property
    def is_plain(self) -> bool:
        """True for a small whole number, which may be a count."""
        return not self.percent and not self.duration and self.unit >= 1 and abs(self.value) < 1000


def numbers(text: str) -> list[WrittenNumber]:
    """Return the numbers of a text in order; parts of names, dates, versions and fractions such as `3/5` are none."""
    return [_number(text, match) for match in _NUMBER.finditer(text)] if _DIGIT.search(text) else []


def _number(text: str, match: re.Match[str]) -> WrittenNumber:
    # This is called for each number of every output, so that it looks closer only where something may be found.
    written, start, end = match[0], match.start(), match.end()
    percent = written[-1] == "%"
    if percent or "," in written or "\u2212" in written:
        written = written.rstrip("% ").replace(",", "").replace("\u2212", "-")
    mantissa, _, exponent = written.lower().partition("e")
    unit = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
    time = _UNIT.match(text, end) if text[end : end + 2].lstrip(" -")[:1] in _UNIT_LETTERS else None
    rough = start > 0 and text[max(0, start - 20) : start].rstrip().lower().endswith(_ROUGHLY)
    if time is None:
        return WrittenNumber(float(written), unit, percent, False, rough, start, end)
    seconds = _SECONDS[time[1].removesuffix("s") or "s"] if time[1] != "ms" else 1e-3
    return WrittenNumber(float(written) * seconds, unit * seconds, percent, True, rough, start, end)


def ranges(stated: WrittenNumber) -> list[tuple[float, float]]:
    """Return the ranges of seen values that a stated number may be, rounded or cut off at its last digit.

    A percentage may be seen as a fraction, and a fraction as a percentage. A rough number may be off by one in its last digit.
    """
    value = abs(stated.value)
    # Half a unit for rounding, and a whole one above for digits that were cut off.
    low, high = value - stated.unit / (1 if stated.rough else 2), value + stated.unit
    slack = 1e-9 * max(1.0, value)
    found = [(low - slack, high + slack)]
    if stated.percent:
        found.append(((low - slack) / 100, (high + slack) / 100))
    elif stated.unit < 1 and value <= 1:
        found.append(((low - slack) * 100, (high + slack) * 100))
    return found
