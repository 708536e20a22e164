"""Numbers and texts as people read them, one line a case."""

from __future__ import annotations

import math

import pytest

from mlagentbench.report import formatting


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.634, "0.634"),
        (1.1, "1.10"),
        (100, "100"),
        (99.96, "100"),
        (0.99996, "1.00"),
        (12345.6, "12,346"),
        (123456789, "123,456,789"),
        (1e10, "1.00e10"),
        (3.1e-10, "3.10e-10"),
        (-0.5, f"{formatting.MINUS}0.500"),
        (0, "0"),
        (math.nan, "not a number"),
        (-math.inf, f"{formatting.MINUS}infinity"),
    ],
)
def test_number(value: float, shown: str) -> None:
    assert formatting.number(value) == shown


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (0.0031, "s", "3.10 ms"),
        (1.1, "s", "1.10 s"),
        (0.9996, "s", "1.00 s"),
        (0.00099996, "s", "1.00 ms"),
        (4.2e-5, "s", "42.0 µs"),
        (5e-9, "s", "5.00 ns"),
        (123.4, "s", "123 s"),
        (0.031, "s/token", "31.0 ms/token"),
        (0.634, "", "0.634"),
        (12.5, "%", "12.5 %"),
        (0.25, "m", "0.250 m"),
    ],
)
def test_quantity(value: float, unit: str, shown: str) -> None:
    assert formatting.quantity(value, unit) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0 s"),
        (0.0031, "3.1 ms"),
        (0.42, "420 ms"),
        (0.9999, "1.0 s"),
        (3.14, "3.1 s"),
        (9.97, "10 s"),
        (42.4, "42 s"),
        (59.6, "1 min 00 s"),
        (83, "1 min 23 s"),
        (3599.8, "1 h 00 min"),
        (7500, "2 h 05 min"),
        (100_000, "1 d 4 h"),
        (math.nan, "unknown"),
    ],
)
def test_duration(seconds: float, shown: str) -> None:
    assert formatting.duration(seconds) == shown


@pytest.mark.parametrize(
    ("share", "shown"),
    [
        (0.634, "+63.4 %"),
        (-0.12, f"{formatting.MINUS}12.0 %"),
        (363.0, "+36,300 %"),
        (0.0004, "+0.04 %"),
        (0.00001, "0 %"),
        (9.97, "+997 %"),
        (0.9997, "+100 %"),
    ],
)
def test_percent(share: float, shown: str) -> None:
    assert formatting.percent(share) == shown


@pytest.mark.parametrize(
    ("share", "shown"), [(0.625, "62.5"), (0.5, "50"), (0.0, "0"), (-0.0001, "0"), (-0.034, f"{formatting.MINUS}3.4"), (363.2, "36,320")]
)
def test_percentage(share: float, shown: str) -> None:
    assert formatting.percentage(share) == shown


def test_bounds_have_no_minus_before_nothing_and_equal_ones_are_not_shown() -> None:
    assert formatting.interval_text(-0.002, 0.2) == "0 to 20"
    assert formatting.interval_text(-0.002, 0.001) == "\N{MINUS SIGN}0.2 to 0.1", "narrow ones keep a decimal"
    assert formatting.interval_text(0.4001, 0.4002) == "", "what would read 40 to 40 is one number"
    assert formatting.interval_text(-0.31, 0.2) == f"{formatting.MINUS}31 to 20"
    assert formatting.interval_text(0.2, 0.2) == ""


def test_counts_money_and_sizes() -> None:
    assert formatting.tokens(12345) == "12,345"
    assert [formatting.cost(dollars, 100) for dollars in (None, 0.0123, 12.3, 0)] == ["unknown", "$0.012", "$12.30", "$0.00"]
    assert formatting.cost(None, 0) == formatting.NONE, "nobody was asked"
    assert [formatting.size(12), formatting.size(12_345), formatting.size(4_000_000)] == ["12 B", "12.3 kB", "4.0 MB"]
    assert [
        formatting.plural(1, "reply"),
        formatting.plural(2, "reply"),
        formatting.plural(3, "success"),
        formatting.plural(1000, "step"),
    ] == [*("1 reply", "2 replies", "3 successes", "1,000 steps")]


def test_a_short_text_is_not_cut() -> None:
    assert formatting.cut("short", 100) == ("short", "", 0)


def test_a_cut_keeps_the_start_and_the_end_and_says_how_much_is_missing() -> None:
    lines = "".join(f"line {number}\n" for number in range(1000))

    head, tail, left_out = formatting.cut(lines, 300)

    assert head.startswith("line 0\n") and head.endswith("\n")
    assert tail.startswith("line ") and tail.endswith("line 999\n")
    assert len(head) + left_out + len(tail) == len(lines)
    assert len(head) + len(tail) <= 300


def test_a_cut_finds_its_place_in_one_long_line_too() -> None:
    head, tail, left_out = formatting.cut("x" * 10_000, 300)

    assert len(head) + len(tail) == 300 and left_out == 9_700


def test_what_acts_unseen_becomes_visible() -> None:
    shown = formatting.visible(
        "\x1b[31mred\x1b[0m \x07 \ud800 if admin\u202e \u2066# not\u2069 \x9b2J tab\there\r\nprogress 1\rprogress 2\n"
    )

    assert shown == "␛[31mred␛[0m ␇ \ufffd if admin<U+202E> <U+2066># not<U+2069> <U+009B>2J tab\there\nprogress 1\nprogress 2\n"
