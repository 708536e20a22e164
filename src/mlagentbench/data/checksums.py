"""Check downloaded files against their published checksum, or else against that of their first download."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from rich.filesize import decimal

from mlagentbench.data.metadata import MOMENT
from mlagentbench.errors import TaskError

KINDS = {"sha256": 64, "md5": 32}
"""The number of hexadecimal digits by kind of checksum."""


class Expected(NamedTuple):
    """The checksums that a downloaded file must have."""

    published: str | None
    """The checksum in task.toml, such as `sha256:...`; None if it has none for the file."""
    recorded: str | None
    """The SHA-256 of the first download; None before it."""

    @classmethod
    def of(cls, path: str, published: Mapping[str, str], recorded: str | None) -> Expected:
        """Return the expected checksums of a file.

        Args:
            path: the file's path at its source.
            published: checksums by path or by file name.
            recorded: the SHA-256 of the first download; None before it.

        Raises:
            TaskError: a published checksum is malformed.
        """
        found = published.get(path) or published.get(path.rpartition("/")[2])
        if found is not None:
            kind, _, digits = found.partition(":")
            if len(digits) != KINDS.get(kind) or set(digits.lower()) - set("0123456789abcdef"):
                raise TaskError(f"task.toml: data.checksums: {found!r} is no checksum; write sha256: or md5: and the hexadecimal digits")
        return cls(found, recorded)

    def wrong(self, path: Path) -> str | None:
        """Return how a file's checksum differs from the expected one; None if it does not, or if none is known."""
        if self.published is not None:
            kind, _, wanted = self.published.partition(":")
        elif self.recorded is not None:
            kind, wanted = "sha256", self.recorded
        else:
            return None
        found = digest(path, kind)
        if found == wanted.lower():
            return None
        whose = "the published file's" if self.published is not None else "the first download's"
        return f"its {kind} is {found} ({decimal(path.stat().st_size)}), {whose} is {wanted}"

    def holds_for(self, path: Path, size: int | None) -> bool:
        """Return whether a file is there and has the expected checksum. It is not read if it is as it was when it was checked.

        Args:
            path: the file, which got the time of change `MOMENT` when it was checked.
            size: its bytes then; None if it was not checked, or against another checksum.
        """
        if not path.is_file():
            return False
        found = path.stat()
        return (found.st_size == size and found.st_mtime == MOMENT) or not self.wrong(path)

    def advice(self, record: Path) -> str:
        """Return what to do about a wrong file whose record is the given file, to be appended to a message; may be empty."""
        return "" if self.published is not None else f"; if it was meant to change, remove {record}"


def digest(path: Path, kind: str = "sha256") -> str:
    """Return a file's checksum in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, kind).hexdigest()
