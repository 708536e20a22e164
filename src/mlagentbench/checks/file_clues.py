"""Read what files tell beside their content: times, sizes, folders, order, attributes, comments, and what pictures carry unseen."""

from __future__ import annotations

import contextlib
import io
import os
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from PIL import ExifTags, Image

from mlagentbench.checks.dependence import FEW_ROWS
from mlagentbench.checks.parts import Clue, parts_of_text
from mlagentbench.checks.public_files import MAX_BYTES, PublicTable
from mlagentbench.checks.public_tables import Answers, joined

Array = NDArray[Any]
Facts = dict[str, int | str]
"""What one file tells, by name: a number, or a text."""

PICTURES = frozenset({".png", ".jpg", ".jpeg", ".gif", ".bmp", ".tif", ".tiff", ".webp", ".ppm", ".pgm"})
MOST_PICTURES = 5000
"""Pictures after which no more are opened."""
THUMBNAIL = 16
"""Pixels along each side of the grey picture by which pictures are compared."""
ENDS: Mapping[str, tuple[bytes, int]] = {".png": (b"IEND", 4), ".jpg": (b"\xff\xd9", 0), ".jpeg": (b"\xff\xd9", 0)}
"""The bytes with which a picture's format ends, and how many follow them."""
ORDERS = frozenset({"the time of change", "the order in which they were made", "the order of members", "the time of change of members"})
TEXT = 4096
"""The most characters of a text that are kept."""
ZIP, TAR = (".zip",), (".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz")


class Thumbnail(NamedTuple):
    """A picture, small."""

    name: str
    row: int | None
    """The number of the answer to which it belongs; None for another picture, as of the training data."""
    thumbnail: Array
    """Grey values of shape (`THUMBNAIL` squared,)."""


class FileClues(NamedTuple):
    """What files tell that belong to one answer each."""

    orders: list[Clue]
    """Orders and times, which should give away nothing."""
    others: list[Clue]
    pictures: list[Thumbnail]


def read_files(public: Path, answers: Answers, tables: list[PublicTable]) -> FileClues:
    """Read what all public files and all members of archives tell.

    Args:
        public: the public folder.
        answers: the answers, by whose ids files are named.
        tables: the public tables, which may name the file of each row.
    """
    paths = [path for path in sorted(public.rglob("*")) if path.is_file()]
    rows = _Rows(answers, tables, paths)
    groups: dict[str, dict[int, Facts]] = {}
    pictures: list[Thumbnail] = []
    for path in paths:
        name = path.relative_to(public).as_posix()
        where = name.split("/")[0] if "/" in name else "public files"
        row = rows.of(name)
        facts = _file(path) | rows.folder(name)
        if path.suffix.lower() in PICTURES:
            facts |= _picture(name, row, path.read_bytes(), pictures)
        if row is not None:
            groups.setdefault(where, {}).setdefault(row, facts)
        for number, member in enumerate(_members(path)):
            row = rows.of(member.name)
            facts = {f"{what} of members": value for what, value in member.facts.items()} | {"the order of members": number}
            facts |= rows.folder(member.name)
            if Path(member.name).suffix.lower() in PICTURES:
                facts |= _picture(f"{name}/{member.name}", row, member.data(), pictures)
            if row is not None:
                groups.setdefault(name, {}).setdefault(row, facts)
    clues = [clue for where, found in groups.items() if len(found) >= FEW_ROWS for clue in _clues(where, found, answers.rows)]
    return FileClues([clue for clue in clues if clue.name in ORDERS], [clue for clue in clues if clue.name not in ORDERS], pictures)


class _Rows:
    """Finds the answer that a file belongs to: it is named by the answer's id, or by another value that only this row of a table has."""

    def __init__(self, answers: Answers, tables: list[PublicTable], paths: list[Path]) -> None:
        self._rows = {value: row for row, value in enumerate(answers.ids.to_list())} if answers.id_column is not None else {}
        known = {name for path in paths for name in (path.name, path.stem)}
        for table in tables:
            frame = joined(table, answers)
            for column in frame.get_columns() if frame is not None else ():
                values = column.str.strip_chars()
                if values.n_unique() == len(values) and sum(Path(value or "").name in known for value in values) >= FEW_ROWS:
                    self._rows |= {Path(value).name: row for row, value in enumerate(values) if value} | self._rows

    def of(self, name: str) -> int | None:
        """Return the number of the answer that a file belongs to; None for none."""
        path = Path(name)
        parts: Iterator[str] = iter((name, path.name, path.stem, path.name.partition(".")[0], *reversed(path.parts[:-1])))
        return next((self._rows[part] for part in parts if part in self._rows), None)

    def folder(self, name: str) -> Facts:
        """Return a file's folder. One that is named by an id only names the row, so it cannot give the answer away."""
        return {"the folder": "/".join(part for part in Path(name).parts[:-1] if part not in self._rows)}


def _file(path: Path) -> Facts:
    found = path.stat()
    facts: Facts = {
        "the time of change": found.st_mtime_ns,
        "the order in which they were made": found.st_ino,
        "the size": found.st_size,
        "the mode": stat.S_IMODE(found.st_mode),
    }
    with contextlib.suppress(OSError, AttributeError):  # some file systems and machines have no attributes
        facts |= {f"the attribute {name}": _text(os.getxattr(path, name)) for name in os.listxattr(path)}
    return facts


def _picture(name: str, row: int | None, data: bytes, pictures: list[Thumbnail]) -> Facts:
    """Return what a picture carries beside its pixels, and add it to `pictures`; nothing if it cannot be read."""
    end, after = ENDS.get(Path(name).suffix.lower(), (b"", 0))
    place = data.rfind(end) + len(end) + after if end else len(data)
    facts: Facts = {"what follows the end": _text(data[place:])}
    if len(pictures) >= MOST_PICTURES:
        return facts
    try:
        with Image.open(io.BytesIO(data)) as picture:
            picture.load()  # texts may stand after the pixels
            facts |= {"the width": picture.width, "the height": picture.height, "the colours": picture.mode}
            facts |= {f"the text {key!r}": _text(value) for key, value in picture.info.items() if key != "exif"}
            exif = picture.getexif()
            tags = [exif, *(exif.get_ifd(part) for part in ExifTags.IFD)]
            facts |= {f"the tag {ExifTags.TAGS.get(key, key)}": _text(value) for part in tags for key, value in part.items()}
            small = picture.convert("L").resize((THUMBNAIL, THUMBNAIL), Image.Resampling.BOX)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return facts
    pictures.append(Thumbnail(name, row, np.asarray(small, dtype=np.float64).reshape(-1)))
    return facts


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value[:TEXT].decode("latin-1").strip("\0")
    return str(value)[:TEXT]


def _clues(where: str, by_row: Mapping[int, Facts], rows: int) -> Iterator[Clue]:
    """Turn the facts about each row's file into columns with a value for each answer."""
    for what in sorted({name for facts in by_row.values() for name in facts}):
        values = {row: facts[what] for row, facts in by_row.items() if what in facts}
        numbers = {row: value for row, value in values.items() if isinstance(value, int)}
        if len(numbers) == len(values):
            first = min(numbers.values())
            column = np.full(rows, np.nan)
            for row, value in numbers.items():
                column[row] = value - first  # float64 would round nanoseconds since 1970
            yield Clue(what, where, column)
        else:
            texts = pl.Series([str(values.get(row, "")) for row in range(rows)], dtype=pl.String)
            if texts.n_unique() > 1:
                yield Clue(what, where, texts.to_numpy())
                yield from parts_of_text(texts, what, where)
        if len(values) < len(by_row):
            yield Clue(f"whether there is {what}", where, _whether(values, by_row, rows))


def _whether(values: Mapping[int, object], by_row: Mapping[int, Facts], rows: int) -> Array:
    column = np.full(rows, np.nan)
    column[list(by_row)] = 0.0
    column[list(values)] = 1.0
    return column


class _MemberClue(NamedTuple):
    name: str
    facts: Facts
    data: Callable[[], bytes]


def _members(path: Path) -> Iterator[_MemberClue]:
    """Yield an archive's files in their order; nothing for other files and broken archives."""
    try:
        if path.name.endswith(ZIP):
            yield from _zip_members(path)
        elif path.name.endswith(TAR):
            yield from _tar_members(path)
    except (OSError, zipfile.BadZipFile, tarfile.TarError):
        return


def _zip_members(path: Path) -> Iterator[_MemberClue]:
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if not member.is_dir() and member.file_size <= MAX_BYTES:
                facts: Facts = {
                    "the time of change": int("".join(f"{part:02}" for part in member.date_time)),
                    "the size": member.file_size,
                    "the mode": member.external_attr,
                    "the comment": _text(member.comment),
                    "the extra field": _text(member.extra),
                }
                yield _MemberClue(member.filename, facts, lambda member=member: archive.read(member))  # type: ignore[misc]


def _tar_members(path: Path) -> Iterator[_MemberClue]:
    with tarfile.open(path) as archive:
        for member in archive:
            if member.isfile() and member.size <= MAX_BYTES:
                facts: Facts = {
                    "the time of change": int(member.mtime),
                    "the size": member.size,
                    "the mode": member.mode,
                    "the owner": f"{member.uid} {member.gid} {member.uname} {member.gname}",
                    "the comment": _text(sorted(member.pax_headers.items())),
                }
                yield _MemberClue(member.name, facts, lambda member=member: _content(archive, member))  # type: ignore[misc]


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    stream = archive.extractfile(member)
    return b"" if stream is None else stream.read()
