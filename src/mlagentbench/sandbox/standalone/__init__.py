"""Programs that run outside the harness's process, and import nothing but the standard library."""

from pathlib import Path


def absent_file() -> Path:
    """Return the path of a module whose import fails as if it were not installed."""
    return Path(__file__).parent / "absent.py"


def empty_file() -> Path:
    """Return the path of an empty file, to mount over another."""
    return Path(__file__).parent / "empty"
