"""How a body is cut into the events of a stream: server-sent events, Amazon's, lines, or an array."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

from playhead_genai.providers.encodings import header
from playhead_genai.providers.event_stream import read_events
from playhead_genai.providers.sse import ServerSentEvent, SseParser


class Events:
    """The events of a stream."""

    __slots__ = ("problem", "unfinished", "whole")

    def __init__(
        self, whole: list[ServerSentEvent], unfinished: ServerSentEvent | None = None, problem: str = ""
    ) -> None:
        self.whole = whole
        self.unfinished = unfinished
        """What follows the last event that is complete; None: nothing."""
        self.problem = problem
        """Where the bytes stop to be a stream, and why; empty: nowhere."""


Read = Callable[[bytes], Events]


def reader_of(headers: Iterable[tuple[str, str]], data: bytes) -> Read | None:
    """Return what reads the events of a body; None: it is no stream."""
    media_type = header(headers, "content-type").lower()
    for part, read in _BY_MEDIA_TYPE:
        if part in media_type:
            return read
    start = data[:64].lstrip(b"\xef\xbb\xbf \t\r\n")
    if not media_type and start.startswith((b"data:", b"event:", b":")):
        return server_sent
    return array if _OBJECTS.match(start) else None


def server_sent(data: bytes) -> Events:
    """Read server-sent events."""
    parser = SseParser()
    return Events(parser.feed(data), parser.close())


def amazon(data: bytes) -> Events:
    """Read Amazon's event streams."""
    whole, problem = read_events(data)
    return Events(whole, None, problem)


def lines(data: bytes) -> Events:
    """Read JSON, one value a line."""
    *whole, last = [line.strip() for line in data.split(b"\n")]
    unfinished = ServerSentEvent("", last) if last else None
    return Events([ServerSentEvent("", line) for line in whole if line], unfinished)


def array(data: bytes) -> Events:
    """Read an array whose items are the events, as far as it was received."""
    found: list[ServerSentEvent] = []
    begun, depth, quoted, at = -1, 0, False, data.find(b"[") + 1
    for mark in _MARKS.finditer(data, at):
        sign = mark[0]
        if quoted:
            quoted = sign != b'"'
        elif sign == b'"':
            quoted = True
        elif sign in b"{[":
            begun = mark.start() if depth == 0 else begun
            depth += 1
        elif depth == 0:
            begun = -1
            break  # the end of the array
        else:
            depth -= 1
            if depth == 0:
                found.append(ServerSentEvent("", data[begun : mark.end()]))
                begun = -1
    return Events(found, ServerSentEvent("", data[begun:]) if begun >= 0 else None)


_MARKS = re.compile(rb'\\.|["{}\[\]]', re.DOTALL)
"""What nests and what quotes; a character behind a backslash does neither."""

_OBJECTS = re.compile(rb"\[\s*\{")

_BY_MEDIA_TYPE: Final[tuple[tuple[str, Read], ...]] = (
    ("text/event-stream", server_sent),
    ("vnd.amazon.eventstream", amazon),
    ("ndjson", lines),
    ("jsonl", lines),
    ("json-seq", lines),
)
"""Part of a media type → what reads its streams."""
