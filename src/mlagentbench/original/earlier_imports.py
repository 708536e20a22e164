"""Find the earlier import of a log in a log directory.

A log may have grown, moved or been repaired since it was imported, and may exist in several copies. What stays the same is the run's
beginning.
"""

from __future__ import annotations

from pathlib import Path

from mlagentbench.errors import RunNotFound
from mlagentbench.original.convert import Converted
from mlagentbench.run_spec import Imported
from mlagentbench.rundir.directory import RunDirectory


class EarlierImports:
    """The imported runs of a log directory."""

    def __init__(self, log_directory: Path) -> None:
        self._imports: dict[Path, Imported] = {}
        for file in sorted(log_directory.glob("*/run.json")):
            self.add(file.parent)

    def add(self, path: Path) -> None:
        """Add a run if it was imported, and forget runs that no longer exist."""
        try:
            imported = RunDirectory(path).info.imported
        except RunNotFound:
            return  # a damaged run does not say whether it was imported
        self._imports = {other: known for other, known in self._imports.items() if other.exists()}
        if imported:
            self._imports[path] = imported

    def find(self, converted: Converted) -> Path | None:
        """Return the run that was imported from a log before; None if there is none.

        It is the one with the same contents, or else with the same beginning, or the same folder if one of the two has no beginning yet.
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
        """Return whether an earlier import is up to date: the log has not changed, or it is another copy without further steps."""
        now, known, run = converted.info.imported, self._imports[path], RunDirectory(path)
        assert now is not None
        try:
            if run.result is None:
                return False  # its import was interrupted
            if known.digest == now.digest:
                return True
            is_copy = known.folder != now.folder and Path(known.folder).is_dir()
            return is_copy and len(converted.steps) <= len(run.steps())
        except RunNotFound:
            return False
