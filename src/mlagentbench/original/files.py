"""Find the original's log folders, and read their files as untrusted data."""

from __future__ import annotations

import codecs
import hashlib
import json
import os
import stat
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from mlagentbench.errors import RunNotFound
from mlagentbench.util.text import encodable

LARGEST = 1 << 30
"""The most bytes of a log file that is read; those of real runs are less than a hundredth of it."""
DEEPEST = 100
"""The most levels of lists and objects in a JSON value; deeper values are stored as text. Records allow 255."""
_BYTE_ORDER_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
"""The byte order marks with which Windows programs begin a file, such as a `log` redirected by PowerShell, and their encodings."""


class LogFolders(NamedTuple):
    """The folders of a run; each may be missing."""

    root: Path
    env: Path
    agent: Path

    @property
    def traces(self) -> Path:
        """The folder of the workspaces after the steps."""
        return self.env / "traces"


class FoundLogs(NamedTuple):
    """The logs found at a folder or below it."""

    logs: list[LogFolders]
    unread: list[tuple[Path, str]]
    """Folders that could not be searched, each with the reason."""


def find_logs(folder: Path) -> FoundLogs:
    """Find the log at a folder, or else those anywhere below it, sorted. Symbolic links are not followed, nor are logs searched for others.

    Raises:
        RunNotFound: there are no logs.
    """
    if folder.name in ("env_log", "agent_log") and not (folder / folder.name).exists():
        folder = folder.resolve().parent
    found = FoundLogs([], [])
    pending = [folder]
    while pending:
        current = pending.pop()
        inside, problem = _entries(current)
        if problem:
            found.unread.append((current, problem))
        files = {entry.name for entry in inside if entry.is_file(follow_symlinks=False)}
        if "run.json" in files:
            continue  # a run of this package, whose workspace may contain anything
        if any(entry.name in ("env_log", "agent_log") and entry.name not in files for entry in inside):
            found.logs.append(LogFolders(current, current / "env_log", current / "agent_log"))
        elif "trace.json" in files:
            found.logs.append(LogFolders(current, current, current / "agent_log"))
        else:
            pending += reversed([Path(entry.path) for entry in inside if entry.is_dir(follow_symlinks=False)])
    if not found.logs:
        raise RunNotFound(
            f"{folder} holds no log of the original MLAgentBench: no folder in it has an env_log, an agent_log or a trace.json"
        )
    return found


def files_below(folder: Path) -> Iterator[Path]:
    """Yield everything below a folder except folders, sorted, each folder's own files first. Symbolic links are not followed."""
    pending = [folder] if folder.is_dir() and not folder.is_symlink() else []
    while pending:
        inside, _ = _entries(pending.pop())
        folders = [Path(entry.path) for entry in inside if entry.is_dir(follow_symlinks=False)]
        yield from (Path(entry.path) for entry in inside if not entry.is_dir(follow_symlinks=False))
        pending += reversed(folders)


def _entries(folder: Path) -> tuple[list[os.DirEntry[str]], str]:
    """Return the sorted entries of a folder, and an empty text or the reason why it cannot be listed."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name), ""
    except OSError as error:
        return [], error.strerror or str(error)


class Reader:
    """Reads the files of a run, and collects a line about each problem.

    Args:
        root: the run's folder. Problems name files relative to it, and symbolic links below it are not followed.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.problems: list[str] = []

    def say(self, path: Path, what: str) -> None:
        """Add a problem with a file, unless it is listed already."""
        name = path_text(path.relative_to(self.root) if path.is_relative_to(self.root) else path)
        line = f"{name}: {what}"
        if line not in self.problems:
            self.problems.append(line)

    def is_folder(self, path: Path) -> bool:
        """Return whether a path is a folder of this log, with no symbolic link on the way."""
        return not self._leads_out(path) and path.is_dir()

    def list(self, folder: Path, pattern: str) -> list[Path]:
        """Return the entries of a folder whose names match a pattern, sorted; none if there is no such folder."""
        if not self.is_folder(folder):
            return []
        return [Path(entry.path) for entry in _entries(folder)[0] if fnmatchcase(entry.name, pattern)]

    def text(self, path: Path, *, wanted: bool = False) -> str | None:
        """Return a file's text, with CRLF line ends replaced; None if there is no such file or it cannot be read.

        Args:
            path: the file.
            wanted: whether every complete log has the file, so that it is a problem if it is missing.
        """
        data = self._bytes(path, wanted)
        if data is None:
            return None
        encoding = next((name for mark, name in _BYTE_ORDER_MARKS if data.startswith(mark)), "utf-8")
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError as error:
            if encoding != "utf-8" or error.start >= len(data) - 3 or not data[: error.start].isascii():
                text = data.decode(encoding, errors="replace")
                self.say(path, f"has bytes that are no {'UTF-16' if encoding == 'utf-16' else 'UTF-8'}, which were replaced")
            else:
                # Python on Windows wrote in the code page of the user's country, mostly 1252; bytes that it does not define are replaced.
                text = data.decode("cp1252", errors="replace")
                self.say(path, "is no UTF-8, and was read as Windows-1252")
        return text.replace("\r\n", "\n")

    def json(self, path: Path, *, wanted: bool = False) -> object | None:
        """Return the value of a JSON file; None if there is no such file, or it is incomplete."""
        text = self.text(path, wanted=wanted)
        if text is None:
            return None
        try:
            return parse_json(text)
        except ValueError:
            self.say(path, "is torn, and was left out" if text.strip() else "is empty")
            return None

    def _bytes(self, path: Path, wanted: bool) -> bytes | None:
        if self._leads_out(path):
            return None
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            if wanted:
                self.say(path, "is missing")
            return None
        except OSError as error:
            self.say(path, f"cannot be read: {error.strerror}")
            return None
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST:
                self.say(path, "is no file of text, and was left out")
                return None
            with open(descriptor, "rb", closefd=False) as file:
                return file.read()
        except OSError as error:
            self.say(path, f"cannot be read: {error.strerror}")
            return None
        finally:
            os.close(descriptor)

    def _leads_out(self, path: Path) -> bool:
        """Return whether a symbolic link is on the way from the root to a path, and add a problem if so."""
        inside = path.relative_to(self.root)
        for part in (*reversed(inside.parents), inside):
            if part.parts and (self.root / part).is_symlink():
                self.say(self.root / part, "is a link, and was not followed")
                return True
        return False


def parse_json(text: str) -> object:
    """Parse JSON into a value that a record can store (see `storable`).

    Raises:
        ValueError: it is incomplete, or nested too deep to be parsed.
    """
    try:
        return storable(json.loads(text))
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def storable(value: object, depth: int = 0) -> object:
    """Return a value that a record can store: lone surrogates become escapes, and what is not JSON or nested too deep becomes text."""
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, list | dict) and depth == DEEPEST:
        return text_of(value)
    if isinstance(value, list | tuple):
        return [storable(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return {encodable(str(key)): storable(item, depth + 1) for key, item in value.items()}
    return value if value is None or isinstance(value, int | float) else repr(value)


def text_of(value: object) -> str:
    """Return a value as text: text as it is, anything else as JSON."""
    return str(encodable(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)))


def path_text(path: Path) -> str:
    """Return a path as text that is valid UTF-8: other bytes are escaped."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def digest(logs: LogFolders) -> str:
    """Return the SHA-256 of a run's logs: of the paths, sizes and contents of all files, but without the contents of workspaces."""
    state = hashlib.sha256()
    for path in files_below(logs.root):
        try:
            status = path.lstat()
            state.update(f"{path.relative_to(logs.root)}\0{status.st_size}\0".encode("utf-8", "surrogateescape"))
            if stat.S_ISREG(status.st_mode) and status.st_size <= LARGEST and not path.is_relative_to(logs.traces):
                state.update(path.read_bytes())
        except OSError:
            continue
    return state.hexdigest()
