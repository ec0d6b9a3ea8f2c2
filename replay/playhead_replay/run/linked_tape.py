"""The tape of a fork: what it took from its origin is stored only on the origin's tape."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import cached_property
from typing import Protocol

import msgspec

from playhead_core.errors import CorruptTape, TapeError
from playhead_core.facts import Content, Exchange, ExchangeId, Fact, digest_of
from playhead_core.tape.folds import fold_exchanges
from playhead_core.tape.indexed_tapes import MemoryTape
from playhead_core.tape.protocols import Tape
from playhead_core.tape.slices import slice_of
from playhead_semconv import attributes as a
from playhead_semconv import events as e


class TapeLookup(Protocol):
    """Where tapes are found; the receiver's `Store` is one."""

    def tape_of(self, instance: bytes, trace_id: bytes) -> Tape:
        """The tape of a process instance, as far as the run of a trace may need it; may be empty."""
        ...


def linked(store: TapeLookup, tape: Tape) -> Tape:
    """``tape``; the tape of a fork is combined with that of its origin."""
    instance = origin_of(tape)
    if instance is None or instance == tape.instance:
        return tape
    trace = _origin_trace(tape)
    whole = linked(store, store.tape_of(instance, trace))
    return LinkedTape(tape, slice_of(whole, trace))


def _origin_trace(tape: Tape) -> bytes:
    """Trace id of the forked run, which may be a part of its process."""
    for fact in tape.facts():
        origin = str(fact.attributes.get(a.PLAYHEAD_RUN_ORIGIN, ""))
        return bytes.fromhex(origin.partition("-")[0])
    return b""


def origin_of(tape: Tape) -> bytes | None:
    """The process whose tape answered first, if ``tape`` is that of a fork or a resume."""
    start = next(tape.facts(), None)
    if start is None or start.attributes.get(a.PLAYHEAD_RUN_MODE) not in ("fork", "resume"):
        return None
    try:
        return bytes.fromhex(str(start.attributes.get(a.PLAYHEAD_ORIGIN_INSTANCE, ""))) or None
    except ValueError:
        return None


class LinkedTape:
    """The tape of a fork and that of its origin, combined into one complete tape."""

    def __init__(self, tape: Tape, origin: Tape) -> None:
        """``origin``: already combined with its own origin, if it is a fork itself."""
        self._tape = tape
        self._origin = origin
        self._whole: dict[bytes, bytes] = {}
        self._resolving: set[bytes] = set()
        """Digests of the extensions whose bases are being read: a tape may name itself as its base."""
        self._lock = threading.RLock()
        """Serializes reads: a concurrent read of the same content is not a cycle."""

    @property
    def instance(self) -> bytes:
        """The process instance that the facts belong to."""
        return self._tape.instance

    def facts(self, after: int = -1) -> Iterator[Fact]:
        """Facts with ``seq > after``, ascending."""
        return self._filled.facts(after)

    def read(self, content: Content) -> bytes:
        """The bytes of a content of this tape. `TapeError` if they are missing."""
        with self._lock:
            data = self._whole.get(content.digest) if content.digest else None
            if data is None:
                data = self._read(content)
                if content.digest:
                    self._whole[content.digest] = data
            return data

    def _read(self, content: Content) -> bytes:
        for tape in (self._filled, self._tape):
            try:
                return tape.read(content)
            except TapeError:
                continue
        known = content if content.base is not None else self._extensions.get(content.digest)
        if known is None or known.base is None or known.inline is None:
            return self._origin.read(content)
        # Content that extends a body of the origin.
        if known.digest in self._resolving:
            raise CorruptTape("a content of the tape extends itself")
        self._resolving.add(known.digest)
        try:
            data = self.read(Content(known.base, -1))[: known.base_bytes] + known.inline
        finally:
            self._resolving.discard(known.digest)
        if digest_of(data) != known.digest:
            raise CorruptTape(f"content {known.digest.hex()[:16]} differs from its digest")
        return data

    @cached_property
    def _extensions(self) -> dict[bytes, Content]:
        bodies = (fact.body for fact in self._tape.facts())
        return {body.digest: body for body in bodies if body is not None and body.base is not None}

    def exchange(self, id: ExchangeId) -> Exchange | None:
        """One exchange; None if it is not on this tape."""
        return self._exchanges.get(id)

    @cached_property
    def _exchanges(self) -> dict[ExchangeId, Exchange]:
        return fold_exchanges(self.facts())

    @cached_property
    def _filled(self) -> MemoryTape:
        return MemoryTape(self._fill(), self.instance)

    def _fill(self) -> Iterator[Fact]:
        answers: dict[ExchangeId, tuple[Exchange, int]] = {}
        for fact in self._tape.facts():
            at, body = fact.attributes, fact.body
            if fact.name == e.PLAYHEAD_EXCHANGE_REQUEST and a.PLAYHEAD_ORIGIN_SEQ in at:
                found = self._recordings.get(int(at[a.PLAYHEAD_ORIGIN_SEQ]))
                if found is not None and fact.exchange is not None:
                    answers[fact.exchange] = found, 0
            if body is not None and body.size and body.inline is None and body.base is None:
                if body.digest:
                    fact = self._with(fact, body)
                elif fact.exchange in answers and fact.name == e.PLAYHEAD_EXCHANGE_DATA:
                    fact = self._with_part(fact, answers)
            yield fact

    def _with(self, fact: Fact, body: Content) -> Fact:
        known = self._contents.get(body.digest)
        return fact if known is None else msgspec.structs.replace(fact, body=known)

    def _with_part(self, fact: Fact, answers: dict[ExchangeId, tuple[Exchange, int]]) -> Fact:
        assert fact.exchange is not None
        recorded, number = answers[fact.exchange]
        answers[fact.exchange] = recorded, number + 1
        if number >= len(recorded.parts):
            return fact
        data = self._origin.read(recorded.parts[number].data)
        return msgspec.structs.replace(fact, body=Content(b"", len(data), data))

    @cached_property
    def _recordings(self) -> dict[int, Exchange]:
        return {one.first_seq: one for one in fold_exchanges(self._origin.facts()).values()}

    @cached_property
    def _contents(self) -> dict[bytes, Content]:
        """Contents of the origin by digest; their bases refer to the origin here too."""
        held: dict[bytes, Content] = {}
        for fact in self._origin.facts():
            body = fact.body
            if body is not None and body.digest and (body.inline is not None or body.base is not None):
                held.setdefault(body.digest, body)
        return held
