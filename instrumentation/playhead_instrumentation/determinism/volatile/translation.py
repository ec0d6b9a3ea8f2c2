"""Recorded values in played answers, replaced by those of now.

An answer that repeats an id of its request has the recorded one on the tape. All values are looked for
in one pass; the time taken is linear in the length of the answer, however many there are. Only values
that are equally long on both sides are replaced, so no length that an answer states is wrong afterwards.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Final

from playhead_semconv.volatile import Pair
from playhead_semconv.volatile.heads import HEAD, Heads

_RUN: Final = re.compile(rb"[0-9A-Za-z_+/.-]{8,}")
"""Values stand in these: no value has anything else among its first characters."""

_HEAD: Final = re.compile(rb"[0-9A-Za-z_+/.-]{8}")


class Translation:
    """Which recorded values are replaced, and by what. Not safe from several threads."""

    def __init__(self) -> None:
        self._heads: Heads[bytes, bytes] = Heads()

    def __bool__(self) -> bool:
        return len(self._heads) > 0

    @property
    def longest(self) -> int:
        """At least the length of the longest recorded value."""
        return self._heads.longest

    def put(self, pair: Pair) -> None:
        """Replace the recorded value of a pair from now on, where it can be."""
        recorded, now = pair.recorded.encode(), pair.now.encode()
        if len(recorded) == len(now) >= HEAD and _HEAD.match(recorded):
            self._heads.put(recorded, now)

    def drop(self, pair: Pair) -> None:
        """Replace it no longer."""
        self._heads.drop(pair.recorded.encode())

    def of(self, data: bytes) -> bytes:
        """``data`` with the values of now; of the same length."""
        return b"".join(self._pieces(data))

    def cut(self, data: bytes) -> int:
        """How much of ``data`` can be translated, where more follows: up to what may begin a value."""
        at = max(0, len(data) - self._heads.longest + 1)
        spans: list[tuple[int, int, bytes]] | None = None
        while at < len(data):
            if not self._heads.begins(data[at:]):
                at += 1
                continue
            # In a value that stands there already no other begins.
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
        """Where values stand, from the first on, the longest that begins there; none in another."""
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

    Held back is only what may be the beginning of a recorded value, so a chunk that ends in nothing of
    that kind passes whole. ``flush`` gives the rest at the end.
    """

    def __init__(self, translation: Translation, lock: AbstractContextManager[object]) -> None:
        """``lock``: taken while the translation is read."""
        self._translation = translation
        self._lock = lock
        self._held = b""

    def feed(self, chunk: bytes) -> bytes:
        """What can be passed on; may be empty."""
        data = self._held + chunk
        with self._lock:
            cut = self._translation.cut(data)
            self._held = data[cut:]
            return self._translation.of(data[:cut])

    def flush(self) -> bytes:
        """What was held back."""
        rest, self._held = self._held, b""
        with self._lock:
            return self._translation.of(rest)


def translated_parts(stream: Stream, parts: Iterable[bytes]) -> Iterator[bytes]:
    """The parts of a recorded answer, translated, each as long as before.

    A value that stands in two parts is replaced in both: parts are read ahead as far as needed.
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
