"""A tape in memory, and the fold of facts into exchanges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from playhead_semconv import attributes as a
from playhead_semconv import events as e
from playhead_semconv.errors import CorruptTape, TapeError, TapeGap
from playhead_semconv.facts import (
    Ask,
    Content,
    End,
    ErrorRecord,
    Exchange,
    ExchangeId,
    Fact,
    Fidelity,
    Part,
    digest_of,
)
from playhead_semconv.frames import Header, Record


class MemoryTape:
    """Facts of one process instance, held in memory. Given in any order, duplicates are dropped."""

    def __init__(self, facts: Iterable[Fact], instance: bytes | None = None) -> None:
        by_seq = {fact.seq: fact for fact in facts}
        self._facts = [by_seq[seq] for seq in sorted(by_seq)]
        self._instance = instance or (self._facts[0].instance if self._facts else b"")
        self._contents: dict[bytes, Content] = {}
        self._blobs: dict[bytes, list[Fact]] = {}
        self._whole: dict[bytes, bytes] = {}
        for fact in self._facts:
            if fact.name == e.PLAYHEAD_BLOB:
                digest = bytes.fromhex(fact.attributes[a.PLAYHEAD_BLOB_DIGEST])
                self._blobs.setdefault(digest, []).append(fact)
            elif fact.body is not None and fact.body.digest:
                if fact.body.inline is not None or fact.body.base is not None:
                    self._contents.setdefault(fact.body.digest, fact.body)

    @classmethod
    def of_records(cls, records: Iterable[Record]) -> MemoryTape:
        """The facts among the records of a tape file."""
        instance = b""
        facts: list[Fact] = []
        for record in records:
            if isinstance(record, Header):
                instance = record.instance
            elif isinstance(record, Fact):
                facts.append(record)
        return cls(facts, instance)

    @property
    def instance(self) -> bytes:
        """Whose facts these are."""
        return self._instance

    def facts(self, after: int = -1) -> Iterator[Fact]:
        """Facts with ``seq > after``, ascending."""
        return (fact for fact in self._facts if fact.seq > after)

    def __len__(self) -> int:
        return len(self._facts)

    def gaps(self) -> list[tuple[int, int]]:
        """Missing ranges of sequence numbers, first and last included."""
        missing: list[tuple[int, int]] = []
        expected = 0
        for fact in self._facts:
            if fact.seq > expected:
                missing.append((expected, fact.seq - 1))
            expected = fact.seq + 1
        return missing

    def require_whole(self) -> None:
        """`TapeGap` if a fact is missing."""
        gaps = self.gaps()
        if gaps:
            first, last = gaps[0]
            raise TapeGap(
                f"facts {first} to {last} are missing from the tape",
                hint="look for undelivered facts: playhead spool push",
            )

    def read(self, content: Content) -> bytes:
        """The bytes of ``content``; extensions are resolved along their chain of bases."""
        chain: list[Content] = []
        while True:
            if content.digest and content.digest in self._whole:
                data = self._whole[content.digest]
                break
            if content.inline is not None and content.base is None:
                data = self._keep(content, content.inline)
                break
            if content.base is not None:
                chain.append(content)
                content = self._known(content.base)
                continue
            found = self._contents.get(content.digest)
            if found is not None:
                content = found
                continue
            blob = self._blobs.get(content.digest)
            if blob is None:
                raise TapeError(f"content {content.digest.hex()[:16]} is not on the tape")
            data = self._keep(content, self._join(blob))
            break
        for extension in reversed(chain):
            tail = extension.inline
            if tail is None:
                tail = self._join(self._blobs.get(extension.digest, []))
            data = self._keep(extension, data[: extension.base_bytes] + tail)
        return data

    def _known(self, digest: bytes) -> Content:
        found = self._contents.get(digest)
        if found is not None:
            return found
        if digest in self._blobs:
            return Content(digest, -1)
        raise TapeError(f"content {digest.hex()[:16]} is not on the tape")

    def _keep(self, content: Content, data: bytes) -> bytes:
        if content.digest:
            if digest_of(data) != content.digest:
                raise CorruptTape(f"content {content.digest.hex()[:16]} differs from its digest")
            self._whole[content.digest] = data
        return data

    @staticmethod
    def _join(parts: list[Fact]) -> bytes:
        ordered = sorted(parts, key=lambda fact: int(fact.attributes[a.PLAYHEAD_BLOB_OFFSET]))
        return b"".join(part.body.inline or b"" for part in ordered if part.body is not None)

    def exchanges(self) -> dict[ExchangeId, Exchange]:
        """The exchanges on this tape, in order of their requests."""
        return fold_exchanges(self._facts)


def fold_exchanges(facts: Iterable[Fact]) -> dict[ExchangeId, Exchange]:
    """Fold request, response, data and end facts into exchanges, in order of their requests."""
    exchanges: dict[ExchangeId, Exchange] = {}
    made: set[ExchangeId] = set()
    """Whose request body was made while it was sent."""
    for fact in facts:
        if fact.exchange is None:
            continue
        if fact.name == e.PLAYHEAD_EXCHANGE_REQUEST:
            at = fact.attributes
            inbound = is_inbound(fact)
            if fact.body is None and not inbound:
                made.add(fact.exchange)
            exchanges[fact.exchange] = Exchange(
                id=fact.exchange,
                ask=Ask(
                    kind=fact.exchange.kind,
                    key=str(at[a.PLAYHEAD_ASK_KEY]),
                    body=fact.body or Content.chunk(b""),
                    effect="write" if at.get(a.PLAYHEAD_ASK_EFFECT) == "write" else "read",
                    direction="in" if inbound else "out",
                    details=at,
                ),
                time_ns=fact.time_ns,
                trace_id=fact.trace_id,
                span_id=fact.span_id,
                first_seq=fact.seq,
                last_seq=fact.seq,
                delivery=fact.delivery,
            )
            continue
        exchange = exchanges.get(fact.exchange)
        if exchange is None:
            continue
        exchange.last_seq = fact.seq
        if fact.name == e.PLAYHEAD_EXCHANGE_RESPONSE:
            exchange.head = fact.attributes
            exchange.head_delivery = fact.delivery
            exchange.head_time_ns = fact.time_ns
            exchange.head_after = len(exchange.sent)
        elif fact.name == e.PLAYHEAD_EXCHANGE_DATA and fact.body is not None:
            if fact.attributes.get(a.PLAYHEAD_EXCHANGE_DIRECTION) == "out":
                exchange.sent.append(_part_of(fact, fact.body))
                continue
            exchange.parts.append(_part_of(fact, fact.body, len(exchange.sent)))
        elif fact.name == e.PLAYHEAD_EXCHANGE_END:
            exchange.end = msgspec.structs.replace(end_of(fact), after=len(exchange.sent))
            if a.PLAYHEAD_FIDELITY in fact.attributes:
                exchange.fidelity = Fidelity(fact.attributes[a.PLAYHEAD_FIDELITY])
    for id in made:
        exchange = exchanges[id]
        if exchange.sent:
            whole = Content.of(b"".join(piece.data.inline or b"" for piece in exchange.sent))
            exchange.ask = msgspec.structs.replace(exchange.ask, body=whole)
    return exchanges


def is_inbound(fact: Fact) -> bool:
    """Whether this is a request that came to the program."""
    asked = fact.name == e.PLAYHEAD_EXCHANGE_REQUEST
    return asked and fact.attributes.get(a.PLAYHEAD_EXCHANGE_DIRECTION) == "in"


def _part_of(fact: Fact, body: Content, after: int = 0) -> Part:
    return Part(body, fact.time_ns, fact.delivery, fact.attributes, after)


def end_of(fact: Fact) -> End:
    """The `End` that an exchange-end fact carries."""
    at = fact.attributes
    how = at.get(a.PLAYHEAD_END_HOW)
    error = None
    if a.PLAYHEAD_ERROR_QUALNAME in at:
        error = ErrorRecord(
            str(at.get(a.PLAYHEAD_ERROR_MODULE, "")),
            str(at[a.PLAYHEAD_ERROR_QUALNAME]),
            str(at.get(a.PLAYHEAD_ERROR_MESSAGE, "")),
            list(at.get(a.PLAYHEAD_ERROR_ARGS, [])),
            str(at.get(a.PLAYHEAD_ERROR_PHASE, "")),
        )
    return End(
        how if how in ("complete", "error") else "abandoned",
        fact.delivery,
        error,
        fact.time_ns,
        _digest(at.get(a.PLAYHEAD_END_DIGEST)),
        at,
        fact.body,
    )


def _digest(text: object) -> bytes:
    try:
        return bytes.fromhex(text) if isinstance(text, str) else b""
    except ValueError:
        return b""


def level_of(facts: Iterable[Fact]) -> str:
    """The level at which a tape was recorded: the last that it says."""
    level = "causal"
    for fact in facts:
        if fact.name in (e.PLAYHEAD_PROCESS_START, e.PLAYHEAD_PROCESS_EXIT):
            level = str(fact.attributes.get(a.PLAYHEAD_RUN_LEVEL, level))
    return level
