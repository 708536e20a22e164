"""Programs that run outside the harness: each is started by its path, with the standard library alone."""

from pathlib import Path


def absent_file() -> Path:
    """A module that fails to import as if it were not installed."""
    return Path(__file__).parent / "absent.py"


def empty_file() -> Path:
    """A file with nothing in it, to lie over another."""
    return Path(__file__).parent / "empty"
