"""The dialogue of `mlab run --interactive`: the task, what may be changed, the agent's questions, and the patch at the end."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from mlagentbench.agents.terminal import own_terminal
from mlagentbench.errors import RunStopped, UsageError
from mlagentbench.report.formatting import plural
from mlagentbench.rundir.directory import RunDirectory
from mlagentbench.runner.interactive import InteractiveSession, allowed_names, make_session, session_of, top_level, write_patch
from mlagentbench.task.catalogue import Task, find_tasks
from mlagentbench.task.spec import UNGRADED
from mlagentbench.util import interrupts

SEVERAL_LINES = "<<"
FEW = 5
"""Names of files that are shown at most."""


async def ask_person(request: str) -> str:
    """Ask the person at the terminal an agent's question, and return the answer.

    Raises:
        RunStopped: the person has ended the input.
    """
    terminal = own_terminal()
    terminal.say(f"\nThe agent asks:\n{request.strip()}")
    answer = await terminal.line(f"your answer ({SEVERAL_LINES} for several lines)> ")
    return await terminal.text("Your answer.") if answer.strip() == SEVERAL_LINES else answer


def begin(
    named: Sequence[str], say: str | None, allow: Sequence[str], log_directory: Path, task_paths: Sequence[Path]
) -> InteractiveSession:
    """Make the session for a command line, and ask at the terminal for what it leaves out.

    Args:
        named: nothing, a folder, or a task of the catalogue.
        say: the task to do in the folder, in a sentence; None to ask for it.
        allow: the names that may be changed there.
        log_directory: where runs and sessions are stored.
        task_paths: folders of more tasks.

    Raises:
        UsageError: the session cannot be made.
        click.Abort: the person has ended the input.
    """
    if len(named) > 1:
        raise UsageError(f"an interactive session has one folder or task, not {len(named)}")
    folder = Path(named[0]) if named else None
    task = _task(named[0], task_paths) if named and not Path(named[0]).is_dir() else None
    if task is not None:
        if say is not None or allow:
            raise UsageError(f"{named[0]} is a task and says itself what is to be done; --say and --allow are for a folder")
        return session_of(task)
    if folder is not None and (folder / "task.toml").exists():
        raise UsageError(f"{folder} is a task's folder; run it by its id with --task-path {folder}")
    asked = allowed_names(folder, allow, log_directory)
    if say is None:
        try:
            say = _asked_sentence()
            if folder is not None and not allow and (there := top_level(folder, log_directory)):
                own_terminal().say(f"In {folder}: {', '.join(there)}")
                asked = _asked_names(folder, log_directory)
        except RunStopped:
            raise click.Abort from None
    return make_session(say, folder, asked, log_directory)


def _asked_sentence() -> str:
    """Ask what to do until there is an answer, and return it."""
    while not (sentence := _ask("What is to be done? ").strip()):
        pass
    return sentence


def _asked_names(folder: Path, log_directory: Path) -> tuple[str, ...]:
    """Ask which names may be changed until all of them exist, and return them. A name with a space in it is given in quotes."""
    while True:
        words = _ask("Which of them may be changed? (names apart by spaces, all, or Enter for none) ")
        try:
            return allowed_names(folder, shlex.split(words), log_directory)
        except (UsageError, ValueError) as error:
            own_terminal().say(f"{error}")


def end(directory: RunDirectory, task: Task) -> None:
    """Write what a session's run changed as a patch, and say how to apply it.

    Raises:
        UsageError: git is not installed, or fails.
        StorageFailed: the disk is full or read-only.
    """
    session, terminal = session_of(task), own_terminal()
    if session.folder is None:
        if task.spec.metric.name == UNGRADED:
            terminal.say(f"What the agent made is in {directory.workspace}.")
        return
    patch = write_patch(session, directory)
    if patch.path is None:
        what = "Nothing that may be changed has changed" if session.allowed else "Nothing may be changed"
        terminal.say(f"{what} in {session.folder}. What the agent made is in {directory.workspace}.")
        return
    command = shlex.join(["git", "-C", str(session.folder), "apply", str(patch.path.resolve())])
    terminal.say(f"{patch.summary}\n\nThe changes are in {patch.path}. To read them, open that file; to apply them:\n  {command}")
    if patch.left_out:
        few = ", ".join(patch.left_out[:FEW]) + (", ..." if len(patch.left_out) > FEW else "")
        terminal.say(f"Not in the patch: {plural(len(patch.left_out), 'other file')} in {directory.workspace}: {few}.")


def _task(name: str, task_paths: Sequence[Path]) -> Task:
    tasks = find_tasks(task_paths)
    if name not in tasks:
        what = "is a file" if Path(name).is_file() else "is neither a folder nor a task"
        raise UsageError(f"{name} {what}; name a folder to work on, or a task of mlab tasks list")
    return tasks[name]


def _ask(question: str) -> str:
    sys.stdout.flush()
    return interrupts.run(own_terminal().line(question))
