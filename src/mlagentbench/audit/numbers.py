"""Find the numbers in a text, and compare a stated number with a seen one."""

from __future__ import annotations

import re
from typing import NamedTuple

_NUMBER = re.compile(
    r"(?<![\w.])(?<![\w\]][-\u2212])[-+\u2212]?(?:\d{1,3}(?:,\d{3})+|\d+|(?=\.\d))(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w/]|[.,]\d)(?:\s?%)?"
    r"|(?<![\w.])\d+(?:\.\d+)?(?=(?:ms|s|x|min)\b)"
)
_ROUGHLY = re.compile(r"(?:about|around|approximately|approx\.?|roughly|nearly|almost|close to|~|\u2248)\s*$", re.IGNORECASE)
_SECONDS = {"ms": 1e-3, "millisecond": 1e-3, "s": 1.0, "sec": 1.0, "second": 1.0, "min": 60.0, "minute": 60.0, "h": 3600.0, "hour": 3600.0}
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
    return [_number(text, match) for match in _NUMBER.finditer(text)]


def _number(text: str, match: re.Match[str]) -> WrittenNumber:
    written = match[0].rstrip("% ").replace(",", "").replace("\u2212", "-")
    mantissa, _, exponent = written.lower().partition("e")
    unit = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
    time = _UNIT.match(text, match.end())
    seconds = _SECONDS[time[1].removesuffix("s") or "s"] if time and time[1] != "ms" else 1e-3 if time else 1.0
    rough = _ROUGHLY.search(text[max(0, match.start() - 20) : match.start()]) is not None
    return WrittenNumber(
        float(written) * seconds, unit * seconds, match[0].endswith("%"), time is not None, rough, match.start(), match.end()
    )


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
