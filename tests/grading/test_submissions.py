"""What is told of a submission by its snapshot alone."""

from __future__ import annotations

import pytest

from mlagentbench.grading.reader import MAX_FILES
from mlagentbench.grading.submissions import LARGEST, unusable
from mlagentbench.task.catalogue import find_task
from mlagentbench.workspace.snapshots.snapshots import Manifest, ManifestEntry

SPEC = find_task("babylm").spec  # model/config.json, model/tokenizer.json and model/model.safetensors
FILE, FOLDER = ManifestEntry("file", 0o644, size=10, digest="0" * 64), ManifestEntry("folder", 0o755)
WHOLE = {"model": FOLDER, **{name: FILE for name in SPEC.submission.required}}


def test_whole_files_are_for_the_grader_to_judge_and_missing_ones_are_none_at_all() -> None:
    assert unusable(SPEC, Manifest(WHOLE)) is None
    assert unusable(SPEC, Manifest({})) is None
    assert unusable(SPEC, Manifest({"model": FOLDER})) is None


@pytest.mark.parametrize(
    ("path", "entry", "reason"),
    [
        ("model", ManifestEntry("link", 0o777, target="/etc"), "model is a link; leave a folder"),
        ("model", FILE, "model is a file; leave a folder"),
        (
            "model",
            FOLDER._replace(note="unreadable: Permission denied"),
            "model cannot be read (Permission denied); leave a folder of your own",
        ),
        ("model/config.json", ManifestEntry("fifo", 0o644), "model/config.json is a named pipe; leave a regular file"),
        (
            "model/config.json",
            FILE._replace(digest=None, note="it changed while it was read"),
            "config.json cannot be read (it changed while",
        ),
        ("model/large", FILE._replace(size=LARGEST), f"its files are larger than 8,192 MB together, model/large has {LARGEST >> 20:,} MB"),
        ("model/a\nb\x1b[31m", FILE._replace(size=LARGEST), "model/a b [31m has 8,192 MB; leave less"),
    ],
)
def test_what_a_snapshot_could_not_keep_is_said_in_words_that_help(path: str, entry: ManifestEntry, reason: str) -> None:
    assert reason in (unusable(SPEC, Manifest({**WHOLE, path: entry})) or "")


def test_more_files_than_anybody_reads_are_not_even_restored() -> None:
    many = {f"model/{number}": FILE for number in range(MAX_FILES)}
    assert unusable(SPEC, Manifest({**WHOLE, **many})) == f"there are {MAX_FILES + 4:,} files and folders; leave no more than {MAX_FILES:,}"
