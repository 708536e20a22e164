"""Damage to files of one kind: tables, JSON, arrays and archives of them, and code."""

from __future__ import annotations

import csv
import io
import json
import re
import struct
import zipfile
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from tests.fuzz.damage_bytes import MOST, NUMBERS, Damage, flipped, inserted_at, truncated

CODE = (
    *(
        "raise SystemExit(0)",
        "raise KeyboardInterrupt",
        "import os; os._exit(0)",
        "import os; os.kill(os.getpid(), 9)",
        "1 / 0",
        "import no",
    ),
    *(
        "def f(): f()\nf()",
        "raise type('Odd', (BaseException,), {})('\\ud800' * 9)",
        "import os; os.closerange(0, 99)",
        "bytearray(1 << 45)",
    ),
    *(
        "import sys; sys.stdout.write('MLAB' * 10_000)",
        "import os; os.write(1, bytes(100_000))",
        "import sys; sys.stderr.write('x' * 10**7)",
    ),
    *(
        "import os\nfor fd in range(3, 20):\n    try: os.write(fd, b'MLAB' + bytes(100))\n    except OSError: pass",
        "x = 1\0",
        "\tx = 1\n x",
    ),
    *("import builtins; builtins.open = None", "import numpy; numpy.asarray = lambda *a, **k: 'no'", "raise ValueError('x' * 10**6)"),
    *(
        "class Model:\n    def __init__(self): raise ValueError",
        "def __getattr__(name): raise LookupError(name)",
        "import sys; sys.modules.clear()",
    ),
)


# Tables.


def _table(change: Callable[[Random, list[list[str]]], None]) -> Damage:
    def damage(rng: Random, data: bytes) -> bytes:
        try:
            rows = list(csv.reader(io.StringIO(data.decode()[:MOST])))
        except (csv.Error, UnicodeDecodeError):
            return data
        if len(rows) < 2 or not rows[0]:
            return data
        change(rng, rows)
        sink = io.StringIO()
        quoting = rng.choice((csv.QUOTE_MINIMAL, csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC))
        csv.writer(sink, quoting=quoting, lineterminator="\n", delimiter=rng.choice(",,,,;\t|")).writerows(rows)
        return sink.getvalue().encode("utf-8", "surrogatepass")

    return damage


def _header(rng: Random, rows: list[list[str]]) -> None:
    head, place = rows[0], rng.randrange(len(rows[0]))
    other = rng.choice(head)
    names = (
        other,
        f" {other}",
        f"{other} ",
        f"\u00a0{other}",
        other.lower(),
        f'"{other}"',
        "",
        " ",
        "\ufeff" + other,
        "id",
        "x" * 70_000,
        "0",
    )
    if rng.random() < 0.5:
        head[place] = rng.choice(names)
    else:
        head.insert(place, rng.choice(names))
        for row in rows[1:] if rng.random() < 0.7 else ():
            row.insert(min(place, len(row)), rng.choice(NUMBERS))


def _cells(rng: Random, rows: list[list[str]]) -> None:
    column, share = rng.randrange(len(rows[0])), rng.choice((0, 0.01, 1))
    word = rng.choice((*NUMBERS, "x" * 200_000, "\ud800", "\0", "a,b", "a\nb", "1 " * 50_000, "7 -3", "5 5 5"))
    chosen = rng.randrange(1, len(rows))
    for number, row in enumerate(rows):
        if number and column < len(row) and (number == chosen or rng.random() < share):
            row[column] = word


def _rows(rng: Random, rows: list[list[str]]) -> None:
    match rng.randrange(8):
        case 0:
            del rows[rng.randrange(len(rows))]
        case 1:
            rows.append(list(rng.choice(rows)))
        case 2:
            rows[1:] = rng.sample(rows[1:], len(rows) - 1)
        case 3:
            rng.choice(rows).append(rng.choice(NUMBERS))
        case 4:
            rng.choice(rows).clear()
        case 5:
            rows[:] = [list(column) for column in zip(*rows, strict=False)]
        case 6:
            rows[rng.randrange(len(rows)) :] = []
        case _:
            rows.extend([list(row) for row in rows] * rng.choice((1, 12)))


def _columns(rng: Random, rows: list[list[str]]) -> None:
    chosen = rng.sample(range(len(rows[0])), len(rows[0]))[: rng.choice((None, -1, 1))]
    extra = rng.choice((0, 0, 1, 25, 3000))
    rows[:] = [[row[place] if place < len(row) else "" for place in chosen] + ["1"] * extra for row in rows[:2000]]


# JSON.


def _json(rng: Random, data: bytes) -> bytes:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return data
    odd: Any = rng.choice(
        (None, True, 7, -1, 1.5, "", "x" * 100_000, [], {}, [[]], {"": None}, "\ud800", float("nan"), float("inf"), 10**400)
    )
    holder, key = _place(rng, found)
    if holder is None:
        return json.dumps(odd).encode()
    match rng.randrange(4):
        case 0:
            holder[key] = odd
        case 1:
            del holder[key]
        case 2:
            text = json.dumps(found)
            depth = rng.choice((10, 500, 1000, 100_000))
            return (rng.choice(("[", '{"a":')) * depth + text + rng.choice(("", "]" * depth))).encode()
        case _:
            text = json.dumps(found, indent=rng.choice((None, 1)), ensure_ascii=rng.random() < 0.5)
            raw = rng.choice(
                ("NaN", "-Infinity", "1" * 5000, "1e99999", '"\\ud800"', '"\\u0000"', "[" * 900 + "]" * 900, "'x'", "undefined", "")
            )
            return re.sub(r'"[^"\n]*"', lambda whole: raw if rng.random() < 0.2 else whole[0], text[:MOST]).encode("utf-8", "surrogatepass")
    return json.dumps(found).encode()


def _place(rng: Random, found: Any) -> tuple[Any, Any]:
    """A container within a document and one of its keys, at any depth."""
    place: tuple[Any, Any] = (None, None)
    while isinstance(found, dict | list) and found:
        key = rng.choice(sorted(found)) if isinstance(found, dict) else rng.randrange(len(found))
        place, found = (found, key), found[key]
        if rng.random() < 0.4:
            break
    return place


def _keys_twice(rng: Random, data: bytes) -> bytes:
    place = data.find(b"{")
    return (
        data
        if place < 0
        else inserted_at(data, place + 1, rng.choice((b'"a":1,"a":2,', b'"":0,', b'"model_type":"gpt2","model_type":[],')))
    )


# Arrays and archives of them.

DTYPES = ("|O", "<M8[s]", "<c16", "<f2", ">f8", "<i8", "|b1", "<U10", "|V8", "<f16", "nonsense", "<f4, <f8", "|S0", "<f8\\x00", "f8" * 200)
SHAPES = (
    "()",
    "(0,)",
    "(-1,)",
    "(1 2,)",
    "(,)",
    "(10000000000, 10000000000)",
    "(1,) * 9",
    "(" + "1, " * 60 + ")",
    "(007,)",
    "(1.5,)",
    "None",
    "[2]",
)


def _array_header(rng: Random, data: bytes) -> bytes:
    if data[:6] != b"\x93NUMPY" or len(data) < 12:
        return data
    end = data.find(b"\n") + 1
    header = data[10:end].decode("latin-1")
    match rng.randrange(5):
        case 0:
            header = re.sub(r"'descr': '[^']*'", lambda _: f"'descr': '{rng.choice(DTYPES)}'", header)
        case 1:
            header = re.sub(r"\([^)]*\)", lambda _: rng.choice(SHAPES), header)
        case 2:
            header = header.replace("False", rng.choice(("True", "1", "None", "false")))
        case 3:
            header = rng.choice(("{}", "__import__('os').abort()", "[" * 200, "{'descr': '<f8'}", "")) + "\n"
        case _:
            length = rng.choice((0, 1, 65_535, len(header) + 1))
            return data[:6] + bytes(rng.choice(((1, 0), (2, 0), (3, 0), (9, 9)))) + struct.pack("<H", length) + data[10:]
    return data[:8] + struct.pack("<H", len(header) % 65_536) + header.encode("latin-1") + data[end:]


def _array_values(rng: Random, data: bytes) -> bytes:
    end = data.find(b"\n") + 1
    value = struct.pack("<d", rng.choice((float("nan"), float("inf"), -float("inf"), 1e308, -1e30, 2.0, 5e-324)))
    count = max(1, (len(data) - end) // 8)
    place = end + 8 * rng.randrange(count)
    return data[:end] + value * count if rng.random() < 0.3 else data[:place] + value + data[place + 8 :]


def _archive(rng: Random, data: bytes) -> bytes:
    """An archive with a member damaged, lost, twice, packed otherwise, a bomb, or said to be encrypted or elsewhere."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
    except Exception:  # it was damaged before
        return data
    sink, chosen = io.BytesIO(), rng.choice([*members, "x.npy"])
    kind, packing = rng.randrange(9), rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2))
    with zipfile.ZipFile(sink, "w", packing) as archive:

        def write(name: str, content: bytes, compression: int = packing) -> None:
            archive.writestr(zipfile.ZipInfo(name), content, compression)  # a time of its own would make each archive another one

        for name, content in members.items():
            if name != chosen:
                write(name, content)
            elif kind == 0:
                write(rng.choice(("../../x.npy", "/etc/x.npy", "", "x" * 60_000, name + "\u2028")), content)
            elif kind == 1:
                write(name, bytes(80 << 20), zipfile.ZIP_DEFLATED)
            elif kind == 2:
                write(name, data)
            elif kind != 3:
                write(name, rng.choice((_array_header, _array_values, truncated, flipped))(rng, content))
    found = bytearray(sink.getvalue())
    central = found.rfind(b"PK\x01\x02")
    if kind == 5 and central >= 0:
        found[central + 8] |= 1  # encrypted
    elif kind == 6 and central >= 0:
        found[central + 20 : central + 28] = struct.pack("<II", *rng.choices((0, 1, 2**31, 2**32 - 1), k=2))
    return flipped(rng, bytes(found)) if kind == 7 else bytes(found)


def _tensors(rng: Random, data: bytes) -> bytes:
    """Of safetensors: a length, a header, numbers."""
    length = int.from_bytes(data[:8], "little")
    if not 0 < length < len(data):
        return data
    header, values = data[8 : 8 + length], data[8 + length :]
    match rng.randrange(4):
        case 0:
            return rng.choice((0, 1, length + 1, 2**40, 2**63)).to_bytes(8, "little") + data[8:]
        case 1:
            header = _json(rng, header)
        case 2:
            header = re.sub(rb'"(F32|BF16)"', lambda _: rng.choice((b'"F64"', b'"I64"', b'"BOOL"', b'"F8_E4M3"', b'"X"')), header)
        case _:
            number = struct.pack("<f", rng.choice((float("nan"), float("inf"), 1e6, 3e38, -1e30, 0.0)))
            place = 4 * rng.randrange(max(1, len(values) // 4))
            values = number * (len(values) // 4) if rng.random() < 0.5 else values[:place] + number + values[place + 4 :]
    return len(header).to_bytes(8, "little") + header + values


def _code(rng: Random, data: bytes) -> bytes:
    line = rng.choice(CODE).encode("utf-8", "surrogatepass") + b"\n"
    if rng.random() < 0.5:
        return line + data
    # Into a function of its own, where it runs when it is called.
    places = [found.end() for found in re.finditer(rb"def [^\n]*:\n( +)", data)] or [0]
    place = rng.choice(places)
    indent = len(data[:place]) - len(data[:place].rstrip(b" "))
    return inserted_at(data, place, line.replace(b"\n", b"\n" + b" " * indent))


KINDS: Mapping[str, tuple[Damage, ...]] = {
    ".csv": tuple(map(_table, (_header, _cells, _rows, _columns))),
    ".json": (_json, _json, _keys_twice),
    ".npy": (_array_header, _array_values),
    ".npz": (_archive,),
    ".safetensors": (_tensors,),
    ".py": (_code,),
}
