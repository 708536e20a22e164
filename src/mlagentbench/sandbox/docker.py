"""A sandbox that runs each command in a Docker container, for machines without bubblewrap, and the only sandbox on macOS.

On Linux a container shows the host's own programs and Python installation, read-only, as bubblewrap does, on an empty image that is made
on first use; nothing is downloaded. Elsewhere, or when `MLAGENTBENCH_DOCKER_IMAGE` names an image, commands run with that image's programs
and its `python`; `SandboxSpec.python`, `SandboxSpec.packages` and `SandboxSpec.hidden` are ignored.

A container starts in about half a second. Its processes belong to the engine, so that their number is limited but not watched: a command
that starts too many gets an error, and is not ended. Standard output and standard error come as two streams, so that lines that were
written at nearly the same time can change places.

Not covered: engines on other machines, which cannot mount this one's folders, and rootless engines, which use other user ids.
"""

from __future__ import annotations

import functools
import os
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from mlagentbench.errors import SandboxUnavailable
from mlagentbench.sandbox.base import WORKSPACE, Isolation, Launch, SandboxSpec
from mlagentbench.sandbox.view.environment import SYSTEM_PATH, gpu_nodes, own_command, variables
from mlagentbench.sandbox.view.interpreter import check_workspace, describe
from mlagentbench.sandbox.view.layout import SYSTEM_FOLDERS, Bind, Link, MaskedFolder, Piece, installation, programs, workspace

HOW_TO_GET = "install it (https://docs.docker.com/engine/install), start its engine, and let your user use it: `docker run hello-world`"
IMAGE_VARIABLE = "MLAGENTBENCH_DOCKER_IMAGE"
EMPTY_IMAGE = "mlagentbench-empty"

_FIRST = """
exec 3<&0
"$@" <&3 3<&- &
command=$!
exec 3<&-
trap 'kill -TERM -1' TERM
while :; do
    wait $command
    status=$?
    kill -0 $command 2>/dev/null || exit $status
done
"""
"""A script for the first process of a container. It forwards SIGTERM, which the kernel ignores for a first process without a handler, and
waits for the command."""
_REMOVE = """
tries=0
until "$0" inspect "$1" || [ $tries = 10 ]; do
    tries=$((tries + 1))
    sleep 0.1
done
"$0" rm --force "$1"
"""
"""A script that removes a container. It waits up to a second for the container to exist: the engine may still be creating it for a
client that was killed."""
_CLIENT = ("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY", "XDG_RUNTIME_DIR", "PATH")
"""Variables by which the `docker` command finds its engine."""


class DockerSandbox:
    """Runs each command in a container of its own.

    Args:
        image: the image that commands run with; by default the one named by `MLAGENTBENCH_DOCKER_IMAGE`, otherwise the host's programs.
    """

    isolation: Isolation = "docker"

    def __init__(self, image: str | None = None) -> None:
        self.image = image or os.environ.get(IMAGE_VARIABLE)

    def launch(self, command: tuple[str, ...], spec: SandboxSpec) -> Launch:
        """Return how to start a command in a container.

        Raises:
            SandboxUnavailable: Docker is missing or does not answer, a GPU or a mount does not exist, or no image is named and this is not
                Linux.
        """
        docker = _program()
        name = f"mlagentbench-{os.getpid()}-{secrets.token_hex(6)}"
        if self.image is None:
            view, command = _host_view(spec, command)
            image = _empty_image(docker)
        else:
            view = [*(("--gpus", f'"device={",".join(spec.gpus)}"') if spec.gpus else ()), *_mounts(workspace(spec))]
            image = self.image
        path = {} if self.image else {"PATH": f"{Path(os.path.abspath(spec.python)).parent}:{SYSTEM_PATH}"}
        environment = {**variables(), "HOME": "/tmp", **path, **spec.environment}
        words = (
            *(docker, "run", "--rm", "--interactive", "--name", name, "--pull", "never", "--log-driver", "none"),
            *_limits(spec),
            *view,
            *("--workdir", WORKSPACE, "--entrypoint", "/bin/sh"),
            *(word for key, value in environment.items() for word in ("--env", f"{key}={value}")),
            *(image, "-c", _FIRST, "sh", *command),
        )
        return Launch(words, _client_environment(), Path("/"), namespace=False, control=functools.partial(_control, docker, name))


def server_version() -> str:
    """Return the version of the Docker engine.

    Raises:
        SandboxUnavailable: Docker is not installed, or no engine answers.
    """
    asked = _ask(_program(), "version", "--format", "{{.Server.Version}}")
    if asked.returncode:
        raise SandboxUnavailable(f"no Docker engine answers: {(asked.stderr.strip().splitlines() or ['no reason given'])[-1]}")
    return asked.stdout.strip()


def _limits(spec: SandboxSpec) -> list[str]:
    memory = spec.limits.memory_mb
    words = ["--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--read-only", "--user", f"{os.getuid()}:{os.getgid()}"]
    words += ["--memory", f"{memory}m", "--memory-swap", f"{memory}m", "--pids-limit", str(spec.limits.processes)]
    words += ["--ulimit", "core=0", "--ulimit", f"fsize={spec.limits.file_mb << 20}", "--shm-size", f"{max(memory // 2, 64)}m"]
    words += ["--tmpfs", f"/tmp:rw,exec,mode=1777,size={max(memory // 2, 64)}m"]
    return words if spec.network else [*words, "--network", "none"]


def _host_view(spec: SandboxSpec, command: tuple[str, ...]) -> tuple[list[str], tuple[str, ...]]:
    """Return the arguments that show the host's programs, Python and GPUs in a container, and the command with its paths there."""
    interpreter = describe(spec.python)
    check_workspace(spec, interpreter)
    gpus = gpu_nodes(spec.gpus)
    pieces = [*programs(False), *installation(interpreter, spec.packages, spec.hidden), *workspace(spec)]
    words = _mounts(piece for piece in pieces if not isinstance(piece, Link))  # the image has the links
    words += [word for node in gpus.nodes for word in ("--device", str(node))]
    words += ["--env", f"CUDA_VISIBLE_DEVICES={gpus.visible}"]
    command = own_command(command, spec)
    if command[0] == str(interpreter.executable) and interpreter.links:
        command = (str(interpreter.executable.resolve()), *command[1:])
    return words, command


def _mounts(pieces: Iterable[Piece]) -> list[str]:
    words: list[str] = []
    for piece in pieces:
        match piece:
            case Bind(host, inside, writable):
                words += ["--mount", _csv("type=bind", f"source={host}", f"target={inside}", *(() if writable else ("readonly",)))]
            case MaskedFolder(inside):
                words += ["--mount", _csv("type=tmpfs", f"target={inside}", "tmpfs-size=1m", "tmpfs-mode=0755")]
    return words


def _csv(*fields: str) -> str:
    """Return fields as a line of CSV, in which form `--mount` accepts any path."""
    return ",".join('"' + field.replace('"', '""') + '"' for field in fields)


def _control(docker: str, name: str, number: int) -> tuple[str, ...]:
    """Return the command that sends a signal to a container's processes. For SIGKILL it removes the container."""
    match number:
        case signal.SIGSTOP:
            return (docker, "pause", name)
        case signal.SIGCONT:
            return (docker, "unpause", name)
        case signal.SIGKILL:
            return ("/bin/sh", "-c", _REMOVE, docker, name)
        case _:
            return (docker, "kill", "--signal", str(number), name)


def _client_environment() -> dict[str, str]:
    """Return the environment of the `docker` command. It has no HOME, so that DOCKER_CONFIG says where the user's Docker settings are."""
    settings = os.environ.get("DOCKER_CONFIG", os.path.expanduser("~/.docker"))
    return {**{name: os.environ[name] for name in _CLIENT if name in os.environ}, "DOCKER_CONFIG": settings}


def _program() -> str:
    program = shutil.which("docker")
    if program is None:
        raise SandboxUnavailable(f"docker is not installed; {HOW_TO_GET}, or run unprotected with --sandbox none")
    return program


def _ask(*command: str, data: bytes = b"") -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, input=data.decode("latin-1"), capture_output=True, encoding="latin-1", timeout=60)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 124, "", "no answer in 60 s")


@functools.cache
def _empty_image(docker: str) -> str:
    """Import an image that holds nothing but the host's links into /usr, and return its name."""
    if sys.platform != "linux":
        raise SandboxUnavailable(
            f"name an image with Python and what your tasks need in {IMAGE_VARIABLE}, for example one made from python:3.12"
        )
    made = _ask(docker, "import", "-", EMPTY_IMAGE, data=_skeleton())
    if made.returncode:
        raise SandboxUnavailable(f"docker import failed: {made.stderr.strip()}; {HOW_TO_GET}")
    return EMPTY_IMAGE


def _skeleton() -> bytes:
    import io
    import tarfile

    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name in SYSTEM_FOLDERS:
            if os.path.islink(f"/{name}"):
                entry = tarfile.TarInfo(name)
                entry.type, entry.linkname = tarfile.SYMTYPE, os.readlink(f"/{name}")
                archive.addfile(entry)
    return file.getvalue()
