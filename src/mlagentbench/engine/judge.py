"""Have a model read runs beside the audit, with Inspect Scout. Needs the extra `scout`."""

from __future__ import annotations

import importlib.util
import json
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from inspect_ai.model import get_model

from mlagentbench.audit.audit import read_audit
from mlagentbench.audit.reading import JudgedClaim, JudgeReading, write_reading
from mlagentbench.data.extras import install_command
from mlagentbench.engine.export import sample_uuid, write_eval_log
from mlagentbench.errors import UsageError
from mlagentbench.results.load import Run

PACKAGE, EXTRA = "inspect_scout", "scout"
SCANS = "scans"
"""The folder of Scout's results in a log directory, which is where Scout looks for them."""


class Judged(NamedTuple):
    """What came of having a model read some runs."""

    readings: dict[str, JudgeReading]
    """By the runs' names."""
    failed: dict[str, str]
    """Why the other runs have no reading, by their names."""
    scan: Path
    """Scout's results, which its viewer shows."""


def require_scout() -> None:
    """Raise UsageError if Inspect Scout is not installed.

    Raises:
        UsageError: it is not.
    """
    if importlib.util.find_spec(PACKAGE) is None:
        raise UsageError(f"--judge needs Inspect Scout; install it with: {install_command([EXTRA])}")


def judge_runs(runs: Sequence[Run], model: str, scans: Path) -> Judged:
    """Have a model read audited runs, and store its readings beside their audits.

    Args:
        runs: the runs, which have a result and an audit.
        model: the model's name, as `mlab run --model` takes it.
        scans: the folder that gets Scout's results.

    Raises:
        UsageError: Scout is not installed, or there is no such model.
        StorageFailed: a reading could not be written.
    """
    require_scout()
    from inspect_scout import scan, transcripts_from

    from mlagentbench.engine.scout import audit, judge

    try:
        get_model(model)
    except Exception as error:  # each provider has its own way to refuse a name
        raise UsageError(f"--judge {model}: {error}") from None
    with tempfile.TemporaryDirectory(prefix="mlab-judge-") as folder:
        for run in runs:
            write_eval_log(run, folder=Path(folder), events=False)
        status = scan(
            [audit(), judge()], transcripts_from(folder), scans=str(scans), model=model, max_processes=1, display="none", log_level="error"
        )
    rows = {str(row["transcript_id"]): row for row in _rows(status.location)}
    failures = {error.transcript_id: error.error for error in status.errors if error.scanner == "judge"}
    readings, failed = {}, {}
    for run in runs:
        row = rows.get(sample_uuid(run.name))
        reading = None if row is None or row.get("scan_error") else _reading(run, row, model)
        if reading is None:
            failed[run.name] = failures.get(sample_uuid(run.name), "it gave no answer in the asked form").strip().splitlines()[-1]
        else:
            write_reading(run.directory, reading)
            readings[run.name] = reading
    return Judged(readings, failed, Path(status.location))


def _rows(location: str) -> list[dict[str, Any]]:
    """Return the judge's rows in Scout's results; none where it answered nothing at all, since Scout then writes no file."""
    from inspect_scout import scan_results_df

    with suppress(FileNotFoundError):
        rows: list[dict[str, Any]] = scan_results_df(location, scanner="judge").scanners["judge"].to_dict("records")
        return rows
    return []


def _reading(run: Run, row: dict[str, Any], model: str) -> JudgeReading | None:
    """Return a row of Scout's results as a reading; None if it holds none."""
    value = row["value"] if isinstance(row["value"], dict) else json.loads(row["value"] or "null")
    audit = read_audit(run.directory)
    if not isinstance(value, dict) or audit is None:
        return None
    return JudgeReading(
        model=model,
        mode=value["mode"],
        reason=str(row["explanation"] or ""),
        claims=tuple(_claims(audit.claims, value["claims"])),
        tokens=int(row.get("scan_total_tokens") or 0),
    )


def _claims(claims: Sequence[Any], answers: Iterable[dict[str, Any]]) -> Iterable[JudgedClaim]:
    """Yield the verdicts on claims; those on numbers that no claim has are left out."""
    for answer in answers:
        if 0 < answer["claim"] <= len(claims):
            claim = claims[answer["claim"] - 1]
            yield JudgedClaim(
                step=claim.step,
                place=claim.place,
                quote=claim.quote,
                value=claim.value,
                verdict=answer["verdict"],
                reason=answer["reason"],
            )
