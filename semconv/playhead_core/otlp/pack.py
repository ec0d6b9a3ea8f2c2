"""Facts → OTLP log records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from playhead_core.facts import SCHEMA_VERSION, Content, Fact
from playhead_core.otlp.any_values import set_attributes
from playhead_core.otlp_bytes import SCOPE
from playhead_semconv import attributes as a
from playhead_semconv import events as e

MAX_EVENT_BYTES = 2 * 1024 * 1024
"""Largest log record of coalesced facts."""

COALESCED_BODY_BYTES = 1024 * 1024
COALESCED_COUNT = 8192
"""Facts per coalesced record; at 60 bytes of numbers per fact, it stays under `MAX_EVENT_BYTES`."""

COALESCING = frozenset((e.PLAYHEAD_EXCHANGE_DATA, e.PLAYHEAD_READ))

ENVELOPE = frozenset(
    (
        a.PLAYHEAD_SEQ,
        a.PLAYHEAD_COUNT,
        a.PLAYHEAD_LANE,
        a.PLAYHEAD_EXCHANGE_ID,
        a.PLAYHEAD_DELIVERY_BATCH,
        a.PLAYHEAD_DELIVERY_ORDER,
        a.PLAYHEAD_CONTENT_DIGEST,
        a.PLAYHEAD_CONTENT_SIZE,
        a.PLAYHEAD_CONTENT_BASE,
        a.PLAYHEAD_CONTENT_BASE_BYTES,
        a.PLAYHEAD_DATA_LENGTHS,
        a.PLAYHEAD_DATA_TIMES,
        a.PLAYHEAD_DATA_BATCHES,
        a.PLAYHEAD_DATA_ORDERS,
    )
)
"""Attributes of the record that hold fields of the fact rather than the fact's own attributes."""

OWN = "playhead.own."
"""Prefix for an attribute of the fact whose name is also a name of the envelope."""

_encode = msgspec.msgpack.Encoder().encode


def pack(facts: Iterable[Fact]) -> Iterator[LogRecord]:
    """Yield log records of ``facts``, which are numbered, of one instance, and in order.

    Chunks of one exchange with consecutive numbers are coalesced into one record.
    """
    together: list[Fact] = []
    body_bytes = 0
    for fact in facts:
        if fact.name not in COALESCING or not is_chunk(fact.body):
            if together:
                yield _record_of(together)
                together = []
            yield _record(fact)
            continue
        size = fact.body.size if fact.body is not None else 0
        if together and (
            not _continues(together[-1], fact)
            or body_bytes + size > COALESCED_BODY_BYTES
            or len(together) == COALESCED_COUNT
        ):
            yield _record_of(together)
            together = []
        if not together:
            body_bytes = 0
        together.append(fact)
        body_bytes += size
    if together:
        yield _record_of(together)


def is_chunk(body: Content | None) -> bool:
    """Whether the content is complete and has no digest."""
    return (
        body is not None
        and body.inline is not None
        and not body.digest
        and body.base is None
        and not body.base_bytes
        and body.size == len(body.inline)
    )


def pack_resource(instance: bytes, attributes: Mapping[str, Any]) -> Resource:
    """Return the OTLP resource of a process instance."""
    resource = Resource()
    set_attributes(resource.attributes, attributes)
    own = {a.PLAYHEAD_INSTANCE: instance.hex(), a.PLAYHEAD_SCHEMA: SCHEMA_VERSION}
    set_attributes(resource.attributes, {k: v for k, v in own.items() if k not in attributes})
    return resource


def resource_logs(resource: Resource, records: Iterable[LogRecord]) -> ResourceLogs:
    """Return ``records`` of one process instance under its ``resource``."""
    logs = ResourceLogs(resource=resource)
    scope = logs.scope_logs.add()
    scope.scope.name = SCOPE
    scope.log_records.extend(records)
    return logs


def _continues(before: Fact, fact: Fact) -> bool:
    return (
        fact.seq == before.seq + 1
        and fact.exchange == before.exchange
        and fact.name == before.name
        and fact.lane == before.lane
        and fact.span_id == before.span_id
        and fact.trace_id == before.trace_id
        and _same(fact.attributes, before.attributes)
        and (fact.delivery is None or fact.delivery.batch >= 0)
        and (before.delivery is None or before.delivery.batch >= 0)
    )


def _same(left: dict[str, Any], right: dict[str, Any]) -> bool:
    """Whether both are equal in types, too: ``1 == True`` is not enough."""
    if not left and not right:
        return True
    return len(left) == len(right) and _encode(left) == _encode(right)


def _envelope(fact: Fact) -> LogRecord:
    record = LogRecord(
        time_unix_nano=fact.time_ns,
        event_name=fact.name,
        trace_id=fact.trace_id,
        span_id=fact.span_id,
    )
    attributes = record.attributes
    pair = attributes.add()
    pair.key = a.PLAYHEAD_SEQ
    pair.value.int_value = fact.seq
    pair = attributes.add()
    pair.key = a.PLAYHEAD_LANE
    pair.value.string_value = f"{fact.lane:016x}"
    if fact.exchange is not None:
        pair = attributes.add()
        pair.key = a.PLAYHEAD_EXCHANGE_ID
        pair.value.string_value = str(fact.exchange)
    if fact.attributes:
        own = fact.attributes
        if not ENVELOPE.isdisjoint(own) or any(key.startswith(OWN) for key in own):
            own = {
                OWN + key if key in ENVELOPE or key.startswith(OWN) else key: value
                for key, value in own.items()
            }
        set_attributes(attributes, own)
    return record


def _record(fact: Fact) -> LogRecord:
    record = _envelope(fact)
    attributes = record.attributes
    if fact.delivery is not None:
        pair = attributes.add()
        pair.key = a.PLAYHEAD_DELIVERY_BATCH
        pair.value.int_value = fact.delivery.batch
        pair = attributes.add()
        pair.key = a.PLAYHEAD_DELIVERY_ORDER
        pair.value.int_value = fact.delivery.order
    body = fact.body
    if body is None:
        return record
    if body.inline is not None:
        record.body.bytes_value = body.inline
    if body.digest:
        set_attributes(attributes, {a.PLAYHEAD_CONTENT_DIGEST: body.digest.hex()})
    if body.inline is None or body.base is not None or body.size != len(body.inline):
        set_attributes(attributes, {a.PLAYHEAD_CONTENT_SIZE: body.size})
    if body.base is not None:
        set_attributes(attributes, {a.PLAYHEAD_CONTENT_BASE: body.base.hex()})
    if body.base_bytes:
        set_attributes(attributes, {a.PLAYHEAD_CONTENT_BASE_BYTES: body.base_bytes})
    return record


def _record_of(facts: list[Fact]) -> LogRecord:
    if len(facts) == 1:
        return _record(facts[0])
    record = _envelope(facts[0])
    record.body.bytes_value = b"".join(
        fact.body.inline for fact in facts if fact.body is not None and fact.body.inline is not None
    )
    pair = record.attributes.add()
    pair.key = a.PLAYHEAD_COUNT
    pair.value.int_value = len(facts)
    _numbers(
        record, a.PLAYHEAD_DATA_LENGTHS, [fact.body.size for fact in facts if fact.body is not None]
    )
    _numbers(record, a.PLAYHEAD_DATA_TIMES, [fact.time_ns for fact in facts])
    if any(fact.delivery is not None for fact in facts):
        deliveries = [fact.delivery for fact in facts]
        _numbers(record, a.PLAYHEAD_DATA_BATCHES, [-1 if d is None else d.batch for d in deliveries])
        _numbers(record, a.PLAYHEAD_DATA_ORDERS, [-1 if d is None else d.order for d in deliveries])
    return record


def _numbers(record: LogRecord, name: str, numbers: list[int]) -> None:
    pair = record.attributes.add()
    pair.key = name
    values = pair.value.array_value.values
    for number in numbers:
        values.add().int_value = number
