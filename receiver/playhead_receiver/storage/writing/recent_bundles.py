"""Committed bundles that are not indexed yet, so that the index need not read them from the store.

A bundle may be missing here at any time: the index then reads it from the store, as after a restart. A
deletion clears all bundles before it begins, so the index never gets deleted content.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, NamedTuple

from playhead_core.otlp_bytes import varint
from playhead_receiver.storage.content.cut_points import varint_at
from playhead_receiver.storage.content.cutting import CutSpan
from playhead_receiver.storage.writing.prepare import PreparedSpan

MOST_BYTES = 32 * 1024 * 1024
"""Memory limit. When it is reached, further bundles are not kept until the index has read some."""
LONG_BYTES = 512
"""Longer texts are left out of a span: its entry in the index has no words or keys of them."""
_STRING = 1
"""Field of `AnyValue`."""


class LongText(NamedTuple):
    """A text that was cut out of a span."""

    name: bytes
    """Name of its attribute."""
    size: int
    tail_bytes: int
    """As `Piece.tail_bytes`."""


class ShortSpan(NamedTuple):
    """The part of a span that the index reads."""

    scope: bytes
    otlp: bytes
    """The span, without the attributes that are long texts."""
    long_texts: list[bytes]
    """Names of these attributes."""


class RecentSpan(NamedTuple):
    """A span without its long texts, which are items of their own."""

    span_id: bytes
    resource: bytes
    """As `PreparedSpan.resource`."""
    values: tuple[bytes | LongText, ...] = ()
    """The values that were cut out, in order."""

    def short(self, item: Any) -> ShortSpan | None:
        """The span; None if its bytes are not in the usual order. ``item``: its item in the frame."""
        rest: bytes = item if isinstance(item, bytes) else item[1]
        try:
            scope, size, at = _opened(rest)
        except (IndexError, ValueError):
            return None
        end = at + size - sum(len(one) if isinstance(one, bytes) else one.size for one in self.values)
        parts: list[bytes] = []
        names: list[bytes] = []
        for offset, value in zip(() if rest is item else item[3::2], self.values, strict=True):
            if isinstance(value, bytes):
                parts += (rest[at:offset], value)
                at = offset
                continue
            head = _attribute_head(value.name, value.size + value.tail_bytes)
            if not rest.endswith(head, at, offset):
                return None
            parts.append(rest[at : offset - len(head)])
            names.append(value.name)
            at = offset + value.tail_bytes
        parts.append(rest[at:end])
        return ShortSpan(scope, b"".join(parts), names)


def _opened(rest: bytes) -> tuple[bytes, int, int]:
    """Scope, size and begin of the span in `ResourceSpans` without resource, as `AroundSpan` has it."""
    _, at = varint_at(rest, 1)
    scope = b""
    if rest[at] == 0x0A:
        size, at = varint_at(rest, at + 1)
        scope = rest[at : at + size]
        at += size
    if rest[0] != 0x12 or rest[at] != 0x12:
        raise ValueError("not a scope with one span")
    size, at = varint_at(rest, at + 1)
    return scope, size, at


def _attribute_head(name: bytes, size: int) -> bytes:
    """The bytes of an attribute before its text, which has ``size`` bytes."""
    text = varint(size)
    value = varint(1 + len(text) + size)
    key = b"".join((b"\x0a", varint(len(name)), name, b"\x12", value, b"\x0a", text))
    return b"\x4a" + varint(len(key) + size) + key


class RecentBundle(NamedTuple):
    """A bundle as the writer had it in memory."""

    items: list[Any]
    spans: dict[int, RecentSpan]
    """By the index of their items."""
    logs: list[int]
    """Indexes of the items that are log records."""
    size_bytes: int


class RecentBundles:
    """Recent bundles of one store, by number. The writer adds them, the index takes them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._bundles: dict[int, RecentBundle] = {}
        self._bytes = 0
        self.wanted = False
        """Whether this process fills the index, so that bundles are worth keeping."""

    def add(self, number: int, bundle: RecentBundle) -> None:
        """Keep a bundle that is committed, if there is room for it."""
        with self._lock:
            if self.wanted and self._bytes + bundle.size_bytes <= MOST_BYTES:
                self._bundles[number] = bundle
                self._bytes += bundle.size_bytes

    def get(self, number: int) -> RecentBundle | None:
        """A bundle; None if it must be read from the store."""
        with self._lock:
            return self._bundles.get(number)

    def drop(self, last: int) -> None:
        """Drop the bundles up to a number: they are indexed."""
        with self._lock:
            for number in [one for one in self._bundles if one <= last]:
                self._bytes -= self._bundles.pop(number).size_bytes

    def clear(self) -> None:
        """Drop all bundles."""
        with self._lock:
            self._bundles.clear()
            self._bytes = 0


def recent_bundle(
    items: list[Any], spans: Mapping[int, PreparedSpan], logs: list[int], size_bytes: int
) -> RecentBundle:
    """Make one from the items of a frame, and its spans by place. ``size_bytes``: of all items."""
    kept: dict[int, RecentSpan] = {}
    for place, span in spans.items():
        values = _values(span.cut) if isinstance(span.cut, CutSpan) else ()
        size_bytes += sum(len(value) for value in values if isinstance(value, bytes))
        kept[place] = RecentSpan(span.summary.span_id, span.resource, values)
    return RecentBundle(items, kept, logs, size_bytes)


def _values(cut: CutSpan) -> tuple[bytes | LongText, ...]:
    return tuple(
        LongText(one.key, one.end - one.begin, one.tail_bytes)
        if one.kind == _STRING and one.end - one.begin > LONG_BYTES
        else cut.source[one.begin : one.end]
        for one in cut.pieces
    )
