"""What the metadata of a log's sample holds of its run, for Inspect's viewer, for Inspect Scout and for `mlab verify`: audit and head."""

from __future__ import annotations

import zipfile
import zlib
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

from inspect_ai.log import read_eval_log_sample_summaries
from pydantic import JsonValue

from mlagentbench.audit.audit import read_audit
from mlagentbench.errors import RunNotFound
from mlagentbench.rundir.directory import RunDirectory
from mlagentbench.runner.verify import LoggedHead

AUDIT = "audit"
"""The key of the audit."""
HEAD = "provenance"
"""The key of the head of the run's chain."""


def audit_metadata(directory: RunDirectory) -> dict[str, JsonValue]:
    """Return a run's mode, claims and signs under their key; nothing if it was not audited, or its audit cannot be read."""
    with suppress(RunNotFound):
        found = read_audit(directory)
        return {AUDIT: found.model_dump(mode="json", include={"mode", "claims", "signs"})} if found else {}
    return {}


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
