"""What a command sees: files, one Python installation, variables."""
