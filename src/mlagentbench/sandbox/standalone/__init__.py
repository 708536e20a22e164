"""Programs that run outside the harness: each is started by its path, with the standard library alone."""
