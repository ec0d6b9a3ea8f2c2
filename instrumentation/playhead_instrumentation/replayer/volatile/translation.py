"""Replaces recorded values in played answers by the values of now.

An answer that repeats an id of its request has the recorded id on the tape. One pass looks for all
values; its time is linear in the length of the answer, however many values there are. Only values of
equal length on both sides are replaced, so lengths that an answer states stay correct.
"""

from __future__ import annotations

import re
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Final

from playhead_core.normalize import Pair
from playhead_core.normalize.heads import HEAD, Heads

_RUN: Final = re.compile(rb"[0-9A-Za-z_+/.-]{8,}")
"""Where values may begin: the first eight characters of a value are all of this set."""

_HEAD: Final = re.compile(rb"[0-9A-Za-z_+/.-]{8}")


class Translation:
    """The recorded values to replace and their replacements. Not safe from several threads."""

    def __init__(self) -> None:
        self._heads: Heads[bytes, bytes] = Heads()

    def __bool__(self) -> bool:
        return len(self._heads) > 0

    @property
    def longest(self) -> int:
        """An upper bound of the length of the recorded values, in bytes."""
        return self._heads.longest

    def put(self, pair: Pair) -> None:
        """Replace the recorded value of a pair from now on, where that is possible."""
        recorded, now = pair.recorded.encode(), pair.now.encode()
        if len(recorded) == len(now) >= HEAD and _HEAD.match(recorded):
            self._heads.put(recorded, now)

    def drop(self, pair: Pair) -> None:
        """Stop replacing the recorded value of a pair."""
        self._heads.drop(pair.recorded.encode())

    def of(self, data: bytes) -> bytes:
        """``data`` with the values of now; the length stays the same."""
        return b"".join(self._pieces(data))

    def cut(self, data: bytes) -> int:
        """How many bytes of ``data`` can be translated while more follows: up to a possible value."""
        at = max(0, len(data) - self._heads.longest + 1)
        spans: list[tuple[int, int, bytes]] | None = None
        while at < len(data):
            if not self._heads.begins(data[at:]):
                at += 1
                continue
            # No value begins inside a complete value.
            if spans is None:
                spans = [span for span in self._found(data) if span[1] > at]
            around = next((past for start, past, _ in spans if start < at < past), None)
            if around is None:
                return at
            at = around
        return len(data)

    def _pieces(self, data: bytes) -> Iterator[bytes]:
        end = 0
        for start, past, now in self._found(data):
            yield data[end:start]
            yield now
            end = past
        yield data[end:]

    def _found(self, data: bytes) -> Iterator[tuple[int, int, bytes]]:
        """Spans of values in order, with their replacements: the longest at each place, no overlaps."""
        if not self._heads:
            return
        heads = self._heads.heads
        past = 0
        for run in _RUN.finditer(data):
            starts = range(run.start(), run.end() - HEAD + 1)
            for start in [start for start in starts if data[start : start + HEAD] in heads]:
                found = self._heads.at(data, start) if start >= past else ()
                if found:
                    past, now = found[0]
                    yield start, past, now


class Stream:
    """Translates an answer chunk by chunk, as it comes.

    Only bytes that may begin a recorded value are held back; a chunk that does not end in such bytes
    passes whole. ``flush`` gives the rest at the end.
    """

    def __init__(self, translation: Translation, lock: AbstractContextManager[object]) -> None:
        """``lock``: held while the translation is read."""
        self._translation = translation
        self._lock = lock
        self._held = b""

    def feed(self, chunk: bytes) -> bytes:
        """The translated bytes that can be passed on; may be empty."""
        data = self._held + chunk
        with self._lock:
            cut = self._translation.cut(data)
            self._held = data[cut:]
            return self._translation.of(data[:cut])

    def flush(self) -> bytes:
        """The translated bytes that were held back."""
        rest, self._held = self._held, b""
        with self._lock:
            return self._translation.of(rest)


def translated_parts(stream: Stream, parts: Iterable[bytes]) -> Iterator[bytes]:
    """The translated parts of a recorded answer; each keeps its length.

    A value that spans two parts is replaced in both; parts are read ahead as far as needed.
    """
    sizes: deque[int] = deque()
    ready = b""
    for part in parts:
        sizes.append(len(part))
        ready += stream.feed(part)
        while sizes and len(ready) >= sizes[0]:
            size = sizes.popleft()
            yield ready[:size]
            ready = ready[size:]
    ready += stream.flush()
    for size in sizes:
        yield ready[:size]
        ready = ready[size:]


class TranslatedParts:
    """Parts by index, each of its recorded length. Safe from any thread."""

    def __init__(
        self, parts: Iterable[bytes], translated: Callable[[Iterable[bytes]], Iterator[bytes]]
    ) -> None:
        """``parts``: as recorded; read only as far as needed."""
        self._lock = threading.Lock()
        self._left = translated(parts)
        self._ready: list[bytes] = []

    def __call__(self, index: int) -> bytes:
        """The bytes of the part with this index."""
        with self._lock:
            while index >= len(self._ready):
                self._ready.append(next(self._left))
            return self._ready[index]
