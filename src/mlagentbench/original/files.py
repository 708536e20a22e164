"""Finding the original's log folders, and reading their files as what they are: somebody else's."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from mlagentbench.errors import RunNotFound

LARGEST = 1 << 30
"""Bytes of a log file that is read; those of real runs stay below a hundredth of it."""


class Logs(NamedTuple):
    """A run's folders; each may be missing."""

    root: Path
    env: Path
    agent: Path

    @property
    def traces(self) -> Path:
        """Where the workspaces after the steps lie."""
        return self.env / "traces"


def find_logs(folder: Path) -> list[Logs]:
    """The runs at a folder: itself, or those anywhere below it, sorted. What lies in a run is not looked through for others.

    Raises:
        RunNotFound: there are none.
    """
    if folder.name in ("env_log", "agent_log") and not (folder / folder.name).exists():
        folder = folder.resolve().parent
    found = list(_runs(folder))
    if not found:
        raise RunNotFound(
            f"{folder} holds no log of the original MLAgentBench: no folder in it has an env_log, an agent_log or a trace.json"
        )
    return found


def _runs(folder: Path) -> Iterator[Logs]:
    if (folder / "run.json").is_file():
        return  # a run of ours, whose workspace may hold anything
    if any((folder / name).is_dir() for name in ("env_log", "agent_log")):
        yield Logs(folder, folder / "env_log", folder / "agent_log")
        return
    if (folder / "trace.json").is_file():
        yield Logs(folder, folder, folder / "agent_log")
        return
    try:
        inside = sorted(entry.path for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False))
    except OSError:
        return
    for path in inside:
        yield from _runs(Path(path))


class Reader:
    """Reads a run's files, and keeps a line for each that cannot be read whole.

    Args:
        root: the run's folder; problems name files relative to it.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.problems: list[str] = []

    def say(self, path: Path, what: str) -> None:
        """Keep a line about a file."""
        line = f"{path.relative_to(self.root)}: {what}" if path.is_relative_to(self.root) else f"{path}: {what}"
        if line not in self.problems:
            self.problems.append(line)

    def text(self, path: Path, *, wanted: bool = False) -> str | None:
        """A file's text; None where there is none. Its lines end as the program that wrote them had them, whatever its system made of that.

        Args:
            path: the file.
            wanted: every whole log has it, so that its lack is a problem.
        """
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            if wanted:
                self.say(path, "is missing")
            return None
        except OSError as error:
            self.say(path, f"cannot be read: {error.strerror}")
            return None
        with os.fdopen(descriptor, "rb") as file:
            facts = os.fstat(descriptor)
            if not stat.S_ISREG(facts.st_mode) or facts.st_size > LARGEST:
                self.say(path, "is no file of text, and was left out")
                return None
            data = file.read()
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            if error.start >= len(data) - 3 or not data[: error.start].isascii():
                text = data.decode("utf-8", errors="replace")
                self.say(path, "has bytes that are no UTF-8, which were replaced")
            else:
                # Windows writes what its user's country writes; bytes that mean nothing there either are replaced.
                text = data.decode("cp1252", errors="replace")
                self.say(path, "is no UTF-8, and was read as Windows-1252")
        return text.replace("\r\n", "\n")

    def json(self, path: Path, *, wanted: bool = False) -> object | None:
        """A file of JSON; None where there is none, or it is torn."""
        text = self.text(path, wanted=wanted)
        if text is None:
            return None
        try:
            return whole(json.loads(text))
        except (ValueError, RecursionError):
            self.say(path, "is torn, and was left out" if text.strip() else "is empty")
            return None


def whole(value: object) -> object:
    """A value of JSON without halves of surrogate pairs, which no file can hold."""
    if isinstance(value, str):
        return text_of(value)
    if isinstance(value, list):
        return [whole(item) for item in value]
    if isinstance(value, dict):
        return {text_of(str(key)): whole(item) for key, item in value.items()}
    return value


def text_of(value: object) -> str:
    """A value as text: text as it is, anything else as JSON."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace") if any("\ud800" <= c <= "\udfff" for c in text) else text


def digest(logs: Logs) -> str:
    """SHA-256 of a run's logs: of all contents, but for those of the workspaces, of which the sizes are taken."""
    state = hashlib.sha256()
    for folder, folders, names in os.walk(logs.root):
        folders.sort()
        for name in sorted(names):
            path = Path(folder) / name
            try:
                facts = path.lstat()
                state.update(f"{path.relative_to(logs.root)}\0{facts.st_size}\0".encode("utf-8", "surrogateescape"))
                if stat.S_ISREG(facts.st_mode) and facts.st_size <= LARGEST and not path.is_relative_to(logs.traces):
                    state.update(path.read_bytes())
            except OSError:
                continue
    return state.hexdigest()
