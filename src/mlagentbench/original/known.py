"""The imports that a log directory holds, found again by their logs.

A log may have grown, moved or been mended since it was imported, and lie in several places. What stays the same is how its run began.
"""

from __future__ import annotations

from pathlib import Path

from mlagentbench.errors import RunNotFound
from mlagentbench.original.convert import Converted
from mlagentbench.records import Imported
from mlagentbench.store.run_directory import RunDirectory


class KnownImports:
    """The runs of a log directory that were imported.

    Args:
        log_directory: where they are kept.
    """

    def __init__(self, log_directory: Path) -> None:
        self._imports: dict[Path, Imported] = {}
        for file in sorted(log_directory.glob("*/run.json")):
            self.add(file.parent)

    def add(self, path: Path) -> None:
        """Take note of a run that was imported, in place of what stood for its log before."""
        try:
            imported = RunDirectory(path).info.imported
        except RunNotFound:
            return  # it is damaged: whether it was imported is not known
        self._imports = {other: known for other, known in self._imports.items() if other.exists()}
        if imported:
            self._imports[path] = imported

    def find(self, converted: Converted) -> Path | None:
        """Find the run that was imported from a log before; None where there is none.

        It is the one of the same contents, or else of the same beginning, or of the same folder where one of the two has no beginning yet.
        """
        now = converted.info.imported
        assert now is not None
        for path, known in self._imports.items():
            if known.digest == now.digest:
                return path
        for path, known in self._imports.items():
            if known.beginning == now.beginning if known.beginning and now.beginning else known.folder == now.folder:
                return path
        return None

    def is_current(self, path: Path, converted: Converted) -> bool:
        """Return whether a run says what its log does: the log has not changed, or it is a second copy that holds no more steps."""
        now, known, run = converted.info.imported, self._imports[path], RunDirectory(path)
        assert now is not None
        try:
            if run.result is None:
                return False  # its import was stopped
            if known.digest == now.digest:
                return True
            is_copy = known.folder != now.folder and Path(known.folder).is_dir()
            return is_copy and len(converted.steps) <= len(run.steps())
        except RunNotFound:
            return False
