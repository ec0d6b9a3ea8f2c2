"""Facts that hold several reads or wakes: what a polling loop reads, and how its waits end.

A program that polls reads the same clock many times, and its waits time out many times, with nothing
else in between. That becomes one `playhead.read` fact per clock, and one `playhead.wake` fact per kind
of wait. ``after_ns`` gives the time of each, in ns after the time of the fact. A fact without it holds
one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from playhead_core.errors import TapeError
from playhead_core.facts import Content, Delivery, ExchangeId, Fact
from playhead_semconv import attributes as a
from playhead_semconv import events as e

_values: Final = msgspec.msgpack.Decoder(list[msgspec.Raw])


def reads(lane: int, kind: str, times_ns: Sequence[int], values: Sequence[bytes]) -> Fact:
    """Return the fact of one or more reads of a kind. ``values``: each as MessagePack."""
    attributes: dict[str, Any] = {a.PLAYHEAD_READ_KIND: kind}
    body = values[0]
    if len(values) > 1:
        attributes[a.PLAYHEAD_READ_AFTER_NS] = _after(times_ns)
        body = msgspec.msgpack.encode([msgspec.Raw(value) for value in values])
    content = Content(b"", len(body), body)
    return Fact(times_ns[0], lane, e.PLAYHEAD_READ, attributes=attributes, body=content)


def count_of_reads(fact: Fact) -> int:
    """Return how many reads a fact holds."""
    after = fact.attributes.get(a.PLAYHEAD_READ_AFTER_NS)
    return len(after) if isinstance(after, list | tuple) else 1  # pyright: ignore[reportUnknownArgumentType]


def values_of(fact: Fact, body: bytes) -> list[bytes]:
    """Return the values that were read, each as MessagePack. ``body``: the body of the fact."""
    if a.PLAYHEAD_READ_AFTER_NS not in fact.attributes:
        return [body]
    try:
        return [bytes(value) for value in _values.decode(body)]
    except msgspec.DecodeError as problem:
        raise TapeError(f"fact {fact.seq} of the tape is damaged: no list of values") from problem


def wakes(times_ns: Sequence[int], ends: Sequence[tuple[ExchangeId, Delivery]]) -> Fact:
    """Return the fact of one or more waits that timed out, all of one lane and kind."""
    id, at = ends[0]
    attributes: dict[str, Any] = {}
    if len(ends) > 1:
        attributes = {
            a.PLAYHEAD_WAKE_AFTER_NS: _after(times_ns),
            a.PLAYHEAD_WAKE_ORDINALS: [one.ordinal for one, _ in ends],
            a.PLAYHEAD_WAKE_BATCHES: [one.batch for _, one in ends],
            a.PLAYHEAD_WAKE_ORDERS: [one.order for _, one in ends],
        }
    return Fact(times_ns[0], id.lane, e.PLAYHEAD_WAKE, exchange=id, delivery=at, attributes=attributes)


def ends_of(fact: Fact) -> list[tuple[ExchangeId, Delivery]]:
    """Return the waits that timed out, with their deliveries; empty for a fact that has none."""
    id, at = fact.exchange, fact.delivery
    if id is None or at is None:
        return []
    if a.PLAYHEAD_WAKE_ORDINALS not in fact.attributes:
        return [(id, at)]
    names = a.PLAYHEAD_WAKE_ORDINALS, a.PLAYHEAD_WAKE_BATCHES, a.PLAYHEAD_WAKE_ORDERS
    try:
        return [
            (ExchangeId(id.lane, id.kind, int(ordinal)), Delivery(int(batch), int(order)))
            for ordinal, batch, order in zip(*(fact.attributes[name] for name in names), strict=True)
        ]
    except (KeyError, TypeError, ValueError) as problem:
        raise TapeError(f"fact {fact.seq} of the tape is damaged: no list of wakes") from problem


def _after(times_ns: Sequence[int]) -> list[int]:
    return [time_ns - times_ns[0] for time_ns in times_ns]
