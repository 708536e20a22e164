"""Archives from elsewhere are unpacked inside their folder, and those that mean harm are not unpacked."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import stat
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from mlagentbench.data.download import archives
from mlagentbench.data.download.archives import unpack
from mlagentbench.errors import TaskError

FILES = {"data/train/a.csv": b"a" * 5000, "data/train/b.csv": b"b", "data/test/c.csv": b"", "notes.txt": b"n"}


def zipped(path: Path, files: Mapping[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data/", b"")
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def tarred(path: Path, files: Mapping[str, bytes]) -> Path:
    mode = {".gz": "w:gz", ".bz2": "w:bz2", ".xz": "w:xz"}.get(path.suffix, "w")
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        folder = tarfile.TarInfo("./data")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def found(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", ["x.zip", "x.tar", "x.tar.gz", "x.tar.bz2", "x.tar.xz"])
def test_an_archive_is_unpacked_or_only_what_is_kept_of_it(tmp_path: Path, name: str) -> None:
    archive = (zipped if name.endswith("zip") else tarred)(tmp_path / name, FILES)
    unpack(archive, tmp_path / "all")
    assert found(tmp_path / "all") == FILES
    unpack(archive, tmp_path / "some", keep=["data/train/*", "*.txt"])
    assert set(found(tmp_path / "some")) == {"data/train/a.csv", "data/train/b.csv", "notes.txt"}


@pytest.mark.parametrize("ending, compress", [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)])
def test_one_compressed_file_loses_its_ending(tmp_path: Path, ending: str, compress: Callable[[bytes], bytes]) -> None:
    (tmp_path / f"train.csv{ending}").write_bytes(compress(b"a,b\n1,2\n"))
    unpack(tmp_path / f"train.csv{ending}", tmp_path / "into")
    assert found(tmp_path / "into") == {"train.csv": b"a,b\n1,2\n"}


def test_an_archive_with_an_archive_at_its_end_is_what_it_begins_as(tmp_path: Path) -> None:
    inner = zipped(tmp_path / "inner.zip", FILES)
    unpack(tarred(tmp_path / "x.tar", {"inner.zip": inner.read_bytes()}), tmp_path / "into")
    assert set(found(tmp_path / "into")) == {"inner.zip"}


def test_a_glob_that_matches_nothing_is_said(tmp_path: Path) -> None:
    archive = zipped(tmp_path / "x.zip", FILES)
    with pytest.raises(TaskError, match=r"holds nothing called data/validation/\*"):
        unpack(archive, tmp_path / "into", keep=["data/train/*", "data/validation/*"])


@pytest.mark.parametrize("make", [zipped, tarred])
@pytest.mark.parametrize("name", ["../escaped.txt", "/tmp/escaped.txt", "data/../../escaped.txt", "..\\escaped.txt"])
def test_nothing_leaves_the_folder(tmp_path: Path, make: Callable[[Path, Mapping[str, bytes]], Path], name: str) -> None:
    archive = make(tmp_path / "x", {name: b"harm"})
    with pytest.raises(TaskError, match="lies outside"):
        unpack(archive, tmp_path / "deep" / "into")
    assert not list(tmp_path.rglob("escaped.txt"))
    assert not Path("/tmp/escaped.txt").exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_links_and_devices_in_a_tar_are_refused(tmp_path: Path, kind: bytes) -> None:
    with tarfile.open(tmp_path / "x.tar", "w") as tar:
        info = tarfile.TarInfo("link")
        info.type, info.linkname = kind, "/etc/passwd"
        tar.addfile(info)
    with pytest.raises(TaskError, match="no plain file"):
        unpack(tmp_path / "x.tar", tmp_path / "into")
    assert found(tmp_path / "into") == {}


def test_links_in_a_zip_are_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        info = zipfile.ZipInfo("link")
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, "/etc/passwd")
    with pytest.raises(TaskError, match="holds a link"):
        unpack(tmp_path / "x.zip", tmp_path / "into")


@pytest.mark.parametrize("name", ["x.zip", "x.tar.gz", "x.gz"])
def test_a_bomb_is_not_unpacked(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "SMALL", 1 << 20)
    monkeypatch.setattr(archives, "LARGEST_RATIO", 50)
    bomb = b"\0" * (8 << 20)
    if name == "x.gz":
        (tmp_path / name).write_bytes(gzip.compress(bomb))
    else:
        (zipped if name == "x.zip" else tarred)(tmp_path / name, {"bomb": bomb})
    with pytest.raises(TaskError, match=r"more than|than it may"):
        unpack(tmp_path / name, tmp_path / "into")
    assert sum(map(len, found(tmp_path / "into").values())) <= 2 << 20


def test_a_member_that_is_larger_than_it_says_is_not_unpacked(tmp_path: Path) -> None:
    archive = zipped(tmp_path / "x.zip", {"small": b"x" * 100_000})
    content = archive.read_bytes()
    archive.write_bytes(content.replace((100_000).to_bytes(4, "little"), (10).to_bytes(4, "little")))
    with pytest.raises(TaskError):
        unpack(archive, tmp_path / "into")
    assert len((tmp_path / "into" / "small").read_bytes()) <= 10


@pytest.mark.parametrize("name", ["x.zip", "x.tar.gz", "x.tar.xz", "x.tar"])
def test_a_damaged_archive_is_said_to_be(tmp_path: Path, name: str) -> None:
    archive = (zipped if name == "x.zip" else tarred)(tmp_path / name, {"a": bytes(range(256)) * 400})
    archive.write_bytes(archive.read_bytes()[:-600] if name != "x.tar" else archive.read_bytes()[:50_000])
    with pytest.raises(TaskError, match="damaged"):
        unpack(archive, tmp_path / "into")


def test_what_is_no_archive_is_said_to_be_none(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("<html>Sign in</html>")
    with pytest.raises(TaskError, match="no archive that can be unpacked"):
        unpack(tmp_path / "page.html", tmp_path / "into")
