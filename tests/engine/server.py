"""A provider on loopback that answers as told, or misbehaves.

It speaks the two wires that most providers speak, chat completions and messages, streamed or not as it is asked.
"""

from __future__ import annotations

import itertools
import json
import socket
import struct
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, NamedTuple

Wire = Literal["openai", "anthropic"]

_marks = itertools.count()
SHORT = 200
"""Characters of a question up to which it is a short one."""
READ, CACHED, WRITTEN = 120, 20, 7
"""The tokens that every good reply reports: read anew, read from the cache, written."""


class Fault(NamedTuple):
    """One thing that a provider does wrong, or that a user gets wrong."""

    status: int = 200
    kind: str = ""
    """The error's code, for a status that is one."""
    message: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    """Sent as it is, in place of all of the above but the status."""
    text: str | None = None
    """A reply in good form with this text, in place of the queue's."""
    finish: str | None = None
    """Why that reply ended, in place of `stop`."""
    calls: tuple[tuple[str, str], ...] = ()
    """Tools that the reply calls: names, and arguments as JSON."""
    thinking: str = ""
    """What the reply shows of its thinking; only in messages."""
    mark: int = 0
    """What the ids of its calls begin with: they are unique, and the same whenever the reply is given."""
    transport: Literal["", "hang", "slow", "reset"] = ""
    uncounted: bool = False
    """Whether the reply says nothing of its tokens; only in chat completions."""


def calling(*calls: tuple[str, str], text: str = "", thinking: str = "") -> Fault:
    """A good reply that calls tools."""
    return Fault(text=text, calls=calls, thinking=thinking, mark=next(_marks))


def too_many(retry_after: str | None = None) -> Fault:
    """A rate limit."""
    headers = () if retry_after is None else (("Retry-After", retry_after),)
    return Fault(429, "rate_limit_exceeded", "Rate limit reached.", headers)


BROKEN = Fault(500, "server_error", "The server had an error.")
HANGS = Fault(transport="hang")
SLOW = Fault(text="yes", transport="slow")
"""It answers short questions only, as one whose long replies take longer than the test."""
RESETS = Fault(transport="reset")
EMPTY_BODY = Fault(body=b"")
MALFORMED = Fault(body=b'{"id": "x", "choices": [{"mess')
NOT_JSON = Fault(body=b"<html><body>Bad gateway</body></html>")
NO_CHOICES = Fault(body=b'{"id": "x", "object": "chat.completion", "created": 0, "model": "m"}')
NULL_CHOICES = Fault(body=b'{"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": null, "content": null}')
EMPTY_CHOICES = Fault(body=b'{"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": []}')
EMPTY_TEXT = Fault(text="")
HUGE = Fault(text="Thought: go on. " * (5 * 2**20 // 16))
HUGE_ERROR = Fault(500, "server_error", "x" * (5 * 2**20))
UNAUTHORIZED = Fault(401, "invalid_api_key", "Incorrect API key provided: dummy.")
FILTERED = Fault(text="I cannot", finish="content_filter")
NO_MODEL = Fault(404, "model_not_found", "The model does not exist.")
CUT = Fault(text="Thought: I was going to", finish="length")
TOO_LONG: dict[Wire, Fault] = {
    "openai": Fault(400, "context_length_exceeded", "This model's maximum context length is 128000 tokens."),
    "anthropic": Fault(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
}
REFUSED: dict[Wire, Fault] = {
    "openai": Fault(400, "content_policy_violation", "Your request was rejected by our safety system."),
    "anthropic": Fault(400, "invalid_request_error", "Output blocked by content filtering policy"),
}
FINISH: dict[str, str] = {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"}
"""Why a reply ended: as chat completions say it, and as messages do."""


class Request(NamedTuple):
    """A request that came."""

    wire: Wire
    body: dict[str, Any]
    moment: float
    """On the monotonic clock."""

    @property
    def prompt(self) -> str:
        """All that was said to the model."""
        return json.dumps(self.body["messages"])


class Provider(ThreadingHTTPServer):
    """The server."""

    daemon_threads = True
    request_queue_size = 128  # a client gives up after some seconds what is not taken into it

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.closing = threading.Event()
        self.lock = threading.Lock()
        self.behave()

    def behave(self, *replies: str | Fault, faults: Sequence[Fault] = (), always: Fault | None = None) -> None:
        """Start anew.

        Args:
            replies: what to answer, in order; the last is repeated.
            faults: what to do wrong before that, one a request.
            always: what to do wrong when the faults are used up, for ever, in place of the replies.
        """
        self.replies: list[str | Fault] = list(replies) or ["Hello."]
        self.faults = list(faults)
        self.always = always
        self.requests: list[Request] = []

    @property
    def url(self) -> str:
        """Where it listens, without a path."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def next(self) -> Fault:
        """What the next request gets; a fault with a text and nothing wrong with it is a good reply."""
        with self.lock:
            if self.faults:
                return self.faults.pop(0)
            reply = self.always or (self.replies.pop(0) if len(self.replies) > 1 else self.replies[0])
            return Fault(text=reply) if isinstance(reply, str) else reply

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that have gone."""


@contextmanager
def provider() -> Iterator[Provider]:
    """A provider for as long as the block runs."""
    with Provider() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.closing.set()
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Provider

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        wire: Wire = "anthropic" if self.path.split("?")[0].endswith("/messages") else "openai"
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "/count_tokens" in self.path:
            # Asked for every reply with thinking in it.
            self._send(200, b'{"input_tokens": 3}')
            return
        fault = self.server.next()
        self.server.requests.append(Request(wire, body, time.monotonic()))
        if fault.transport == "hang" or (fault.transport == "slow" and len(self.server.requests[-1].prompt) > SHORT):
            self.server.closing.wait(120)
            self.close_connection = True
        elif fault.transport == "reset":
            # Closed with unsent data thrown away, which the other side sees as a reset.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
        elif fault.body is not None:
            self._send(fault.status, fault.body, fault.headers)
        elif fault.status != 200:
            self._send(fault.status, json.dumps(_error(wire, fault)).encode(), fault.headers)
        elif body.get("stream"):
            events = _chunks(fault, body) if wire == "openai" else _events(fault, body)
            self._send(200, "".join(events).encode(), kind="text/event-stream")
        else:
            self._send(200, json.dumps(_completion(fault, body) if wire == "openai" else _message(fault, body)).encode())

    def _send(self, status: int, body: bytes, headers: tuple[tuple[str, str], ...] = (), kind: str = "application/json") -> None:
        self.send_response(status)
        for name, value in (("Content-Type", kind), ("Content-Length", str(len(body))), *headers):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def _error(wire: Wire, fault: Fault) -> dict[str, Any]:
    if wire == "openai":
        return {"error": {"message": fault.message, "type": "error", "code": fault.kind, "param": None}}
    return {"type": "error", "error": {"type": fault.kind, "message": fault.message}}


def _completion(reply: Fault, body: dict[str, Any]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text}
    if reply.calls:
        calls = enumerate(reply.calls)
        message["tool_calls"] = [
            {"id": f"call-{reply.mark}-{number}", "type": "function", "function": {"name": name, "arguments": arguments}}
            for number, (name, arguments) in calls
        ]
    finish = reply.finish or ("tool_calls" if reply.calls else "stop")
    choice = {"index": 0, "message": message, "finish_reason": finish, "logprobs": None}
    facts = {"id": "c-1", "object": "chat.completion", "created": 0, "model": body["model"]}
    return {**facts, "choices": [choice], **({} if reply.uncounted else {"usage": _usage("openai")})}


def _chunks(reply: Fault, body: dict[str, Any]) -> Iterator[str]:
    facts = {"id": "c-1", "object": "chat.completion.chunk", "created": 0, "model": body["model"]}
    choice: dict[str, Any] = {"index": 0, "delta": {"role": "assistant", "content": reply.text}, "finish_reason": None}
    yield _sse({**facts, "choices": [choice]})
    yield _sse({**facts, "choices": [{"index": 0, "delta": {}, "finish_reason": reply.finish or "stop"}]})
    yield _sse({**facts, "choices": [], "usage": _usage("openai")})
    yield "data: [DONE]\n\n"


def _message(reply: Fault, body: dict[str, Any]) -> dict[str, Any]:
    facts = {"id": "m-1", "type": "message", "role": "assistant", "model": body["model"], "stop_sequence": None}
    finish = FINISH[reply.finish] if reply.finish else "tool_use" if reply.calls else "end_turn"
    return {**facts, "content": _blocks(reply), "stop_reason": finish, "usage": _usage("anthropic")}


def _blocks(reply: Fault) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = [{"type": "thinking", "thinking": reply.thinking, "signature": "signed"}] if reply.thinking else []
    if reply.text:
        blocks.append({"type": "text", "text": reply.text})
    calls = enumerate(reply.calls)
    return blocks + [
        {"type": "tool_use", "id": f"toolu_{reply.mark}_{number}", "name": name, "input": json.loads(text)}
        for number, (name, text) in calls
    ]


def _events(reply: Fault, body: dict[str, Any]) -> Iterator[str]:
    message = {**_message(reply, body), "content": [], "stop_reason": None}
    yield _sse({"type": "message_start", "message": message})
    for index, block in enumerate(_blocks(reply)):
        empty, deltas = _streamed(block)
        yield _sse({"type": "content_block_start", "index": index, "content_block": empty})
        for delta in deltas:
            yield _sse({"type": "content_block_delta", "index": index, "delta": delta})
        yield _sse({"type": "content_block_stop", "index": index})
    delta = {"stop_reason": _message(reply, body)["stop_reason"], "stop_sequence": None}
    yield _sse({"type": "message_delta", "delta": delta, "usage": {"output_tokens": WRITTEN}})
    yield _sse({"type": "message_stop"})


def _streamed(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A block as it begins, and what comes of it then."""
    if block["type"] == "text":
        return {**block, "text": ""}, [{"type": "text_delta", "text": block["text"]}]
    if block["type"] == "tool_use":
        return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
    deltas = [{"type": "thinking_delta", "thinking": block["thinking"]}, {"type": "signature_delta", "signature": block["signature"]}]
    return {**block, "thinking": "", "signature": ""}, deltas


def _sse(event: dict[str, Any]) -> str:
    name = f"event: {event['type']}\n" if "type" in event else ""
    return f"{name}data: {json.dumps(event)}\n\n"


def _usage(wire: Wire) -> dict[str, Any]:
    if wire == "openai":
        # Its count of the prompt includes what was read from the cache.
        prompt = {"prompt_tokens": READ + CACHED, "prompt_tokens_details": {"cached_tokens": CACHED}}
        return {**prompt, "completion_tokens": WRITTEN, "total_tokens": READ + CACHED + WRITTEN}
    return {"input_tokens": READ, "cache_read_input_tokens": CACHED, "cache_creation_input_tokens": 0, "output_tokens": WRITTEN}
