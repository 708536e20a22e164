"""Start `python -m mlagentbench …` and its like as real processes that need not import first.

`run` and `Popen` are subprocess's, for commands of the form `[sys.executable, "-m", MODULE, …]` and `[sys.executable, "….py", …]`. Such a
process is forked from a server that has imported what these commands import, has one thread, and has run nothing. It is a child of the
test's process like any other: it has a process id, arguments, environment, working directory, standard streams and, where asked for, a
session of its own; signals end it, and it leaves through the interpreter's own exit. What is read from the environment when an interpreter
starts cannot change afterwards, so there is a server for each set of those variables.

A command that another program starts (a shell, bubblewrap) is a fresh process, as is every command where the system is not Linux.
"""

from __future__ import annotations

import fcntl
import gc
import inspect
import io
import json
import os
import runpy
import socket
import subprocess
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import Any

from mlagentbench.sandbox.standalone.supervise import become_subreaper

MLAB = (sys.executable, "-m", "mlagentbench")
INSPECT = (sys.executable, "-m", "inspect_ai")

READ_AT_START = ("PYTHON", "LANG", "LC_", "OPENBLAS_", "OMP_")
"""How the names begin of variables that an interpreter, or a library while it is imported, reads once."""
PRELOADED = (
    *(
        f"mlagentbench.cli.{name}"
        for name in ("baseline", "cache", "doctor", "grade", "import_logs", "prepare", "report", "resume", "show")
    ),
    *(
        "mlagentbench.cli.demo",
        "mlagentbench.report.page",
        "inspect_ai._cli.main",
        "inspect_ai.agent._acp.server",
        "rich.markdown",
        "scipy.special",
    ),
)
"""What commands import; not polars, which starts threads when it is imported."""
LONGEST = 200_000
"""Bytes of a message to the server at most: a command's arguments and environment."""

_servers: dict[frozenset[tuple[str, str]], Server] = {}
"""By the variables that are read at start."""
_EXECUTE_CHILD = inspect.signature(subprocess.Popen._execute_child)  # type: ignore[attr-defined]


class Popen(subprocess.Popen[Any]):
    """subprocess.Popen for commands of Python modules, without `preexec_fn`, `pass_fds`, `user`, `group`, `umask` and `process_group`."""

    def _execute_child(self, *arguments: Any) -> None:
        """Start the process, whose pipes are there."""
        asked = _EXECUTE_CHILD.bind(self, *arguments).arguments
        command = [os.fspath(word) for word in asked["args"]]
        if sys.platform != "linux":
            return super()._execute_child(*arguments)  # type: ignore[misc]
        if command[0] != sys.executable or (command[1] != "-m" and not command[1].endswith(".py")):
            raise ValueError(f"not a command of a Python module or script: {command}")
        environment = dict(os.environ if asked["env"] is None else asked["env"])
        streams = [own if number == -1 else number for own, number in enumerate((asked["p2cread"], asked["c2pwrite"], asked["errwrite"]))]
        request = {
            "command": command[1:],
            "environment": environment,
            "folder": os.path.abspath(asked["cwd"] or "."),
            "new_session": asked["start_new_session"],
        }
        self.pid = server(environment).fork(request, streams)
        self._child_created = True
        self._close_pipe_fds(*(asked[name] for name in ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")))  # type: ignore[attr-defined]


def run(
    command: Sequence[str | Path], *, timeout: float | None = None, check: bool = False, capture_output: bool = False, **options: Any
) -> subprocess.CompletedProcess[Any]:
    """Run a command as subprocess.run does."""
    if capture_output:
        options |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with Popen(command, **options) as process:
        try:
            stdout, stderr = process.communicate(timeout=timeout)
        except BaseException:
            process.kill()
            raise
    finished = subprocess.CompletedProcess(command, process.returncode, stdout, stderr)
    if check:
        finished.check_returncode()
    return finished


class Server:
    """A process that forks commands."""

    def __init__(self, settings: frozenset[tuple[str, str]]) -> None:
        become_subreaper()  # a command's parent ends at once, and leaves it to us
        self._lock = Lock()
        self._connection, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        others = {name: value for name, value in os.environ.items() if not name.startswith(READ_AT_START)}
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", f"from tests.commands import serve; serve({theirs.fileno()})"],
                cwd=Path(__file__).parents[1],
                env={**others, "OPENBLAS_NUM_THREADS": "1", **dict(settings)},
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
            )

    def fork(self, request: dict[str, Any], streams: Sequence[int]) -> int:
        """Fork a process with these standard streams.

        Returns:
            Its process id.
        """
        with self._lock:
            socket.send_fds(self._connection, [json.dumps(request).encode()], streams)
            return int(self._connection.recv(100))

    def end(self) -> None:
        """End the server. What it has forked goes on."""
        self._connection.close()
        self._process.wait()


def server(environment: Mapping[str, str]) -> Server:
    """Return the server of processes that start with these variables, after starting it where it is the first time."""
    settings = frozenset(item for item in environment.items() if item[0].startswith(READ_AT_START))
    if settings not in _servers:
        _servers[settings] = Server(settings)
    return _servers[settings]


def end_servers() -> None:
    """End all servers."""
    while _servers:
        _servers.popitem()[1].end()


def serve(descriptor: int) -> None:
    """Fork a process for each request until the other end of the socket is closed. Each exits when its command has ended."""
    for module in PRELOADED:
        import_module(module)
    import_module("inspect_ai.model").get_model_info("scripted/script")  # which reads its YAML files once a process
    assert len(os.listdir("/proc/self/task")) == 1, "a process that has threads cannot be forked"
    gc.collect()
    gc.freeze()
    requests = socket.socket(fileno=descriptor)
    while True:
        message, streams, _, _ = socket.recv_fds(requests, LONGEST, 3)
        if not message:
            return
        if between := os.fork():
            os.waitpid(between, 0)
            for stream in streams:
                os.close(stream)
        else:
            between = os.getpid()
            if os.fork():
                os._exit(0)
            while os.getppid() == between:  # until the test's process is the parent
                time.sleep(0.0001)
            request = json.loads(message)
            if request.pop("new_session"):
                os.setsid()  # before anybody knows its id, and signals its group
            requests.send(str(os.getpid()).encode())
            requests.close()
            _run_command(streams=streams, **request)
            sys.exit()


def _run_command(command: Sequence[str], streams: Sequence[int], environment: Mapping[str, str], folder: str) -> None:
    """Run a module as `python -m` does, in the place that the command was given."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    if os.getsid(0) == os.getpid() and os.isatty(0):
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # its keys interrupt the session that it belongs to
    unbuffered = bool(environment.get("PYTHONUNBUFFERED"))
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        inherited = getattr(sys, name)
        binary = os.fdopen(number, "wb" if number else "rb", buffering=0 if number and unbuffered else -1, closefd=False)
        stream = io.TextIOWrapper(binary, encoding=inherited.encoding, errors=inherited.errors, write_through=unbuffered)
        stream.reconfigure(line_buffering=not unbuffered and (number == 2 or stream.isatty()))
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    if command[0] == "-m":
        sys.path[0] = folder
        module, *sys.argv[1:] = command[1:]
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    else:
        sys.argv[:] = command
        sys.path[0] = os.path.dirname(os.path.abspath(command[0]))
        runpy.run_path(command[0], run_name="__main__")
