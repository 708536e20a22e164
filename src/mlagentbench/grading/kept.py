"""Keep sandboxes of a task's own code from one grading to the next of a grader, so that what they import is imported once."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from pathlib import Path

from mlagentbench.errors import GradingError, InvalidSubmission
from mlagentbench.grading.code.client import CodeClient
from mlagentbench.grading.code.server import END
from mlagentbench.sandbox.process import SandboxProcess

END_SECONDS = 20.0
"""Seconds in which a process must end when its grading has."""


class KeptSandboxes:
    """The sandboxes that a grader keeps, frozen while no grading uses them. They end with the grader's process.

    Args:
        folder: where their workspaces are.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._kept: dict[Hashable, tuple[SandboxProcess, Path]] = {}

    @contextmanager
    def take(self, key: Hashable, start: Callable[[Path], SandboxProcess], put_code: Callable[[Path], None]) -> Iterator[SandboxProcess]:
        """Use the sandbox of this key, or a new one, for one grading. It is kept unless it fails or the grader does.

        Args:
            key: all that it was started with but the code.
            start: starts it in an empty workspace.
            put_code: puts the code of this grading into the workspace of one that was started for another.
        """
        found = self._kept.pop(key, None)
        if found is None:
            workspace = Path(tempfile.mkdtemp(dir=self._folder))
            process = start(workspace)
        else:
            process, workspace = found
            process.renew()
            process.thaw()
        settled = False
        try:
            if found is not None:
                put_code(workspace)
            yield process
            settled = _settled(process)
        except InvalidSubmission:
            settled = _settled(process)
            raise
        finally:
            if settled:
                process.freeze()
                self._kept[key] = (process, workspace)
            else:
                process.close()
                shutil.rmtree(workspace)


def _settled(process: SandboxProcess) -> bool:
    """End the process that served this grading; return whether the sandbox is ready for another, with nothing left in its pipes."""
    process.thaw()
    try:
        CodeClient(process, GradingError).ask(END, doing="ending", seconds=END_SECONDS)
    except GradingError:
        return False
    return process.running
