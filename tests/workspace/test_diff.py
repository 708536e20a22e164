"""What a person is shown of the change between two steps."""

from __future__ import annotations

import os
import time

from tests.workspace.support import Place


def test_text_is_shown_line_by_line(place: Place) -> None:
    (place.root / "train.py").write_text("rate = 0.1\nprint(rate)\n")
    (place.root / "old.txt").write_text("old\n")
    before = place.take()
    (place.root / "train.py").write_text("rate = 0.01\nprint(rate)")
    (place.root / "old.txt").unlink()
    (place.root / "new.txt").write_text("new\n")
    new, old, train = place.store.diff(before, place.take(before))
    assert (new.path, new.change, new.size_before, new.size_after) == ("new.txt", "added", None, 4)
    assert (new.text or "").endswith("@@ -0,0 +1 @@\n+new\n")
    assert (old.path, old.change, old.size_before, old.size_after) == ("old.txt", "removed", 4, None)
    assert (train.text or "").splitlines()[2:] == [
        "@@ -1,2 +1,2 @@",
        "-rate = 0.1",
        "-print(rate)",
        "+rate = 0.01",
        "+print(rate)",
        "\\ No newline at end of file",
    ]


def test_what_is_no_text_is_named_with_its_sizes(place: Place) -> None:
    (place.root / "model.pt").write_bytes(b"\0" * 10)
    (place.root / "latin.txt").write_bytes(b"\xff")
    before = place.take()
    (place.root / "model.pt").write_bytes(b"\0" * 20)
    (place.root / "latin.txt").write_bytes(b"\xfe")
    latin, model = place.store.diff(before, place.take(before))
    assert (model.text, model.size_before, model.size_after) == (None, 10, 20)
    assert latin.text is None


def test_links_folders_and_modes_are_shown_as_such(place: Place) -> None:
    (place.root / "latest").symlink_to("a")
    (place.root / "run.sh").write_text("x\n")
    before = place.take()
    (place.root / "latest").unlink()
    (place.root / "latest").symlink_to("b")
    (place.root / "run.sh").chmod(0o755)
    (place.root / "out").mkdir()
    latest, out, run = place.store.diff(before, place.take(before))
    assert "-link a\n+link b\n" in (latest.text or "")
    assert (out.change, out.size_after) == ("added", None)
    assert run.text == "mode 644 -> 755\n"


def test_no_text_however_contrived_takes_long(place: Place) -> None:
    contrived = {
        "shuffled": lambda turn: "".join(f"{number * 7919 * (turn + 1) % 4999}\n" for number in range(4999)),
        "repeats": lambda turn: ("a\n" * (turn + 1) + "b\n") * (3000 // (turn + 2)),
        "long line": lambda turn: "x" * 250_000 + str(turn),
        "huge": lambda turn: f"{turn}\n" * 2_000_000,
    }
    for name, text in contrived.items():
        (place.root / name).write_text(text(0))
    before = place.take()
    for name, text in contrived.items():
        (place.root / name).write_text(text(1))
    after = place.take(before)
    started = time.process_time()
    changes = place.store.diff(before, after)
    assert time.process_time() - started < 20, "of minutes without bounds; some 1.4 where nothing else runs"
    assert {change.path: change.text is None for change in changes}["huge"]


def test_an_unreadable_file_is_a_change_without_text(place: Place) -> None:
    (place.root / "a").write_text("a")
    before = place.take()
    os.mkfifo(place.root / "pipe")
    (place.path / "outside").write_text("x")
    os.link(place.path / "outside", place.root / "linked")
    linked, pipe = place.store.diff(before, place.take(before))
    assert linked.text is None
    assert "+fifo" in (pipe.text or "")
