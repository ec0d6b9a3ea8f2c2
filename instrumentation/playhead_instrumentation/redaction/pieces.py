"""Searches what the program sends in pieces as one text, so that a credential over two pieces is found.

The last bytes of a request body can wait for the next piece: what is recorded equals what is recorded
of a body that is sent at once. A message may be answered before the next one is sent, so nothing of it
can wait: there the beginning of a credential is replaced, and the rest is left out.
"""

from __future__ import annotations

from typing import Final

from playhead_core.credentials.masks import replaced, united
from playhead_instrumentation.redaction.redactor import Redactor

HELD_BYTES: Final = 64 << 10
"""Of a body, at most this much waits for the next piece. A smaller body is searched whole."""

CONTEXT_BYTES: Final = 4 << 10
"""Bytes that are searched again, before those that waited: they may hold the name of a field."""


class Body:
    """A request body that is sent in pieces."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._window = b""
        """The latest bytes, unchanged."""
        self._done = 0
        """How many of these are recorded."""
        self._is_whole = True

    def add(self, data: bytes) -> tuple[bytes, int]:
        """Return what can be recorded after the piece ``data``, and the number of replacements."""
        self._window += data
        if len(self._window) - self._done <= HELD_BYTES:
            return b"", 0
        return self._upto(len(self._window) - HELD_BYTES // 2)

    def rest(self) -> tuple[bytes, int]:
        """Return what is left: the body, or its part so far, is sent."""
        if not self._is_whole:
            return self._upto(len(self._window))
        kept, count = self._redactor.body(self._window)
        self._window, self._is_whole = self._window[-CONTEXT_BYTES:], False
        self._done = len(self._window)
        return kept, count

    def _upto(self, cut: int) -> tuple[bytes, int]:
        window, done = self._window, self._done
        spans = united(self._redactor.spans(window))
        for begin, end in spans:
            if begin < cut < end:
                cut = begin if begin > done else end
        new = [(max(begin, done) - done, end - done) for begin, end in spans if done < end <= cut]
        kept = replaced(window[done:cut], new)
        start = max(0, cut - CONTEXT_BYTES)
        self._window, self._done, self._is_whole = window[start:], cut - start, False
        return kept, len(new)


class Messages:
    """The messages of a connection, or the pieces of a stream that is read while it is written."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._scrubber = redactor.messages()

    def add(self, data: bytes) -> tuple[bytes, int]:
        """Return the message as it is recorded, and the number of replacements."""
        scrubber = self._scrubber
        continues = scrubber.is_open
        pieces = [(begin, end) for begin, end, _ in scrubber.pieces(data)]
        if not pieces:
            return self._redactor.body(data)
        kept, count = self._redactor.body(data)
        whole = united(self._redactor.spans(data))
        spans = united([*whole, *pieces])
        if spans == whole:
            return kept, count
        if continues and spans[0][0] == 0:
            size = spans[0][1]
            rest = [(begin - size, end - size) for begin, end in spans[1:]]
            return replaced(data[size:], rest), len(rest)
        return replaced(data, spans), len(spans)
