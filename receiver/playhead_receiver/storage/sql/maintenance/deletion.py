"""Deletes runs from the tables, inside the writer's transaction. What other runs need is kept.

A bundle of a deleted run with texts that other runs refer to stays without a trace id, and is reduced to
these texts. It is deleted with the last of those runs. Bundles refer to older ones only, so one pass
from the newest to the oldest is enough.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from playhead_core.errors import CorruptTape, PlayheadError
from playhead_core.facts import Content, Fact, digest_of
from playhead_core.integrity import What, fact_digest
from playhead_core.integrity.number_ranges import merged
from playhead_core.integrity.tombstones import Tombstone, Why
from playhead_core.tape.folds import is_inbound
from playhead_core.tape.slices import lanes_of
from playhead_receiver.storage.content.cutting import DIGEST_BYTES
from playhead_receiver.storage.content.texts import (
    PLACE_BITS,
    TEXT,
    Texts,
    address_of,
    addresses_in,
    frame_of,
    last_address,
)
from playhead_receiver.storage.sql.tables.blob_uses import forget_uses
from playhead_receiver.storage.sql.tables.database import Db
from playhead_receiver.storage.sql.tables.frames import (
    delete_damaged_frame,
    delete_frame,
    frames_at,
    put_frame,
    readable_items,
)
from playhead_receiver.storage.sql.tables.integrity import ChainEntry, add_link, add_tombstone
from playhead_receiver.storage.sql.tables.shared_values import release
from playhead_receiver.storage.writing.prepare import bare_run, blob_digests, offloaded_at, pack_bare
from playhead_semconv import attributes as a
from playhead_semconv import events as e

_OF_AN_INSTANCE = (
    *("fact_run", "fact_range", "aged", "content", "blob_part", "exchange", "strand"),
    "link",
)


class Deletion:
    """Deletes runs, and counts what was deleted. The caller holds the transaction."""

    def __init__(self, connection: Db, by: str = "", why: Why = Why.DELETED) -> None:
        """``by``: who deletes."""
        self._db = connection
        self._by, self._why = by, why
        self._chains: list[tuple[bytes, int, bytes]] = []
        self._texts = Texts(lambda id: frames_at(connection, id))
        self.runs = self.spans = self.facts = 0
        self.blobs: set[bytes] = set()
        """Blobs that these runs referred to; other runs may refer to them too."""

    def delete(self, trace_ids: Sequence[bytes]) -> None:
        """Delete these runs."""
        instances: set[int] = set()
        runs = [(one, name) for one in trace_ids if (name := self._name(one)) is not None]
        bundles: dict[int, bytes] = {}
        for trace_id in trace_ids:
            for sql in (
                "SELECT id FROM bundle WHERE trace_id = ?",
                "SELECT DISTINCT bundle FROM span WHERE trace_id = ?",  # in case a bundle row is missing
                "SELECT DISTINCT bundle FROM log WHERE trace_id = ?",
            ):
                bundles |= dict.fromkeys(self._ids(sql, trace_id), trace_id)
            instances |= self._ids("SELECT instance FROM run_instance WHERE trace_id = ?", trace_id)
            release(self._db, trace_id)
            self.spans += self._delete("span", "trace_id", trace_id)
            self.runs += self._delete("run", "trace_id", trace_id)
            for table in ("log", "pending", "run_instance", "run_word", "mark"):
                self._delete(table, "trace_id", trace_id)
        self._release(bundles)
        self._shrink(bundles)
        for instance in sorted(instances):
            self._delete_facts(instance, set(trace_ids))
        if runs:
            now_ns, counts = time.time_ns(), (self.facts, self.spans)
            add_tombstone(self._db, Tombstone(self._why, now_ns, self._by, runs, *counts, self._chains))

    def _name(self, trace_id: bytes) -> str | None:
        return self._db.execute("SELECT name FROM run WHERE trace_id = ?", (trace_id,)).get

    # Bundles

    def _release(self, bundles: dict[int, bytes]) -> None:
        """Detach these bundles from their traces: they are kept only for links to their texts."""
        for id, trace_id in bundles.items():
            for address in self._refers(id, readable_items(self._db, id) or []):
                if bundles.get(frame_of(address)) == trace_id:
                    self._db.execute(
                        "INSERT INTO text_link VALUES (?, ?) ON CONFLICT DO NOTHING", (address, id)
                    )
            self._db.execute("UPDATE bundle SET trace_id = ? WHERE id = ?", (b"", id))

    def _shrink(self, bundles: Iterable[int]) -> None:
        """Remove what nothing refers to any more from these bundles, and from those kept for them."""
        waiting = [-id for id in bundles]
        heapq.heapify(waiting)
        done: set[int] = set()
        while waiting:
            id = -heapq.heappop(waiting)
            if id in done:
                continue
            done.add(id)
            for home in self._shrink_one(id):
                if home not in done:
                    heapq.heappush(waiting, -home)

    def _shrink_one(self, id: int) -> set[int]:
        """Shrink one bundle; return the bundles without a trace that it no longer refers to."""
        items = readable_items(self._db, id)
        low, high = address_of(id, 0), last_address(id)
        if items is None:
            return self._drop_damaged(id, low, high)
        live = self._closure(
            id,
            items,
            self._ids("SELECT DISTINCT target FROM text_link WHERE target BETWEEN ? AND ?", low, high),
        )
        dropped = [place for place, item in enumerate(items) if item is not None and place not in live]
        if not dropped:
            return set()
        for place in dropped:
            self._forget_text(id, place, items[place])
            self._unsearch(address_of(id, place), fact=False)
        kept = [item if place in live else None for place, item in enumerate(items)]
        gone = self._refers(id, items) - self._refers(id, kept)
        released = self._unlink(id, gone)
        if live:
            put_frame(self._db, id, kept)
        else:
            delete_frame(self._db, id)
        return released

    def _drop_damaged(self, id: int, low: int, high: int) -> set[int]:
        """Delete a damaged or missing bundle: nothing of it can be kept, even if others need it."""
        released = self._unlink(id, self._ids("SELECT target FROM text_link WHERE bundle = ?", id))
        self._db.execute("DELETE FROM text_link WHERE target BETWEEN ? AND ?", (low, high))
        self._db.execute("DELETE FROM text WHERE address BETWEEN ? AND ?", (low, high))
        self._unsearch(high, fact=False)
        delete_damaged_frame(self._db, id)
        return released

    def _unlink(self, id: int, targets: Iterable[int]) -> set[int]:
        """Remove the links of a bundle to these texts; return those of their bundles without a trace."""
        released: set[int] = set()
        for address in targets:
            self._db.execute("DELETE FROM text_link WHERE target = ? AND bundle = ?", (address, id))
            home = frame_of(address)
            if self._db.execute("SELECT trace_id FROM bundle WHERE id = ?", (home,)).get == b"":
                released.add(home)
        return released

    def _closure(self, id: int, items: list[Any], roots: set[int]) -> set[int]:
        """Places in a bundle that are needed to read the items at ``roots``, which are addresses."""
        waiting, live = list(roots), set[int]()
        while waiting:
            address = waiting.pop()
            place = address & (1 << PLACE_BITS) - 1
            if frame_of(address) == id and place not in live and place < len(items):
                live.add(place)
                waiting += addresses_in(items[place], id)
        return live

    def _forget_text(self, id: int, place: int, item: Any) -> None:
        if isinstance(item, list) and item[0] == TEXT:
            address = address_of(id, place)
            try:
                digest = digest_of(self._texts.text(address))[:DIGEST_BYTES]
            except PlayheadError:  # the text that it extends is damaged, or was dropped as damaged
                self._db.execute("DELETE FROM text WHERE address = ?", (address,))
            else:
                self._db.execute("DELETE FROM text WHERE digest = ? AND address = ?", (digest, address))

    @staticmethod
    def _refers(id: int, items: list[Any]) -> set[int]:
        """Addresses in other bundles that the items refer to."""
        found = (address for item in items for address in addresses_in(item, id))
        return {address for address in found if frame_of(address) != id}

    # Facts

    def _delete_facts(self, instance: int, traces: set[bytes]) -> None:
        shared: Any = self._db.execute(
            "SELECT 1 FROM run_instance WHERE instance = ? LIMIT 1", (instance,)
        ).get
        runs: list[Any] = list(
            self._db.execute(
                "SELECT position, first, last, data, blobs FROM fact_run WHERE instance = ?"
                " ORDER BY first",
                (instance,),
            )
        )
        uses: Any = self._db.execute(
            "SELECT digest FROM blob_use JOIN fact_run ON fact_run.position = blob_use.position"
            " WHERE instance = ?",
            (instance,),
        )
        self.blobs.update(digest for (digest,) in uses)
        if shared is not None:
            self._empty_facts(instance, traces, runs)
            return
        found: Any = self._db.execute(
            "SELECT coalesce(sum(last - first + 1), 0) FROM fact_range WHERE instance = ?", (instance,)
        ).get
        self.facts += int(found)
        for position, first, last, *_ in runs:
            self._unsearch_facts(position, last, range(first, last + 1))
            self._db.execute("DELETE FROM blob_use WHERE position = ?", (position,))
        last: Any = self._db.execute(
            "SELECT instance.instance, number, link FROM link JOIN instance"
            " ON instance.id = link.instance WHERE link.instance = ? ORDER BY number DESC LIMIT 1",
            (instance,),
        ).get
        if last is not None:
            self._chains.append((last[0], last[1] + 1, last[2]))
        for table in _OF_AN_INSTANCE:
            self._delete(table, "instance", instance)
        self._delete("instance", "id", instance)

    def _empty_facts(self, instance: int, traces: set[bytes], runs: list[Any]) -> None:
        """Remove the content from facts of these runs, except what facts of other runs extend."""
        runs = [run for run in runs if _is_readable(run[3])]
        lanes = lanes_of((fact for *_, data, _ in runs for fact in bare_run(data)), traces)

        def goes(fact: Fact) -> bool:
            # Reads in a lane of a request have no trace id.
            below = fact.lane in lanes and not any(fact.trace_id) and fact.name != e.PLAYHEAD_LANE
            return below or fact.trace_id in traces

        needed: set[bytes] = set()
        grows = True
        while grows:
            before = len(needed)
            for *_, data, _ in runs:
                for fact in bare_run(data):
                    body = fact.body
                    if body is not None and (not goes(fact) or body.digest in needed):
                        needed |= {one for one in (body.base, body.digest) if one}
            grows = len(needed) > before
        numbers: list[int] = []
        digests: list[bytes] = []
        for position, _, last, data, blobs in runs:
            facts = bare_run(data)
            emptied = [_emptied(fact, needed) if goes(fact) else fact for fact in facts]
            if emptied == facts:
                continue
            changed = {fact.seq for one, fact in zip(emptied, facts, strict=True) if one != fact}
            self._unsearch_facts(position, last, changed)
            self.facts += len(changed)
            packed, left = pack_bare(emptied, blobs)
            self._db.execute(
                "UPDATE fact_run SET data = ?, blobs = ? WHERE position = ?", (packed, left, position)
            )
            forget_uses(self._db, position, blob_digests(blobs) - blob_digests(left))
            places = offloaded_at(left)
            numbers += sorted(changed)
            digests += [fact_digest(one, places.get(one.seq)) for one in emptied if one.seq in changed]
            for fact, old in zip(emptied, facts, strict=True):
                if old.body is not None and fact.body is None:
                    self._db.execute(
                        "DELETE FROM content WHERE instance = ? AND seq = ?", (instance, fact.seq)
                    )
        if numbers:
            ranges = merged((number, number) for number in numbers)
            add_link(self._db, instance, ChainEntry(What.EMPTIED, ranges, b"".join(digests), self._by))

    # Rows

    def _unsearch_facts(self, position: int, last: int, seqs: Iterable[int]) -> None:
        """Mark facts of a frame, given by its position and last number, for removal from the index."""
        for seq in seqs:
            self._unsearch(position - last + seq, fact=True)

    def _unsearch(self, row: int, *, fact: bool) -> None:
        self._db.execute("INSERT INTO unsearch VALUES (?, ?)", (row, fact))

    def _ids(self, sql: str, *values: Any) -> set[int]:
        rows: Any = self._db.execute(sql, values)
        return {row[0] for row in rows}

    def _delete(self, table: str, column: str, value: Any) -> int:
        self._db.execute(f"DELETE FROM {table} WHERE {column} = ?", (value,))
        return self._db.changes()


def _is_readable(data: bytes) -> bool:
    try:
        bare_run(data)
    except CorruptTape:
        return False
    return True


def _emptied(fact: Fact, needed: set[bytes]) -> Fact:
    body: Content | None = fact.body
    if body is not None and body.digest not in needed:
        body = None
    # The direction stays: an inbound request determines which run the facts of its lane belong to.
    kept = {a.PLAYHEAD_EXCHANGE_DIRECTION: "in"} if is_inbound(fact) else {}
    return msgspec.structs.replace(fact, attributes=kept, body=body, exchange=None)
