"""No sandbox (`--sandbox none`): used on request only, for machines that support no sandbox."""

from __future__ import annotations

from mlagentbench.sandbox.base import Isolation, Launch, SandboxSpec
from mlagentbench.sandbox.view.environment import host_environment, own_command


class PlainSandbox:
    """Runs a command as the user, with the user's files and network.

    It isolates nothing and hides nothing: a command can read the answers, the harness and its logs, write what the user can, and kill the
    harness. It cannot enforce `SandboxSpec.read_only`, `workspace_writable`, `packages`, `network` and `gpus`. It does give the command an
    environment without the user's secrets, enforces the limits, and kills all processes of a command that does not attack its supervisor.
    """

    isolation: Isolation = "none"

    def launch(self, command: tuple[str, ...], spec: SandboxSpec) -> Launch:
        """Return how to start the command: unchanged, in the workspace."""
        return Launch(own_command(command, spec), host_environment(spec), spec.workspace, namespace=False)
