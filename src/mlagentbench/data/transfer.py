"""Download a file over HTTP, resuming it whenever the connection breaks.

The file grows as `.<name>.part`, beside a note with the validator (ETag or Last-Modified) that the server sent. The rest is requested with
`If-Range` (RFC 9110, section 13.1.5), so that a file which changed in between is sent whole. Without a validator, a try starts from zero.
"""

from __future__ import annotations

import errno
import http.client
import json
import random
import re
import shutil
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, NamedTuple

from rich.filesize import decimal

from mlagentbench.errors import TaskError

TRIES = 6
"""How many tries in a row may fail without having received anything; a try that received something restarts the count."""
FIRST_WAIT, LONGEST_WAIT = 1.0, 60.0
"""Seconds before the second try, doubled before each further one, and the most seconds between two tries."""
TIMEOUT = 60.0
"""Seconds without data after which a connection counts as broken."""
BLOCK = 1 << 20
WORTH_WAITING = {408, 425, 429, 500, 502, 503, 504}
"""HTTP statuses that may be temporary."""

Advance = Callable[[int, int | None], object]
"""A callback for progress: the bytes received so far, and the total; None if the server does not say."""


class PartialDownload(NamedTuple):
    """The paths of a partial download and of the note beside it."""

    content: Path
    note: Path

    @classmethod
    def of(cls, place: Path) -> PartialDownload:
        """Return the paths of the partial download of a file."""
        return cls(place.with_name(f".{place.name}.part"), place.with_name(f".{place.name}.part.json"))

    def validator(self, url: str) -> str | None:
        """Return the validator with which the download from a URL can be resumed; None if it cannot."""
        try:
            note = json.loads(self.note.read_text(encoding="utf-8"))
            return str(note["validator"]) if note["url"] == url and self.content.stat().st_size else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def begin(self, url: str, validator: str | None) -> None:
        """Remove what was downloaded, and note the validator of a new download."""
        self.remove()
        if validator:
            self.note.write_text(json.dumps({"url": url, "validator": validator}), encoding="utf-8")

    def size(self) -> int:
        """Return the bytes downloaded so far."""
        return self.content.stat().st_size if self.content.exists() else 0

    def remove(self) -> None:
        """Remove the partial download and its note."""
        self.content.unlink(missing_ok=True)
        self.note.unlink(missing_ok=True)


class Transferred(NamedTuple):
    """A complete download."""

    path: Path
    pieced: bool
    """Whether it was resumed, so that its pieces may come from two versions of the file."""


class Refused(TaskError):
    """A server refuses to send a file."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class _Broken(Exception):
    """A try failed in a way that may be temporary."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


def transfer(
    url: str,
    place: Path,
    *,
    headers: Mapping[str, str] | None = None,
    plain: bool = False,
    advance: Advance | None = None,
    say: Callable[[str], object] | None = None,
) -> Transferred:
    """Download a file.

    Args:
        url: the file's URL.
        place: the file's final path; its folder must exist. The download itself is stored beside it.
        headers: extra headers for the first server; they are not sent to servers that it redirects to.
        plain: whether an unencrypted connection is allowed after a redirect.
        advance: called after every block.
        say: called with a message about every failure that is retried.

    Returns:
        The download, which the caller checks and moves to `place`.

    Raises:
        TaskError: it cannot be downloaded, or the disk is full. What was received stays, for the next call to resume.
    """
    part = PartialDownload.of(place)
    opener = urllib.request.build_opener(_Redirects(plain))
    failures, pieced = 0, False
    while True:
        before = part.size()
        pieced |= part.validator(url) is not None
        try:
            _try(opener, url, part, headers or {}, advance)
            return Transferred(part.content, pieced)
        except _Broken as broken:
            # Progress restarts the count, so that a server that breaks off after every megabyte still delivers the file.
            failures = failures + 1 if part.size() <= before else 1
            if failures >= TRIES:
                raise TaskError(
                    f"cannot download {url}: {broken}; what has come is kept ({decimal(part.size())}), so try again later"
                ) from None
            wait = FIRST_WAIT * 2 ** (failures - 1) * random.uniform(0.75, 1.25)
            wait = min(max(wait, broken.wait or 0), LONGEST_WAIT)
            if say:
                say(f"{broken}; trying again in {wait:.0f} s")
            time.sleep(wait)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise TaskError(f"no space is left for {url} in {place.parent}; free some, and what has come is gone on with") from None
            raise TaskError(f"cannot write {place}: {error.strerror}") from None


def _try(
    opener: urllib.request.OpenerDirector, url: str, part: PartialDownload, headers: Mapping[str, str], advance: Advance | None
) -> None:
    """Receive as much as one connection delivers, and return only if the file is complete.

    Raises:
        _Broken: the connection failed, or the server may answer later.
        TaskError: the server refuses, its certificate is not trusted, or the disk lacks the space.
    """
    validator = part.validator(url)
    have = part.size() if validator else 0
    request = urllib.request.Request(url, headers={"User-Agent": "mlagentbench", "Accept-Encoding": "identity"})
    for name, value in headers.items():
        request.add_unredirected_header(name, value)
    if validator:
        request.add_header("Range", f"bytes={have}-")
        request.add_header("If-Range", validator)
    try:
        response = opener.open(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        with error:
            if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and validator:
                if error.headers.get("Content-Range", "").strip() == f"bytes */{have}":
                    return
                part.remove()
                raise _Broken("the file there is shorter than what has come of it") from None
            raise _refused(url, error) from None
    except urllib.error.URLError as error:
        if isinstance(error.reason, ssl.SSLCertVerificationError):
            raise TaskError(f"cannot download {url}: its certificate is not trusted here: {error.reason.verify_message}") from None
        raise _Broken(_reason(error.reason)) from None
    except (OSError, http.client.HTTPException) as error:
        raise _Broken(_reason(error)) from None
    with response:
        total = _length(response)
        if response.status == http.HTTPStatus.PARTIAL_CONTENT:
            start, whole = _range(response)
            if start != have:
                part.remove()
                raise _Broken("the server sent another part of the file than was asked for")
            total = whole
        else:
            part.begin(url, _validator(response))
            have = 0
        _check_space(url, part.content.parent, (total or 0) - have)
        _receive(response, part.content, have, total, advance)


def _receive(response: http.client.HTTPResponse, path: Path, have: int, total: int | None, advance: Advance | None) -> None:
    with path.open("ab", buffering=0) as file:
        while True:
            try:
                block = response.read1(BLOCK)  # returns what has arrived, so that it is in the file even if this process is killed
            except http.client.IncompleteRead:
                raise _Broken("the connection broke off") from None
            except (OSError, http.client.HTTPException) as error:
                raise _Broken(_reason(error)) from None
            if not block:
                break
            file.write(block)
            have += len(block)
            if advance:
                advance(have, total)
    if total is not None and have < total:
        raise _Broken(f"the connection broke off after {decimal(have)} of {decimal(total)}")
    if total is not None and have > total:
        path.unlink()
        raise _Broken(f"the server sent {decimal(have)}, and had said {decimal(total)}")


def _refused(url: str, error: urllib.error.HTTPError) -> Exception:
    if error.code in WORTH_WAITING:
        wait = error.headers.get("Retry-After", "")
        return _Broken(f"the server says {error.code} {error.reason}", float(wait) if wait.isdigit() else None)
    hint = {401: "it asks for a key", 403: "it does not let you have it", 404: "it is not there", 410: "it is there no more"}
    why = hint.get(error.code, "the server refuses it")
    return Refused(f"cannot download {url}: {why} (HTTP {error.code} {error.reason})", error.code)


def _reason(error: object) -> str:
    if isinstance(error, TimeoutError):
        return f"nothing came for {TIMEOUT:.0f} s"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__


def _length(response: http.client.HTTPResponse) -> int | None:
    length = response.headers.get("Content-Length", "")
    return int(length) if length.isdigit() else None


def _range(response: http.client.HTTPResponse) -> tuple[int, int | None]:
    """Return where the received range starts (-1 if unknown), and the size of the whole file (None if unknown)."""
    match = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", response.headers.get("Content-Range", "").strip())
    if match is None:
        return -1, None
    return int(match[1]), int(match[2]) if match[2] != "*" else None


def _validator(response: http.client.HTTPResponse) -> str | None:
    """Return a response's validator; None for a weak ETag, which does not promise identical bytes (RFC 9110, section 8.8.1)."""
    tag = response.headers.get("ETag", "").strip()
    if tag:
        return None if tag.startswith("W/") else tag
    return response.headers.get("Last-Modified")


def _check_space(url: str, folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise TaskError(f"{url} needs {decimal(needed)} more, and {folder} has {decimal(free)} left; free some, or use another cache")


class _Redirects(urllib.request.HTTPRedirectHandler):
    """A redirect handler that refuses to go from an encrypted to an unencrypted connection, unless that is allowed."""

    def __init__(self, plain: bool) -> None:
        self._plain = plain

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: http.client.HTTPMessage, newurl: str
    ) -> urllib.request.Request | None:
        """Return the request that follows a redirect.

        Raises:
            TaskError: the redirect gives up encryption, and that is not allowed.
        """
        following = super().redirect_request(req, fp, code, msg, headers, newurl)
        if following is not None and not self._plain and req.type == "https" and following.type != "https":
            raise TaskError(f"{req.full_url} leads to {following.full_url}, which is not encrypted; it is not downloaded")
        return following
