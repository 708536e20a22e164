"""Store and stream the output of a command, safe to show on a terminal.

Output is decoded with replacement, and terminal escapes are made visible. Only the head and the tail of long output are stored, and the
stream leaves parts out where a command prints too fast. Not covered: HTML, which the report escapes.
"""

from __future__ import annotations

import codecs
import io
import time

STREAM_BURST = 1 << 20
"""Bytes that are streamed at once before a command is limited to `STREAM_RATE`."""
STREAM_RATE = 256 << 10
"""Bytes per second."""

_KEPT = "\n\t"
_BIDIRECTIONAL = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
"""Unicode's marks of direction, which change the order in which text is shown."""
_VISIBLE = {
    code: f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
    for code in [*range(0x20), *range(0x7F, 0xA0), *map(ord, _BIDIRECTIONAL)]
    if chr(code) not in _KEPT
}


def visible(text: str) -> str:
    r"""Replace control characters by their escapes, such as `\x1b`, so that a text cannot control a terminal."""
    return text.translate(_VISIBLE)


def decode(data: bytes) -> str:
    """Decode bytes as safe text: UTF-8 with replacement, every kind of line end a newline, control characters made visible."""
    return visible(data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n"))


class Transcript:
    """The output of one command.

    Args:
        keep: bytes to store, half of them from the head and half from the tail.
    """

    def __init__(self, keep: int) -> None:
        self.total = 0
        """Bytes fed so far."""
        self._half = max(keep // 2, 1)
        self._head = bytearray()
        self._tail = bytearray()
        self._stream = _Stream()

    def feed(self, data: bytes) -> str:
        """Add the next bytes. Returns the text to stream, empty while the command prints too fast.

        The text after such a gap begins with a line that says how much was left out.
        """
        self.total += len(data)
        shown = self._stream.feed(data)
        room = self._half - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data[-self._half :]
        if len(self._tail) > 2 * self._half:  # not at every call, since a cut moves all that remains
            del self._tail[: -self._half]
        return shown

    def finish(self) -> str:
        """Return the rest of the text to stream, once the command has ended."""
        return self._stream.finish()

    def text(self) -> str:
        """Return the whole output, or its head, a line that says how much is missing, and its tail."""
        tail = bytes(self._tail[-self._half :])
        missing = self.total - len(self._head) - len(tail)
        if missing <= 0:
            return decode(bytes(self._head) + tail)
        head, tail = _whole_characters(bytes(self._head), tail)
        return f"{decode(head)}\n{_left_out(missing)}\n{decode(tail)}"


class _Stream:
    """The text to stream while output comes: all of it, up to `STREAM_BURST` and `STREAM_RATE`."""

    def __init__(self) -> None:
        self._decoder = _decoder()
        self._budget = float(STREAM_BURST)
        self._time = time.monotonic()
        self._dropped = 0

    def feed(self, data: bytes) -> str:
        now = time.monotonic()
        self._budget = min(self._budget + (now - self._time) * STREAM_RATE, STREAM_BURST)
        self._time = now
        if len(data) > self._budget:
            self._dropped += len(data)
            return ""
        self._budget -= len(data)
        return self._notice() + visible(self._decoder.decode(data))

    def finish(self) -> str:
        return self._notice() + visible(self._decoder.decode(b"", final=True))

    def _notice(self) -> str:
        if not self._dropped:
            return ""
        cut = visible(self._decoder.decode(b"", final=True))  # the decoder may hold half a character whose other bytes were dropped
        self._decoder = _decoder()
        notice = f"{cut}\n{_left_out(self._dropped)}\n"
        self._dropped = 0
        return notice


def _decoder() -> io.IncrementalNewlineDecoder:
    return io.IncrementalNewlineDecoder(codecs.getincrementaldecoder("utf-8")("replace"), translate=True)


def _left_out(count: int) -> str:
    return f"[… {count:,} bytes left out …]"


def _whole_characters(head: bytes, tail: bytes) -> tuple[bytes, bytes]:
    """Remove the parts of a UTF-8 character that was cut: at the end of the head, and at the start of the tail."""
    start = 0
    while start < min(3, len(tail)) and tail[start] & 0xC0 == 0x80:
        start += 1
    for back in range(1, min(4, len(head) + 1)):
        byte = head[-back]
        if byte & 0xC0 == 0x80:
            continue
        length = 1 if byte < 0xC0 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
        return (head[:-back] if length > back else head), tail[start:]
    return head, tail[start:]
