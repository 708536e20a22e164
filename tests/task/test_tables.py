"""Tables of agents: one reading of them, however it is done."""

from __future__ import annotations

import random
import zlib

import numpy as np
import polars as pl
import pytest

from mlagentbench.errors import InvalidSubmission
from mlagentbench.task.tables import MAX_BYTES, Number, OneOf, Text, align, align_rows

SPELLINGS = ["1", "1.", ".5", "+1", "-1", "1e3", "1E-3", "00012", " 1", "1 ", "\t1", '"1"', '" 1 "', "1e-400", "1e308", "9" * 300]
NO_NUMBERS = ["", "-", "1e", "e1", "0x10", "1_000", "1f", "True", "- 1", "1..2", "nan", "NaN", "inf", "-Infinity", "1e400", "9" * 400, "٣"]


def read(*cells: str) -> list[float]:
    """A column of numbers, read as `align` does."""
    data = "id,value\n" + "".join(f"{number},{cell}\n" for number, cell in enumerate(cells))
    found = align(data.encode(), "s.csv", ids=range(len(cells)), id_column="id", columns={"value": Number()})["value"]
    assert found.dtype == np.float64
    return list(map(float, found))


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_number_is_worth_the_same_in_a_sound_table_and_in_one_that_is_read_as_text(spelling: str) -> None:
    value = float(spelling.strip('"'))
    assert read("2", spelling) == [2.0, value]
    assert read("2 ", spelling) == [2.0, value], "a space behind a number makes the whole table be read as text"


@pytest.mark.parametrize("spelling", NO_NUMBERS)
def test_what_is_no_finite_number_is_refused_as_it_is_written(spelling: str) -> None:
    for other in ("2", "2 "):
        with pytest.raises(InvalidSubmission) as caught:
            read(other, spelling)
        assert f"value is {spelling[:40]!r} in the row of 1" in str(caught.value) and "finite number" in str(caught.value)


def test_ids_are_compared_as_text_whatever_type_the_answers_have() -> None:
    data = b"id,value\n 2 ,20\n1,10\n"
    for ids in (pl.Series([1, 2]), pl.Series(["1", "2"]), [1, 2], ["1", "2"], np.array([1, 2])):
        assert align(data, "s.csv", ids=ids, id_column="id", columns={"value": Number()})["value"].tolist() == [10.0, 20.0]
    with pytest.raises(InvalidSubmission, match="no id '1', but has '01'"):
        align(b"id,value\n01,1\n2,2\n", "s.csv", ids=[1, 2], id_column="id", columns={"value": Number()})


@pytest.mark.parametrize("end", [b"", b"\n", b"\n\n", b"\r\n\r\n\r\n"])
def test_blank_lines_at_the_end_are_no_rows(end: bytes) -> None:
    found = align(b"id,value\n2,20\n1,10" + end, "s.csv", ids=[1, 2], id_column="id", columns={"value": Number()})
    assert found["value"].tolist() == [10.0, 20.0]
    assert align_rows(b"value\n20\n10" + end, "s.csv", count=2, columns={"value": Number()})["value"].tolist() == [20.0, 10.0]


@pytest.mark.parametrize("data", [b"id,v\r1,2\r2,4\r", b"id,v\r\n1,2\r\n2,4\r\n\r\n", b"id,v\n1,2\n2,4\n\n"])
def test_lines_may_end_in_any_way_and_blank_ones_stand_at_the_end(data: bytes) -> None:
    assert align(data, "s.csv", ids=[2, 1], id_column="id", columns={"v": Number()})["v"].tolist() == [4, 2]


@pytest.mark.parametrize("data", [b"id,v\n1,2\n\n2,4\n", b"id,v\n1,2\n2,4\n  \n", b"id,v\n1,2\n2,4\n,\n"])
def test_a_blank_line_elsewhere_is_named(data: bytes) -> None:
    with pytest.raises(InvalidSubmission, match=r"s.csv has no id in row [23]; if that is a blank line, remove it"):
        align(data, "s.csv", ids=[2, 1], id_column="id", columns={"v": Number()})


def test_a_number_out_of_its_range_is_refused_with_the_range() -> None:
    with pytest.raises(InvalidSubmission, match=r"value is '1.50' in the row of 7; write a number from 0 to 1"):
        align(b"id,value\n7,1.50\n", "s.csv", ids=[7], id_column="id", columns={"value": Number(0, 1)})


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"id,v\n1,2,3\n2,4\n", "line 2 has 3 fields, more than the 2 of the first; put quotes around a text that holds ','"),
        (b'id,v\n1,"2\n2,4\n', "the quotes from line 3 on do not come in pairs"),
        (b'id,v\n1,2"\n2,4\n', "a quotation mark stands inside a field"),
        (b"id,v\n1,\xff\n2,4\n", "byte 7 is no UTF-8"),
        (b"id,v" + b"," * 30, "a first line of 34 bytes; write one line for each of 2 rows, of the columns id,v"),
        (b"\xef\xbb\xbf", "s.csv is empty"),
        (b"\xef\xbb\xbf \r\n", "s.csv is empty"),
        (b"\xef\xbb\xbf\n\n,", "s.csv"),
        (b"\n\n1,2,3", "s.csv"),
        (b"id,v, v\n1,2,3\n", "has the column 'v' more than once; its header must be: id,v"),
        (b"id,v,v\n1,2,3\n", "a column too many, 'v_duplicated_0'"),
        (b'id,v\n,"', "the quotes from line 2 on do not come in pairs"),  # over which polars panics
        (b"id,v\n" + b"\n" * 2000, "has 2,001 lines; write one line for each of 2 rows"),
        (b"id,v\n" + b"1" * 2**21, "has 2.0 MB, more than 1.0 MB"),
    ],
)
def test_an_ill_formed_table_is_told_what_to_mend(data: bytes, reason: str) -> None:
    with pytest.raises(InvalidSubmission) as caught:
        align(data, "s.csv", ids=["1", "2"], id_column="id", columns={"v": Number()})
    assert reason in str(caught.value)


@pytest.mark.parametrize("level", [1, 3, 6, 9])
def test_a_compressed_table_is_refused_and_never_unpacked(level: int) -> None:
    """Polars would unpack it, past every bound of size, where no zero byte gives it away."""
    packed = (zlib.compress(f"id,v\n1,0.{random.Random(seed).getrandbits(2000)}\n2,4\n".encode(), level) for seed in range(300))
    data = next(each for each in packed if b"\0" not in each)
    for magic in (data, b"\x1f\x8b\x08" + data, b"\x28\xb5\x2f\xfd" + data):
        with pytest.raises(InvalidSubmission, match="is compressed; write it as plain text in UTF-8"):
            align(magic, "s.csv", ids=["1", "2"], id_column="id", columns={"v": Number()})


def test_texts_have_room_and_tables_without_ids_the_same_bounds() -> None:
    long = "7 " * 2**20
    found = align(f"id,v,w\n1,{long},x\n".encode(), "s.csv", ids=[1], id_column="id", columns={"v": Text(), "w": OneOf(("x",))})
    assert found["v"].tolist() == [long] and found["w"].tolist() == ["x"]
    assert align_rows(b"v\n1\n2\n", "s.csv", count=2, columns={"v": Number()})["v"].tolist() == [1.0, 2.0]
    with pytest.raises(InvalidSubmission, match="3 rows; write exactly 2"):
        align_rows(b"v\n1\n2\n3\n", "s.csv", count=2, columns={"v": Number()})
    with pytest.raises(InvalidSubmission, match=r"64\.0 MB"):
        align_rows(b"v\n" + b"1" * MAX_BYTES, "s.csv", count=1, columns={"v": Text()})


PIECES = (b'"', b'""', b",", b"\n", b"\r\n", b"\r", b"\0", b"\xff", b"\xef\xbb\xbf", b"nan", b"1e400", b" ", b"\\", b'"\n"', b"\xc3", b"#")


def test_whatever_becomes_of_a_table_it_is_read_or_refused_on_a_line() -> None:
    good = b"id,a,b\n" + b"".join(b"%d,%d.5,%s\n" % (number, number, b"xy"[number % 2 :][:1]) for number in range(50))
    rng, refused = random.Random(0), 0
    for _ in range(1500):
        data = bytearray(good)
        for _ in range(rng.choice((1, 1, 3, 40))):
            place = rng.randrange(len(data) + 1)
            match rng.randrange(4):
                case 0:
                    data[place:place] = rng.choice(PIECES) * rng.choice((1, 1, 3, 1000))
                case 1:
                    del data[place : place + rng.randrange(20)]
                case 2:
                    data[place : place + 1] = bytes([rng.randrange(256)])
                case _:
                    del data[:place:2]
        try:
            found = align(bytes(data), "s.csv", ids=range(50), id_column="id", columns={"a": Number(0, 100), "b": OneOf(("x", "y"))})
        except InvalidSubmission as reason:
            refused += 1
            assert str(reason).startswith("s.csv")
        else:
            assert np.isfinite(found["a"]).all() and len(found["a"]) == len(found["b"]) == 50
    assert 1000 < refused < 1500
