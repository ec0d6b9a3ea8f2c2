"""Measures how much a service recorded outside of requests, and since when."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from playhead_core.facts import Fact
from playhead_receiver.storage.api.retention import History
from playhead_semconv import events as e

RECENT_BYTES = 16 << 20
"""Bytes of recent request bodies that a new one may extend. A recording keeps the latest 8 MiB."""
SMALL_BYTES = 512
"""Smaller bodies are never extended."""
REMEMBERED = 1024
"""Remembered bodies of requests that have aged out."""
PIECES = 64
"""Least number of chunks into which a full history is divided."""


@dataclass(slots=True)
class Chunk:
    """Some consecutive frames of facts."""

    first: int
    last: int
    oldest_ns: int
    newest_ns: int
    size_bytes: int
    """Stored bytes of what belongs to no request."""


@dataclass(slots=True)
class Process:
    """A service process. The memory for its bodies is bounded; its chunks number some hundred."""

    row: int
    instance: bytes
    trace_id: bytes
    boot_end: int
    """Number of the first inbound request. Facts up to it stay."""
    latest_ns: int = 0
    """Time of its latest measured fact, by its own clock."""
    heard_ns: int = 0
    """When something of it was last measured, by our clock."""
    chunks: deque[Chunk] = field(default_factory=deque[Chunk])
    waiting: set[int] = field(default_factory=set[int])
    """First numbers of frames with facts that stayed and may age out later."""
    _recent: OrderedDict[bytes, int] = field(default_factory=OrderedDict[bytes, int])
    _recent_bytes: int = 0
    _requested: OrderedDict[bytes, None] = field(default_factory=OrderedDict[bytes, None])

    @property
    def size_bytes(self) -> int:
        """Stored bytes of what belongs to no request and has not aged out."""
        return sum(chunk.size_bytes for chunk in self.chunks)

    def add(self, facts: list[Fact], size_bytes: int, now_ns: int, kept: History) -> None:
        """Add a new frame of facts, of which ``size_bytes`` belong to no request."""
        self._note_bodies(facts)
        times = [min(fact.time_ns, now_ns) for fact in facts]
        oldest_ns, newest_ns = min(times), max(times)
        self.latest_ns, self.heard_ns = max(self.latest_ns, newest_ns), now_ns
        if not size_bytes:
            return
        first, last = facts[0].seq, facts[-1].seq
        chunk = self.chunks[-1] if self.chunks else None
        if (
            chunk is not None
            and first > chunk.last
            and chunk.size_bytes + size_bytes <= kept.size_bytes // PIECES
            and newest_ns - chunk.oldest_ns <= kept.time_s * 1e9 / PIECES
        ):
            chunk.last = last
            chunk.newest_ns = max(chunk.newest_ns, newest_ns)
            chunk.size_bytes += size_bytes
        else:
            self.chunks.append(Chunk(first, last, oldest_ns, newest_ns, size_bytes))

    def over(self, kept: History) -> Iterator[Chunk]:
        """Remove and return the chunks that exceed the age or size to keep."""
        size_bytes, before_ns = self.size_bytes, self.latest_ns - kept.time_s * 1e9
        while self.chunks and (self.chunks[0].newest_ns < before_ns or size_bytes > kept.size_bytes):
            chunk = self.chunks.popleft()
            size_bytes -= chunk.size_bytes
            yield chunk

    def may_be_extended(self, digest: bytes) -> bool:
        """Whether a new request may extend this body."""
        return digest in self._recent

    def was_requested(self, digest: bytes) -> bool:
        """Whether a body was that of a request. A large body's fact may age out before its bytes."""
        return digest in self._requested

    def note_requested(self, digests: Iterable[bytes]) -> None:
        """Note that these are digests of request bodies."""
        self._requested.update(dict.fromkeys(digests))
        while len(self._requested) > REMEMBERED:
            self._requested.popitem(last=False)

    def _note_bodies(self, facts: Iterable[Fact]) -> None:
        for fact in facts:
            body = fact.body
            if fact.name != e.PLAYHEAD_EXCHANGE_REQUEST or body is None or body.size <= SMALL_BYTES:
                continue
            if body.digest and body.digest not in self._recent:
                self._recent[body.digest] = body.size
                self._recent_bytes += body.size
                while self._recent_bytes > RECENT_BYTES and len(self._recent) > 1:
                    self._recent_bytes -= self._recent.popitem(last=False)[1]
