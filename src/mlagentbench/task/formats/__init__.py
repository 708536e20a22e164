"""Task folders of other layouts, read as tasks of this package."""
