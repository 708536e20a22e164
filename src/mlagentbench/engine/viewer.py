"""Inspect's viewer, on a port that nobody else has."""

from __future__ import annotations

import socket
from pathlib import Path

from inspect_ai._view import view as inspect_view

from mlagentbench.errors import UsageError

HOST = "127.0.0.1"


def serve(logs: Path, port: int) -> None:
    """Serve the logs of a folder until an interrupt.

    Raises:
        UsageError: the port is taken.
    """
    with socket.socket() as probe:
        # As the server asks for it: what a connection left behind that has ended is in nobody's way.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise UsageError(
                f"the viewer cannot listen on port {port}: {error.strerror}; end what listens there, perhaps another viewer,"
                f" or choose another port with --port"
            ) from None
    # Inspect would end whatever process has the number that it once noted for this port.
    inspect_view.view_acquire_port = lambda app_dir, port: None
    inspect_view.view(log_dir=str(logs), host=HOST, port=port)
