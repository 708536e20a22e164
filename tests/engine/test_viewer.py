"""Inspect's viewer does nothing to others."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from inspect_ai._view.notify import view_data_dir
from inspect_ai._view.view import view_port_pid_file

from mlagentbench.engine.viewer import HOST, serve
from mlagentbench.errors import UsageError
from tests.support import HANGING, free_port


def test_a_port_that_is_taken_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=rf"port {port}: Address already in use; .* choose another port with --port"):
            serve(tmp_path, port)


def test_a_process_whose_number_another_viewer_left_behind_is_not_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A viewer that is killed leaves the note of its number, which the next process of that number then has."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    port = free_port()
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    view_port_pid_file(view_data_dir(), port).write_text(str(other.pid))
    code = f"from pathlib import Path; from mlagentbench.engine.viewer import serve; serve(Path({str(tmp_path)!r}), {port})"
    viewer = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert viewer.stdout is not None
        assert any(re.search(rf":{port}\b", line) for line in viewer.stdout), "it tells where it listens"
        assert other.poll() is None
    finally:
        for process, number in ((viewer, signal.SIGINT), (other, signal.SIGKILL)):
            os.kill(process.pid, number)
            process.wait(HANGING)
        viewer.stdout.close()
