"""Read and write the records of a run as files, and turn what goes wrong into this package's errors."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from mlagentbench.errors import RunNotFound, StorageFailed
from mlagentbench.records import UNKNOWN_VERSION, ModelCall, Record
from mlagentbench.util.text import encodable
from mlagentbench.workspace.files import bytes_of

R = TypeVar("R", bound=Record)

PUT_BACK = "put it back from a copy"
LARGEST_FILE = 256 << 20
"""Bytes of a record's file at most. The prompts of a long step take some megabytes."""


def grade_again(run: Path) -> str:
    """Return what to do about the damaged result of a run, given its directory."""
    return f"remove it, and have the run graded again: mlab resume {run}"


def numbers_of(folder: Path, rest: str = "") -> set[int]:
    """Return the numbers of a folder's files that are named by steps.

    Args:
        folder: the folder of steps or of snapshots.
        rest: a pattern for the names after their numbers.
    """
    return {int(match[1]) for name in names_in(folder) if (match := re.fullmatch(rf"(\d{{4,}}){rest}", name, re.ASCII))}


def names_in(folder: Path) -> list[str]:
    """Return the names in a folder, sorted; none where it cannot be read."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def text_of(record: Record, indent: int | None = 1) -> str:
    """Return a record as JSON with a newline at its end. A lone surrogate is written as its escape (`text.encodable`).

    `indent` is the number of spaces per level; None is for a single line.
    """
    try:
        return record.model_dump_json(indent=indent) + "\n"
    except PydanticSerializationError:
        return type(record).model_validate(encodable(record.model_dump())).model_dump_json(indent=indent) + "\n"


def read(path: Path, kind: type[R], *, remedy: str = PUT_BACK) -> R:
    """Read a record from its file; `remedy` is what to do about a damaged one.

    Raises:
        RunNotFound: the file is missing or damaged.
    """
    try:
        return kind.model_validate_json(bytes_of(path, LARGEST_FILE))
    except FileNotFoundError:
        raise RunNotFound(f"{path.parent} holds no run: it has no {path.name}") from None
    except (ValidationError, OSError) as error:
        raise damaged(path, error, remedy) from None
    except (TypeError, AttributeError, KeyError, IndexError) as error:
        # The validators that convert an older version's values run before the types are checked.
        raise RunNotFound(f"{path} is damaged: {error}; {remedy}") from None


def read_calls(path: Path) -> list[ModelCall]:
    """Read the model calls of a file, one per line. An incomplete last line, left by a killed process, is dropped.

    Raises:
        RunNotFound: the file is damaged.
    """
    try:
        lines = bytes_of(path, LARGEST_FILE).split(b"\n")
        return [ModelCall.model_validate_json(line) for line in lines[:-1]]
    except (ValidationError, OSError) as error:
        raise damaged(path, error, PUT_BACK) from None


def damaged(path: Path, error: ValidationError | OSError, remedy: str) -> RunNotFound:
    """Return the error for a damaged file: which file, what is wrong with it, and what to do."""
    if isinstance(error, OSError):
        return RunNotFound(f"{path} is damaged: {error.strerror or error}; {remedy}")
    found = error.errors(include_url=False, include_context=False, include_input=False)
    # A record of another version fails in many places; the version is the one worth reporting.
    first = next((each for each in found if each["type"] == UNKNOWN_VERSION), found[0])
    if first["type"] == UNKNOWN_VERSION:
        return RunNotFound(f"{path} cannot be read: {first['msg']}")
    where = "".join(f"{part}: " for part in first["loc"])
    return RunNotFound(f"{path} is damaged: {where}{first['msg'].removeprefix('Value error, ')}; {remedy}")


@contextmanager
def storage(path: Path) -> Iterator[None]:
    """Turn an OSError of the disk or of a damaged run directory into an error with a one-line message.

    Raises:
        RunNotFound: a file or folder of the run is missing or of the wrong type.
        StorageFailed: the disk is full, read-only or broken, or may not be written.
    """
    try:
        yield
    except OSError as error:
        what = error.strerror or str(error)
        if error.errno in (errno.EISDIR, errno.ENOTDIR, errno.ENOENT, errno.ELOOP, errno.ENXIO):
            raise RunNotFound(f"{error.filename or path} is damaged: {what}; {PUT_BACK}") from error
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EACCES, errno.EPERM, errno.EEXIST, errno.EFBIG):
            raise
        mend = "give its owner the right to write there" if error.errno in (errno.EACCES, errno.EPERM) else "make room"
        raise StorageFailed(f"cannot write to {path}: {what}; {mend}, then continue the run with: mlab resume {path}") from error
