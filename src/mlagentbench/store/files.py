"""Records as the files of a run hold them."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from mlagentbench.errors import RunNotFound
from mlagentbench.records import ModelCall, Record, whole

R = TypeVar("R", bound=Record)


def text_of(record: Record, indent: int | None = 1) -> str:
    """A record as a file holds it: JSON, with a newline at its end. Half of a character becomes its escape (`records.whole`).

    Args:
        record: the record.
        indent: spaces a level; None for a single line.
    """
    try:
        return record.model_dump_json(indent=indent) + "\n"
    except PydanticSerializationError:
        return type(record).model_validate(whole(record.model_dump())).model_dump_json(indent=indent) + "\n"


def read(path: Path, kind: type[R]) -> R:
    """A record from its file.

    Raises:
        RunNotFound: the file is missing or damaged.
    """
    try:
        return kind.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise RunNotFound(f"{path.parent} holds no run: it has no {path.name}") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = "".join(f"{part}: " for part in first["loc"])
        raise RunNotFound(f"{path} cannot be read: {where}{first['msg']}") from None


def read_calls(path: Path) -> list[ModelCall]:
    """The calls of a file, a line each; a torn last line, of a process that was killed, is left out."""
    lines = path.read_text(encoding="utf-8").split("\n")
    return [ModelCall.model_validate_json(line) for line in lines[:-1]]
