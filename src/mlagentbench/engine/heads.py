"""Read the heads of runs' chains back from `.eval` logs."""

from __future__ import annotations

import zipfile
import zlib
from collections import defaultdict
from pathlib import Path

from inspect_ai.log import read_eval_log_sample_summaries

from mlagentbench.runner.verify import LoggedHead

HEAD = "provenance"
"""The key of the head in the metadata of a log's sample."""


def logged_heads(folder: Path) -> dict[str, list[LoggedHead]]:
    """Return the heads that the logs of a folder hold, oldest log first, by the names of their runs. A log that cannot be read has none."""
    found: defaultdict[str, list[LoggedHead]] = defaultdict(list)
    for path in sorted(folder.glob("*.eval")):
        try:
            samples = read_eval_log_sample_summaries(path)
        except (OSError, ValueError, LookupError, zipfile.BadZipFile, zlib.error):
            continue
        for sample in samples:
            run, head = sample.metadata.get("run"), sample.metadata.get(HEAD)
            if isinstance(run, str) and isinstance(head, str):
                found[run].append(LoggedHead(path, head))
    return dict(found)
