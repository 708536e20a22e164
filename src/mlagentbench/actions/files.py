"""Actions that list, read, write and copy files, without a model."""

from __future__ import annotations

from typing import Annotated

from mlagentbench.actions.base import ActionContext, Observation, action


@action("List Files", returns="The observation will be the names in that folder, one a line; folders end in a slash.")
async def list_files(context: ActionContext, dir_path: Annotated[str, "a folder relative to the working directory, such as ."]) -> str:
    """List the files and folders in a folder."""
    return "\n".join(context.workspace.list(dir_path)) or "The folder is empty."


@action("Read File", returns="The observation will be the content of the file.", hidden=True)
async def read_file(context: ActionContext, file_name: Annotated[str, "a file, with its folder"]) -> str:
    """Read a file whole."""
    return printable(context.workspace.read_text(file_name))


@action("Write File", returns="The observation will say whether the file was written.", hidden=True)
async def write_file(
    context: ActionContext, file_name: Annotated[str, "a file, with its folder"], content: Annotated[str, "what the file will hold"]
) -> Observation:
    """Write a file whole. What it held before is replaced."""
    context.workspace.write_text(file_name, content)
    return Observation(f"{file_name} has been written.", details={"changed": file_name})


@action("Append File", returns="The observation will say whether the text was appended.", hidden=True)
async def append_file(
    context: ActionContext, file_name: Annotated[str, "a file, with its folder"], content: Annotated[str, "what is added at its end"]
) -> Observation:
    """Append text to a file; the file is made if there is none."""
    context.workspace.append_text(file_name, content)
    return Observation(f"{file_name} has been appended to.", details={"changed": file_name})


@action("Copy File", returns="The observation will say whether the file was copied.")
async def copy_file(
    context: ActionContext,
    source: Annotated[str, "the file to copy, with its folder"],
    destination: Annotated[str, "where to, with its folder"],
) -> Observation:
    """Copy a file to another place."""
    context.workspace.copy(source, destination)
    return Observation(f"{source} has been copied to {destination}.", details={"changed": destination})


def printable(text: str) -> str:
    """Return a file's text with bytes that are not UTF-8 (surrogate escapes) as replacement characters, so that a model can be sent it."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
