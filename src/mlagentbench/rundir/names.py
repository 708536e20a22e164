"""Name runs."""

from __future__ import annotations

import hashlib
import re
import secrets
import time

LONGEST_AGENT = 32
"""Characters of an agent's name in a run's name."""


def new_name(task: str, agent: str, sample: str | None = None) -> str:
    """Return a name for a run, unique in practice and sorted by time, to the second: `20260131-101500-vectorization-research-3f9a41c0`.

    Of an agent given as `path/to/file.py:Name`, only `Name` is used, and of a command its beginning. A name made for a sample ends with
    its mark.
    """
    short = re.sub(r"[^A-Za-z0-9_]+", "-", agent.rpartition(":")[2])[:LONGEST_AGENT].strip("-")
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{task}-{short}-{sample_mark(sample) if sample else secrets.token_hex(4)}"


def sample_mark(sample: str) -> str:
    """Return the end of the name of a run that was made for a sample."""
    return hashlib.sha256(sample.encode()).hexdigest()[:8]
