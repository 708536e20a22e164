"""Find the numbers in a text, and compare a stated number with a seen one."""

from __future__ import annotations

import re
from typing import NamedTuple

_NUMBER = re.compile(
    r"(?<![\w.])(?<![\w\]][-\u2212])[-+\u2212]?(?:\d{1,3}(?:,\d{3})+|\d+|(?=\.\d))(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w/]|[.,]\d)(?:\s?%)?"
)
_ROUGHLY = re.compile(r"(?:about|around|approximately|approx\.?|roughly|nearly|almost|close to|~|≈)\s*$", re.IGNORECASE)


class Number(NamedTuple):
    """A number as it is written in a text."""

    value: float
    decimals: int
    """The number of digits after the decimal point; 0 for a number with an exponent."""
    percent: bool
    rough: bool
    """True after a word such as `about`."""
    start: int
    end: int

    @property
    def is_plain(self) -> bool:
        """True for a whole number without a percent sign, which may be a count."""
        return not self.percent and self.decimals == 0 and abs(self.value) < 1000

    @property
    def unit(self) -> float:
        """The size of the last digit that is written."""
        return 10.0**-self.decimals


def numbers(text: str) -> list[Number]:
    """Return the numbers of a text in order; parts of names, dates, versions and fractions such as `3/5` are none."""
    return [_number(text, match) for match in _NUMBER.finditer(text)]


def _number(text: str, match: re.Match[str]) -> Number:
    written = match[0].rstrip("% ").replace(",", "").replace("\u2212", "-")
    mantissa = re.split("[eE]", written)[0]
    decimals = len(mantissa.partition(".")[2]) if mantissa == written else 0
    rough = _ROUGHLY.search(text[max(0, match.start() - 20) : match.start()]) is not None
    return Number(float(written), decimals, match[0].endswith("%"), rough, match.start(), match.end())


def ranges(stated: Number) -> list[tuple[float, float]]:
    """Return the ranges of seen values that a stated number may be, rounded or cut off at its last digit.

    A percentage may be seen as a fraction, and a fraction as a percentage. A rough number may be off by one in its last digit.
    """
    value, unit = abs(stated.value), stated.unit
    # Half a unit for rounding, and a whole one above for digits that were cut off.
    low, high = (value - unit, value + unit) if stated.rough else (value - unit / 2, value + unit)
    slack = 1e-9 * max(1.0, value)
    found = [(low - slack, high + slack)]
    if stated.percent:
        found.append((found[0][0] / 100, found[0][1] / 100))
    elif stated.decimals and value <= 1:
        found.append((found[0][0] * 100, found[0][1] * 100))
    return found
