"""Damage to the bytes of a file of any kind."""

from __future__ import annotations

import gzip
import io
import re
import zipfile
import zlib
from collections.abc import Callable
from random import Random

Damage = Callable[[Random, bytes], bytes]

NUMBERS = (
    *("NaN", "nan", "inf", "-Infinity", "-0", "1e400", "1e308", "-1e308", "1e-400", "0x10", "1_000", "1,5", "١٢", "1 2", "+7", "1.", ".5"),
    *(
        "",
        " ",
        "\t",
        "None",
        "null",
        "True",
        "9" * 400,
        str(2**63),
        str(-(2**63) - 1),
        "1e",
        "--1",
        "\u00a01",
        "1\u200b",
        "=1+1",
        '"',
        "'1'",
    ),
)
PIECES = (
    *(
        b'"',
        b'""',
        b'"\n"',
        b",",
        b";",
        b"\n",
        b"\r\n",
        b"\r",
        b"\0",
        b"\xff",
        b"\xc3",
        b"\xed\xa0\x80",
        b"\xef\xbb\xbf",
        b"\xfe\xff",
        b" ",
    ),
    *(b"\\", b"#", b"{", b"}", b"[", b"]", b"(", b"@", b"\x1b[2J", b"\xe2\x80\xa8", b"\\u0000", b"1e999", b"NaN", b"\t", b"'", b"=", b"%s"),
)
MOST = 4 << 20
"""Bytes beyond which damaged files do not grow, but for a few."""


def truncated(rng: Random, data: bytes) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def flipped(rng: Random, data: bytes) -> bytes:
    found = bytearray(data)
    for _ in range(rng.choice((1, 1, 8, 64)) if found else 0):
        found[rng.randrange(len(found))] ^= 1 << rng.randrange(8)
    return bytes(found)


def _cut(rng: Random, data: bytes) -> bytes:
    start = rng.randrange(len(data) + 1)
    return data[:start] + data[start + rng.choice((1, 10, 1000)) :]


def _repeated(rng: Random, data: bytes) -> bytes:
    start = rng.randrange(len(data) + 1)
    piece = data[start : start + rng.choice((1, 30, 1000))]
    return inserted_at(data, start, piece * rng.choice((1, 2, 100, min(10_000, MOST // (len(piece) + 1)))))


def _inserted(rng: Random, data: bytes) -> bytes:
    piece = rng.choice((*PIECES, rng.randbytes(rng.choice((1, 8, 100)))))
    return inserted_at(data, rng.randrange(len(data) + 1), piece * rng.choice((1, 1, 3, 1000, MOST // 10 // len(piece))))


def inserted_at(data: bytes, place: int, piece: bytes) -> bytes:
    return data[:place] + piece + data[place:]


def _encoded(rng: Random, data: bytes) -> bytes:
    encoding = rng.choice(("utf-16", "utf-16-be", "utf-32", "utf-8-sig", "utf-7", "cp1252", "cp037"))
    return data.decode("latin-1").encode(encoding, "replace")


def _other_lines(rng: Random, data: bytes) -> bytes:
    return data.replace(b"\n", rng.choice((b"\r", b"\r\n", b"\n\n", b"\n\r", b"", b"\0", b"\x0b", b"\xe2\x80\xa8")))


def _packed(rng: Random, data: bytes) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        archive.writestr(zipfile.ZipInfo("inside"), data)
    return rng.choice(
        (gzip.compress(data, 1, mtime=0), zlib.compress(data), sink.getvalue(), gzip.compress(gzip.compress(data, 1, mtime=0), 1, mtime=0))
    )


def _replaced(rng: Random, data: bytes) -> bytes:
    return rng.choice(
        (b"", b"\n", b"\xef\xbb\xbf", rng.randbytes(len(data)), bytes(len(data)), data[::-1], data * 2, data.upper(), data.swapcase())
    )


def _numbers(rng: Random, data: bytes) -> bytes:
    number, share = rng.choice(NUMBERS).encode(), rng.choice((0.001, 0.1, 1.0))
    return re.sub(rb"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?", lambda found: number if rng.random() < share else found[0], data[:MOST])


def _spaced(rng: Random, data: bytes) -> bytes:
    piece = rng.choice((b" ", b"\t", b"\n", b"\xc2\xa0", b"{", b"[", b"@", b"\\cite{", b'"'))
    return inserted_at(data, rng.randrange(len(data) + 1), piece * (400_000 // len(piece)))


BYTES: tuple[Damage, ...] = (
    *(truncated, flipped, _cut, _repeated, _inserted, _inserted, _encoded, _other_lines, _packed, _replaced, _numbers, _spaced),
)
