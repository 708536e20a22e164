"""What a downloaded file must be: what was published of it, or else what it was the first time."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from rich.filesize import decimal

from mlagentbench.errors import TaskError

KINDS = {"sha256": 64, "md5": 32}
"""Hexadecimal digits by kind."""


class Expected(NamedTuple):
    """What a file must be."""

    published: str | None
    """As in task.toml, such as `sha256:...`."""
    recorded: str | None
    """The SHA-256 of the first download; None before there was one."""

    @classmethod
    def of(cls, path: str, published: Mapping[str, str], recorded: str | None) -> Expected:
        """What a file must be.

        Args:
            path: its path where it comes from.
            published: checksums by path or by name.
            recorded: what it was the first time.

        Raises:
            TaskError: what is published is no checksum.
        """
        found = published.get(path) or published.get(path.rpartition("/")[2])
        if found is not None:
            kind, _, digits = found.partition(":")
            if len(digits) != KINDS.get(kind) or set(digits.lower()) - set("0123456789abcdef"):
                raise TaskError(f"task.toml: data.checksums: {found!r} is no checksum; write sha256: or md5: and the hexadecimal digits")
        return cls(found, recorded)

    def wrong(self, path: Path) -> str | None:
        """What is wrong with a file; None for nothing, or where nothing is known of it."""
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

    def advice(self, record: Path) -> str:
        """What to do about a file that is wrong, and whose record lies there."""
        return "" if self.published is not None else f"; if it was meant to change, remove {record}"


def digest(path: Path, kind: str = "sha256") -> str:
    """A file's checksum, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, kind).hexdigest()
