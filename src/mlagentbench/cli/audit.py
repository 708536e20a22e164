"""The command `mlab audit`."""

from __future__ import annotations

import json
from pathlib import Path

import click
from rich.progress import track
from rich.text import Text

from mlagentbench.audit.audit import audit_run
from mlagentbench.audit.record import Audit
from mlagentbench.cli.options import logs_argument
from mlagentbench.cli.output.judged import judge_lines
from mlagentbench.engine.judge import SCANS, judge_runs, require_scout
from mlagentbench.errors import RunNotFound, TaskError
from mlagentbench.report.console import Item, Listing, command_console
from mlagentbench.report.formatting import plural, visible
from mlagentbench.report.wording import MODES, SIGNS, mode_words
from mlagentbench.results.load import load_run
from mlagentbench.run_spec import RunInfo
from mlagentbench.rundir.directory import RunDirectory, find_runs
from mlagentbench.task.catalogue import Task, find_task


@click.command()
@logs_argument
@click.option("--json", "as_lines", is_flag=True, help="Print one JSON object a run, and nothing else, on standard output.")
@click.option(
    "--judge",
    "model",
    metavar="MODEL",
    help="Have a model read the runs too, and show how far it agrees. Its reading changes nothing that the audit says.",
)
def audit(logs: Path, as_lines: bool, model: str | None) -> int:
    """Check what agents said against what they had seen, and say how runs failed.

    LOGS is a log directory, or one run: its directory, or its id in runs or the beginning of one. Of one run, every claim that the evidence
    does not bear out is listed, and every sign of cheating. docs/audit.md has the rules. The exit status is 3 if a run could not be read.
    """
    console = command_console(stderr=as_lines)
    if model is not None:
        require_scout()
    found: list[tuple[RunDirectory, Audit]] = []
    faults: list[str] = []
    for directory in track(find_runs(logs), "auditing", console=console, transient=True):
        try:
            found.append((directory, audit_run(directory, _task(directory))))
        except RunNotFound as error:
            faults.append(str(error))
    judged = None
    if model is not None and found:
        runs = [run for directory, _ in found if (run := load_run(directory)).result is not None]
        judged = judge_runs(runs, model, found[0][0].path.parent / SCANS)
    if as_lines:
        for directory, each in found:
            fields = {"run": directory.name, **each.model_dump(mode="json")}
            if judged is not None:
                reading = judged.readings.get(directory.name)
                fields["judge"] = reading.model_dump(mode="json") if reading else None
            click.echo(json.dumps(fields))
    else:
        columns = ("how it came out", "claims>", "unfounded>", "first>", "in the answer", "signs")
        console.print(Listing("run", columns, [_item(directory, each) for directory, each in found]), crop=False)
        if len(found) == 1:
            for line in _details(found[0][0].info, found[0][1]):
                console.print(line, soft_wrap=True)
    if judged is not None:
        faults += [f"{name}: the judge failed: {reason}" for name, reason in judged.failed.items()]
        for line in judge_lines({directory.name: each for directory, each in found}, judged):
            console.print(line, soft_wrap=True)
    for fault in faults:
        console.print(Text(visible(fault), style="red"))
    return 3 if faults else 0


def _task(directory: RunDirectory) -> Task | None:
    """Return a run's task; None if it is not installed here."""
    spec = directory.info.spec
    try:
        return find_task(spec.task, [spec.task_folder] if spec.task_folder else [])
    except TaskError:
        return None


def _item(directory: RunDirectory, found: Audit) -> Item:
    unfounded = sum(claim.is_unfounded for claim in found.claims)
    kinds = dict.fromkeys(SIGNS[sign.kind] for sign in found.signs)
    first = "" if found.first_unfounded is None else f"step {found.first_unfounded}"
    mode = MODES[found.mode.mode] if found.mode else "-"
    return Item(directory.name, (mode, str(len(found.claims)), str(unfounded), first, "yes" if found.carried else "", ", ".join(kinds)))


def _details(info: RunInfo, found: Audit) -> list[Text]:
    came_out = mode_words(info, found)
    lines = [Text(), Text.assemble(("how it came out  ", "dim"), visible(came_out))] if came_out else [Text()]
    for claim in found.claims:
        if claim.is_unfounded:
            lines += [
                Text.assemble(
                    (f"step {claim.step} ", "bold"), (f"{claim.verdict} ", "red"), (f"{claim.place}: ", "dim"), visible(claim.quote)
                ),
                Text(f"    {claim.reason}", style="dim"),
            ]
            if claim.evidence:
                lines.append(
                    Text(visible(f"    step {claim.evidence.step}, line {claim.evidence.line}: {claim.evidence.text}"), style="dim")
                )
    for sign in found.signs:
        lines.append(Text.assemble((f"step {sign.step} ", "bold"), (f"{SIGNS[sign.kind]} ", "yellow"), visible(sign.line)))
    plan, log = found.plan, found.log
    lines.append(
        Text(
            f"{plural(plan.edits, 'edit')}, at most {plan.longest_edits} in a row without an execution, {plan.undone} undone;"
            f" {plural(plan.executions, 'execution')}, {plan.failed_executions} failed; {plural(plan.repeated, 'repeated step')}"
        )
    )
    if log.summaries:
        lines.append(
            Text(
                f"research log: {plural(log.dropped_numbers, 'number')} and {plural(log.dropped_errors, 'error')} dropped,"
                f" {plural(log.altered_numbers, 'number')} altered"
            )
        )
    return lines
