"""Lists in a terminal of any width: words whole, and what is copied on a line of its own, unbroken."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from mlagentbench.report.console import PIPED, Definitions, Item, Listing, command_console, unbroken

IDS = ("20261122-051254-vectorization-research-4fbd8572", "20261122-051254-house-price-full-history-0a1b2c3d")
VERDICT = "invalid submission (ended at the limit of steps)"


def drawn(what: Listing | Definitions, width: int) -> list[str]:
    file = io.StringIO()
    Console(file=file, width=width).print(what, crop=False)
    return [line.rstrip() for line in file.getvalue().splitlines()]


def listing() -> Listing:
    return Listing("run", ("verdict", "score>"), [Item(IDS[0], (VERDICT, "1.02 ms")), Item(IDS[1], ("success", ""))])


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_a_key_and_every_word_are_whole_at_any_width(width: int) -> None:
    lines = drawn(listing(), width)
    for each in IDS:
        assert sum(each in line for line in lines) == 1
    assert all(len(line) <= max(width, *map(len, IDS)) for line in lines)
    words = " ".join(lines).replace(",", "").split()
    assert {*VERDICT.split(), "1.02", "ms", "success"} <= set(words)


def test_it_is_a_table_where_all_of_it_fits_and_else_each_key_has_a_line_of_its_own() -> None:
    wide, narrow = drawn(listing(), 120), drawn(listing(), 80)
    assert wide[0].split() == ["run", "verdict", "score"] and wide[1].endswith("1.02 ms")
    assert narrow == [IDS[0], f"    verdict {VERDICT}, score 1.02 ms", IDS[1], "    verdict success"]


def test_a_description_stands_beside_its_term_or_below_it() -> None:
    rows = [("rounds=1", "How often the script is written anew, all together."), ("seed=0", "Of chance.")]
    assert drawn(Definitions(rows), 80)[1] == "seed=0    Of chance."
    assert drawn(Definitions(rows), 40)[-2:] == ["seed=0", "    Of chance."]


def test_what_is_copied_is_one_line_however_narrow() -> None:
    file = io.StringIO()
    unbroken(Console(file=file, width=20), ("log", "/a/path with [bold]words/" + "x" * 90), ("page", "y"))
    assert file.getvalue().splitlines() == ["log   /a/path with [bold]words/" + "x" * 90, "page  y"]


def test_a_pipe_gets_whole_lines_unless_a_width_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert command_console().width == PIPED
    monkeypatch.setenv("COLUMNS", "70")
    assert command_console().width == 70
