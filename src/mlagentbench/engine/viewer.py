"""Serve Inspect's viewer, on a port that no other process uses."""

from __future__ import annotations

import socket
from pathlib import Path

from mlagentbench.engine.compat import serve_viewer
from mlagentbench.errors import UsageError

HOST = "127.0.0.1"


def serve(logs: Path, port: int) -> None:
    """Serve the logs of a folder until interrupted.

    Raises:
        UsageError: the port is in use.
    """
    with socket.socket() as probe:
        # The server sets this option too; without it, a port with connections in TIME_WAIT would seem to be in use.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise UsageError(
                f"the viewer cannot listen on port {port}: {error.strerror}; end what listens there, perhaps another viewer,"
                f" or choose another port with --port"
            ) from None
    serve_viewer(str(logs), HOST, port)
