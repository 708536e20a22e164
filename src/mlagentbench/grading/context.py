"""The context that a task's grader receives: the submission, the private data, the starter, and sandboxes for code that must run.

    def grade(context: GradingContext) -> Score:
        text = context.submission.read_text("submission.csv")
        ...

A grader is trusted and sees everything; it treats the submission as data. The agent's code runs only in `context.sandbox`, which holds
that code, the file that serves it, and nothing else: no private data, no network, and only the packages asked for.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mlagentbench.errors import InvalidSubmission
from mlagentbench.grading.code import protocol, restrict, server
from mlagentbench.grading.kept import KeptSandboxes
from mlagentbench.grading.reader import MAX_CODE_BYTES, SubmissionFiles
from mlagentbench.limits import ScriptLimits
from mlagentbench.records import Variant
from mlagentbench.sandbox import process
from mlagentbench.sandbox.base import OWN_FILES, WORKSPACE, Mount, Sandbox, SandboxSpec

HARNESS = "harness"
CODE = "code"
"""Folders of a sandbox's workspace: the files that serve the code, and the code."""

_BOOT = f"import runpy, sys; sys.path.insert(0, {HARNESS!r}); runpy.run_path({HARNESS + '/serve.py'!r}, run_name='__main__')"
_SHARED = (protocol.__file__, restrict.__file__, server.__file__)
"""Modules that are copied into the sandbox, where the rest of this package is hidden."""


@dataclass(frozen=True)
class GradingContext:
    """Everything a grader may use."""

    submission: SubmissionFiles
    """The files that the task's `submission.files` match, and no others."""
    starter: SubmissionFiles
    """The task's starter files, with which the agent began."""
    private: Path
    """The folder of the answers; empty for a task without data."""
    variant: Variant
    seed: int | None
    """Set where a grading is to be repeated exactly; None for fresh randomness."""
    isolation: Sandbox
    scratch: Path
    """An empty folder for this grading alone, deleted afterwards."""
    sandboxes: KeptSandboxes | None = None
    """What the gradings of one grader keep for one another; None where there is one alone."""

    @property
    def public(self) -> Path:
        """The folder of the data that the agent had, beside that of the answers (`data.prepare`); empty for a task without data."""
        return self.private.parent / "public"

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
        kept: bool = False,
    ) -> Iterator[process.SandboxProcess]:
        """Run `serve` beside a copy of some code, in a sandbox that can change neither; kill all its processes when the block ends.

        With `kept`, the grader's next grading takes the sandbox up again, with its own code, and saves what it takes to import packages.
        `serve` then calls `serve_each`, so that each grading has a process of its own. This is for the task's own code only: the agent's
        could leave something in the sandbox for a submission that comes later. Code with `data` beside it must be the starter's.

        Args:
            code: the agent's or the starter's code; in the sandbox it is the folder `code` of the working directory.
            serve: the task's own file to run there, with `arguments`. Of this package it can import `mlagentbench.grading.code.protocol`,
                `mlagentbench.grading.code.restrict` and `mlagentbench.grading.code.server` alone.
            arguments: its `sys.argv[1:]`.
            packages: top-level packages it can import beside the standard library; None for all that scripts can import in a run.
            data: files and folders of the host that it can read, under their own names beside the code.
            environment: its environment variables.
            limits: its limits of time, memory, processes and files.
            max_code_bytes: how large all the code's files may be together.
            kept: whether to keep the sandbox for the grader's next grading.

        Raises:
            InvalidSubmission: the code is larger than `max_code_bytes`, or has a file of the same name as the data.
            SandboxUnavailable: this machine does not support the sandbox.
        """

        def start(workspace: Path) -> process.SandboxProcess:
            workspace.chmod(0o755)
            code.copy_to(workspace / CODE, max_code_bytes)
            _copy_harness(workspace / HARNESS, serve)
            sandbox_spec = SandboxSpec(
                workspace=workspace,
                read_only=self._mount_data(workspace / CODE, data),
                workspace_writable=False,
                packages=packages,
                environment=environment or {},
                limits=limits,
            )
            return process.start(self.isolation, ("python", "-I", "-B", "-c", _BOOT, *arguments), sandbox_spec)

        def put_code(workspace: Path) -> None:
            if not data:  # which is mounted in the folder of the code
                shutil.rmtree(workspace / CODE)
                code.copy_to(workspace / CODE, max_code_bytes)

        if kept and self.sandboxes is not None:
            key = (serve, arguments, packages, data, frozenset((environment or {}).items()), limits)
            with self.sandboxes.take(key, start, put_code) as started:
                yield started
        else:
            with start(Path(tempfile.mkdtemp(dir=self.scratch))) as started:
                yield started

    def _mount_data(self, code: Path, data: tuple[Path, ...]) -> tuple[Mount, ...]:
        """Create the mount points of the data, or links to it for a sandbox that mounts nothing; return the mounts."""
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


def _copy_harness(folder: Path, serve: Path) -> None:
    package = folder / "mlagentbench" / "grading" / "code"
    package.mkdir(parents=True)
    for each in (package, *package.parents[:2]):
        (each / "__init__.py").touch()
    for module in _SHARED:
        shutil.copy(module, package)
    shutil.copy(serve, folder / "serve.py")
