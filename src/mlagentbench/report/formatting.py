"""Format numbers and texts for people, in the terminal and on the page.

Every function is pure, and returns plain text: no markup, and an ordinary space between a number and its unit, so that readers can search
for what they see. Words for how a run went are in `wording.py`.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

MINUS = "\N{MINUS SIGN}"
NONE = "\N{EN DASH}"
"""Stands in the place of a missing value."""
SECOND_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def number(value: float, digits: int = 3) -> str:
    """Format a number to so many significant digits: `0.634`, `1.10`, `12,345`, `3.10e-10`."""
    if math.isnan(value):
        return "not a number"
    if math.isinf(value):
        return "infinity" if value > 0 else MINUS + "infinity"
    if value == 0:
        return "0"
    if not 1e-4 <= abs(value) < 1e9:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        shown = f"{mantissa}e{int(exponent)}"
    elif abs(value) >= 10 ** (digits - 1):
        shown = f"{value:,.0f}"
    else:
        shown = f"{value:#.{digits}g}".rstrip(".")
    return shown.replace("-", MINUS, 1) if value < 0 else shown


def quantity(value: float, unit: str, digits: int = 3) -> str:
    """Format a value with its unit.

    Seconds below one become milliseconds and so on: `3.10 ms` for 0.0031 `s`, `31.0 ms/token` for 0.031 `s/token`.
    """
    if unit == "s" or unit.startswith("s/"):
        for size, name in SECOND_UNITS:
            # A value that would be rounded up to 1,000 of the smaller unit is shown as 1 of the larger.
            if abs(value) >= size * (1 - 0.5 * 10**-digits):
                return f"{number(value / size, digits)} {name}{unit[1:]}"
    return f"{number(value, digits)} {unit}".strip()


def estimate(value: float, error: float | None, unit: str) -> str:
    """Format a value with its standard error and unit: `0.613 ± 0.012`, `28,345 ± 1,203 USD`; without one where it is not known."""
    if error is None:
        return quantity(value, unit)
    return f"{quantity(value, unit).removesuffix(f' {unit}')} ± {quantity(error, unit, 2)}"


def duration(seconds: float) -> str:
    """Format a duration in seconds: `420 ms`, `3.1 s`, `42 s`, `1 min 23 s`, `2 h 05 min`, `3 d 4 h`."""
    if not math.isfinite(seconds) or seconds < 0:
        return "unknown"
    if seconds == 0:
        return "0 s"
    if seconds < 0.9995:
        return quantity(seconds, "s", 2 if seconds < 0.0995 else 3)
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    minutes = round(seconds / 60)
    if minutes < 24 * 60:
        return f"{minutes // 60} h {minutes % 60:02d} min"
    hours = round(seconds / 3600)
    return f"{hours // 24} d {hours % 24} h"


def percent(share: float) -> str:
    """Format a relative change with its sign: `+63.4 %` for 0.634, `+36,300 %` for 363."""
    if not math.isfinite(share):
        return number(share)
    value = abs(share) * 100
    if value < 0.005:
        return "0 %"
    shown = f"{value:,.0f}" if value >= 99.95 else f"{value:.1f}" if value >= 0.95 else f"{value:.2f}"
    return f"{'+' if share > 0 else MINUS}{shown} %"


def percentage(share: float, digits: int = 1) -> str:
    """Format a share in percent, without the sign and without decimals that are 0: `62.5`, `50`; no decimals from 1,000 on."""
    value = 100 * share
    shown = f"{value:,.{digits if abs(value) < 1000 else 0}f}".removesuffix(".0").replace("-", MINUS)
    return "0" if shown == f"{MINUS}0" else shown


def interval_bounds(low: float, high: float) -> tuple[str, str] | None:
    """Format the bounds of an interval of shares in percent: whole, or with one decimal if it is narrow; None if they read the same."""
    first, last = (percentage(bound, 0 if high - low >= 0.05 else 1) for bound in (low, high))
    return (first, last) if first != last else None


def interval_text(low: float, high: float) -> str:
    """Format the bounds of an interval of shares in percent: `31 to 86`, and `1.2 to 1.4` for narrow ones; empty if they then are equal."""
    return " to ".join(interval_bounds(low, high) or ())


def difference_text(difference: tuple[float, float, float]) -> str:
    """Format a difference of two rates and its interval in percentage points: `+12.5, 3 to 22`.

    Args:
        difference: the value and its bounds, as fractions.
    """
    value, low, high = difference
    bounds = interval_text(low, high)
    return f"{'+' if value > 0 else ''}{percentage(value)}{', ' * bool(bounds)}{bounds}"


def p_text(p: float) -> str:
    """Format a p-value: `p < 0.001`, `p = 0.012`."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def tokens(count: int | None) -> str:
    """Format a count of tokens with commas between thousands: `12,345`; `unknown` for None."""
    return "unknown" if count is None else f"{count:,}"


def size(count: int) -> str:
    """Format a size in bytes: `812 B`, `12.3 kB`, `4.0 MB`."""
    amount = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 999.5 or unit == "GB":
            break
        amount /= 1000
    return f"{amount:.0f} B" if unit == "B" else f"{amount:.1f} {unit}"


def cost(dollars: float | None, tokens: float | None) -> str:
    """Format US dollars: `$0.012`, `$12.30`; `unknown` for None, and a dash without tokens, since then nothing was paid for."""
    if tokens == 0:
        return NONE
    if dollars is None:
        return "unknown"
    return f"${dollars:,.2f}" if dollars >= 0.0995 or dollars == 0 else f"${dollars:.2g}"


def plural(count: int, noun: str) -> str:
    """Format a count with its noun: `1 step`, `12,345 steps`, `2 replies`."""
    many = re.sub(r"([^aeiou])y$", r"\1ie", re.sub(r"(s|x|ch|sh)$", r"\1e", noun)) + "s"
    return f"{count:,} {noun if count == 1 else many}"


class CutText(NamedTuple):
    """A text with its middle left out."""

    head: str
    tail: str
    left_out: int
    """How many characters are left out between head and tail; 0 for a whole text, which is all in `head`."""


def cut(text: str, limit: int) -> CutText:
    """Keep at most about `limit` characters: two thirds from the start, the rest from the end, where errors are."""
    # A cut that saves fewer characters than the note about it is useless.
    if len(text) <= limit + 80:
        return CutText(text, "", 0)
    head = text[: limit * 2 // 3]
    tail = text[len(text) - (limit - len(head)) :] if limit > len(head) else ""
    newline = head.rfind("\n")
    if newline > len(head) // 2:
        head = head[: newline + 1]
    newline = tail.find("\n")
    if 0 <= newline < len(tail) // 2:
        tail = tail[newline + 1 :]
    return CutText(head, tail, len(text) - len(head) - len(tail))


def _visible(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\N{SYMBOL FOR DELETE}"
    if 0xD800 <= code <= 0xDFFF:
        return "\N{REPLACEMENT CHARACTER}"
    return f"<U+{code:04X}>"


# C0 and C1 controls except tab and newline, surrogates, and the marks that change the direction of text, which can make code look like
# other code (CVE-2021-42574).
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ufffe\uffff\ud800-\udfff]")


def visible(text: str) -> str:
    """Make invisible characters in an agent's text visible: terminal escapes (`␛[31m`), other controls, marks that change text direction.

    A carriage return before a newline is removed; any other, as progress bars use it to overwrite a line, becomes a newline.
    """
    return _UNSEEN.sub(_visible, text.replace("\r\n", "\n").replace("\r", "\n"))
