"""Read what a log of the original says of a whole run: its arguments, task, models and time, and how it ended."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from mlagentbench.grading.score import Ending
from mlagentbench.original.files import LogFolders, Reader, storable
from mlagentbench.original.trace import APPEND, FINAL, RETRIEVE, Trace
from mlagentbench.records import Role, Termination
from mlagentbench.run_spec import NO_MODEL
from mlagentbench.task.catalogue import BUILT_IN
from mlagentbench.task.formats.original import our_name
from mlagentbench.task.spec import read_toml

AGENTS: Mapping[str, str] = {
    "ResearchAgent": "research",
    "SimpleActionAgent": "act",
    "ReasoningActionAgent": "react",
    "Agent": "baseline",
    "LangChainAgent": "langchain",
    "AutoGPTAgent": "autogpt",
}
"""The agents' names here, by the original's class names."""
UNKNOWN = "unknown"
LIMIT_STEPS, LIMIT_TIME = 50, 5 * 3600
"""The original's default limits in steps and seconds, for logs that do not say theirs."""

_ERRORS: Sequence[tuple[str, Termination]] = (
    (r"TooLongPromptError|context_length_exceeded|maximum context length", "limit_context"),
    (r"TimeoutException|Timed out!", "limit_time"),
    (r"KeyboardInterrupt|SystemExit", "cancelled"),
    (r"Connection|Timeout|RateLimit|Rate limit|quota|Unavailable|InternalServer|APIError|APIStatus|HTTPError|SSL|LLMError|BlockedPrompt"
     r"|No space left|MemoryError|OutOfMemory|google\.api_core", "infrastructure"),
    # The original opens its logs with the system's encoding, which on Windows lacks most characters that models write.
    (r"^Unicode(En|De)codeError\b", "infrastructure"),
)  # fmt: skip
"""Patterns for the last line of `error.txt`, and how such a run ended. The first match counts."""
LONGEST_NAME = 180
"""The most characters of a run's name, so that the names of files made from it are not too long."""
LARGEST = 1e9
"""Limits and times from here on are taken for errors: a year has 3e7 seconds."""


class LoggedRun(NamedTuple):
    """What a log says of a run beside its steps."""

    arguments: Mapping[str, JsonValue]
    """The arguments of the original's command line, by name."""
    task: str
    """The task's id in this package."""
    agent: str
    models: dict[Role, str]
    description: str
    seconds: float | None
    """Seconds from the run's start to its end, from `overall_time.txt`; None if that is missing."""
    error: str
    """The whole traceback of the exception that ended the run; empty if there was none."""
    message: str
    """The last message of the agent to the program that ran it; empty if it is not known."""

    def limit(self, name: str, default: float) -> float:
        """Return a limit of the command line, or the default if it is missing or implausible."""
        value = self.arguments.get(name)
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < LARGEST else default


def read_run(logs: LogFolders, trace: Trace, state: Mapping[str, JsonValue], reader: Reader) -> LoggedRun:
    """Read a run from its files, without its steps.

    Args:
        logs: the run's folders.
        trace: the run's steps.
        state: the agent's own state, from any of its files; empty if there are none.
        reader: reads files and collects problems.
    """
    printed = reader.text(logs.root / "log") or ""
    main = reader.text(logs.agent / "main_log") or ""
    args = state.get("args")
    arguments = args if isinstance(args, dict) else _namespace(printed)
    folder = _line(printed, r"Benchmark folder name: +(\S+)") or str(arguments.get("task") or "")
    agent = str(arguments.get("agent_type") or "") or _guessed_agent(logs, main, reader)
    return LoggedRun(
        arguments=arguments,
        task=_task(folder, logs),
        agent=agent,
        models=_models(arguments, agent, logs),
        description=trace.description or _between(main, "Research Problem: ", "\n\nYou do not know") or "",
        seconds=_seconds(logs, reader),
        error=(reader.text(logs.env / "error.txt") or "").strip(),
        message=_line(printed, r"^Final message: +(.*)$") or "",
    )


def _namespace(printed: str) -> dict[str, JsonValue]:
    """Parse the command line that the original prints first, `Namespace(task='imdb', max_steps=50, ...)`, without evaluating it."""
    line = _line(printed, r"^(Namespace\(.*\))\s*$")
    try:
        call = ast.parse(line or "", mode="eval").body
        keywords = call.keywords if isinstance(call, ast.Call) else []
        found = {keyword.arg: ast.literal_eval(keyword.value) for keyword in keywords if keyword.arg}
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return {}
    read = storable(found)
    return read if isinstance(read, dict) else {}


def _task(name: str, logs: LogFolders) -> str:
    """Return the task's id in this package, from its name in the log, or else from a folder above the log."""
    if name:
        return our_name(name) or UNKNOWN
    parents = [our_name(part) for part in reversed(logs.root.resolve().parts[-4:])]
    return next((part for part in parents if is_known(part)), UNKNOWN)


def is_known(task: str) -> bool:
    """Return whether this package has a task of that id."""
    path = BUILT_IN / task.replace("-", "_") / "task.toml"
    return 0 < len(task) <= LONGEST_NAME and path.is_file() and "id" in read_toml(path)


def _guessed_agent(logs: LogFolders, main: str, reader: Reader) -> str:
    """Guess the agent's class from the files that it left, for a log that does not name it; empty if that fails."""
    if "Reflection: What does the observation mean?" in main or reader.list(logs.agent, "step_*_summary_log.log"):
        return "ResearchAgent"
    if reader.list(logs.agent, "ai_settings.yaml"):
        return "AutoGPTAgent"
    if reader.list(logs.agent, "step_log.log"):
        return "LangChainAgent"
    if "Always respond in this format exactly:" in main:
        return "ReasoningActionAgent" if "\nThought: What you are currently doing" in main else "SimpleActionAgent"
    return ""


def _models(arguments: Mapping[str, JsonValue], agent: str, logs: LogFolders) -> dict[Role, str]:
    named: dict[Role, JsonValue] = {
        "agent": arguments.get("llm_name"),
        "fast": arguments.get("fast_llm_name"),
        "editor": arguments.get("edit_script_llm_name"),
    }
    found: dict[Role, str] = {role: name for role, name in named.items() if isinstance(name, str) and name}
    if agent == "Agent":
        found["agent"] = NO_MODEL
    found.setdefault("agent", UNKNOWN)
    return found


def _seconds(logs: LogFolders, reader: Reader) -> float | None:
    path = logs.env / "overall_time.txt"
    text = reader.text(path, wanted=True)
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if 0 <= seconds < LARGEST:
        return seconds
    reader.say(path, "holds no time")
    return None


def ending(run: LoggedRun, trace: Trace, turns: int, refused: int) -> Ending:
    """Return how a run ended, as far as its log says.

    Args:
        run: the run's run.
        trace: the run's steps.
        turns: the number of the agent's turns that led to a step.
        refused: how many of the model's last replies, in a row, contained no action.
    """
    if any(step.action == FINAL for step in trace.steps):
        return Ending("final_answer")
    if run.error:
        last = run.error.splitlines()[-1].strip()[:300]
        return Ending(_by_error(run.error, last), f"it was ended by an error: {last}")
    tries = run.limit("max_retries", 5)
    if run.message == "No valid response after max_retries" or refused >= tries:
        return Ending("format_failure", f"{refused or int(tries)} replies in a row held no action")
    if len(trace.steps) >= run.limit("max_steps", LIMIT_STEPS):
        return Ending("limit_steps", f"it reached its limit of {run.limit('max_steps', LIMIT_STEPS):g} steps")
    if "agent max steps" in run.message or turns >= run.limit("agent_max_steps", LIMIT_STEPS):
        return Ending("limit_steps", f"its agent reached its limit of {run.limit('agent_max_steps', LIMIT_STEPS):g} turns")
    if run.seconds is not None and run.seconds >= run.limit("max_time", LIMIT_TIME):
        return Ending("limit_time", f"it reached its limit of {run.limit('max_time', LIMIT_TIME):g} seconds")
    if run.seconds is None or not trace.whole:
        return Ending("cancelled", "its log breaks off: it was stopped, or its last files are lost")
    return Ending("cancelled", "its log does not tell how it ended")


def _by_error(whole_error: str, last: str) -> Termination:
    for pattern, ended in _ERRORS:
        if re.search(pattern, last):
            return ended
    # An error raised in the code that asks models is a failure of the infrastructure; any other is the agent's.
    frames = re.findall(r'File "[^"]*?([^"/\\]+)", line', whole_error)
    return "infrastructure" if frames and frames[-1] in ("LLM.py", "api_manager.py") else "agent_error"


def keeps_log(run: LoggedRun, trace: Trace, logs: LogFolders, reader: Reader) -> bool:
    """Return whether the agent kept a research log, according to the command line, or else to the steps and the logs of summaries."""
    if run.agent != "ResearchAgent":
        return False
    # Early versions kept the log unless `no_retrieval` was set, later ones only if `retrieval` was.
    for name, kept in (("retrieval", True), ("no_retrieval", False)):
        if isinstance(run.arguments.get(name), bool):
            return run.arguments[name] is kept
    # A run without steps may have left the model calls that summarised them.
    return any(step.action in (RETRIEVE, APPEND) for step in trace.steps) or bool(reader.list(logs.agent, "step_*_summary_log.log"))


def _line(text: str, pattern: str) -> str | None:
    found = re.search(pattern, text, re.MULTILINE)
    return found[1].strip() if found else None


def _between(text: str, start: str, end: str) -> str | None:
    _, found, rest = text.partition(start)
    return rest.partition(end)[0].strip() if found and end in rest else None
