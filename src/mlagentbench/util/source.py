"""Parse Python that others wrote, and import Python files as they are now.

Python keeps a file's bytecode while the file's size and the second of its last change stay the same. One that was changed twice within a
second would be run as it was, while its digest is of what it is.
"""

from __future__ import annotations

import ast
import sys
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, SourceFileLoader
from pathlib import Path
from types import CodeType


def parsed(source: str) -> ast.Module | None:
    """Return the syntax tree of some source; None if it is no Python, or nested too deeply."""
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


class CurrentSourceLoader(SourceFileLoader):
    """Compiles a file each time, and neither reads nor writes bytecode."""

    def get_code(self, fullname: str) -> CodeType:
        """Return a module's compiled source."""
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


def import_as_it_is(folder: Path) -> None:
    """Have the Python files of a folder imported as they are now from here on."""
    sys.path_importer_cache[str(folder)] = FileFinder(str(folder), (CurrentSourceLoader, SOURCE_SUFFIXES))
