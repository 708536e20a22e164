"""Downloads come whole and right however the network behaves, or not at all. The server is real, and so are the processes."""

from __future__ import annotations

import hashlib
import io
import os
import random
import shutil
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from mlagentbench.data import fetch
from mlagentbench.data.download import display, transfer
from mlagentbench.errors import TaskError
from mlagentbench.task.spec import TaskSpec
from tests.mirror import Cut, Mirror, Redirect, Slow, Status, Wrong, serve
from tests.support import HANGING

URL = "https://example.org/data/train.csv"
CONTENT = random.Random(0).randbytes(300_000)
OTHER = random.Random(1).randbytes(300_000)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits are short."""
    monkeypatch.setattr(transfer, "FIRST_WAIT", 0.01)


def spec(checksums: Mapping[str, str]) -> TaskSpec:
    """A task that publishes checksums."""
    return TaskSpec.model_validate(
        {
            "id": "tiny",
            "title": "t",
            "category": "c",
            "modality": "m",
            "published": "2026-01-31",
            "metric": {"name": "accuracy", "direction": "maximize"},
            "submission": {"mode": "file", "files": ["s"], "required": ["s"]},
            "data": {"url": "u", "licence": "l", "download_mb": 1, "disk_mb": 1, "checksums": checksums},
        }
    )


def sha256(content: bytes) -> str:
    return "sha256:" + hashlib.sha256(content).hexdigest()


def md5(content: bytes) -> str:
    return "md5:" + hashlib.md5(content).hexdigest()


def kept(tmp_path: Path) -> list[str]:
    """The names of what lies in the downloads, beside our records."""
    paths = (tmp_path / "cache" / "downloads").rglob("*")
    return sorted(path.name for path in paths if path.is_file() and path.suffix != ".record")


def test_a_file_comes_once_and_then_from_the_cache(mirror: Mirror) -> None:
    mirror.add(URL, CONTENT)
    path = fetch.download(URL)
    assert path.name == "train.csv"
    assert path.read_bytes() == CONTENT
    assert fetch.download(URL) == path
    assert len(mirror.requests) == 1


def test_what_was_cut_off_is_gone_on_with(mirror: Mirror) -> None:
    mirror.add(URL, CONTENT)
    mirror.fail(URL, Cut(100_000), Cut(50_000), Status(503), Cut(0))
    assert fetch.download(URL).read_bytes() == CONTENT
    assert [asked.range for asked in mirror.requests] == [None, "bytes=100000-", *["bytes=150000-"] * 3]


def test_a_server_that_brings_a_little_each_time_brings_it_all(mirror: Mirror) -> None:
    mirror.add(URL, CONTENT)
    mirror.fail(URL, *[Cut(30_000)] * 9)
    assert fetch.download(URL).read_bytes() == CONTENT


def test_a_server_that_brings_nothing_is_left_and_what_has_come_stays(mirror: Mirror, tmp_path: Path) -> None:
    mirror.add(URL, CONTENT)
    mirror.fail(URL, Cut(100_000), *[Status(503)] * transfer.TRIES)
    with pytest.raises(TaskError, match=r"cannot download .*503.*what has come is kept \(100\.0 kB\)"):
        fetch.download(URL)
    assert ".train.csv.part" in kept(tmp_path)
    mirror.faults.clear()
    assert fetch.download(URL).read_bytes() == CONTENT
    assert mirror.requests[-1].range == "bytes=100000-"
    assert kept(tmp_path) == ["train.csv"]


def test_a_server_that_asks_for_patience_gets_it(mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    mirror.add(URL, CONTENT)
    mirror.fail(URL, Status(429, retry_after="1"))
    started = time.monotonic()
    fetch.download(URL)
    assert time.monotonic() - started >= 1


@pytest.mark.parametrize("status, why", [(404, "it is not there"), (403, "it does not let you have it"), (410, "no more")])
def test_what_will_not_come_is_said_at_once(mirror: Mirror, status: int, why: str) -> None:
    mirror.fail(URL, Status(status))
    with pytest.raises(TaskError, match=f"cannot download .*train.csv: .*{why}.*HTTP {status}"):
        fetch.download(URL)
    assert len(mirror.requests) == 1


def test_a_server_that_falls_silent_is_asked_again(mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    once = fetch.transfer

    def impatient(*arguments: Any, **more: Any) -> None:
        monkeypatch.setattr(transfer, "TIMEOUT", HANGING if mirror.requests else 1.0)
        once(*arguments, **more)

    monkeypatch.setattr(fetch, "transfer", impatient)
    mirror.add(URL, CONTENT)
    mirror.fail(URL, Slow(1000, 600))
    assert fetch.download(URL).read_bytes() == CONTENT
    assert len(mirror.requests) >= 2, "more where the server had no core to answer in a second"


def test_nobody_answers(mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLAB_MIRROR", "http://127.0.0.1:9")
    with pytest.raises(TaskError, match=r"cannot download .*Connection refused"):
        fetch.download(URL)


def test_a_file_that_changed_while_it_came_comes_whole(mirror: Mirror) -> None:
    mirror.add(URL, OTHER)
    mirror.fail(URL, Cut(100_000), *[Status(503)] * transfer.TRIES)
    with pytest.raises(TaskError):
        fetch.download(URL)
    mirror.add(URL, CONTENT)
    assert fetch.download(URL).read_bytes() == CONTENT
    assert mirror.requests[-1].range == "bytes=100000-"


@pytest.mark.parametrize("lack", ["ranges", "tags"])
def test_a_server_that_cannot_go_on_begins_anew(mirror: Mirror, lack: str) -> None:
    setattr(mirror, lack, False)
    mirror.add(URL, CONTENT)
    mirror.fail(URL, Cut(100_000))
    assert fetch.download(URL).read_bytes() == CONTENT


def test_a_server_that_does_not_say_how_much_it_sends(mirror: Mirror) -> None:
    mirror.lengths = False
    mirror.add(URL, CONTENT)
    mirror.fail(URL, Cut(100_000))
    with fetch.fetching(spec({"train.csv": sha256(CONTENT)}), Path(os.environ["MLAB_CACHE"])), pytest.raises(TaskError, match=r"100\.0 kB"):
        fetch.download(URL)
    with fetch.fetching(spec({"train.csv": sha256(CONTENT)}), Path(os.environ["MLAB_CACHE"])):
        assert fetch.download(URL).read_bytes() == CONTENT


@pytest.mark.parametrize("more, requests", [(OTHER, 2), (b"", 1)])
def test_a_part_that_is_whole_is_taken_and_a_longer_one_is_downloaded_anew(
    mirror: Mirror, tmp_path: Path, more: bytes, requests: int
) -> None:
    mirror.add(URL, CONTENT)
    source = f"{mirror.url}/example.org/data/train.csv"
    part = transfer.PartialDownload.of(tmp_path / "train.csv")
    part.begin(source, '"a tag"')
    part.content.write_bytes(CONTENT + more)
    mirror.fail(URL, Wrong(CONTENT, tag='"a tag"'))
    transfer.persist(lambda: transfer.transfer(source, part, plain=True, advance=print), part.size, print)
    assert part.content.read_bytes() == CONTENT
    assert [asked.range for asked in mirror.requests] == [f"bytes={len(CONTENT + more)}-", None][:requests]


@pytest.mark.parametrize("checksum", [sha256(CONTENT), md5(CONTENT), sha256(CONTENT).upper().replace("SHA256", "sha256")])
def test_a_file_that_is_as_published_is_taken(mirror: Mirror, tmp_path: Path, checksum: str) -> None:
    mirror.add(URL, CONTENT)
    with fetch.fetching(spec({"train.csv": checksum}), tmp_path / "cache"):
        assert fetch.download(URL).read_bytes() == CONTENT


def test_a_file_that_is_not_as_published_is_refused_and_not_kept(mirror: Mirror, tmp_path: Path) -> None:
    mirror.add(URL, OTHER)
    with (
        fetch.fetching(spec({"train.csv": sha256(CONTENT)}), tmp_path / "cache"),
        pytest.raises(TaskError, match=f"not the file it should be.*{hashlib.sha256(OTHER).hexdigest()}.*published.*nothing of it is kept"),
    ):
        fetch.download(URL)
    assert kept(tmp_path) == []


def test_two_editions_put_together_are_noticed_and_fetched_anew(mirror: Mirror, tmp_path: Path) -> None:
    tag = '"' + hashlib.md5(CONTENT).hexdigest() + '"'
    mirror.add(URL, CONTENT)
    mirror.fail(URL, Cut(100_000), Wrong(OTHER, tag=tag))
    with fetch.fetching(spec({"train.csv": sha256(CONTENT)}), tmp_path / "cache"):
        assert fetch.download(URL).read_bytes() == CONTENT
    assert [asked.range for asked in mirror.requests] == [None, "bytes=100000-", None]


@pytest.mark.parametrize("checksum", ["sha1:00", "sha256:00", "0" * 64, "md5:" + "x" * 32])
def test_what_is_no_checksum_is_said(mirror: Mirror, tmp_path: Path, checksum: str) -> None:
    mirror.add(URL, CONTENT)
    with fetch.fetching(spec({"train.csv": checksum}), tmp_path / "cache"), pytest.raises(TaskError, match=r"data.checksums.*sha256:"):
        fetch.download(URL)


def test_without_a_published_checksum_the_first_downloads_is_recorded_and_held_to(
    mirror: Mirror, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mirror.add(URL, CONTENT)
    path = fetch.download(URL)
    told = capsys.readouterr().err
    assert "no checksum is published" in told and sha256(CONTENT) in told
    path.unlink()
    mirror.add(URL, OTHER)
    with pytest.raises(TaskError, match=r"first download's is .*if it was meant to change, remove (\S+);") as error:
        fetch.download(URL)
    assert kept(tmp_path) == []
    record = str(error.value).partition("remove ")[2].partition(";")[0]
    Path(record).unlink()
    assert fetch.download(URL).read_bytes() == OTHER


def test_a_file_that_was_damaged_in_the_cache_is_fetched_again(mirror: Mirror) -> None:
    mirror.add(URL, CONTENT)
    path = fetch.download(URL)
    path.write_bytes(CONTENT[:-1])
    assert fetch.download(URL).read_bytes() == CONTENT
    assert len(mirror.requests) == 2


def test_many_downloads_without_a_published_checksum_are_one_line(mirror: Mirror, tmp_path: Path) -> None:
    screen = io.StringIO()
    with fetch.fetching(spec({}), tmp_path / "cache", Console(file=screen)):
        for number in range(12):
            mirror.add(f"https://example.org/{number}.png", CONTENT)
            fetch.download(f"https://example.org/{number}.png")
    assert screen.getvalue().startswith("https://example.org/0.png and 11 more: no checksum is published")
    assert screen.getvalue().count("\n") == 1


def test_files_of_one_name_do_not_meet(mirror: Mirror) -> None:
    other = "https://example.org/other/train.csv"
    mirror.add(URL, CONTENT)
    mirror.add(other, OTHER)
    assert fetch.download(URL).read_bytes() == CONTENT
    assert fetch.download(other).read_bytes() == OTHER
    assert fetch.download(URL, name="x.csv").name == "x.csv"


@pytest.mark.parametrize("url, name", [("https://example.org/", None), (URL, "../x"), (URL, ".x")])
def test_a_file_needs_a_name(mirror: Mirror, url: str, name: str | None) -> None:
    with pytest.raises(TaskError, match="names no file"):
        fetch.download(url, name=name)


def test_a_connection_without_encryption_needs_a_published_checksum(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("MLAB_MIRROR", raising=False)
    monkeypatch.setenv("MLAB_CACHE", str(tmp_path / "cache"))
    with pytest.raises(TaskError, match="not encrypted"):
        fetch.download("http://example.org/train.csv")


@pytest.fixture
def secure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mirror:
    """A server with a certificate that nobody signed, on this machine."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl, which makes the certificate, is not installed")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-days", "2"]
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", *names]
    subprocess.run([*command, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    mirror, server = serve(tmp_path / "secure")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    mirror.url = f"https://localhost:{server.server_port}"
    monkeypatch.delenv("MLAB_MIRROR", raising=False)
    monkeypatch.setenv("MLAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    return mirror


def test_a_certificate_that_is_not_trusted_ends_it_at_once(secure: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(TaskError, match="certificate is not trusted"):
        fetch.download(f"{secure.url}/train.csv")


def test_a_redirect_that_gives_up_encryption_is_not_followed(secure: Mirror, mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLAB_MIRROR")
    (secure.root / "train.csv").parent.mkdir(exist_ok=True)
    (secure.root / "train.csv").write_bytes(CONTENT)
    assert fetch.download(f"{secure.url}/train.csv").read_bytes() == CONTENT
    secure.faults["other.csv"].append(Redirect(f"{mirror.url}/example.org/data/train.csv"))
    mirror.add(URL, CONTENT)
    with pytest.raises(TaskError, match="not encrypted"):
        fetch.download(f"{secure.url}/other.csv")
    assert mirror.requests == []


def test_a_thread_of_full_fetches_for_the_same_task(mirror: Mirror, tmp_path: Path) -> None:
    mirror.add(URL, OTHER)
    wanted = spec({"train.csv": sha256(CONTENT)})
    with ThreadPoolExecutor() as pool, fetch.fetching(wanted, tmp_path / "cache"), pytest.raises(TaskError, match="not the file"):
        pool.submit(fetch.download, URL).result()
    one, other = fetch.fetching(wanted, tmp_path / "cache"), fetch.fetching(wanted, tmp_path / "other")
    with ThreadPoolExecutor() as pool, one, other, pytest.raises(TaskError, match="copy_context"):
        pool.submit(fetch.download, URL).result()


def test_threads_share_a_terminal(mirror: Mirror, tmp_path: Path) -> None:
    urls = [f"https://example.org/{number}.csv" for number in range(4)]
    for url in urls:
        mirror.add(url, CONTENT)
        mirror.fail(url, Slow(1000, 0.3))
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=100)
    with ThreadPoolExecutor() as pool, fetch.fetching(spec({}), tmp_path / "cache", console):
        paths = list(pool.map(fetch.download, urls))
    assert [path.read_bytes() for path in paths] == [CONTENT] * 4
    assert all(path.name in screen.getvalue() for path in paths)


FETCH = """
import sys
from mlagentbench.data import fetch
print(fetch.download(sys.argv[1]))
"""


def start(url: str = URL) -> subprocess.Popen[str]:
    """A process that downloads a file."""
    return subprocess.Popen([sys.executable, "-c", FETCH, url], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_processes_that_download_at_once_download_once(mirror: Mirror) -> None:
    mirror.add(URL, CONTENT)
    mirror.fail(URL, Slow(1000, 1.5))
    processes = [start() for _ in range(3)]
    ended = [process.communicate(timeout=HANGING) for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], ended
    assert len(mirror.requests) == 1
    assert len({out for out, _ in ended}) == 1
    assert Path(ended[0][0].strip()).read_bytes() == CONTENT


def test_a_download_that_was_killed_is_gone_on_with(mirror: Mirror, tmp_path: Path) -> None:
    mirror.add(URL, CONTENT)
    mirror.fail(URL, Slow(200_000, 600))
    process = start()
    part = None
    while part is None or not part.stat().st_size:
        assert process.poll() is None
        part = next((tmp_path / "cache" / "downloads").rglob("*.part"), None)
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=HANGING)
    have = part.stat().st_size
    assert 0 < have < len(CONTENT)
    assert fetch.download(URL).read_bytes() == CONTENT
    assert mirror.requests[-1].range == f"bytes={have}-"
    assert kept(tmp_path) == ["train.csv"]


def test_a_terminal_shows_a_bar_and_a_file_shows_lines(mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(display, "LARGE", 200_000)
    mirror.add(URL, CONTENT)
    for terminal, expected in ((True, "━"), (False, "train.csv: downloading 300.0 kB\ntrain.csv: 300.0 kB, done\n")):
        screen = io.StringIO()
        console = Console(file=screen, force_terminal=terminal, width=100)
        with fetch.fetching(spec({}), tmp_path / f"cache {terminal}", console):
            fetch.download(URL)
        assert expected in screen.getvalue()
