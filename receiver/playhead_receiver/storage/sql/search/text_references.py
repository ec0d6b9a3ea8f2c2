"""Finds the spans that contain a text: where it is stored, and in all other traces that refer to it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

import msgspec

from playhead_core.errors import CorruptTape, StoreError, StoreUnavailable
from playhead_receiver.storage.content.texts import (
    PLACE_BITS,
    TEXT,
    Texts,
    address_of,
    addresses_in,
    frame_of,
)
from playhead_receiver.storage.sql.reading.reader import SqlReader

MOST = 5000
"""Most bundles of other traces that are searched for a text."""


class TextReference(msgspec.Struct, frozen=True):
    """A span or log record that contains a text: the reference of a search hit."""

    trace_id: bytes
    span_id: bytes
    start_ns: int
    resource: bytes | None = None
    """Resource of the span or record, if the text is stored in it itself."""
    log: bool = False
    """Whether the text is in a log record; then ``span_id`` is its span's, which may be empty."""


class TextReferences:
    """Finds the spans that contain several texts. Used by one thread, for one query.

    A text is contained in the trace in whose bundle it is stored, in traces that are linked to it, and
    in traces that are linked to texts that extend it or have it as a part.
    """

    def __init__(self, reader: SqlReader, texts: Texts) -> None:
        self._reader = reader
        self._texts = texts
        self._linked: dict[bytes, list[int]] = {}

    def of(self, address: int) -> Iterator[TextReference]:
        """The first span with the text, then one span of each bundle of another trace, newest first."""
        bundle, place = frame_of(address), address & (1 << PLACE_BITS) - 1
        found: Any = self._reader.one(
            f"SELECT trace_id, span_id, time_ns, place, log, resource.data FROM ({_OF_BUNDLE}) AS item"
            " JOIN resource ON resource.id = item.resource WHERE place <= ? ORDER BY place DESC LIMIT 1",
            (bundle, bundle, place),
        )
        if found is not None:
            trace_id, span_id, time_ns, at, log, resource = found
            own = resource if at == place else None
            yield TextReference(trace_id, span_id, time_ns, own, bool(log))
        yield from self._others(address, b"" if found is None else found[0])

    def _others(self, address: int, trace_id: bytes) -> Iterator[TextReference]:
        known, elsewhere = {address}, set[int]()
        waiting = deque(self._containing(trace_id, frame_of(address), known, elsewhere))
        waiting.append(address)
        left = MOST
        while waiting and left > 0:
            rows: list[Any] = self._reader.all(
                "SELECT bundle.id, trace_id FROM text_link JOIN bundle ON bundle.id = text_link.bundle"
                " WHERE target = ? ORDER BY bundle.id DESC LIMIT ?",
                (waiting.popleft(), left),
            )
            left -= len(rows)
            for bundle, trace_id in rows:
                waiting.extend(self._containing(trace_id, bundle, known, elsewhere))
                if trace_id:
                    yield from self._in_bundle(bundle, trace_id, known)

    def _containing(
        self, trace_id: bytes, bundle: int, known: set[int], elsewhere: set[int]
    ) -> list[int]:
        """Linked texts of a trace, from a bundle on, that contain one of ``known``.

        They are added to ``known``, the other texts to ``elsewhere``.
        """
        found: list[int] = []
        for target in self._targets(trace_id, bundle):
            if target >= address_of(bundle, 0) and target not in known | elsewhere:
                if self._contains(target, known, elsewhere):
                    found.append(target)
        return found

    def _targets(self, trace_id: bytes, bundle: int) -> list[int]:
        """Linked texts of a trace; for a deleted trace, only those in ``bundle``."""
        if not trace_id:
            low, high = address_of(bundle, 0), address_of(bundle + 1, 0) - 1
            sql = "SELECT DISTINCT target FROM text_link WHERE target BETWEEN ? AND ? ORDER BY target"
            return [row[0] for row in self._reader.all(sql, (low, high))]
        if trace_id not in self._linked:
            sql = (
                f"SELECT DISTINCT target FROM bundle JOIN text_link ON target >= id * {1 << PLACE_BITS}"
                f" AND target < (id + 1) * {1 << PLACE_BITS} WHERE trace_id = ? ORDER BY target"
            )
            self._linked[trace_id] = [row[0] for row in self._reader.all(sql, (trace_id,))]
        return self._linked[trace_id]

    def _contains(self, address: int, known: set[int], elsewhere: set[int]) -> bool:
        """Whether a text is one of ``known``, extends one, or has one as a part."""
        first = min(known)
        stack = [(address, False)]
        while stack:
            one, done = stack.pop()
            if one in known or one in elsewhere:
                continue
            refers = [to for to in self._refers(one) if to >= first]  # texts refer to older ones only
            if not done:
                stack.append((one, True))
                stack += [(to, False) for to in refers]
            elif known.isdisjoint(refers):
                elsewhere.add(one)
            else:
                known.add(one)
        return address in known

    def _refers(self, address: int) -> list[int]:
        frame, place = frame_of(address), address & (1 << PLACE_BITS) - 1
        items = self._items(frame)
        item = items[place] if place < len(items) else None
        return addresses_in(item, frame) if isinstance(item, list) and item[0] == TEXT else []

    def _items(self, frame: int) -> list[Any]:
        """The items of a frame; none if it is damaged or missing, so that the search continues."""
        try:
            return self._texts.items(frame)
        except StoreUnavailable:
            raise
        except (CorruptTape, StoreError):
            return []

    def _in_bundle(self, bundle: int, trace_id: bytes, known: set[int]) -> Iterator[TextReference]:
        """The first span or log record of a bundle that contains one of ``known``."""
        rows: list[Any] = self._reader.all(
            f"SELECT span_id, time_ns, place, log FROM ({_OF_BUNDLE}) AS item ORDER BY place",
            (bundle, bundle),
        )
        items = self._items(bundle)
        for span_id, time_ns, place, log in rows:
            refers = addresses_in(items[place], bundle) if place < len(items) else ()
            if any(self._contains(to, known, set()) for to in refers):
                yield TextReference(trace_id, span_id, time_ns, log=bool(log))
                return


_OF_BUNDLE = (
    "SELECT trace_id, span_id, start_ns AS time_ns, place, resource, 0 AS log FROM span WHERE bundle = ?"
    " UNION ALL SELECT trace_id, span_id, time_ns, place, resource, 1 FROM log WHERE bundle = ?"
)
"""The spans and log records of a bundle."""
