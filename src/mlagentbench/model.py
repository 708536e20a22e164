"""The interface to a language model, and a scripted model that replays replies from a file.

Covered: the `Model` protocol, a `Reply`, the `Limiter` protocol, the file format of scripted replies. Not covered: providers, retries,
caching and prices (see `engine/`).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

import yaml
from pydantic import ConfigDict, ValidationError

from mlagentbench.errors import ScriptFailed, UsageError
from mlagentbench.records import Record, Role, Usage
from mlagentbench.util.text import first_fault

EXCERPT = 300
"""Characters of a prompt that an error message quotes."""
TRUNCATED = "max_tokens"
"""The `Reply.stop_reason` of a reply that the token limit cut short."""
SCRIPTS = Path(__file__).parent / "scripted"
"""Scripts that come with this package."""


class GenerateOptions(NamedTuple):
    """The sampling of a reply. None leaves a setting to the provider."""

    temperature: float | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()


class Reply(NamedTuple):
    """One reply of a model."""

    text: str
    usage: Usage
    model: str
    stop_reason: str = "stop"
    """What ended it, as Inspect calls it: `stop`, `max_tokens` for the token limit, `tool_calls` ..."""
    waited: float = 0.0
    """Seconds of the call that were spent waiting for a rate limit or before a retry."""

    @property
    def truncated(self) -> bool:
        """Whether the token limit cut it short."""
        return self.stop_reason == TRUNCATED

    @property
    def cut_notice(self) -> str:
        """The sentence that tells its model that it was cut short."""
        # The usage of several requests does not say how many tokens this reply has.
        return cut_notice(self.usage.output_tokens if self.usage.calls == 1 else 0)


def cut_notice(tokens: int) -> str:
    """Return the sentence that tells a model that its token limit cut its reply short, after so many tokens; 0 if that is unknown."""
    return f"The reply was cut at {f'{tokens:,} tokens' if tokens else 'its token limit'}; be shorter."


class Model(Protocol):
    """Anything that answers a prompt."""

    @property
    def name(self) -> str:
        """The model's name as a user writes it, such as `openai/gpt-4o`."""
        ...

    @property
    def context_tokens(self) -> int | None:
        """The tokens that the model can read and write in all; None if that is unknown."""
        ...

    @property
    def check_seconds(self) -> float | None:
        """Seconds that the provider may take to answer a short question before it counts as hanging; None without a provider."""
        ...

    async def generate(self, prompt: str, options: GenerateOptions = GenerateOptions()) -> Reply:
        """Answer a prompt.

        Raises:
            ModelFailed: the provider failed for good.
            LimitReached: the prompt is longer than the model can read (`limit_context`).
        """
        ...


class Permit(NamedTuple):
    """A request's place in the queue of a rate limit."""

    model: str
    before_requests: float
    """The requests before it, and their tokens."""
    before_tokens: float
    tokens: int
    """An estimate of its own tokens."""
    falls: float = 0.0
    """How often the rate had fallen when it was sent."""
    waited: bool = False
    """Whether it had to wait."""


class Refusal(NamedTuple):
    """What a provider says when it refuses a request because of a rate limit. None is what it does not say."""

    retry_after: float | None = None
    """Seconds to wait."""
    requests: float | None = None
    """Its limits, a minute."""
    tokens: float | None = None


class Limiter(Protocol):
    """A rate limit for each model, which many runs share. It sends requests in the order in which they asked, as fast as is allowed."""

    async def admit(self, model: str, tokens: int, refused: Permit | None = None) -> Permit:
        """Wait until a request may be sent.

        Args:
            model: the model's name.
            tokens: an estimate of the request's tokens.
            refused: the permit with which the provider refused the same request; it keeps its place.
        """
        ...

    async def answered(self, permit: Permit, tokens: int) -> None:
        """Note that a request ended without a refusal, and the tokens that it used."""
        ...

    async def refused(self, permit: Permit, refusal: Refusal) -> None:
        """Note that the provider refused a request because of its rate limit."""
        ...


class ScriptedReply(Record):
    """One reply of a script, and what the prompt must contain for it to be given."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    reply: str
    role: Role = "agent"
    expect: tuple[str, ...] = ()
    """Texts that the prompt must contain."""
    usage: Usage | None = None
    """The tokens to report; by default a quarter of the characters."""
    truncated: bool = False
    """Whether the reply counts as cut short by the token limit."""


class Script:
    """A script of replies, in a queue for each role.

    The file is YAML (a list) or JSONL (one reply a line) of mappings with the keys of `ScriptedReply`; `expect` may be one text or a list.

        - expect: train.py
          reply: |
            Thought: Look around first.
            Action: List Files
            Action Input: {"dir_path": "."}
        - role: editor
          reply: print("the edited script")
    """

    def __init__(self, replies: Iterable[ScriptedReply], source: str = "script") -> None:
        self.source = source
        self._queues: dict[Role, list[ScriptedReply]] = {}
        for reply in replies:
            self._queues.setdefault(reply.role, []).append(reply)

    @classmethod
    def load(cls, path: Path) -> Script:
        """Read a script's file.

        Raises:
            UsageError: the file is missing, or is not a list of replies.
        """
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise UsageError(f"cannot read the scripted replies in {path}: {error.strerror}") from None
        except UnicodeDecodeError as error:
            raise UsageError(f"cannot read the scripted replies in {path}: {error}") from None
        try:
            lines = [line for line in text.split("\n") if line.strip()]
            items = [json.loads(line) for line in lines] if path.suffix == ".jsonl" else yaml.safe_load(text)
            if not isinstance(items, list) or not items:
                raise ValueError("it must be a list of replies, at least one")
            return cls([_reply(number, item) for number, item in enumerate(items, start=1)], source=str(path))
        except (ValueError, yaml.YAMLError) as error:
            reason = " ".join(str(error).split())
            raise UsageError(f"{path} is no file of scripted replies: {reason}") from None

    @classmethod
    def named(cls, name: str) -> Script:
        """Load the script of the model `scripted/<name>`: a file, or one that comes with this package (`demo`).

        Raises:
            UsageError: there is no such file, or it is not a list of replies.
        """
        built_in = SCRIPTS / f"{name}.yaml"
        script = cls.load(built_in if not Path(name).exists() and built_in.is_file() else Path(name))
        script.source = name
        return script

    def to_jsonl(self) -> str:
        """Return the script as the text of a JSONL file."""
        return "".join(f"{reply.model_dump_json(exclude_defaults=True)}\n" for queue in self._queues.values() for reply in queue)

    def reply(self, role: Role, position: int, prompt: str, stop: tuple[str, ...] = ()) -> Reply:
        """Return the reply at a position (from 0) of a role's queue, cut at a stop sequence as a provider would.

        Raises:
            ScriptFailed: the queue has no such reply, or the prompt lacks a text that the reply expects.
        """
        queue = self._queues.get(role, [])
        if position >= len(queue):
            had = f"{self.source} has {len(queue)} replies for the role {role!r} and was asked for one more"
            raise ScriptFailed(f"{had}; add a reply, or end with Final Answer")
        scripted = queue[position]
        for text in scripted.expect:
            if text not in prompt:
                expected = f"{self.source}: reply {position + 1} of the role {role!r} expects {text!r} in the prompt"
                raise ScriptFailed(f"{expected}, which ends …{prompt[-EXCERPT:]!r}")
        usage = scripted.usage or Usage(input_tokens=len(prompt) // 4, output_tokens=len(scripted.reply) // 4)
        text = scripted.reply
        for sequence in stop:
            text = text.split(sequence, 1)[0]
        return Reply(text, usage.model_copy(update={"calls": 1}), f"scripted/{self.source}", TRUNCATED if scripted.truncated else "stop")


class ScriptedModel:
    """A `Model` that gives scripted replies for one role, in order, to test agents without a provider.

    Args:
        replies: the replies, or a script with replies for several roles.
        role: the role of the replies that are texts, and the one whose replies it gives.
        position: the number of replies that have been given already.
    """

    def __init__(self, replies: Script | Iterable[str | ScriptedReply], role: Role = "agent", position: int = 0) -> None:
        if not isinstance(replies, Script):
            replies = Script([ScriptedReply(reply=each, role=role) if isinstance(each, str) else each for each in replies])
        self.script = replies
        self.role = role
        self.position = position
        """The number of replies given so far."""

    @property
    def name(self) -> str:
        """The name: `scripted/` and the file."""
        return f"scripted/{self.script.source}"

    @property
    def context_tokens(self) -> int | None:
        """None: a script accepts prompts of any length."""
        return None

    @property
    def check_seconds(self) -> float | None:
        """None: a script has no provider."""
        return None

    async def generate(self, prompt: str, options: GenerateOptions = GenerateOptions()) -> Reply:
        """Give the next reply."""
        reply = self.script.reply(self.role, self.position, prompt, options.stop)
        self.position += 1
        return reply


async def all_replies(questions: Iterable[Awaitable[Reply]]) -> list[Reply]:
    """Await several questions concurrently and return their replies. If one fails, cancel the others before its error is raised."""
    asking = [asyncio.ensure_future(question) for question in questions]
    try:
        return await asyncio.gather(*asking)
    finally:
        for question in asking:
            question.cancel()
        await asyncio.gather(*asking, return_exceptions=True)


class Models(NamedTuple):
    """The models of a run, by role."""

    agent: Model
    fast: Model
    editor: Model

    @classmethod
    def scripted(cls, script: Script) -> Models:
        """Return scripted models for all three roles from one script."""
        return cls(ScriptedModel(script, "agent"), ScriptedModel(script, "fast"), ScriptedModel(script, "editor"))

    def names(self) -> Mapping[Role, str]:
        """Return the models' names by role."""
        return {"agent": self.agent.name, "fast": self.fast.name, "editor": self.editor.name}


def _reply(number: int, item: object) -> ScriptedReply:
    if not isinstance(item, dict):
        raise ValueError(f"reply {number} is not a mapping with the key 'reply'")
    if isinstance(item.get("expect"), str):
        item = {**item, "expect": (item["expect"],)}
    try:
        return ScriptedReply.model_validate(item)
    except ValidationError as error:
        raise ValueError(f"reply {number}: {first_fault(error)}") from None
