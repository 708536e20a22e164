"""Read a run's files as they were after its steps, and compare them with the task's data."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path

from mlagentbench.data.cache import cache_directory
from mlagentbench.errors import RunNotFound, StorageFailed, UsageError
from mlagentbench.rundir.directory import RunDirectory
from mlagentbench.task.catalogue import Task
from mlagentbench.workspace.snapshots.snapshots import Manifest, ManifestEntry, SnapshotStore

LARGEST_SOURCE = 1 << 20
"""Bytes of the largest script that is read."""


class RunFiles:
    """The files of a run after each of its steps; step 0 is the start. `task` is None if it is not installed here."""

    def __init__(self, directory: RunDirectory, task: Task | None) -> None:
        self._directory = directory
        self._task = task
        self._store = SnapshotStore(directory.objects)
        self._manifest = cache(self._load)
        self.scripts = cache(self._scripts)
        self.source = cache(self._source)
        self.submitted = cache(self._submitted)

    @property
    def submission(self) -> frozenset[str]:
        """The files of a submission that a script must write; an agent writes its code by hand."""
        return frozenset(path for path in (self._task.spec.submission.required if self._task else ()) if not path.endswith(".py"))

    @property
    def starter_text(self) -> str:
        """The task's scripts and notes."""
        texts = []
        if self._task is not None:
            with suppress(OSError):
                for path in sorted(self._task.starter.glob("*")):
                    if path.suffix in (".py", ".md", ".txt") and path.stat().st_size <= LARGEST_SOURCE:
                        texts.append(path.read_text(encoding="utf-8", errors="replace"))
        return "\n".join(texts)

    def _load(self, step: int) -> Mapping[str, ManifestEntry] | None:
        with suppress(OSError, RunNotFound):
            return Manifest.load(self._directory.manifest(step)).entries
        return None

    def _scripts(self, step: int) -> frozenset[tuple[str, str]] | None:
        """Return the Python files after a step, as paths with the digest of their content; None if they are not known."""
        entries = self._manifest(step)
        return None if entries is None else frozenset((name, str(entry.digest)) for name, entry in entries.items() if name.endswith(".py"))

    def _source(self, step: int, path: str) -> str | None:
        """Return a script after a step; None if it is not known."""
        entries = self._manifest(step)
        if entries is None or path not in entries:
            return None
        with suppress(UsageError, StorageFailed):
            return self._store.read_bytes(Manifest(dict(entries)), path, LARGEST_SOURCE).decode("utf-8", "replace")
        return None

    def _submitted(self, step: int) -> Mapping[str, str]:
        """Return the digests of the submission's data files after a step."""
        entries = self._manifest(step) or {}
        return {path: str(entries[path].digest) for path in self.submission if path in entries and entries[path].digest}

    def copy_of(self, step: int, path: str) -> str | None:
        """Return the file of the data, or of the start, that a file after a step is a copy of; None if of none."""
        entry = (self._manifest(step) or {}).get(path)
        if entry is None or entry.digest is None or not entry.size:
            return None
        for name, first in (self._manifest(0) or {}).items():
            if name != path and first.digest == entry.digest:
                return name
        same_size = [file for file, size in self._data if size == entry.size]
        if not same_size:
            return None
        with suppress(UsageError, StorageFailed, OSError):
            content = hashlib.sha256(self._store.read_bytes(Manifest({path: entry}), path)).digest()
            for file in same_size:
                with file.open("rb") as opened:
                    if hashlib.file_digest(opened, "sha256").digest() == content:
                        return file.relative_to(self._public).as_posix()
        return None

    @property
    def _public(self) -> Path:
        info = self._directory.info
        return cache_directory() / "prepared" / info.spec.task / f"{info.spec.variant}-{info.data}" / "public"

    @cached_property
    def _data(self) -> list[tuple[Path, int]]:
        """The files of the prepared data with their sizes; none where the cache lacks it."""
        with suppress(OSError):
            return [(path, path.stat().st_size) for path in self._public.rglob("*") if path.is_file()]
        return []
