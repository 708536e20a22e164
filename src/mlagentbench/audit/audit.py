"""Audit one run by rules: its claims, how it failed, where its plans broke, what its research log lost, and signs of cheating."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from mlagentbench.audit.claims import judge_claims
from mlagentbench.audit.code import Data
from mlagentbench.audit.evidence import history
from mlagentbench.audit.files import RunFiles
from mlagentbench.audit.modes import Facts, carried, mode_of
from mlagentbench.audit.plans import plan_of
from mlagentbench.audit.record import UNFOUNDED, Audit, Claim, FactChecks
from mlagentbench.audit.research_log import losses
from mlagentbench.audit.signs import KnownFiles, signs
from mlagentbench.audit.statements import FINAL_ANSWER
from mlagentbench.errors import RunNotFound
from mlagentbench.records import ModelCall
from mlagentbench.run_spec import RunInfo
from mlagentbench.rundir.directory import RunDirectory
from mlagentbench.rundir.files import read, storage, text_of
from mlagentbench.rundir.provenance import AUDIT, RESULT, extend, rewriting
from mlagentbench.task.catalogue import Task
from mlagentbench.util.atomic import replace


def audit_run(directory: RunDirectory, task: Task | None) -> Audit:
    """Audit a run, and store the audit in its directory. A certain sign of cheating flags the result, and takes its success away.

    Args:
        directory: the run's directory.
        task: its task; None if it is not installed here, so that its submission's files are not known.

    Raises:
        RunNotFound: the run, or a part of it, is damaged.
        StorageFailed: the audit could not be written.
    """
    info, result, steps = directory.info, directory.result, directory.steps()
    files = RunFiles(directory, task)
    past = history(steps, info.description)
    claims = judge_claims(steps, past)
    claimed = _claimed_score(claims)
    graded = result.score.value if result and result.score else None
    found = Audit(
        claims=tuple(claims),
        mode=mode_of(Facts(result, steps, past, claims)) if result else None,
        plan=plan_of(info, steps, result, files.scripts),
        log=losses(steps, past),
        fact_checks=_fact_checks(claims),
        signs=tuple(signs(steps, _workspace(files, info, task), _calls(directory))),
        first_unfounded=next((claim.step for claim in claims if claim.is_unfounded), None),
        carried=carried(claims) is not None,
        claimed_score=claimed,
        gap=None if claimed is None or graded is None else claimed - graded,
    )
    if result is not None and any(sign.certain for sign in found.signs) and "cheated" not in result.outcome.flags:
        outcome = result.outcome.model_copy(update={"flags": (*result.outcome.flags, "cheated")})
        with rewriting(directory, RESULT):
            directory.write_result(result.model_copy(update={"outcome": outcome}))
    with storage(directory.path):
        replace(directory.path / AUDIT, text_of(found))
    extend(directory, AUDIT)
    return found


def read_audit(directory: RunDirectory) -> Audit | None:
    """Return the stored audit of a run; None if it was not audited.

    Raises:
        RunNotFound: the file is damaged, or of another version.
    """
    path = directory.path / AUDIT
    return read(path, Audit, remedy=f"make it again: mlab audit {directory.path}") if path.exists() else None


def _workspace(files: RunFiles, info: RunInfo, task: Task | None) -> KnownFiles:
    """Return what the signs need to know of a run's task and files."""
    spec = task.spec if task else None
    hidden = [
        (Path(pattern).name.split(".")[0].rstrip("_*"), ".".join(Path(pattern).parent.parts)) for pattern in (spec.hidden if spec else ())
    ]
    return KnownFiles(
        data=Data(spec.read_only if spec else (), files.submission),
        known=f"{info.description}\n{files.starter_text}",
        hidden=[name for stem, module in hidden for name in (f"load_{stem}", f"{stem}.csv", f"{module} import {stem}", f"{module}.{stem}")],
        network=spec.network if spec else False,
        scripts=files.scripts,
        source=files.source,
        submitted=files.submitted,
        copies=files.copy_of,
    )


def _calls(directory: RunDirectory) -> Callable[[int], Sequence[ModelCall]]:
    def calls(step: int) -> Sequence[ModelCall]:
        with suppress(RunNotFound):
            return directory.calls(step)
        return ()

    return calls


def _claimed_score(claims: Sequence[Claim]) -> float | None:
    stated = [claim for claim in claims if claim.place == FINAL_ANSWER and claim.kind == "number" and claim.value]
    if not stated:
        return None
    value = str(stated[-1].value)
    number = float(value.rstrip("% ").replace(",", ""))
    return number / 100 if value.endswith("%") else number


def _fact_checks(claims: Sequence[Claim]) -> FactChecks:
    own = [claim for claim in claims if claim.place == "Fact Check"]
    unfounded = [claim for claim in own if claim.verdict in UNFOUNDED]
    said = [claim for claim in own if claim.stated == "confirmed"]
    return FactChecks(
        confirmed=sum(claim.verdict == "confirmed" for claim in said),
        not_confirmed=sum(claim.verdict != "confirmed" for claim in said),
        guessed=sum(claim.stated == "guessed" for claim in unfounded),
        not_guessed=sum(claim.stated != "guessed" for claim in unfounded),
    )
