"""What a command in a sandbox sees: files, one Python installation, environment variables."""
