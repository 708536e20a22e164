"""Run any command as an agent: `--agent "cmd:python my_agent.py"`.

The command finds the base addresses of its models, its task and its limits in its environment (see `bridged.py`).
"""

from __future__ import annotations

import shlex
from pathlib import Path

from mlagentbench.engine.agents.bridged import Bridge, BridgedAgent
from mlagentbench.sandbox.base import Mount
from mlagentbench.sandbox.view.interpreter import SYSTEM

FOLDER = "/opt/agent"
"""Where the agent's files are in its sandbox."""
TASK = "{task}"
"""The word of a command that stands for the task's text."""


class CommandAgent(BridgedAgent):
    """Any command, in a sandbox of its own: `--agent "cmd:python my_agent.py"`.

    It finds its models at OPENAI_BASE_URL, ANTHROPIC_BASE_URL or GOOGLE_GEMINI_BASE_URL, and the task in the file named by MLAB_TASK_FILE.

    Args:
        command: the command. A word that is `{task}` becomes the task's text. Without `folder`, a word that names a file of this machine
            becomes that file's path in the sandbox.
        folder: a folder of this machine with what the command needs, which it finds at /opt/agent: `python /opt/agent/main.py`.
    """

    def __init__(self, command: str, folder: str | None = None) -> None:
        words = shlex.split(command)
        if not words:
            raise ValueError("the command is empty; name one, such as cmd:python my_agent.py")
        if folder is not None and not Path(folder).is_dir():
            raise ValueError(f"there is no folder {folder}")
        files = {} if folder is not None else {word: Path(word).resolve() for word in words if _is_named(Path(word))}
        mounts = [Mount(file, f"{FOLDER}/{file.name}") for file in files.values()]
        words = [f"{FOLDER}/{files[word].name}" if word in files else word for word in words]

        def made(bridge: Bridge) -> list[str]:
            return [bridge.prompt if word == TASK else word for word in words]

        super().__init__(command=made, mounts=mounts if folder is None else [Mount(Path(folder).resolve(), FOLDER)])


def _is_named(file: Path) -> bool:
    """Return whether a word of a command names a file of the agent's: one that exists, and that the sandbox does not show anyway."""
    return file.is_file() and not any(file.is_relative_to(folder) for folder in SYSTEM)
