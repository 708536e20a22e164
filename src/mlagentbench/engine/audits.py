"""Put what the audit found into the metadata of a log's sample, where Inspect's viewer and Inspect Scout read it."""

from __future__ import annotations

from contextlib import suppress

from pydantic import JsonValue

from mlagentbench.audit.audit import read_audit
from mlagentbench.errors import RunNotFound
from mlagentbench.rundir.directory import RunDirectory

AUDIT = "audit"
"""The key of the audit in the metadata of a log's sample."""


def audit_metadata(directory: RunDirectory) -> dict[str, JsonValue]:
    """Return a run's mode, claims and signs under their key; nothing if it was not audited, or its audit cannot be read."""
    with suppress(RunNotFound):
        found = read_audit(directory)
        return {AUDIT: found.model_dump(mode="json", include={"mode", "claims", "signs"})} if found else {}
    return {}
