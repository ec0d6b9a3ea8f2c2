"""OTLP log records → facts. All input is checked; errors name the field."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NoReturn

from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from playhead_core.errors import MalformedOtlp
from playhead_core.facts import Content, Delivery, ExchangeId, Fact
from playhead_core.otlp.any_values import attributes_of
from playhead_core.otlp.pack import ENVELOPE, OWN
from playhead_semconv import attributes as a
from playhead_semconv import events as e

KNOWN = frozenset(value for name, value in vars(e).items() if name.isupper()) - {e.PLAYHEAD_WINDOW}
"""Names of the events that may occur on a tape."""

_OF_FACTS = frozenset((a.PLAYHEAD_SEQ, a.PLAYHEAD_LANE))
"""Attributes that every fact has."""

_LANE = re.compile(r"[0-9a-f]{16}\Z")
_HEX = re.compile(r"(?:[0-9a-f]{2})*\Z")
_EXCHANGE = re.compile(r"[0-9a-f]{16}/[^/]+/[0-9]+\Z")


def is_fact(record: LogRecord) -> bool:
    """Whether this log record claims to be a fact of a tape, as opposed to an ordinary log line.

    Its name does not decide: other programs may have events named ``playhead.decision``.
    """
    return any(pair.key in _OF_FACTS for pair in record.attributes)


def instance_of(resource: Resource) -> bytes | None:
    """Return the process instance that a resource names; None if it names none."""
    for pair in resource.attributes:
        if pair.key == a.PLAYHEAD_INSTANCE:
            text = pair.value.string_value
            if len(text) != 32 or not _HEX.match(text):
                _malformed(a.PLAYHEAD_INSTANCE, f"is {text!r}, not 32 hex digits")
            return bytes.fromhex(text)
    return None


def unpack(logs: ResourceLogs) -> Iterator[Fact]:
    """Yield the facts among the log records of one resource, in order.

    Raises `MalformedOtlp` at the first record that claims to be a fact and is not one.
    """
    instance = instance_of(logs.resource)
    for scope in logs.scope_logs:
        for record in scope.log_records:
            if is_fact(record):
                yield from unpack_record(record, instance)


def unpack_record(record: LogRecord, instance: bytes | None) -> list[Fact]:
    """Return the facts of one log record: one, or several where they were coalesced.

    Raises `MalformedOtlp` that names the field that is missing or wrong.
    """
    if instance is None:
        _malformed(a.PLAYHEAD_INSTANCE, "is not on the resource")
    name = record.event_name
    if name not in KNOWN:
        _malformed("event_name", f"is {name!r}, which this version does not know")
    if len(record.trace_id) not in (0, 16):
        _malformed("trace_id", f"has {len(record.trace_id)} bytes")
    if len(record.span_id) not in (0, 8):
        _malformed("span_id", f"has {len(record.span_id)} bytes")
    found = attributes_of(record.attributes)
    own: dict[str, Any] = {}
    envelope: dict[str, Any] = {}
    for key, value in found.items():
        if key in ENVELOPE:
            envelope[key] = value
        elif key.startswith(OWN):
            own[key[len(OWN) :]] = value
        else:
            own[key] = value
    first = Fact(
        time_ns=record.time_unix_nano,
        lane=_lane(envelope),
        name=name,
        trace_id=record.trace_id,
        span_id=record.span_id,
        exchange=_exchange(envelope),
        delivery=_delivery(envelope),
        attributes=own,
        body=_content(record, envelope),
        instance=instance,
        seq=_number(envelope, a.PLAYHEAD_SEQ),
    )
    return _apart(first, envelope) if a.PLAYHEAD_COUNT in envelope else [first]


def _malformed(field: str, problem: str) -> NoReturn:
    raise MalformedOtlp(f"{field} {problem}")


def _number(envelope: dict[str, Any], name: str) -> int:
    value = envelope.get(name)
    if type(value) is not int:
        _malformed(name, "is missing" if value is None else f"is {value!r}, not a whole number")
    if value < 0:
        _malformed(name, f"is {value}, below zero")
    return value


def _bytes_of_hex(envelope: dict[str, Any], name: str) -> bytes:
    value = envelope[name]
    if not isinstance(value, str) or not _HEX.match(value):
        _malformed(name, f"is {value!r}, not hex digits")
    return bytes.fromhex(value)


def _lane(envelope: dict[str, Any]) -> int:
    value = envelope.get(a.PLAYHEAD_LANE)
    if not isinstance(value, str) or not _LANE.match(value):
        _malformed(a.PLAYHEAD_LANE, f"is {value!r}, not 16 hex digits")
    return int(value, 16)


def _exchange(envelope: dict[str, Any]) -> ExchangeId | None:
    value = envelope.get(a.PLAYHEAD_EXCHANGE_ID)
    if value is None:
        return None
    if not isinstance(value, str) or not _EXCHANGE.match(value):
        _malformed(a.PLAYHEAD_EXCHANGE_ID, f"is {value!r}, not lane/kind/ordinal")
    return ExchangeId.parse(value)


def _delivery(envelope: dict[str, Any]) -> Delivery | None:
    batch = envelope.get(a.PLAYHEAD_DELIVERY_BATCH)
    order = envelope.get(a.PLAYHEAD_DELIVERY_ORDER)
    if batch is None and order is None:
        return None
    for name, value in ((a.PLAYHEAD_DELIVERY_BATCH, batch), (a.PLAYHEAD_DELIVERY_ORDER, order)):
        if type(value) is not int:
            _malformed(name, "is missing" if value is None else f"is {value!r}, not a whole number")
    return Delivery(batch, order)  # type: ignore[arg-type]


def _content(record: LogRecord, envelope: dict[str, Any]) -> Content | None:
    inline: bytes | None = None
    kind = record.body.WhichOneof("value") if record.HasField("body") else None
    if kind == "bytes_value":
        inline = record.body.bytes_value
    elif kind is not None:
        _malformed("body", f"is a {kind}, not bytes")
    if inline is None and a.PLAYHEAD_CONTENT_SIZE not in envelope:
        if a.PLAYHEAD_CONTENT_DIGEST in envelope:
            _malformed(a.PLAYHEAD_CONTENT_SIZE, "is missing")
        return None
    digest = base = None
    if a.PLAYHEAD_CONTENT_DIGEST in envelope:
        digest = _bytes_of_hex(envelope, a.PLAYHEAD_CONTENT_DIGEST)
    if a.PLAYHEAD_CONTENT_BASE in envelope:
        base = _bytes_of_hex(envelope, a.PLAYHEAD_CONTENT_BASE)
    if a.PLAYHEAD_CONTENT_SIZE in envelope:
        size = _number(envelope, a.PLAYHEAD_CONTENT_SIZE)
    else:
        size = len(inline or b"")
    base_bytes = 0
    if a.PLAYHEAD_CONTENT_BASE_BYTES in envelope:
        base_bytes = _number(envelope, a.PLAYHEAD_CONTENT_BASE_BYTES)
    return Content(digest or b"", size, inline, base, base_bytes)


def _numbers(envelope: dict[str, Any], name: str, count: int) -> list[int]:
    values: list[Any] | None = envelope.get(name)
    if type(values) is not list or not all(type(value) is int for value in values):
        _malformed(name, "is missing" if values is None else "is not a list of whole numbers")
    if len(values) != count:
        _malformed(name, f"has {len(values)} values for {count} facts")
    return values


def _apart(first: Fact, envelope: dict[str, Any]) -> list[Fact]:
    count = _number(envelope, a.PLAYHEAD_COUNT)
    data = first.body.inline if first.body is not None else None
    if data is None:
        _malformed("body", "is missing from a coalesced event")
    lengths = _numbers(envelope, a.PLAYHEAD_DATA_LENGTHS, count)
    if sum(lengths) != len(data) or any(length < 0 for length in lengths):
        _malformed(a.PLAYHEAD_DATA_LENGTHS, f"do not add up to the body's {len(data)} bytes")
    times = _numbers(envelope, a.PLAYHEAD_DATA_TIMES, count)
    none = [-1] * count
    batches = orders = none
    if a.PLAYHEAD_DATA_BATCHES in envelope or a.PLAYHEAD_DATA_ORDERS in envelope:
        batches = _numbers(envelope, a.PLAYHEAD_DATA_BATCHES, count)
        orders = _numbers(envelope, a.PLAYHEAD_DATA_ORDERS, count)
    facts: list[Fact] = []
    start = 0
    for place in range(count):
        end = start + lengths[place]
        facts.append(
            Fact(
                times[place],
                first.lane,
                first.name,
                first.trace_id,
                first.span_id,
                first.exchange,
                None if batches[place] < 0 else Delivery(batches[place], orders[place]),
                first.attributes,
                Content.chunk(data[start:end]),
                first.instance,
                first.seq + place,
            )
        )
        start = end
    return facts
