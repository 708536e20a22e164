"""A loopback server in the place of all others: files by host and path, Kaggle's way of giving them out, and every way of failing.

    mirror.add("https://example.org/data/train.csv", b"...")        # what download() then gets
    mirror.competition("titanic", {"train.csv": b"..."})            # what kaggle_competition() then gets
    mirror.fail("https://example.org/data/train.csv", Cut(100), Status(503))   # the next answers, in turn

`$MLAB_MIRROR` names it. What is asked is recorded in `requests`.
"""

from __future__ import annotations

import base64
import email.utils
import hashlib
import io
import json
import re
import threading
import time
import urllib.parse
import zipfile
from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

KAGGLE = "www.kaggle.com/competitions"
STORAGE = "storage.googleapis.com"
MODIFIED = 1_600_000_000.0


class Cut(NamedTuple):
    """Breaks off the connection after so many bytes of the answer."""

    after: int


class Status(NamedTuple):
    """Answers with a status."""

    code: int
    retry_after: str | None = None


class Wrong(NamedTuple):
    """Answers with other bytes, and a tag of theirs or the right ones'."""

    content: bytes
    tag: str | None = None


class Slow(NamedTuple):
    """Pauses after so many bytes of the answer."""

    after: int
    seconds: float


class Redirect(NamedTuple):
    """Sends the client elsewhere."""

    location: str


Fault = Cut | Status | Wrong | Slow | Redirect


class Asked(NamedTuple):
    """A request, as it came."""

    method: str
    url: str
    headers: Mapping[str, str]

    @property
    def range(self) -> str | None:
        """The part that was asked for."""
        return self.headers.get("range")


@dataclass
class Mirror:
    """The server, and what it serves: `root/<host>/<path>`."""

    root: Path
    url: str = ""
    ranges: bool = True
    """Whether parts can be asked for."""
    tags: bool = True
    """Whether files have tags and times."""
    lengths: bool = True
    """Whether it says how long a file is."""
    key: tuple[str, str] = ("somebody", "a-key")
    """Whom Kaggle knows."""
    accepted: set[str] = field(default_factory=set)
    """The competitions whose rules they accepted."""
    requests: list[Asked] = field(default_factory=list)
    faults: dict[str, deque[Fault]] = field(default_factory=lambda: defaultdict(deque))

    def add(self, url: str, content: bytes) -> Path:
        """Serve a file."""
        path = self.root / _place(url)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    def competition(self, slug: str, files: Mapping[str, bytes], *, accepted: bool = True) -> None:
        """Serve a competition of Kaggle's."""
        for name, content in files.items():
            self.add(f"https://{KAGGLE}/{slug}/{name}", content)
        if accepted:
            self.accepted.add(slug)

    def fail(self, url: str, *faults: Fault) -> None:
        """Have the next answers fail, one after the other."""
        self.faults[_place(url)].extend(faults)

    def asked(self, url: str) -> list[Asked]:
        """The requests for a file."""
        return [request for request in self.requests if _place(request.url) == _place(url)]


def _place(url: str) -> str:
    return urllib.parse.unquote(re.sub(r"^[a-z]+://", "", url).partition("?")[0])


def handler(mirror: Mirror) -> type[BaseHTTPRequestHandler]:
    """What answers."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *arguments: object) -> None:
            pass

        def do_GET(self) -> None:
            self._answer(b"")

        def do_POST(self) -> None:
            self._answer(self.rfile.read(int(self.headers.get("Content-Length", 0))))

        def _answer(self, body: bytes) -> None:
            # A client that takes this for its proxy sends the whole URL.
            place = _place(self.path.lstrip("/"))
            mirror.requests.append(Asked(self.command, place, {name.lower(): value for name, value in self.headers.items()}))
            service = re.fullmatch(r"localhost/api/v1/competitions\.CompetitionApiService/(DownloadDataFiles?)", place)
            if service:
                self._kaggle(service[1], json.loads(body))
                return
            faults = mirror.faults[place]
            self._send(place, faults.popleft() if faults else None)

        def _kaggle(self, call: str, asked: Mapping[str, str]) -> None:
            slug, file = asked["competitionName"], asked.get("fileName", "")
            given = self.headers.get("Authorization", "")
            if given != "Basic " + base64.b64encode(":".join(mirror.key).encode()).decode():
                self._plain(401)
                return
            folder = mirror.root / KAGGLE / slug
            if not folder.is_dir() or (file and not (folder / file).is_file()):
                self._plain(404)
            elif slug not in mirror.accepted:
                self._plain(403)
            elif file:
                mirror.add(f"https://{STORAGE}/{slug}/{file}", (folder / file).read_bytes())
                self._plain(302, f"http://{STORAGE}/{slug}/{urllib.parse.quote(file)}?signature=x")
            else:
                mirror.add(f"https://{STORAGE}/{slug}/archive.zip", zipped(folder))
                self._plain(302, f"http://{STORAGE}/{slug}/archive.zip?signature=x")

        def _plain(self, status: int, location: str | None = None) -> None:
            self.send_response(status)
            if location:
                self.send_header("Location", location)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def _send(self, place: str, fault: Fault | None) -> None:
            path = mirror.root / place
            if isinstance(fault, Status):
                self.send_response(fault.code)
                if fault.retry_after:
                    self.send_header("Retry-After", fault.retry_after)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            if isinstance(fault, Redirect):
                self._plain(302, fault.location)
                return
            if not path.is_file():
                self._plain(404)
                return
            content = fault.content if isinstance(fault, Wrong) else path.read_bytes()
            tag = fault.tag if isinstance(fault, Wrong) and fault.tag else '"' + hashlib.md5(content).hexdigest() + '"'
            start = self._start(content, tag)
            if start is None:
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(content)}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self.send_response(206 if start else 200)
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
            if mirror.ranges:
                self.send_header("Accept-Ranges", "bytes")
            if mirror.tags:
                self.send_header("ETag", tag)
                self.send_header("Last-Modified", email.utils.formatdate(MODIFIED, usegmt=True))
            if mirror.lengths:
                self.send_header("Content-Length", str(len(content) - start))
            else:
                self.send_header("Connection", "close")
                self.close_connection = True
            self.end_headers()
            rest = content[start:]
            if isinstance(fault, (Cut, Slow)):
                self.wfile.write(rest[: fault.after])
                self.wfile.flush()
                if isinstance(fault, Cut):
                    self.close_connection = True
                    return
                time.sleep(fault.seconds)
                rest = rest[fault.after :]
            self.wfile.write(rest)

        def _start(self, content: bytes, tag: str) -> int | None:
            """Where the part that is asked for begins; None where there is no such part."""
            match = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
            if match is None or not mirror.ranges:
                return 0
            condition = self.headers.get("If-Range")
            if condition is not None and condition not in (tag, email.utils.formatdate(MODIFIED, usegmt=True)):
                return 0
            start = int(match[1])
            return start if start < len(content) else None

    return Handler


def zipped(folder: Path) -> bytes:
    """A folder as an archive, the same each time."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                archive.writestr(zipfile.ZipInfo(str(path.relative_to(folder))), path.read_bytes())
    return buffer.getvalue()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # a client gives up after some seconds what is not taken into it

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that leaves is no error: tests kill them."""


def serve(root: Path) -> tuple[Mirror, ThreadingHTTPServer]:
    """Start a mirror of a folder."""
    mirror = Mirror(root)
    server = _Server(("127.0.0.1", 0), handler(mirror))
    mirror.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    return mirror, server
