"""Download a file over HTTP with httpx, resuming it whenever the connection breaks.

The file grows as `.<name>.part`, beside a note with the validator (ETag or Last-Modified) that the server sent. The rest is requested with
`If-Range` (RFC 9110, section 13.1.5), so that a file which changed in between is sent whole. Without a validator, a try starts from zero.

The loop of tries is our own: tenacity counts all tries, and here those that receive something start the count again. pooch does not resume
downloads, and huggingface_hub only those of its own server.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import ssl
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple, TypeVar

import httpx
from rich.filesize import decimal

from mlagentbench.errors import TaskError

TRIES = 6
"""How many tries in a row may fail without having received anything; a try that received something restarts the count."""
FIRST_WAIT, LONGEST_WAIT = 1.0, 60.0
"""Seconds before the second try, doubled before each further one, and the most seconds between two tries."""
TIMEOUT = 60.0
"""Seconds without data after which a connection counts as broken."""
TEMPORARY = {408, 425, 429, 500, 502, 503, 504}
"""HTTP statuses that may be temporary."""
REFUSALS = {401: "it asks for a key", 403: "it does not let you have it", 404: "it is not there", 410: "it is there no more"}

Advance = Callable[[int, int | None], object]
"""A callback for progress: the bytes received so far, and the total; None if the server does not say."""
T = TypeVar("T")


class PartialDownload(NamedTuple):
    """The paths of a partial download and of the note beside it."""

    content: Path
    note: Path

    @classmethod
    def of(cls, path: Path) -> PartialDownload:
        """Return the paths of the partial download of a file."""
        return cls(path.with_name(f".{path.name}.part"), path.with_name(f".{path.name}.part.json"))

    def validator(self, url: str) -> str | None:
        """Return the validator with which the download from a URL can be resumed; None if it cannot."""
        try:
            note = json.loads(self.note.read_text(encoding="utf-8"))
            return str(note["validator"]) if note["url"] == _unsigned(url) and self.size() else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def begin(self, url: str, validator: str | None) -> None:
        """Remove what was downloaded, and note the validator of a new download."""
        self.remove()
        if validator:
            self.note.write_text(json.dumps({"url": _unsigned(url), "validator": validator}), encoding="utf-8")

    def size(self) -> int:
        """Return the bytes downloaded so far."""
        return self.content.stat().st_size if self.content.exists() else 0

    def remove(self) -> None:
        """Remove the partial download and its note."""
        self.content.unlink(missing_ok=True)
        self.note.unlink(missing_ok=True)


class Refused(TaskError):
    """A server refuses to send a file."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Interrupted(Exception):
    """A try failed in a way that may be temporary."""

    def __init__(self, reason: str, retry_after: str = "") -> None:
        super().__init__(reason)
        self.wait = float(retry_after) if retry_after.isdigit() else 0.0


def persist(function: Callable[[], T], received: Callable[[], int], say: Callable[[str], object]) -> T:
    """Call a function until it is not interrupted, and return what it returns.

    Args:
        function: the function.
        received: returns the bytes received so far.
        say: called with a message about every failure that is retried.

    Raises:
        Interrupted: the last of `TRIES` failures in a row without progress.
    """
    failures = 0
    while True:
        before = received()
        try:
            return function()
        except Interrupted as error:
            # Progress restarts the count, so that a server that breaks off after every megabyte still delivers the file.
            failures = failures + 1 if received() <= before else 1
            if failures >= TRIES:
                raise
            wait = min(max(FIRST_WAIT * 2 ** (failures - 1) * random.uniform(0.75, 1.25), error.wait), LONGEST_WAIT)
            say(f"{error}; trying again in {wait:.0f} s")
            time.sleep(wait)


def transfer(url: str, part: PartialDownload, *, headers: Mapping[str, str] = {}, plain: bool = False, advance: Advance) -> None:
    """Receive as much of a file as one connection delivers, and return only if it is complete.

    Args:
        url: the file's URL.
        part: where it is downloaded to.
        headers: extra headers; `Authorization` is not sent to servers that this one redirects to.
        plain: whether an unencrypted connection is allowed.
        advance: called after every block.

    Raises:
        Interrupted: the connection failed, or the server may answer later. What was received stays.
        TaskError: the server refuses, its certificate is not trusted, or the disk lacks the space.
    """

    def check(request: httpx.Request) -> None:
        if not plain and request.url.scheme != "https":
            raise TaskError(f"{url} leads to {request.url}, which is not encrypted; it is not downloaded")

    validator = part.validator(url)
    have = part.size() if validator else 0
    headers = {"User-Agent": "mlagentbench", "Accept-Encoding": "identity", **headers}
    if validator:
        headers |= {"Range": f"bytes={have}-", "If-Range": validator}
    # The certificates that the system trusts, where httpx would take those of certifi.
    client = httpx.Client(follow_redirects=True, timeout=TIMEOUT, verify=ssl.create_default_context(), event_hooks={"request": [check]})
    try:
        with client, client.stream("GET", url, headers=headers) as response:
            _receive(url, response, part, have, validator, advance)
    except httpx.RequestError as error:
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            raise TaskError(f"cannot download {url}: its certificate is not trusted here: {error}") from None
        raise Interrupted(str(error) or type(error).__name__) from None


def _receive(url: str, response: httpx.Response, part: PartialDownload, have: int, validator: str | None, advance: Advance) -> None:
    length = response.headers.get("Content-Length", "")
    total = int(length) if length.isdigit() else None
    if response.status_code == httpx.codes.PARTIAL_CONTENT:
        start, total = _range(response)
        if start != have:
            part.remove()
            raise Interrupted("the server sent another part of the file than was asked for")
    elif response.status_code == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE and validator:
        if response.headers.get("Content-Range", "").strip() == f"bytes */{have}":
            return
        part.remove()
        raise Interrupted("the file there is shorter than what has come of it")
    elif not response.is_success:
        status = f"{response.status_code} {response.reason_phrase}"
        if response.status_code in TEMPORARY:
            raise Interrupted(f"the server says {status}", response.headers.get("Retry-After", ""))
        why = REFUSALS.get(response.status_code, "the server refuses it")
        raise Refused(f"cannot download {url}: {why} (HTTP {status})", response.status_code)
    else:
        part.begin(url, _validator(response))
        have = 0
    free = shutil.disk_usage(part.content.parent).free
    if (total or 0) - have > free:
        raise TaskError(
            f"{url} needs {decimal((total or 0) - have)} more, and {part.content.parent} has {decimal(free)} left; "
            "free some, or use another cache"
        )
    # Unbuffered and in blocks as they arrive, so that they are in the file even if this process is killed.
    with part.content.open("ab", buffering=0) as file:
        for block in response.iter_raw():
            file.write(block)
            have += len(block)
            advance(have, total)


def _unsigned(url: str) -> str:
    """Return a URL without its query, which holds the signature in URLs that a server makes anew for each download."""
    return url.partition("?")[0]


def _range(response: httpx.Response) -> tuple[int, int | None]:
    """Return where the received range starts (-1 if unknown), and the size of the whole file (None if unknown)."""
    match = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", response.headers.get("Content-Range", "").strip())
    if match is None:
        return -1, None
    return int(match[1]), int(match[2]) if match[2] != "*" else None


def _validator(response: httpx.Response) -> str | None:
    """Return a response's validator; None for a weak ETag, which does not promise identical bytes (RFC 9110, section 8.8.1)."""
    tag: str = response.headers.get("ETag", "").strip() or response.headers.get("Last-Modified", "")
    return None if tag.startswith("W/") else tag or None
