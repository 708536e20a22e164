"""What a task's grader is given: the submission to read, the private data, the starter, and sandboxes for code that must run.

    def grade(context: GradingContext) -> Score:
        text = context.submission.read_text("submission.csv")
        ...

A grader is trusted and sees everything; it treats the submission as data. Code of the agent's runs only in `context.sandbox`, which holds
that code, what serves it, and nothing else: no private data, no network, no packages but those asked for.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mlagentbench.errors import InvalidSubmission
from mlagentbench.grading import confine, frames, serving
from mlagentbench.grading.reader import MAX_CODE_BYTES, SubmissionFiles
from mlagentbench.records import Variant
from mlagentbench.run_spec import ScriptLimits
from mlagentbench.sandbox import process
from mlagentbench.sandbox.base import OWN_FILES, WORKSPACE, Box, Mount, Sandbox

HARNESS = "harness"
CODE = "code"
"""Folders of a box's workspace: what serves the code, and the code."""

_BOOT = f"import runpy, sys; sys.path.insert(0, {HARNESS!r}); runpy.run_path({HARNESS + '/serve.py'!r}, run_name='__main__')"
_SHARED = (frames.__file__, confine.__file__, serving.__file__)
"""Modules of this package that a server may import inside, where the package itself is masked."""


@dataclass(frozen=True)
class GradingContext:
    """Everything a grader may use."""

    submission: SubmissionFiles
    """The files that the task's `submission.files` match, and no others."""
    starter: SubmissionFiles
    """What the agent began with."""
    private: Path | None
    """The folder of the answers; None for a task without data."""
    variant: Variant
    seed: int | None
    """Set where a grading is to be repeated exactly; None for fresh randomness."""
    isolation: Sandbox
    scratch: Path
    """An empty folder of this grading's own, removed afterwards."""

    @property
    def public(self) -> Path | None:
        """The folder of the data that the agent had: it lies beside the answers (`data.prepare`)."""
        return self.private.parent / "public" if self.private else None

    @contextmanager
    def sandbox(
        self,
        code: SubmissionFiles,
        serve: Path,
        arguments: tuple[str, ...] = (),
        *,
        packages: tuple[str, ...] | None = (),
        data: tuple[Path, ...] = (),
        environment: Mapping[str, str] | None = None,
        limits: ScriptLimits = ScriptLimits(),
        max_code_bytes: int = MAX_CODE_BYTES,
    ) -> Iterator[process.SandboxProcess]:
        """Start a process beside a copy of some code, in a sandbox that can change neither; its end is the end of all it started.

        Args:
            code: the agent's or the starter's, found inside as the folder `code` of the working directory.
            serve: our own file that is run there, with `arguments`. Of this package it can import `mlagentbench.grading.frames`,
                `mlagentbench.grading.confine` and `mlagentbench.grading.serving` alone.
            arguments: its `sys.argv[1:]`.
            packages: top-level packages it can import beside the standard library; None for all that scripts can import in a run.
            data: files and folders of the host that it finds under their own names beside the code, to be read.
            environment: variables it sees.
            limits: what it may use.
            max_code_bytes: the size of all the code's files together.

        Raises:
            InvalidSubmission: the code is larger than what may be copied.
            SandboxUnavailable: this machine cannot give the sandbox.
        """
        workspace = Path(tempfile.mkdtemp(dir=self.scratch))
        workspace.chmod(0o755)
        code.copy_to(workspace / CODE, max_code_bytes)
        _lay_harness(workspace / HARNESS, serve)
        box = Box(
            workspace=workspace,
            read_only=self._lay_data(workspace / CODE, data),
            workspace_writable=False,
            packages=packages,
            environment=environment or {},
            limits=limits,
        )
        with process.start(self.isolation, ("python", "-I", "-B", "-c", _BOOT, *arguments), box) as started:
            yield started

    def _lay_data(self, code: Path, data: tuple[Path, ...]) -> tuple[Mount, ...]:
        """Make the places where data is mounted, or links to it for a sandbox that mounts nothing."""
        for path in data:
            place = code / path.name
            if place.exists():
                raise InvalidSubmission(f"{path.name} is the name of the task's data; give your own file another")
            if self.isolation.isolation not in OWN_FILES:
                place.symlink_to(path, target_is_directory=path.is_dir())
            elif path.is_dir():
                place.mkdir()
            else:
                place.touch()
        return tuple(Mount(path, f"{WORKSPACE}/{CODE}/{path.name}") for path in data)


def _lay_harness(folder: Path, serve: Path) -> None:
    package = folder / "mlagentbench" / "grading"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").touch()
    (package / "__init__.py").touch()
    for module in _SHARED:
        shutil.copy(module, package)
    shutil.copy(serve, folder / "serve.py")
