"""A tape in a store, read piece by piece."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from playhead_core.errors import CorruptTape, TapeError
from playhead_core.facts import Content, Exchange, ExchangeId, Fact, digest_of
from playhead_core.tape.folds import fold_exchanges
from playhead_core.tape.indexed_tapes import joined
from playhead_receiver.storage.sql.reading.reader import SqlReader
from playhead_receiver.storage.writing.prepare import open_run

RUNS_KEPT = 8
WHOLE_KEPT_BYTES = 32 * 1024 * 1024
"""Most bytes of assembled contents that are cached, for contents that extend them."""


class SqlTape:
    """The facts of one process instance, fetched a frame at a time. Contents: from any thread."""

    def __init__(self, reader: SqlReader, instance: bytes) -> None:
        self._reader = reader
        self._instance = instance
        self._row: int | None = None
        self._runs: OrderedDict[int, list[Fact]] = OrderedDict()
        self._whole: OrderedDict[bytes, bytes] = OrderedDict()
        self._whole_bytes = 0
        self._lock = threading.Lock()
        """Held to read a content: requests share the loaded run, which reads it from here."""

    @property
    def instance(self) -> bytes:
        """The process instance that the facts are of."""
        return self._instance

    def facts(self, after: int = -1) -> Iterator[Fact]:
        """Facts with ``seq > after``, ascending. Missing numbers are gaps."""
        while (run := self._run_at(after + 1)) is not None:
            yield from (fact for fact in run if fact.seq > after)
            after = run[-1].seq

    def last(self) -> int:
        """Highest stored number, -1 if there is none."""
        found = self._reader.one("SELECT max(last) FROM fact_range WHERE instance = ?", (self._find(),))
        return -1 if found is None or found[0] is None else found[0]

    def gaps(self) -> list[tuple[int, int]]:
        """Numbers that were assigned and are missing: ranges, first and last included."""
        row = self._find()
        return [] if row is None else self._reader.instance_row(row).missing()

    def aged(self) -> list[tuple[int, int]]:
        """Numbers that were stored and have aged out: ranges, first and last included."""
        rows = self._reader.all(
            "SELECT first, last FROM aged WHERE instance = ? ORDER BY first", (self._find(),)
        )
        return [(first, last) for first, last in rows]

    def exchange(self, id: ExchangeId) -> Exchange | None:
        """One exchange as far as its facts are stored; None if its request is not."""
        place: Any = self._reader.one(
            "SELECT first, last FROM exchange WHERE instance = ? AND id = ?", (self._find(), str(id))
        )
        if place is None:
            return None
        first, last = place
        facts: list[Fact] = []
        for fact in self.facts(first - 1):
            if fact.seq > last:
                break
            if fact.exchange == id:
                facts.append(fact)
        return fold_exchanges(facts).get(id)

    def frame(self, first: int) -> list[Fact]:
        """The facts that are stored together with this number, or the next ones after it."""
        return self._run_at(first) or []

    def fact(self, seq: int) -> Fact | None:
        """The fact with this number; None if it is not stored."""
        run = self._run_at(seq)
        return next((fact for fact in run if fact.seq == seq), None) if run is not None else None

    def read(self, content: Content) -> bytes:
        """The bytes of ``content``, verified by digest; extensions are resolved along their bases.

        `TapeError` if they are not stored, `CorruptTape` if they differ from their digest.
        """
        with self._lock:
            return self._read(content)

    def _read(self, content: Content) -> bytes:
        chain: list[tuple[Content, bytes]] = []
        seen: set[bytes] = set()
        while True:
            if content.digest and content.digest in self._whole:
                self._whole.move_to_end(content.digest)
                data = self._whole[content.digest]
                break
            if content.base is not None:
                tail = content.inline
                chain.append((content, self._parts(content) if tail is None else tail))
                content = self._known(content.base, seen)
                continue
            if content.inline is not None:
                data = self._verified(content.digest, content.inline)
                break
            content = self._known(content.digest, seen)
        for extension, tail in reversed(chain):
            data = self._verified(extension.digest, data[: extension.base_bytes] + tail)
        return data

    def _find(self) -> int | None:
        if self._row is None:
            self._row = self._reader.instance_id(self._instance)
        return self._row

    def _run_at(self, seq: int) -> list[Fact] | None:
        """The facts of the frame with ``seq``, else of the next one; None if there is none."""
        row = self._find()
        if row is None:
            return None
        for facts in self._runs.values():
            if facts[0].seq <= seq <= facts[-1].seq:
                return facts
        found: Any = self._reader.one(
            "SELECT first, data, blobs FROM fact_run WHERE instance = ? AND last >= ? AND first >="
            " coalesce((SELECT max(first) FROM fact_run WHERE instance = ? AND first <= ?), 0)"
            " ORDER BY first LIMIT 1",
            (row, seq, row, seq),
        )
        if found is None:
            return None
        first, data, blobs = found
        facts = self._runs[first] = open_run(data, blobs, self._reader.blobs)
        if len(self._runs) > RUNS_KEPT:
            self._runs.popitem(last=False)
        return facts

    def _known(self, digest: bytes, seen: set[bytes]) -> Content:
        """The content with this digest: whole, or an extension. `CorruptTape` if it was ``seen``."""
        if digest in seen:
            raise CorruptTape("a content of the tape extends itself")
        seen.add(digest)
        found: Any = self._reader.one(
            "SELECT seq FROM content WHERE instance = ? AND digest = ?", (self._find(), digest)
        )
        fact = self.fact(found[0]) if found is not None else None
        if fact is not None and fact.body is not None and fact.body.tells:
            return fact.body
        return Content(digest, -1, self._parts(Content(digest, -1)))

    def _parts(self, content: Content) -> bytes:
        """The bytes of a content that blob facts hold: all, or what it adds to its base."""
        rows = self._reader.all(
            "SELECT seq FROM blob_part WHERE instance = ? AND digest = ? ORDER BY seq",
            (self._find(), content.digest),
        )
        if not rows:
            raise TapeError(f"content {content.digest.hex()[:16]} is not on the tape")
        return joined(
            [fact for row in rows if (fact := self.fact(row[0])) is not None], content.base_bytes
        )

    def _verified(self, digest: bytes, data: bytes) -> bytes:
        if not digest:
            return data
        if digest_of(data) != digest:
            raise CorruptTape(f"content {digest.hex()[:16]} differs from its digest")
        self._whole[digest] = data
        self._whole_bytes += len(data)
        while self._whole_bytes > WHOLE_KEPT_BYTES and len(self._whole) > 1:
            self._whole_bytes -= len(self._whole.popitem(last=False)[1])
        return data
