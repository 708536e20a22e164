"""Chain the digests of a run's files, so that a file that was changed afterwards is found.

    provenance.json          the links, oldest first: a file's name, its digest, and the head of the chain up to here

The chain covers `run.json`, all files of steps and snapshots, `result.json`, `audit.json`, and the content of the task's folder. No link is
ever changed or removed: a file that is written again gets a further link. So a head that was noted elsewhere, as in the `.eval` log, is in
the chain until somebody makes the chain anew.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Literal

from mlagentbench.errors import RunNotFound
from mlagentbench.records import Record
from mlagentbench.rundir.directory import RunDirectory
from mlagentbench.rundir.files import names_in, read, storage, text_of
from mlagentbench.util.atomic import replace
from mlagentbench.workspace.files import bytes_of

FILE = "provenance.json"
TASK = "task"
"""The name of the links that have the digest of the task's folder."""
INFO, RESULT, AUDIT = "run.json", "result.json", "audit.json"


class ChainLink(Record):
    """One link: a file as it was written."""

    name: str
    """The file's path in the run's directory, or `task`."""
    digest: str | None
    """The SHA-256 of its content, in hex; None if it was removed by resuming the run."""
    head: str
    """The head of the chain up to this link (`head_after`)."""


class Provenance(Record):
    """The chain over a run's files: `provenance.json` in its directory."""

    version: Literal[1] = 1
    links: tuple[ChainLink, ...] = ()

    @property
    def head(self) -> str:
        """The last link's head; empty for a chain without links."""
        return self.links[-1].head if self.links else ""

    @property
    def digests(self) -> dict[str, str | None]:
        """The last digest of each name."""
        return {link.name: link.digest for link in self.links}


def head_after(head: str, name: str, digest: str | None) -> str:
    """Return the head of a chain after one more link: the SHA-256, in hex, of the head before, the link's name and its digest."""
    return hashlib.sha256(f"{head}\0{name}\0{digest or ''}".encode(errors="surrogatepass")).hexdigest()


def read_provenance(directory: RunDirectory) -> Provenance | None:
    """Return a run's chain; None if it has none, as before its end.

    Raises:
        RunNotFound: the file is damaged.
    """
    path = directory.path / FILE
    return read(path, Provenance) if os.path.lexists(path) else None


def head_of(directory: RunDirectory) -> str | None:
    """Return the head of a run's chain; None if it has none, or a damaged one."""
    chain = _readable(directory)
    return chain.head if chain else None


def covered(directory: RunDirectory) -> list[str]:
    """Return the names of the files that a run's chain must cover, in the order of steps."""
    folders = (directory.steps_folder, directory.snapshots_folder)
    # Names with a dot at their beginning are what a killed process was writing.
    files = [f"{folder.name}/{name}" for folder in folders for name in names_in(folder) if name.isascii() and not name.startswith(".")]
    files.sort(key=lambda name: (_number(name), not name.startswith("steps/")))
    return [name for name in (INFO, *files, RESULT) if os.path.lexists(directory.path / name)]


def digest_of(directory: RunDirectory, name: str) -> str | None:
    """Return the SHA-256 of a run's file, in hex; None if it is missing or cannot be read."""
    try:
        return hashlib.sha256(bytes_of(directory.path / name)).hexdigest()
    except (OSError, ValueError):  # a damaged chain may name anything, also what no path can be
        return None


def seal(directory: RunDirectory, task: str | None) -> None:
    """Add the files of a run that has just ended to its chain, or begin a chain. A damaged chain stays as it is.

    A file of a finished step is added once. The files of a step that was interrupted earlier may have changed, and are added again.

    Args:
        directory: the run's directory.
        task: the digest of the task's folder; None for an imported run whose task is not known here.

    Raises:
        StorageFailed: the chain could not be written.
    """
    with suppress(RunNotFound):
        chain = read_provenance(directory) or Provenance()
        _extend(directory, chain, [(TASK, task), *((name, digest_of(directory, name)) for name in _written(directory, chain))])


def unsealed(directory: RunDirectory, chain: Provenance) -> list[str]:
    """Return the files that a run's chain does not cover, because its process was killed before it sealed the run.

    They are the files of the steps after the last one in the chain, and with them the result and the audit.
    """
    chained = max((_number(link.name) for link in chain.links), default=-1)
    later = [name for name in covered(directory) if _number(name) > chained]
    return [*later, RESULT, AUDIT] if later else []


def is_sealed(directory: RunDirectory) -> bool:
    """Return whether the chain of a run with a result was written after the run had ended. A damaged chain counts as written."""
    with suppress(RunNotFound):
        chain = read_provenance(directory)
        return chain is not None and not unsealed(directory, chain)
    return True


def _written(directory: RunDirectory, chain: Provenance) -> list[str]:
    """Return the names of the files that a run has written, or written again, since its chain was last extended."""
    known = chain.digests
    last = max((_number(name) for name in known if name.endswith(".json")), default=-1)
    unfinished = [name for name in known if _number(name) > last]
    new = [name for name in covered(directory) if name not in known]
    return [*unfinished, *(name for name in new if name != RESULT), RESULT]


def extend(directory: RunDirectory, name: str) -> None:
    """Extend a run's chain by a file that has just been written. A run without a chain, or with a damaged one, stays as it is.

    Raises:
        StorageFailed: the chain could not be written.
    """
    chain = _readable(directory)
    if chain is not None:
        _extend(directory, chain, [(name, digest_of(directory, name))])


@contextmanager
def rewriting(directory: RunDirectory, name: str, task: str | None = None) -> Iterator[None]:
    """Extend a run's chain by a file that the block may write again.

    A file that was not as the chain says before the block gets no link, so that it is still found to be changed.

    Args:
        directory: the run's directory.
        name: the file.
        task: the digest of the task's folder, for a result; None for a file that does not come from the task.

    Raises:
        StorageFailed: the chain could not be written.
    """
    chain = _readable(directory)
    was_right = chain is not None and chain.digests.get(name) == digest_of(directory, name)
    try:
        yield
    finally:
        if chain is not None and was_right:
            digests = [(name, digest_of(directory, name))]
            _extend(directory, chain, digests if task is None else [(TASK, task), *digests])


def _readable(directory: RunDirectory) -> Provenance | None:
    """Return a run's chain; None if it has none, or a damaged one, which `mlab verify` names."""
    with suppress(RunNotFound):
        return read_provenance(directory)
    return None


def _extend(directory: RunDirectory, chain: Provenance, digests: Iterable[tuple[str, str | None]]) -> None:
    """Write a chain with further links, for the names whose digests are not the last ones."""
    known, links, head = chain.digests, list(chain.links), chain.head
    for name, digest in digests:
        if name not in known or known[name] != digest:
            head = head_after(head, name, digest)
            links.append(ChainLink(name=name, digest=digest, head=head))
    if len(links) > len(chain.links):
        with storage(directory.path):
            replace(directory.path / FILE, text_of(chain.model_copy(update={"links": tuple(links)})))


def _number(name: str) -> int:
    """Return the number of the step that a file belongs to; -1 for a file of no step."""
    match = re.match(r"(?:steps|snapshots)/(\d{4,})(?:\.|$)", name, re.ASCII)
    return int(match[1]) if match else -1
