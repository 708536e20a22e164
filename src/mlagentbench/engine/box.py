"""Provide the sandbox of an agent of another framework (`sandbox/box.py`) to Inspect, whose agent bridge works in it.

The sandbox of a sample is empty until its run has a workspace and `attach` gives it the box.
"""

from __future__ import annotations

from typing import Any, Literal, overload

from inspect_ai.util import (
    ExecResult,
    OutputLimitExceededError,
    SandboxEnvironment,
    SandboxEnvironmentLimits,
    SandboxEnvironmentSpec,
    SandboxUnavailableError,
    SandboxUserUnsupportedError,
    sandboxenv,
)
from inspect_ai.util import sandbox as current_sandbox
from pydantic import BaseModel

from mlagentbench.errors import BoxEnded
from mlagentbench.sandbox.box import Box, TooLarge

NAME = "mlagentbench_box"
USERS = (None, "agent", "1000")
"""Whom commands can run as: there is one user."""
POLL = 0.2
"""Seconds between two looks of Inspect at a process that it has started in the box."""


class BoxConfig(BaseModel, frozen=True):
    """The configuration of the provider: none, since a box gets what it needs from its run."""


@sandboxenv(name=NAME)
class BoxEnvironment(SandboxEnvironment):
    """A sample's sandbox in Inspect's terms."""

    def __init__(self) -> None:
        super().__init__()
        self._box: Box | None = None

    def attach(self, box: Box) -> None:
        """Carry out commands in a box from now on."""
        self._box = box

    @property
    def box(self) -> Box:
        """The box of the run.

        Raises:
            SandboxUnavailableError: there is none yet.
        """
        if self._box is None:
            raise SandboxUnavailableError("the run has not begun")
        return self._box

    @classmethod
    def config_deserialize(cls, config: dict[str, Any]) -> BoxConfig:
        """Return the configuration that a log holds."""
        return BoxConfig.model_validate(config)

    @classmethod
    async def sample_init(cls, task_name: str, config: object, metadata: dict[str, str]) -> dict[str, SandboxEnvironment]:
        """Return the sandbox of a sample, whose box is attached later."""
        return {"default": cls()}

    @classmethod
    async def sample_cleanup(cls, task_name: str, config: object, environments: dict[str, SandboxEnvironment], interrupted: bool) -> None:
        """Do nothing: a run closes its box when its agent ends."""

    async def exec(
        self,
        cmd: list[str],
        input: str | bytes | None = None,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        user: str | None = None,
        timeout: int | None = None,
        timeout_retry: bool = True,
        concurrency: bool = True,
    ) -> ExecResult[str]:
        """Execute a command."""
        if user not in USERS:
            raise SandboxUserUnsupportedError(f"there is no user {user!r} in the agent's sandbox, only 'agent'")
        given = input.encode() if isinstance(input, str) else input or b""
        most = SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE
        try:
            done = await self.box.execute(cmd, given=given, directory=cwd or "", environment=env or {}, seconds=timeout, most=most)
        except BoxEnded as ended:
            raise SandboxUnavailableError(str(ended)) from None
        return ExecResult(done.code == 0, done.code, done.output.decode("utf-8", "replace"), done.errors.decode("utf-8", "replace"))

    async def write_file(self, file: str, contents: str | bytes) -> None:
        """Write a file."""
        try:
            await self.box.write(file, contents.encode() if isinstance(contents, str) else contents)
        except BoxEnded as ended:
            raise SandboxUnavailableError(str(ended)) from None

    @overload
    async def read_file(self, file: str, text: Literal[True] = True) -> str: ...
    @overload
    async def read_file(self, file: str, text: Literal[False]) -> bytes: ...

    async def read_file(self, file: str, text: bool = True) -> str | bytes:
        """Read a file."""
        try:
            content = await self.box.read(file, SandboxEnvironmentLimits.MAX_READ_FILE_SIZE)
        except TooLarge:
            raise OutputLimitExceededError(SandboxEnvironmentLimits.MAX_READ_FILE_SIZE_STR, None) from None
        except BoxEnded as ended:
            raise SandboxUnavailableError(str(ended)) from None
        return content.decode("utf-8") if text else content

    def default_polling_interval(self) -> float:
        """Return the seconds between two looks at a process."""
        return POLL


def box_sandbox() -> SandboxEnvironmentSpec:
    """Return the `sandbox` of an Inspect task whose agent runs in a box."""
    return SandboxEnvironmentSpec(NAME, BoxConfig())


def attach(box: Box) -> None:
    """Make a box the sandbox of the running sample.

    Raises:
        ProcessLookupError: the sample's task has no `box_sandbox`.
    """
    current_sandbox().as_type(BoxEnvironment).attach(box)
