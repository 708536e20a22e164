"""What an agent can reach by naming paths, and what it cannot."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from mlagentbench.errors import ActionError, StorageFailed, TaskError
from mlagentbench.workspace.paths import Workspace, create_workspace
from tests.workspace.support import tree

OUTSIDE = "nobody inside may read this"


def writes(workspace: Workspace, path: str) -> list[Callable[[], object]]:
    """Every way to change what a path names."""
    return [
        partial(workspace.write_text, path, "mine"),
        partial(workspace.append_text, path, "mine"),
        partial(workspace.copy, "train.py", path),
    ]


def reads(workspace: Workspace, path: str) -> list[Callable[[], object]]:
    """Every way to read the file that a path names."""
    return [partial(workspace.read_bytes, path), partial(workspace.read_text, path), partial(workspace.copy, path, "copy")]


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """A workspace `ws` with read-only data `train.csv` and `images`, beside things that are not its business."""
    (tmp_path / "starter" / "src").mkdir(parents=True)
    (tmp_path / "starter" / "train.py").write_text("print('hello')\n")
    (tmp_path / "starter" / "src" / "net.py").write_text("width = 8\n")
    (tmp_path / "public" / "images" / "deep").mkdir(parents=True)
    (tmp_path / "public" / "train.csv").write_text("id,x\n1,2\n")
    (tmp_path / "public" / "images" / "deep" / "a.png").write_bytes(b"\x89PNG")
    (tmp_path / "secret.txt").write_text(OUTSIDE)
    (tmp_path / "ws-sibling").mkdir()
    (tmp_path / "ws-sibling" / "secret.txt").write_text(OUTSIDE)
    return tmp_path


@pytest.fixture
def workspace(world: Path) -> Workspace:
    public = world / "public"
    return create_workspace(world / "ws", world / "starter", {"train.csv": public / "train.csv", "images": public / "images"})


def test_a_starter_is_copied_and_data_is_not(world: Path, workspace: Workspace) -> None:
    assert workspace.list() == ["images/", "src/", "train.csv", "train.py"]
    assert workspace.list("images/deep") == ["a.png"]
    assert workspace.read_text("train.csv") == "id,x\n1,2\n"
    assert (world / "ws" / "train.csv").stat().st_size == 0
    assert list((world / "ws" / "images").iterdir()) == []


def test_a_starter_leaves_its_caches_behind_and_its_copy_can_be_written(world: Path) -> None:
    (world / "starter" / "__pycache__").mkdir()
    (world / "starter" / "__pycache__" / "train.pyc").write_bytes(b"")
    (world / "starter" / "train.py").chmod(0o444)
    laid = create_workspace(world / "ws", world / "starter", {})
    assert laid.list() == ["src/", "train.py"]
    assert (laid.root / "train.py").stat().st_mode & 0o200


def test_a_starter_that_brings_a_name_of_the_data_is_refused(world: Path) -> None:
    with pytest.raises(TaskError, match=r"train\.py"):
        create_workspace(world / "ws", world / "starter", {"train.py": world / "public" / "train.csv"})


def test_links_to_data_lead_scripts_there_and_the_agent_too(world: Path) -> None:
    laid = create_workspace(world / "ws", world / "starter", {"images": world / "public" / "images"}, links=True)
    assert (laid.root / "images" / "deep" / "a.png").read_bytes() == b"\x89PNG"
    assert laid.read_bytes("images/deep/a.png") == b"\x89PNG"
    assert laid.list() == ["images/", "src/", "train.py"]
    with pytest.raises(ActionError, match="read-only"):
        laid.write_text("images/deep/a.png", "mine")


@pytest.mark.parametrize("links", [True, False])
def test_data_that_was_replaced_is_laid_again(world: Path, links: bool) -> None:
    public = world / "public"
    laid = create_workspace(world / "ws", world / "starter", {"images": public / "images", "train.csv": public / "train.csv"}, links=links)
    before = tree(laid.root)
    (laid.root / "train.csv").unlink()
    (laid.root / "train.csv").mkdir(0)
    (laid.root / "images").unlink() if links else (laid.root / "images").rmdir()
    (laid.root / "images").write_text("forged")
    laid.restore_data()
    assert tree(laid.root).keys() == before.keys()
    assert (public / "train.csv").read_text() == "id,x\n1,2\n"
    for name in laid.data if links else ():
        assert (laid.root / name).readlink() == public / name


@pytest.mark.parametrize(
    "path",
    [
        "../secret.txt",
        "src/../../secret.txt",
        "/etc/passwd",
        "../ws-sibling/secret.txt",
        "/workspace/../secret.txt",
        "/workspace-2/x",
        "//etc/passwd",
    ],
)
def test_no_spelling_leads_outside(world: Path, workspace: Workspace, path: str) -> None:
    for named in (path, f"{world}/ws-sibling/secret.txt", f"{world}/ws/../secret.txt"):
        others = [partial(act, named) for act in (workspace.remove, workspace.list, workspace.kind, workspace.is_read_only)]
        for act in reads(workspace, named) + writes(workspace, named) + others:
            with pytest.raises(ActionError, match="outside the workspace"):
                act()
    assert (world / "secret.txt").read_text() == OUTSIDE


@pytest.mark.parametrize(
    "path", ["train.csv", "./train.csv", "src/../train.csv", "/workspace/train.csv", "nothing/../train.csv", "train.csv/", ".//train.csv"]
)
def test_read_only_data_stays_so_whatever_the_spelling(world: Path, workspace: Workspace, path: str) -> None:
    assert workspace.is_read_only(path)
    for act in [*writes(workspace, path), partial(workspace.remove, path)]:
        with pytest.raises(ActionError, match="read-only"):
            act()
    assert workspace.read_text(path) == "id,x\n1,2\n"
    assert (world / "public" / "train.csv").read_text() == "id,x\n1,2\n"


def test_nothing_can_be_made_inside_read_only_folders(world: Path, workspace: Workspace) -> None:
    for path in ("images/new.png", "images/deep/a.png", "images/../images/deep/b", "images"):
        with pytest.raises(ActionError, match="read-only"):
            workspace.write_text(path, "mine")
    with pytest.raises(ActionError, match="outside"):
        workspace.read_text("images/../../secret.txt")
    assert sorted(os.listdir(world / "public" / "images")) == ["deep"]


def test_data_is_found_though_a_script_removed_its_place(workspace: Workspace) -> None:
    (workspace.root / "train.csv").unlink()
    (workspace.root / "train.csv").write_text("forged")
    assert workspace.read_text("train.csv") == "id,x\n1,2\n"
    assert workspace.is_read_only("train.csv")


def test_links_are_never_followed(world: Path, workspace: Workspace) -> None:
    (workspace.root / "file").symlink_to(world / "secret.txt")
    (workspace.root / "folder").symlink_to(world)
    (workspace.root / "inner").symlink_to("train.py")
    (workspace.root / "dangling").symlink_to(world / "made.txt")
    (workspace.root / "proc").symlink_to("/proc/self/root")
    for path in ("file", "folder/secret.txt", "inner", "dangling", "proc/etc/passwd"):
        for act in reads(workspace, path) + writes(workspace, path):
            with pytest.raises(ActionError):
                act()
    with pytest.raises(ActionError):
        workspace.list("folder")
    assert (world / "secret.txt").read_text() == OUTSIDE
    assert not (world / "made.txt").exists()
    assert workspace.kind("file") == "other"
    assert workspace.kind("folder/secret.txt") is None


def test_a_removed_link_leaves_what_it_pointed_at(world: Path, workspace: Workspace) -> None:
    (workspace.root / "file").symlink_to(world / "secret.txt")
    workspace.remove("file")
    assert workspace.kind("file") is None
    assert (world / "secret.txt").read_text() == OUTSIDE


def test_hard_links_to_the_outside_are_neither_read_nor_written(world: Path, workspace: Workspace) -> None:
    os.link(world / "secret.txt", workspace.root / "innocent.txt")
    for act in reads(workspace, "innocent.txt") + writes(workspace, "innocent.txt"):
        with pytest.raises(ActionError, match="several names"):
            act()
    assert (world / "secret.txt").read_text() == OUTSIDE


def test_data_with_several_names_can_be_read(world: Path, workspace: Workspace) -> None:
    os.link(world / "public" / "train.csv", world / "another-name")
    assert workspace.read_text("train.csv") == "id,x\n1,2\n"


def test_pipes_sockets_and_devices_are_never_opened(workspace: Workspace) -> None:
    os.mkfifo(workspace.root / "pipe")
    listening = socket.socket(socket.AF_UNIX)
    with contextlib.chdir(workspace.root):  # the path of a socket is short
        listening.bind("socket")
    listening.close()
    for path in ("pipe", "socket"):
        for act in reads(workspace, path) + writes(workspace, path):
            with pytest.raises(ActionError, match="no regular file"):
                act()
        assert workspace.kind(path) == "other"


def test_a_folder_swapped_for_a_link_again_and_again_is_no_way_out(world: Path, workspace: Workspace) -> None:
    outside = world / "outside"
    outside.mkdir()
    (outside / "note.txt").write_text(OUTSIDE)
    swap = "while :; do rm -rf d; ln -s ../outside d; rm -rf d; mkdir d; printf inside >d/note.txt; done"
    swapping = subprocess.Popen(["sh", "-c", swap], cwd=workspace.root, stderr=subprocess.DEVNULL)
    entered = 0
    try:
        until = time.monotonic() + 1.0
        while time.monotonic() < until or not entered:
            with contextlib.suppress(ActionError):
                assert workspace.read_text("d/note.txt") in ("", "inside")
                entered += 1
            with contextlib.suppress(ActionError):
                workspace.write_text("d/planted.txt", "x")
    finally:
        swapping.kill()
        swapping.wait()
    assert os.listdir(outside) == ["note.txt"]


@pytest.mark.parametrize(
    "name", ["with space", "quote'\"", "new\nline", "-rf", "*", "~", "$HOME", "\udcff\udcfe", "é", "a" * 255, "back\\slash", "\x1b[31m"]
)
def test_any_name_works(workspace: Workspace, name: str) -> None:
    workspace.write_text(f"d/{name}", "first\n")
    workspace.append_text(f"d/{name}", "second\n")
    workspace.copy(f"d/{name}", f"e/{name}")
    assert workspace.read_text(f"e/{name}") == "first\nsecond\n"
    assert os.listdir(os.fsencode(workspace.root / "e")) == [os.fsencode(name)]
    (shown,) = workspace.list("e")
    assert shown.isprintable()
    assert workspace.read_text(f"e/{shown}") == "first\nsecond\n"
    workspace.remove(f"d/{shown}")
    assert workspace.list("d") == []


def test_undecodable_bytes_come_through_a_read_and_a_write(workspace: Workspace) -> None:
    content = bytes(range(256)) + "é\r\n".encode() + b"\xf0\x9f"
    workspace.write_bytes("odd.txt", content)
    workspace.write_text("odd.txt", workspace.read_text("odd.txt"))
    assert workspace.read_bytes("odd.txt") == content


def test_text_that_no_file_can_hold_is_refused_and_changes_nothing(workspace: Workspace) -> None:
    with pytest.raises(ActionError, match="surrogate"):
        workspace.write_text("train.py", "a\ud800b")
    assert workspace.read_text("train.py") == "print('hello')\n"


@pytest.mark.parametrize("path", ["", "a\0b", "a/\ud800"])
def test_what_cannot_be_a_path_is_refused(workspace: Workspace, path: str) -> None:
    with pytest.raises(ActionError):
        workspace.read_text(path)


@pytest.mark.parametrize("path", [".", "/workspace", "src", "src/..", "/workspace/"])
def test_a_folder_is_no_file(workspace: Workspace, path: str) -> None:
    for act in [*reads(workspace, path), *writes(workspace, path), partial(workspace.remove, path)]:
        with pytest.raises(ActionError):
            act()
    assert workspace.kind(path) == "folder"


def test_absolute_paths_as_scripts_see_them_are_understood(workspace: Workspace) -> None:
    assert workspace.read_text("/workspace/src/net.py") == "width = 8\n"
    assert workspace.read_text(f"{workspace.root}/src/net.py") == "width = 8\n"
    assert workspace.list("/workspace") == workspace.list()


@pytest.mark.parametrize("path", ["none.txt", "none/x.txt", "train.py/x", "a" * 300, "a/" * 3000])
def test_a_path_to_nothing_is_told_in_one_line(workspace: Workspace, path: str) -> None:
    assert workspace.kind(path) is None
    with pytest.raises(ActionError) as told:
        workspace.read_text(path)
    assert "\n" not in str(told.value)


def test_a_file_too_large_is_not_read(workspace: Workspace) -> None:
    with (workspace.root / "large").open("wb") as file:
        file.truncate(50 << 30)
    with pytest.raises(ActionError, match=r"53,687,091,200 bytes"):
        workspace.read_text("large")


def test_a_written_file_keeps_its_mode_and_a_copy_takes_it(workspace: Workspace) -> None:
    (workspace.root / "run.sh").write_text("echo 1\n")
    (workspace.root / "run.sh").chmod(0o750)
    workspace.write_text("run.sh", "echo 2\n")
    workspace.copy("run.sh", "deep/er/run.sh")
    assert (workspace.root / "run.sh").stat().st_mode & 0o777 == 0o750
    assert (workspace.root / "deep" / "er" / "run.sh").stat().st_mode & 0o777 == 0o750


def test_a_copied_hole_stays_a_hole(workspace: Workspace) -> None:
    with (workspace.root / "sparse").open("wb") as file:
        file.seek(1 << 30)
        file.write(b"end")
    workspace.copy("sparse", "copied")
    status = (workspace.root / "copied").stat()
    assert status.st_size == (1 << 30) + 3
    assert status.st_blocks * 512 < 1 << 20


def test_a_reader_sees_the_old_or_the_new_file_and_nothing_between(workspace: Workspace) -> None:
    texts = ["a" * 300_000, "b" * 500_000]
    workspace.write_text("flip", texts[0])
    seen: set[str] = set()
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            seen.add((workspace.root / "flip").read_text())

    reader = threading.Thread(target=read)
    reader.start()
    for turn in range(200):
        workspace.write_text("flip", texts[turn % 2])
    done.set()
    reader.join()
    assert seen <= set(texts)
    assert workspace.list() == ["flip", "images/", "src/", "train.csv", "train.py"]


def test_a_full_disk_is_nobodys_fault_and_loses_nothing(small_disk: Path) -> None:
    workspace = Workspace(small_disk)
    workspace.write_text("kept", "old")
    workspace.write_text("log", "line\n")
    with pytest.raises(StorageFailed):
        workspace.write_bytes("kept", bytes(8 << 20))
    with pytest.raises(StorageFailed):
        workspace.append_text("log", "x" * (8 << 20))
    assert workspace.read_text("kept") == "old"
    assert workspace.read_text("log") == "line\n"
    assert workspace.list() == ["kept", "log"]
