"""Fail to import as if not installed. A sandbox mounts this file in place of a package that it hides."""

raise ModuleNotFoundError(f"No module named {__name__!r}", name=__name__)
