"""An agent of no framework: it sends OpenAI's chat completions to a base URL, and runs the shell commands that the replies ask for.

    python bridged_agent.py [TITLE]

With TITLE it asks for a title first, as some agents do. What it has said and heard is in its home, from which it goes on when it is started
again. Its standard library is all that it uses.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request

TOOL = {
    "type": "function",
    "function": {
        "name": "shell",
        "description": "Run a shell command.",
        "parameters": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
    },
}
STATE = os.path.expanduser("~/messages.json")


def ask(messages: list[dict], tools: list[dict]) -> dict:
    """Return the model's next message."""
    body = {"model": "inspect", "messages": messages, **({"tools": tools} if tools else {})}
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
    request = urllib.request.Request(f"{os.environ['OPENAI_BASE_URL']}/chat/completions", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=600) as reply:
        return json.load(reply)["choices"][0]["message"]


def main() -> None:
    """Go on until a reply calls no tool."""
    with open(os.environ["MLAB_TASK_FILE"]) as file:
        task = file.read()
    if "TITLE" in sys.argv:
        ask([{"role": "user", "content": f"Give this a title: {task}"}], [])
    messages = [{"role": "user", "content": task}]
    if os.path.exists(STATE):
        with open(STATE) as file:
            messages = json.load(file)
    while True:
        message = ask(messages, [TOOL])
        messages.append({name: value for name, value in message.items() if value is not None})
        if not message.get("tool_calls"):
            print(message["content"])
            return
        for call in message["tool_calls"]:
            command = json.loads(call["function"]["arguments"])["command"]
            done = subprocess.run(command, shell=True, capture_output=True, text=True)
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": done.stdout + done.stderr})
        with open(STATE, "w") as file:
            json.dump(messages, file)


if __name__ == "__main__":
    main()
