"""Reduces tracebacks to the part that belongs to the program, so that two runs can be compared.

A replay has no transport below the boundaries: a connection error is raised at the boundary. So its
traceback lacks the frames of the transport, and the exceptions that were raised and handled there. Of a
traceback, only the frames of the program (outside the standard library and installed packages) and the
exception count. All other text counts as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

from playhead_core.difference import first_difference

HEADER_WORDS = b"Traceback (most recent call last):"
HEADER = re.compile(rb"^([ |+]*)(?:Exception Group )?Traceback \(most recent call last\):$")
FRAME = re.compile(rb'^File "([^"]*)", line \d+, in ')
LIBRARIES = re.compile(
    rb"/(?:site|dist)-packages/|/lib(?:64)?/python3(?:\.\d+)?/|/playhead_instrumentation/|^<frozen "
)
"""Matches paths of frames that do not belong to the program."""
CHAINED = (
    b"The above exception was the direct cause of the following exception:",
    b"During handling of the above exception, another exception occurred:",
)
COLOUR = re.compile(rb"\x1b\[[0-9;]*m")
LONGEST_MESSAGE_LINES = 200
"""An exception with more lines after its frames is not treated as the cause of the next one."""


class CountedLine(NamedTuple):
    """A line that counts in the comparison."""

    offset: int
    """Its byte offset in the printed output."""
    text: bytes


def differing(tape: bytes, now: bytes) -> tuple[bytes, bytes, int] | None:
    """The counted bytes of both sides, and the offset in ``now`` of the first difference; None: they
    agree.

    Takes linear time.
    """
    if tape == now:
        return None
    sides = list(counted(tape)), list(counted(now))
    texts = [[line.text for line in side] for side in sides]
    if texts[0] == texts[1]:
        return None
    place = next(
        (index for index, (one, other) in enumerate(zip(*texts, strict=False)) if one != other),
        min(map(len, texts)),
    )
    offset = len(now)
    if place < len(sides[1]):
        before = texts[0][place] if place < len(texts[0]) else b""
        offset = sides[1][place].offset + (first_difference(before, texts[1][place]) or 0)
    return b"".join(texts[0]), b"".join(texts[1]), offset


def reduced_body(body: bytes) -> bytes:
    """Return the body of a request with the counted lines of each text in it, as agents send tracebacks
    to models. ``body``: JSON, or one text.
    """
    if HEADER_WORDS not in body:
        return body
    try:
        value = json.loads(body)
        return json.dumps(_reduced_value(value)).encode()
    except (ValueError, RecursionError):
        return b"".join(line.text for line in counted(body))


def _reduced_value(value: Any) -> Any:
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {name: _reduced_value(one) for name, one in fields.items()}
    if isinstance(value, list):
        return [_reduced_value(one) for one in cast("list[Any]", value)]
    if isinstance(value, str):
        text = value.encode("utf-8", "surrogatepass")
        return b"".join(line.text for line in counted(text)).decode("utf-8", "surrogatepass")
    return value


def counted(printed: bytes) -> Iterator[CountedLine]:
    """The lines of ``printed`` without frames of libraries, and without causes that never left a
    library.

    >>> text = b'Traceback (most recent call last):\\n  File "/a.py", line 1, in f\\n    g()\\n'
    >>> text += b'  File "/usr/lib/python3.11/x.py", line 2, in g\\n    h()\\nE: m\\n'
    >>> b"".join(line.text for line in counted(text))
    b'Traceback (most recent call last):\\n  File "/a.py", line 1, in f\\n    g()\\nE: m\\n'
    """
    return iter(_Reader().read(printed))


class _Reader:
    """Reads line by line; ``kept`` holds the lines that count so far."""

    def __init__(self) -> None:
        self.kept: list[CountedLine] = []
        self._within: bytes | None = None
        """Prefix of frame lines in the current traceback; None outside a traceback."""
        self._counts = True
        """Whether the current frame counts."""
        self._began: int | None = None
        """Lines kept before the last traceback, if that has no frame of the program."""
        self._since = 0
        """Number of lines after its frames."""
        self._skip_blank = False

    def read(self, printed: bytes) -> list[CountedLine]:
        if HEADER_WORDS not in printed:
            return list(_lines(printed))
        for line in _lines(printed):
            self._take(line)
        return self.kept

    def _take(self, line: CountedLine) -> None:
        text = COLOUR.sub(b"", line.text.rstrip(b"\r\n"))
        header = HEADER.match(text)
        if header is not None:
            self._began, self._since = len(self.kept), 0
            self._within = header[1].replace(b"+", b"|") + b"  "
            self._counts = True
            self.kept.append(line)
            return
        if self._within is not None:
            if text.startswith(self._within):
                self._of_frame(line, text[len(self._within) :])
                return
            self._within = None
        if self._skip_blank and not text.strip(b" |"):
            self._skip_blank = False
            return
        self._skip_blank = False
        if self._began is not None:
            self._since += 1
            if self._since > LONGEST_MESSAGE_LINES:
                self._began = None
            elif text.lstrip(b" |") in CHAINED:
                del self.kept[self._began :]
                self._began = None
                self._skip_blank = True
                return
        self.kept.append(line)

    def _of_frame(self, line: CountedLine, text: bytes) -> None:
        frame = FRAME.match(text)
        if frame is not None:
            self._counts = LIBRARIES.search(frame[1]) is None
            if self._counts:
                self._began = None
        elif not text.startswith((b" ", b"[Previous line repeated")):
            self._counts = True
        if self._counts:
            self.kept.append(line)


def _lines(printed: bytes) -> Iterator[CountedLine]:
    offset = 0
    for text in printed.splitlines(keepends=True):
        yield CountedLine(offset, text)
        offset += len(text)
