"""What of printed tracebacks is the program's: two runs are compared by that.

A replay has no transport below the boundaries: an error of a connection is raised where the boundary
is, so its traceback lacks the frames of the transport, and exceptions that were raised and handled in
there. Of a traceback count the frames of the program (outside the standard library and what is
installed), and the exception. Everything else that was printed counts as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from playhead_semconv.difference import first_difference

HEADER_WORDS = b"Traceback (most recent call last):"
HEADER = re.compile(rb"^([ |+]*)(?:Exception Group )?Traceback \(most recent call last\):$")
FRAME = re.compile(rb'^File "([^"]*)", line \d+, in ')
LIBRARIES = re.compile(
    rb"/(?:site|dist)-packages/|/lib(?:64)?/python3(?:\.\d+)?/|/playhead_instrumentation/|^<frozen "
)
"""Where frames are that are not the program's."""
CHAINED = (
    b"The above exception was the direct cause of the following exception:",
    b"During handling of the above exception, another exception occurred:",
)
COLOUR = re.compile(rb"\x1b\[[0-9;]*m")
LONGEST_MESSAGE_LINES = 200
"""Behind more lines than that after its frames, an exception is not taken for a cause of the next."""


class Line(NamedTuple):
    """A line that counts."""

    offset: int
    """Where it begins in what was printed, in bytes."""
    text: bytes


def differing(tape: bytes, now: bytes) -> tuple[bytes, bytes, int] | None:
    """What counts of both, and where in ``now`` the first byte is that differs; None: they agree.

    Linear in their length.
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


def counted(printed: bytes) -> Iterator[Line]:
    """The lines of ``printed`` without frames of libraries, and causes that never left them.

    >>> text = b'Traceback (most recent call last):\\n  File "/a.py", line 1, in f\\n    g()\\n'
    >>> text += b'  File "/usr/lib/python3.11/x.py", line 2, in g\\n    h()\\nE: m\\n'
    >>> b"".join(line.text for line in counted(text))
    b'Traceback (most recent call last):\\n  File "/a.py", line 1, in f\\n    g()\\nE: m\\n'
    """
    return iter(_Reader().read(printed))


class _Reader:
    """Reads line by line; what counts so far is in ``kept``."""

    def __init__(self) -> None:
        self.kept: list[Line] = []
        self._within: bytes | None = None
        """What frames of the traceback begin with that is read now; None: none is."""
        self._counts = True
        """Whether the frame counts that is read now."""
        self._began: int | None = None
        """How many lines were kept before the last traceback that nothing of the program was in."""
        self._since = 0
        """Lines behind its frames."""
        self._skip_blank = False

    def read(self, printed: bytes) -> list[Line]:
        if HEADER_WORDS not in printed:
            return list(_lines(printed))
        for line in _lines(printed):
            self._take(line)
        return self.kept

    def _take(self, line: Line) -> None:
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

    def _of_frame(self, line: Line, text: bytes) -> None:
        frame = FRAME.match(text)
        if frame is not None:
            self._counts = LIBRARIES.search(frame[1]) is None
            if self._counts:
                self._began = None
        elif not text.startswith((b" ", b"[Previous line repeated")):
            self._counts = True
        if self._counts:
            self.kept.append(line)


def _lines(printed: bytes) -> Iterator[Line]:
    offset = 0
    for text in printed.splitlines(keepends=True):
        yield Line(offset, text)
        offset += len(text)
