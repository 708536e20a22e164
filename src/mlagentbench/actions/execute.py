"""Actions that run the agent's scripts, and that end a run."""

from __future__ import annotations

from typing import Annotated

from pydantic import JsonValue

from mlagentbench.actions.base import ActionContext, Observation, action
from mlagentbench.errors import ActionError
from mlagentbench.records import StepStatus
from mlagentbench.sandbox.base import EndReason, Execution

STATUS: dict[EndReason, StepStatus] = {
    "time": "limit_time",
    "memory": "limit_memory",
    "output": "limit_output",
    "disk": "limit_disk",
    "processes": "limit_processes",
}

EXPLAINED: dict[EndReason, str] = {
    "time": "It was stopped at the time limit.",
    "memory": "It was stopped at the memory limit.",
    "output": "It was stopped because it printed too much.",
    "disk": "It was stopped because the working directory grew over its limit of size or of files; remove what is not needed.",
    "processes": "It was stopped at the limit of processes and threads.",
}


@action("Execute Script", returns="The observation will be what the script printed, errors included.")
async def execute_script(context: ActionContext, script_name: Annotated[str, "a Python script, with its folder"]) -> Observation:
    """Run a Python script that is in the working directory."""
    kind = context.workspace.kind(script_name)
    if kind is None:
        raise ActionError(f"There is no script {script_name}. List Files shows what there is.")
    if kind != "file":
        raise ActionError(f"{script_name} is no file, so it cannot be run.")
    # Python would read a name that starts with a dash as an option.
    path = f"./{script_name}" if script_name.startswith("-") else script_name
    execution = await context.run_script(("python", "-u", path))
    return observed(script_name, execution)


@action("Final Answer", returns="The run ends.")
async def final_answer(context: ActionContext, final_answer: Annotated[str, "what was done, and how well it works"]) -> Observation:
    """Submit: the working directory is graded as it is now. Use it once, when the task is done."""
    return Observation("The run has ended.", details={"final_answer": final_answer})


def observed(name: str, execution: Execution) -> Observation:
    """Return the observation of a script that ran."""
    output = execution.output.rstrip("\n") or "(It printed nothing.)"
    if execution.reason in EXPLAINED:
        ending = f" {EXPLAINED[execution.reason]}"
    elif execution.exit_code:
        ending = f" It failed with exit code {execution.exit_code}."
    else:
        ending = ""
    status = STATUS.get(execution.reason, "error" if execution.exit_code else "ok")
    details: dict[str, JsonValue] = {
        "script": name,
        "exit_code": execution.exit_code,
        "reason": execution.reason,
        "output_bytes": execution.output_bytes,
    }
    text = f"{name} ran for {execution.seconds:.2f} seconds.{ending} Its output:\n{output}"
    return Observation(text, status, details, execution.seconds)
