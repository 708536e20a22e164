"""The action that runs commands in a Python session, which keeps its variables between them."""

from __future__ import annotations

from typing import Annotated

from mlagentbench.actions.base import ActionContext, Observation, action
from mlagentbench.actions.execute import EXPLAINED, STATUS

NEW = "(This is a new Python session: the variables of the one before are gone.)\n"


@action("Python REPL", returns="The observation will be what the command printed, and the value of its last expression.", hidden=True)
async def python_repl(context: ActionContext, command: Annotated[str, "Python source"]) -> Observation:
    """Run a command in a Python session that keeps its variables between commands."""
    answer = await context.run_in_session(command)
    execution = answer.execution
    lost = answer.started and any(step.details.get("session") for step in context.steps)
    text = (NEW if lost else "") + (execution.output.rstrip("\n") or "(It printed nothing.)")
    if execution.reason in EXPLAINED:
        text += f"\n{EXPLAINED[execution.reason]} The session has ended, and its variables are gone."
    elif answer.ended:
        text += f"\nThe session has ended with exit code {execution.exit_code}, and its variables are gone."
    status = STATUS.get(execution.reason, "error" if answer.ended else "ok")
    return Observation(text, status, {"exit_code": execution.exit_code, "reason": execution.reason, "session": True}, execution.seconds)
