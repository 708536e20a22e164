"""Stands where a sandbox hides a package, so that importing it fails as if it were not installed."""

raise ModuleNotFoundError(f"No module named {__name__!r}", name=__name__)
