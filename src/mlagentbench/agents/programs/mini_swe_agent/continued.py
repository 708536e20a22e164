"""Continue mini-swe-agent's conversation from the trajectory that it saved after each step. It runs in the agent's sandbox."""

import json

from minisweagent.agents.interactive import InteractiveAgent


class ContinuedAgent(InteractiveAgent):
    """mini-swe-agent's own agent, begun with the messages of a saved trajectory."""

    def run(self, task: str = "", **kwargs: object) -> dict:
        """Run until the agent is done, from the last message that was saved."""
        saved = json.loads(self.config.output_path.read_text())
        stats = saved["info"]["model_stats"]
        self.cost, self.n_calls = stats["instance_cost"], stats["api_calls"]
        self._saved = [message for message in saved["messages"] if message.get("role") != "exit"]
        return super().run(task, **kwargs)

    def add_messages(self, *messages: dict) -> list[dict]:
        """Add messages; in place of the first ones, add those that were saved."""
        if self._saved:
            messages, self._saved = tuple(self._saved), []
        return super().add_messages(*messages)
