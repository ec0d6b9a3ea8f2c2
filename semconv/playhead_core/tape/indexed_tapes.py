"""Tapes with random access to their facts: in memory, or as frames of a file that are decoded on access.

A tape keeps only an index of where things are, which is small. A fact, an exchange, or the bytes of a
content are made on request, and a few recent ones are cached.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

import msgspec

from playhead_core.errors import CorruptTape, MalformedOtlp, TapeError, TapeGap
from playhead_core.facts import Content, Exchange, ExchangeId, Fact, digest_of
from playhead_core.integrity import ChainMapping, Link, Signature
from playhead_core.tape.fact_shapes import check_shape
from playhead_core.tape.folds import fold_exchanges
from playhead_core.tape.frames import MAGIC, Footer, Frames, Header, LogEntry, Record, SpanRecord, encode
from playhead_semconv import attributes as a
from playhead_semconv import events as e

KEPT_BYTES = 8 << 20
"""Size of the cache of resolved contents. A reader of a chain of extensions follows it in order."""

KEPT_EXCHANGES = 64
"""Size of the cache of folded exchanges."""

MOST_DISORDER = 100
"""Facts out of order that are reported at most."""

MOST_PROCESSES = 10_000
"""Processes in one file at most."""

K = TypeVar("K")
V = TypeVar("V")


class IndexedTape:
    """Facts of one process instance, ordered by number."""

    def __init__(self, facts: Sequence[Fact], instance: bytes = b"") -> None:
        """``facts``: in any order; where a number occurs twice, the last one counts."""
        self.instance = instance
        """The process instance that the facts belong to."""
        self._whole: OrderedDict[bytes, bytes] = OrderedDict()
        self._whole_bytes = 0
        self._folded: OrderedDict[ExchangeId, Exchange] = OrderedDict()
        self.disorder: list[int] = []
        """Numbers of facts that followed a later one, or occurred twice; at most `MOST_DISORDER`."""
        if not self._index(facts):
            self.disorder = list(islice(_disorder(facts), MOST_DISORDER))
            self._index(_in_order(facts))

    def _index(self, facts: Sequence[Fact]) -> bool:
        """Build the index; False if the facts are not in order."""
        self._facts = facts
        self._seqs = array("q")
        self._names = array("H")
        self._named: dict[str, int] = {}
        """Index numbers for the names of facts."""
        self._contents: dict[bytes, int] = {}
        self._blobs: dict[bytes, array[int]] = {}
        self._exchanges: dict[ExchangeId, array[int]] = {}
        last = -1
        for fact in facts:
            if fact.seq <= last:
                return False
            last = fact.seq
            self._take(fact)
        return True

    def _take(self, fact: Fact) -> None:
        seq, id, body = fact.seq, fact.exchange, fact.body
        self.instance = self.instance or fact.instance
        self._seqs.append(seq)
        self._names.append(self._named.setdefault(fact.name, len(self._named)))
        if fact.name == e.PLAYHEAD_BLOB:
            digest = bytes.fromhex(fact.attributes[a.PLAYHEAD_BLOB_DIGEST])
            self._blobs.setdefault(digest, array("q")).append(seq)
        elif body is not None and body.tells:
            self._contents.setdefault(body.digest, seq)
        if id is not None:
            if fact.name == e.PLAYHEAD_EXCHANGE_REQUEST:
                self._exchanges[id] = array("q", (seq,))
            elif id in self._exchanges:
                self._exchanges[id].append(seq)

    def facts(self, after: int = -1) -> Iterator[Fact]:
        """Yield facts with ``seq > after``, ascending."""
        return map(self._facts.__getitem__, range(bisect_left(self._seqs, after + 1), len(self._seqs)))

    def named(self, *names: str) -> Iterator[Fact]:
        """Yield facts with these names, ascending; other facts are not decoded."""
        wanted = {self._named[name] for name in names if name in self._named}
        places = [place for place, name in enumerate(self._names) if name in wanted] if wanted else ()
        return map(self._facts.__getitem__, places)

    def fact(self, seq: int) -> Fact | None:
        """Return the fact with this number; None if it is not here."""
        place = bisect_left(self._seqs, seq)
        found = place < len(self._seqs) and self._seqs[place] == seq
        return self._facts[place] if found else None

    def exchange_ids(self) -> Iterable[ExchangeId]:
        """Return the exchanges on this tape, in order of their requests."""
        return self._exchanges.keys()

    def exchange(self, id: ExchangeId) -> Exchange | None:
        """Return one exchange as far as its facts are here; None if its request is not."""
        found = self._folded.get(id)
        if found is None and id in self._exchanges:
            found = fold_exchanges([self._at(seq) for seq in self._exchanges[id]])[id]
            self._folded[id] = found
            while len(self._folded) > KEPT_EXCHANGES:
                _drop_first(self._folded)
        return found

    def exchanges(self) -> dict[ExchangeId, Exchange]:
        """Return all exchanges at once, in order of their requests."""
        return fold_exchanges(self.facts())

    def __len__(self) -> int:
        return len(self._seqs)

    @property
    def last_seq(self) -> int:
        """The highest number; -1 if there is no fact."""
        return self._seqs[-1] if self._seqs else -1

    def gaps(self) -> list[tuple[int, int]]:
        """Return the missing ranges of sequence numbers, first and last included."""
        missing: list[tuple[int, int]] = []
        expected = 0
        for seq in self._seqs:
            if seq > expected:
                missing.append((expected, seq - 1))
            expected = seq + 1
        return missing

    def aged(self) -> list[tuple[int, int]]:
        """Return the ranges of numbers whose facts have aged out of a store; they are not gaps."""
        return []

    def require_whole(self) -> None:
        """Raise `TapeGap` if a fact is missing."""
        gaps = self.gaps()
        if gaps:
            first, last = gaps[0]
            raise TapeGap(
                f"facts {first} to {last} are missing from the tape",
                hint="look for undelivered facts: playhead spool push",
            )

    def read(self, content: Content) -> bytes:
        """Return the bytes of ``content``, digest verified.

        Raises `TapeError` if they are not on the tape.
        """
        data = self._whole.get(content.digest) if content.digest else None
        if data is not None:
            return data
        data = self._resolved(content)
        if content.digest:
            if digest_of(data) != content.digest:
                raise CorruptTape(f"content {content.digest.hex()[:16]} differs from its digest")
            self._keep(content.digest, data)
        return data

    def _resolved(self, content: Content) -> bytes:
        """Resolve the chain of bases from its end; of each base, take only what the next level needs."""
        pieces: list[bytes] = []
        size: int | None = None
        for _ in range(2 * len(self._contents) + 2):
            whole = self._whole.get(content.digest) if content.digest else None
            if whole is None and content.base is None:
                whole = content.inline
            if whole is not None:
                return b"".join((whole[:size], *reversed(pieces)))
            if content.base is None:
                seq = self._contents.get(content.digest)
                found = None if seq is None else self._at(seq).body
                content = found or Content(content.digest, -1, self._blob(content.digest))
                continue
            if size is None or size > content.base_bytes:
                tail = content.inline
                if tail is None:
                    tail = self._blob(content.digest, content.base_bytes)
                pieces.append(tail if size is None else tail[: size - content.base_bytes])
                size = content.base_bytes
            content = Content(content.base, -1)
        raise CorruptTape("a content of the tape extends itself")

    def _keep(self, digest: bytes, data: bytes) -> None:
        if digest not in self._whole:
            self._whole[digest] = data
            self._whole_bytes += len(data)
        while self._whole_bytes > KEPT_BYTES and len(self._whole) > 1:
            self._whole_bytes -= len(_drop_first(self._whole) or b"")

    def _blob(self, digest: bytes, start: int = 0) -> bytes:
        if digest not in self._blobs:
            raise TapeError(f"content {digest.hex()[:16]} is not on the tape")
        return joined(map(self._at, self._blobs[digest]), start)

    def _at(self, seq: int) -> Fact:
        return self._facts[bisect_left(self._seqs, seq)]


def joined(parts: Iterable[Fact], start: int = 0) -> bytes:
    """Return what blob facts of one digest hold from the byte ``start`` on; pieces may occur twice."""
    pieces = [
        (int(part.attributes[a.PLAYHEAD_BLOB_OFFSET]), part.body.inline)
        for part in parts
        if part.body is not None and part.body.inline is not None
    ]
    found: list[bytes] = []
    for offset, piece in sorted(pieces):
        if offset <= start < offset + len(piece):
            found.append(piece[start - offset :])
            start = offset + len(piece)
    return b"".join(found)


class MemoryTape(IndexedTape):
    """Facts of one process instance, held in memory. Given in any order; duplicates are dropped."""

    def __init__(self, facts: Iterable[Fact], instance: bytes = b"") -> None:
        super().__init__(list(facts), instance)


@dataclass(frozen=True, slots=True)
class Gathered:
    """Contents of a file of frames, read from the file on access."""

    tapes: list[IndexedTape]
    """One per process, in the order of the file."""
    spans: Sequence[bytes]
    """Finished spans, OTLP `ResourceSpans` bytes of one span each."""
    resources: dict[bytes, dict[str, Any]]
    """Attributes of the OTel resource, by process instance."""
    chains: dict[bytes, Sequence[Link]]
    """The links of each chain in the file, by process instance."""
    parts: dict[bytes, ChainMapping]
    """Parts, by the process id that the file uses."""
    signature: tuple[int, Signature] | None
    """The offset of the signature's record, and the signature."""
    logs: Sequence[bytes]
    """Log records, OTLP `ResourceLogs` bytes of one record each."""


def gather(
    data: bytes | memoryview, found: Iterable[tuple[int, Record]], name: str = "tape"
) -> Gathered:
    """Sort the records that a `Scan` of ``data`` found. ``data`` must stay unchanged.

    Raises `CorruptTape` if a fact lacks a required attribute, or where the file has more than
    `MOST_PROCESSES` processes.
    """
    facts: dict[bytes, Frames[Fact]] = {}
    resources: dict[bytes, dict[str, Any]] = {}
    spans, logs = Frames(data, _otlp), Frames(data, _otlp)
    chains: dict[bytes, Frames[Link]] = {}
    parts: dict[bytes, ChainMapping] = {}
    signature: tuple[int, Signature] | None = None
    of = b""
    for offset, record in found:
        if signature is not None and not isinstance(record, Footer):
            raise CorruptTape(
                f"{name} is damaged at byte {offset}: something stands behind its signature",
                cause="a signature is of what stands before it",
            )
        if isinstance(record, Fact):
            try:
                check_shape(record)
            except MalformedOtlp as problem:
                raise CorruptTape(
                    f"{name} is damaged at byte {offset}: {problem.what}",
                    cause="no version of playhead writes such a fact",
                ) from None
            facts.setdefault(record.instance or of, facts_at(data)).append(offset)
        elif isinstance(record, SpanRecord):
            spans.append(offset)
        elif isinstance(record, LogEntry):
            logs.append(offset)
        elif isinstance(record, Header):
            of = record.instance
            facts.setdefault(of, facts_at(data))
            resources[of] = dict(record.resource)
        elif isinstance(record, Link):
            chains.setdefault(record.instance, Frames(data, _link)).append(offset)
        elif isinstance(record, ChainMapping):
            parts[record.instance] = record
        elif isinstance(record, Signature):
            signature = offset, record
        if max(len(facts), len(chains), len(parts)) > MOST_PROCESSES:
            raise CorruptTape(f"{name} has facts of more than {MOST_PROCESSES} processes")
    tapes = [IndexedTape(some, instance) for instance, some in facts.items()]
    return Gathered(tapes, spans, resources, dict(chains), parts, signature, logs)


def facts_at(data: bytes | memoryview, offsets: Iterable[int] = ()) -> Frames[Fact]:
    """Return the facts whose frames begin at ``offsets``."""
    return Frames(data, _fact, offsets)


def frames_of(records: Iterable[Record]) -> bytes:
    """Return records as the bytes of a file."""
    return MAGIC + b"".join(encode(record) for record in records)


_fact = msgspec.msgpack.Decoder(Fact).decode
_link = msgspec.msgpack.Decoder(Link).decode
_entry = msgspec.msgpack.Decoder(SpanRecord | LogEntry)


def _otlp(payload: memoryview) -> bytes:
    return _entry.decode(payload).otlp


def _disorder(facts: Iterable[Fact]) -> Iterator[int]:
    last = -1
    for fact in facts:
        if fact.seq <= last:
            yield fact.seq
        last = max(last, fact.seq)


def _in_order(facts: Sequence[Fact]) -> Sequence[Fact]:
    places = {fact.seq: place for place, fact in enumerate(facts) if fact.seq >= 0}
    order = [places[seq] for seq in sorted(places)]
    return facts.pick(order) if isinstance(facts, Frames) else [facts[place] for place in order]


def _drop_first(kept: OrderedDict[K, V]) -> V | None:
    try:
        return kept.popitem(last=False)[1]
    except KeyError:  # another thread was faster
        return None
