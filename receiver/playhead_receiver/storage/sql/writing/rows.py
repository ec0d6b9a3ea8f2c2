"""Turns prepared batches into rows, inside the writer's transaction, with joint look-ups and writes."""

from __future__ import annotations

import time
from collections.abc import Sequence

from playhead_receiver.storage.content.blobs import Blobs
from playhead_receiver.storage.content.packing import TextIndex
from playhead_receiver.storage.sql.writing.draft import RowDraft
from playhead_receiver.storage.sql.writing.facts import FactRows
from playhead_receiver.storage.sql.writing.known_rows import KnownRows
from playhead_receiver.storage.sql.writing.runs import RunRows
from playhead_receiver.storage.sql.writing.spans import SpanRows
from playhead_receiver.storage.sql.writing.tables import Tables
from playhead_receiver.storage.values.stored import Receipt
from playhead_receiver.storage.writing.prepare import Prepared


class RowWriter:
    """Writes rows, and remembers what the tables hold. Used by one thread.

    In a transaction call `begin`, then `write`; after a rollback, when what is remembered may be wrong,
    `forget`.
    """

    def __init__(self, tables: Tables, blobs: Blobs) -> None:
        self._tables = tables
        self._blobs = blobs
        self._known = KnownRows(tables)
        self._texts = TextIndex(self._known.stored_text, self._store_text, self._known.kept_texts)
        self._draft = RowDraft(0, 0, 0)
        self._knows = False

    @property
    def position(self) -> int:
        """Position of the last change."""
        return self._draft.position

    def forget(self) -> None:
        """Forget everything. Reads nothing, as the disk may have failed."""
        self._knows = False
        self._known.forget_rows()
        self._forget_texts()

    def _forget_texts(self) -> None:
        self._known.forget_bundles()
        self._texts.clear()

    def begin(self) -> bool:
        """Begin with the counters as they are; whether others may have written since what is known."""
        begun, knew = self._tables.begin(), self._knows
        self._draft = RowDraft(begun.position, begun.bundle, time.time_ns())
        if begun.others_wrote:
            self._known.forget_rows()
        if begun.others_deleted:
            self._forget_texts()
        self._knows = True
        return begun.others_wrote or not knew

    def write(self, batches: Sequence[Prepared]) -> list[Receipt]:
        """Write batches. The caller holds the transaction, and has called `begin`."""
        draft = self._draft
        self._known.look_up(batches, draft)
        runs = RunRows(self._known, draft)
        facts = FactRows(self._known, draft, runs, self._blobs)
        spans = SpanRows(self._known, draft, runs, self._texts)
        receipts: list[Receipt] = []
        for batch in batches:
            for instance, resource in batch.resources.items():
                facts.set_resource(instance, resource)
            for link in batch.links:
                facts.add_link(link)
            facts_new = sum(map(facts.add, batch.runs))
            spans_new = sum(map(spans.add, batch.bundles))
            receipts.append(Receipt(spans_new, facts_new, draft.position))
        self._tables.finish(draft.changes(), draft.position, draft.bundle)
        if draft.frees():
            self._known.forget_shared()
        self._draft = RowDraft(draft.position, draft.bundle, 0)
        return receipts

    def _store_text(self, digest: bytes, address: int) -> None:
        self._draft.texts[digest] = address
