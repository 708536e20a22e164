"""Read what files tell beside their content: times, sizes, folders, order, attributes, comments, and what pictures carry unseen."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from PIL import ExifTags, Image

from mlagentbench.checks.dependence import FEW_ROWS
from mlagentbench.checks.parts import Clue, parts_of_text, words
from mlagentbench.checks.public_files import MAX_BYTES, PublicTable, fields_of
from mlagentbench.checks.public_tables import Answers, joined

Array = NDArray[Any]
Facts = dict[str, float | str]
"""What one file tells, by name: a number, or a text."""

PICTURES = frozenset({".png", ".jpg", ".jpeg", ".gif", ".bmp", ".tif", ".tiff", ".webp", ".ppm", ".pgm"})
MOST_FILES = 5000
"""Files, and members of archives, after which no more are opened to be compared."""
THUMBNAIL = 16
"""Pixels along each side of the grey picture by which pictures are compared."""
ENDS: Mapping[str, tuple[bytes, int]] = {".png": (b"IEND", 4), ".jpg": (b"\xff\xd9", 0), ".jpeg": (b"\xff\xd9", 0)}
"""The bytes with which a picture's format ends, and how many follow them."""
ORDERS = frozenset({"the time of change", "the order in which they were made", "the order of members", "the time of change of members"})
TEXT = 4096
"""The most characters of a text that are kept."""
START, END = 64, 16
"""Bytes at the beginning and at the end of each file that are looked at one by one."""
WORDS = 64
"""The numbers in a text's vector."""
CORNERS = {"top left": (0, 0), "top right": (0, -1), "bottom left": (-1, 0), "bottom right": (-1, -1)}
MAX_TEXT = 1 << 16
"""Bytes at a file's beginning by which texts are compared."""
ZIP, TAR = (".zip",), (".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz")


class Sketch(NamedTuple):
    """A file, as numbers by which it is compared with others of its kind."""

    kind: Literal["pictures", "texts", "files"]
    name: str
    row: int | None
    """The number of the answer to which it belongs; None for another file, as of the training data."""
    vector: Array
    """Grey values of a small picture, of shape (`THUMBNAIL` squared,), counts of words, or the content's digest, which is equal or not."""


class FileClues(NamedTuple):
    """What files tell that belong to one answer each."""

    orders: list[Clue]
    """Orders and times, which should give away nothing."""
    others: list[Clue]
    sketches: list[Sketch]


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
    sketches: list[Sketch] = []
    for path in paths:
        name = path.relative_to(public).as_posix()
        row = rows.of(name)
        facts = _file(path) | rows.folder(name) | _content_of(name, row, path.read_bytes, sketches)
        if row is not None:
            groups.setdefault(rows.group(name, row), {}).setdefault(row, facts | rows.rest(name, row))
        for number, member in enumerate(_members(path)):
            row = rows.of(member.name)
            facts = {f"{what} of members": value for what, value in member.facts.items()} | {"the order of members": number}
            facts |= rows.folder(member.name)
            facts |= _content_of(f"{name}/{member.name}", row, member.data, sketches)
            if row is not None:
                groups.setdefault(name, {}).setdefault(row, facts | rows.rest(member.name, row))
    clues = [clue for where, found in groups.items() if len(found) >= FEW_ROWS for clue in _clues(where, found, answers.rows)]
    return FileClues([clue for clue in clues if clue.name in ORDERS], [clue for clue in clues if clue.name not in ORDERS], sketches)


class _Rows:
    """Finds the answer that a file belongs to: it is named by the answer's id, or by another value that only this row of a table has."""

    def __init__(self, answers: Answers, tables: list[PublicTable], paths: list[Path]) -> None:
        self._ids = answers.ids.to_list()
        self._rows = {value: row for row, value in enumerate(self._ids)} if answers.id_column is not None else {}
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

    def group(self, name: str, row: int) -> str:
        """Return the name of files of which each row has one: the folder, and the file's name where each row has a folder of its own."""
        parts = Path(name).parts
        folder = parts[0] if len(parts) > 1 else "public files"
        return folder if self._ids[row] in parts[-1] else f"{folder}/{parts[-1]}" if self._ids[row] in parts else folder

    def rest(self, name: str, row: int) -> Facts:
        """Return what a file's name says beside the id, if it holds the id."""
        last = Path(name).name
        return {"the rest of the name": last.replace(self._ids[row], "", 1)} if self._ids[row] in last else {}


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


def _content_of(name: str, row: int | None, read: Callable[[], bytes], sketches: list[Sketch]) -> Facts:
    """Return what a file's content tells without being understood, and add a sketch of it, up to `MOST_FILES`."""
    if row is None and len(sketches) >= MOST_FILES:
        return {}
    data = read()
    facts: Facts = {f"byte {place + 1}": byte for place, byte in enumerate(data[:START])}
    facts |= {f"byte {place + 1} from the end": byte for place, byte in enumerate(data[: -END - 1 : -1])}
    if Path(name).suffix.lower() in PICTURES:
        return facts | _picture(name, row, data, sketches)
    if row is not None and Path(name).suffix.lower() == ".json":
        facts |= _record(data)
    if len(sketches) < MOST_FILES and data:
        try:
            sketches.append(Sketch("texts", name, row, words(data[:MAX_TEXT].decode(), WORDS)))
        except UnicodeDecodeError:
            digest = np.frombuffer(hashlib.sha256(data).digest(), np.uint8)
            sketches.append(Sketch("files", name, row, digest.astype(np.float64)))
    return facts


def _record(data: bytes) -> Facts:
    """Return the numbers and texts of a JSON file that holds one record."""
    try:
        found = json.loads(data)
    except ValueError:
        return {}
    fields = fields_of(found) if isinstance(found, dict) else ()
    return {f"the field {name!r}": value for name, value in fields if isinstance(value, int | float | str)}


def _picture(name: str, row: int | None, data: bytes, sketches: list[Sketch]) -> Facts:
    """Return what a picture carries unseen, and add it to `sketches`; nothing if it cannot be read."""
    end, after = ENDS.get(Path(name).suffix.lower(), (b"", 0))
    place = data.rfind(end) + len(end) + after if end else len(data)
    facts: Facts = {"what follows the end": _text(data[place:])}
    if len(sketches) >= MOST_FILES:
        return facts
    try:
        with Image.open(io.BytesIO(data)) as picture:
            picture.load()  # texts may stand after the pixels
            facts |= {"the width": picture.width, "the height": picture.height, "the colours": picture.mode}
            facts |= {f"the text {key!r}": _text(value) for key, value in picture.info.items() if key != "exif"}
            exif = picture.getexif()
            tags = [exif, *(exif.get_ifd(part) for part in ExifTags.IFD)]
            facts |= {f"the tag {ExifTags.TAGS.get(key, key)}": _text(value) for part in tags for key, value in part.items()}
            facts |= _pixels(picture)
            small = picture.convert("L").resize((THUMBNAIL, THUMBNAIL), Image.Resampling.BOX)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return facts
    sketches.append(Sketch("pictures", name, row, np.asarray(small, dtype=np.float64).reshape(-1)))
    return facts


def _pixels(picture: Image.Image) -> Facts:
    """Return the pixels in a picture's corners, their lowest bits, and its transparency, which nobody sees."""
    facts: Facts = {}
    pixels = np.asarray(picture)
    for corner, place in CORNERS.items():
        for channel, value in enumerate(np.atleast_1d(pixels[place]).tolist(), 1):
            facts[f"channel {channel} of the pixel at the {corner}"] = int(value)
            facts[f"the lowest bit of channel {channel} of the pixel at the {corner}"] = int(value) % 2
    if picture.has_transparency_data:
        alpha = np.asarray(picture.convert("RGBA").getchannel("A"))
        facts |= {"the least opacity": int(alpha.min()), "the greatest opacity": int(alpha.max()), "the opacity": int(alpha.sum())}
    return facts


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value[:TEXT].decode("latin-1").strip("\0")
    return str(value)[:TEXT]


def _clues(where: str, by_row: Mapping[int, Facts], rows: int) -> Iterator[Clue]:
    """Turn the facts about each row's file into columns with a value for each answer."""
    whats = {name for facts in by_row.values() for name in facts}
    for what in sorted(whats, key=lambda name: (name.startswith("byte"), name)):  # what has a name says more than its bytes
        values = {row: facts[what] for row, facts in by_row.items() if what in facts}
        numbers = {row: value for row, value in values.items() if isinstance(value, int | float)}
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
