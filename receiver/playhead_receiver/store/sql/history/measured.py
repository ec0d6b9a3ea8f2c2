"""How much a process that serves has said for no request, and since when."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from playhead_receiver.store.keeping.service_history import History
from playhead_semconv import events as e
from playhead_semconv.facts import Fact

RECENT_BYTES = 16 << 20
"""Request bodies on which one that comes may go on. Who records keeps 8 MiB of them, the latest."""
SMALL_BYTES = 512
"""On smaller ones none goes on."""
REMEMBERED = 1024
"""Bodies of requests that have aged out."""
PIECES = 64
"""How many chunks what is kept has at least, when it is all that is kept."""


@dataclass(slots=True)
class Chunk:
    """Some stretches of facts that came one after the other."""

    first: int
    last: int
    oldest_ns: int
    newest_ns: int
    size_bytes: int
    """Of what belongs to no request, as it is stored."""


@dataclass(slots=True)
class Process:
    """A process that serves. Its bodies are bounded, its chunks are some hundred."""

    row: int
    instance: bytes
    trace_id: bytes
    boot_end: int
    """Number of the first request that came: what is before it stays."""
    latest_ns: int = 0
    """When it said the last of what is here, by its own clock."""
    heard_ns: int = 0
    """When something of it was measured last."""
    chunks: deque[Chunk] = field(default_factory=deque[Chunk])
    waiting: set[int] = field(default_factory=set[int])
    """Stretches, by their first number, of which something stayed that may age out later."""
    _recent: OrderedDict[bytes, int] = field(default_factory=OrderedDict[bytes, int])
    _recent_bytes: int = 0
    _asked: OrderedDict[bytes, None] = field(default_factory=OrderedDict[bytes, None])

    @property
    def size_bytes(self) -> int:
        """Of what belongs to no request and has not aged out."""
        return sum(chunk.size_bytes for chunk in self.chunks)

    def add(self, facts: list[Fact], size_bytes: int, now_ns: int, kept: History) -> None:
        """A stretch of facts has come, in which what belongs to no request takes ``size_bytes``."""
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
        """Take out what is older, or more, than is kept."""
        size_bytes, before_ns = self.size_bytes, self.latest_ns - kept.time_s * 1e9
        while self.chunks and (self.chunks[0].newest_ns < before_ns or size_bytes > kept.size_bytes):
            chunk = self.chunks.popleft()
            size_bytes -= chunk.size_bytes
            yield chunk

    def may_be_gone_on_from(self, digest: bytes) -> bool:
        """Whether a request that comes may rest on this body."""
        return digest in self._recent

    def was_asked(self, digest: bytes) -> bool:
        """Whether a body was that of a request: one that is large may go before its bytes do."""
        return digest in self._asked

    def note_asked(self, digests: Iterable[bytes]) -> None:
        """These are bodies of requests."""
        self._asked.update(dict.fromkeys(digests))
        while len(self._asked) > REMEMBERED:
            self._asked.popitem(last=False)

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
