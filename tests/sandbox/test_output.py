"""Output is safe to show and bounded, however it comes."""

from __future__ import annotations

import pytest

from mlagentbench.sandbox.output import STREAM_BURST, Transcript, decode, visible


def test_controls_are_spelt_out() -> None:
    assert visible("a\x1b[31mred\x07\x00\x7f\x9b\tb\n") == "a\\x1b[31mred\\x07\\x00\\x7f\\x9b\tb\n"
    assert visible("user\u202egnp.exe") == "user\\u202egnp.exe"
    assert visible("naïve 日本 🎉") == "naïve 日本 🎉"


def test_bytes_that_are_no_text_are_replaced() -> None:
    assert decode(b"ok \xff\xfe caf\xc3\xa9 \xc3") == "ok \ufffd\ufffd café \ufffd"


def test_a_progress_bar_becomes_lines_and_cannot_overwrite() -> None:
    assert decode(b" 10%\r 20%\r\ndone\n") == " 10%\n 20%\ndone\n"


@pytest.mark.parametrize("size", [1, 2, 3, 5, 1000])
def test_the_pieces_in_which_output_comes_do_not_matter(size: int) -> None:
    data = "été 日本 🎉\r\nnext\rline\x1b[0m\n".encode() * 5
    transcript = Transcript(1 << 20)

    shown = "".join(transcript.feed(data[start : start + size]) for start in range(0, len(data), size)) + transcript.finish()

    assert shown == transcript.text() == "été 日本 🎉\nnext\nline\\x1b[0m\n" * 5
    assert transcript.total == len(data)


def test_head_and_tail_are_kept_with_the_missing_counted() -> None:
    transcript = Transcript(20)
    for number in range(100):
        transcript.feed(b"%04d\n" % number)

    assert transcript.text() == "0000\n0001\n\n[… 480 bytes left out …]\n0098\n0099\n"


@pytest.mark.parametrize("shift", range(4))
def test_no_character_is_cut_in_two(shift: int) -> None:
    transcript = Transcript(26)
    transcript.feed(b"x" * shift + "日🎉é".encode() * 20)

    assert "\ufffd" not in transcript.text()
    assert "left out" in transcript.text()


def test_output_that_just_fits_is_whole() -> None:
    transcript = Transcript(10)
    transcript.feed(b"12345")
    transcript.feed(b"67890")
    assert transcript.text() == "1234567890"

    transcript.feed(b"!")
    assert transcript.text() == "12345\n[… 1 bytes left out …]\n7890!"


def test_a_flood_is_thinned_for_who_watches() -> None:
    transcript = Transcript(1 << 10)
    shown = sum(len(transcript.feed(b"x" * (1 << 16))) for _ in range(1600))  # 100 MB

    assert shown < 2 * STREAM_BURST
    assert "bytes left out" in transcript.finish()
