"""No sandbox: for machines that give none, and only when asked for."""

from __future__ import annotations

from mlagentbench.sandbox.base import Box, Isolation, Launch
from mlagentbench.sandbox.view.environment import host_environment, own_command


class PlainSandbox:
    """Runs a command as the user, with the user's files and network.

    It isolates nothing and masks nothing: a command can read the answers, the harness and its logs, write what the user can, and kill the
    harness. `Box.read_only`, `workspace_writable`, `packages`, `network` and `gpus` are requests that it cannot enforce. What holds: an
    environment without the user's secrets, the limits, and that a command which does not fight its supervisor leaves nothing alive.
    """

    isolation: Isolation = "none"

    def launch(self, command: tuple[str, ...], box: Box) -> Launch:
        """How to start the command: as it is, in the workspace."""
        return Launch(own_command(command, box), host_environment(box), box.workspace, namespace=False)
