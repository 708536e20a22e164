"""Snapshots beside a full copy of the workspace each step, which is what the original benchmark does.

    python benchmarks/snapshots.py            some minutes, about 12 GB of disk below --dir
    python benchmarks/snapshots.py --quick    some seconds, under 100 MB

Both are timed in turns on the same files in the same run. A copy is `shutil.copytree`, which leaves its bytes in the kernel's memory; a
snapshot is taken (`take`) and then made durable and published (`save`). Times are medians in milliseconds a step.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from mlagentbench.workspace.paths import Workspace
from mlagentbench.workspace.snapshots.snapshots import Manifest, SnapshotStore

MB = 1 << 20


class Timed(NamedTuple):
    """Milliseconds of each step, and bytes on disk in the end."""

    scan: list[float]
    copy: list[float]
    flush: list[float]
    take: list[float]
    save: list[float]
    unique: int
    copied: int
    stored: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer steps and files")
    parser.add_argument("--dir", type=Path, default=Path.cwd(), help="where to work; a folder is made there and removed again")
    options = parser.parse_args()
    quick = options.quick
    with tempfile.TemporaryDirectory(prefix="snapshots-", dir=options.dir) as folder:
        print(f"{os.cpu_count()} cores, {_file_system(Path(folder))}, medians of steps\n")
        print("unchanged files        scan ms   take ms   save ms   bytes on disk a step")
        for files in (100,) if quick else (100, 20_000):
            _unchanged(Path(folder) / f"unchanged-{files}", files, 3 if quick else 20)
        print("\none small change        copy ms   take+save   ratio    copies / unique   store / unique")
        for megabytes in (1,) if quick else (1, 50, 500):
            steps = 3 if quick else 10 if megabytes == 500 else 50
            _one_change(Path(folder) / f"size-{megabytes}", megabytes, steps)
        print("\none file rewritten      copy ms   take ms   ratio    copy+flush   take+save   ratio")
        _checkpoint(Path(folder) / "checkpoint", *((20, 2) if quick else (200, 10)))


def _unchanged(folder: Path, files: int, steps: int) -> None:
    _fill(folder / "workspace", files, files * 4096)
    timed = _steps(folder, steps, lambda step: None, copies=False)
    first = (folder / "snapshots" / "0000").stat().st_size
    growth = (sum(path.stat().st_size for path in (folder / "snapshots").iterdir()) - first) / steps
    print(f"{files:>15,} files  {_ms(timed.scan)}  {_ms(timed.take)}  {_ms(timed.save)}   {growth:>8,.0f}")
    shutil.rmtree(folder)


def _one_change(folder: Path, megabytes: int, steps: int) -> None:
    _fill(folder / "workspace", 100, megabytes * MB)
    timed = _steps(folder, steps, lambda step: (folder / "workspace" / "train.py").write_text(f"step = {step}\n" * 50))
    both = [sum(pair) for pair in zip(timed.take, timed.save, strict=True)]
    ratio = statistics.median(both) / statistics.median(timed.copy)
    disk = f"{timed.copied / timed.unique:>15.2f}   {timed.stored / timed.unique:>14.3f}"
    print(f"{megabytes:>4} MB, {steps:>2} steps       {_ms(timed.copy)}   {_ms(both)}  {ratio:>6.2f}    {disk}")
    shutil.rmtree(folder)


def _checkpoint(folder: Path, megabytes: int, steps: int) -> None:
    (folder / "workspace").mkdir(parents=True)
    timed = _steps(folder, steps, lambda step: (folder / "workspace" / "model.pt").write_bytes(os.urandom(megabytes * MB)), flush=True)
    take, copy = statistics.median(timed.take), statistics.median(timed.copy)
    saved = [sum(pair) for pair in zip(timed.take, timed.save, strict=True)]
    flushed = [sum(pair) for pair in zip(timed.copy, timed.flush, strict=True)]
    durable = statistics.median(saved) / statistics.median(flushed)
    plain = f"{_ms(timed.copy)}  {_ms(timed.take)}  {take / copy:>6.2f}"
    print(f"{megabytes:>4} MB, {steps:>2} steps       {plain}     {_ms(flushed)}    {_ms(saved)}  {durable:>6.2f}")
    shutil.rmtree(folder)


def _steps(folder: Path, steps: int, change: Callable[[int], object], *, copies: bool = True, flush: bool = False) -> Timed:
    """Take a first snapshot and one a step; copy the workspace at each step too."""
    root = folder / "workspace"
    (folder / "snapshots").mkdir()
    (folder / "copies").mkdir()
    store, workspace = SnapshotStore(folder / "objects"), Workspace(root)
    time.sleep(0.2)
    manifest = store.take(workspace)
    manifest.save(folder / "snapshots" / "0000")
    timed = Timed([], [], [], [], [], 0, 0, 0)
    for step in range(1, steps + 1):
        change(step)
        timed.scan.append(_time(lambda: _scan(root)))
        if copies:
            # In turns, so that neither always finds the files warmer than the other.
            def copy(target: Path = folder / "copies" / str(step)) -> None:
                timed.copy.append(_time(lambda: shutil.copytree(root, target)))
                if flush:
                    timed.flush.append(_time(lambda: _flush(target)))

            if step % 2:
                copy()
            manifest = _snapshot(store, workspace, manifest, folder / "snapshots" / f"{step:04d}", timed)
            if not step % 2:
                copy()
        else:
            manifest = _snapshot(store, workspace, manifest, folder / "snapshots" / f"{step:04d}", timed)
    unique = _disk(root)
    return timed._replace(unique=unique, copied=_disk(folder / "copies"), stored=_disk(folder / "objects", folder / "snapshots"))


def _snapshot(store: SnapshotStore, workspace: Workspace, previous: Manifest, path: Path, timed: Timed) -> Manifest:
    taken = []
    timed.take.append(_time(lambda: taken.append(store.take(workspace, previous))))
    timed.save.append(_time(lambda: taken[0].save(path)))
    return taken[0]


def _fill(root: Path, files: int, size: int) -> None:
    """Files of random bytes, a hundred a folder."""
    for number in range(files):
        folder = root / f"folder-{number // 100}"
        if not number % 100:
            folder.mkdir(parents=True)
        (folder / f"file-{number}.bin").write_bytes(os.urandom(size // files))


def _scan(root: Path | str) -> None:
    """A bare look at every file, below which no snapshot can come."""
    with os.scandir(root) as entries:
        for entry in entries:
            entry.stat(follow_symlinks=False)
            if entry.is_dir(follow_symlinks=False):
                _scan(entry.path)


def _flush(root: Path) -> None:
    for path in root.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())


def _disk(*roots: Path) -> int:
    """Bytes on disk, as `du` counts them: a file with several names once."""
    blocks = {}
    for path in (path for root in roots for path in root.rglob("*")):
        status = path.lstat()
        blocks[status.st_ino] = status.st_blocks
    return sum(blocks.values()) * 512


def _time(act: Callable[[], object]) -> float:
    started = time.perf_counter()
    act()
    return (time.perf_counter() - started) * 1000


def _ms(values: list[float]) -> str:
    return f"{statistics.median(values):>8.1f}"


def _file_system(path: Path) -> str:
    device = path.stat().st_dev
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields = line.split()
        if fields[2] == f"{os.major(device)}:{os.minor(device)}":
            return fields[fields.index("-") + 1]
    return "an unknown file system"


if __name__ == "__main__":
    main()
