"""The baseline: run the starter as it is, and submit."""

from __future__ import annotations

from mlagentbench.environment import Environment
from mlagentbench.records import Action


class BaselineAgent:
    """Runs the unchanged starter and submits the result; asks no model.

    Args:
        script: the script to run.
    """

    needs_model = False

    def __init__(self, script: str = "train.py") -> None:
        self.script = script

    async def __call__(self, environment: Environment) -> None:
        """Run the script, unless that is done already in a resumed run; then submit."""
        if not environment.steps:
            await environment.execute(Action(name="Execute Script", arguments={"script_name": self.script}))
        await environment.execute(Action(name="Final Answer", arguments={"final_answer": "The starter, unchanged."}))
