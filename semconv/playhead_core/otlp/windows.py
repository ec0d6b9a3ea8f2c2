"""Windows: consecutive records of a tape as one OTLP log record, and back.

The body is a tape file of version 1, compressed with zstd: the records as a spool holds them. The
resource names the process instance. When asked, a receiver says whether it reads windows; to all others
facts are sent one by one. All input is checked: a record that is not a fact of that instance is left
out, without the others.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import msgspec
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from playhead_core.errors import CorruptTape, MalformedOtlp
from playhead_core.facts import Content, Fact
from playhead_core.integrity import DIGEST_BYTES, Link, statement_of
from playhead_core.otlp.unpack import KNOWN
from playhead_core.otlp_bytes import INT64_MAX, INT64_MIN, WINDOW_BYTES, window_record
from playhead_core.tape.fact_shapes import check_shape
from playhead_core.tape.frames import LogEntry, Scan, SpanRecord, decoded, next_frame
from playhead_core.zstd_frames import DamagedFrame, decompress
from playhead_semconv import attributes as a
from playhead_semconv import events as e

COMPRESSED_BYTES = WINDOW_BYTES + WINDOW_BYTES // 2
"""Largest compressed window."""
DEEPEST = 64
"""Deepest nesting of attribute values."""
_LANES = 1 << 64
_PLAIN = frozenset((str, bool, float, bytes))
_TEXT = frozenset((str,))


@dataclass(slots=True)
class Window:
    """Contents of a window."""

    facts: list[Fact] = field(default_factory=list[Fact])
    spans: list[bytes] = field(default_factory=list[bytes])
    """OTLP `ResourceSpans` of one span each, not checked; a resource need not name the instance."""
    logs: list[bytes] = field(default_factory=list[bytes])
    """OTLP `ResourceLogs` of one record of the program each, not checked."""
    links: list[Link] = field(default_factory=list[Link])
    """Links of the process's chain, where the tape was recorded elsewhere."""
    problems: list[MalformedOtlp] = field(default_factory=list[MalformedOtlp])
    """Why records were left out, one problem for each."""


def pack_window(tape: bytes, first: int, last: int) -> LogRecord:
    """Return ``tape``, at most `WINDOW_BYTES`, as a log record.

    ``first``, ``last``: numbers of facts.
    """
    return LogRecord.FromString(window_record(tape, first, last))


def is_window(record: LogRecord) -> bool:
    """Whether this log record claims to be a window."""
    return record.event_name == e.PLAYHEAD_WINDOW


def unpack_window(record: LogRecord, instance: bytes | None) -> Window:
    """Return what ``record`` holds of the tape of ``instance``.

    Raises `MalformedOtlp` if it cannot be read at all; unreadable parts are listed in the window.
    """
    if instance is None:
        raise MalformedOtlp(f"{a.PLAYHEAD_INSTANCE} is not on the resource")
    tape, window = _decompressed(record.body.bytes_value), Window()
    scan = Scan(tape)
    while True:
        for _, payload in scan.payloads():
            try:
                _take(payload, instance, window)
            except MalformedOtlp as problem:
                window.problems.append(problem)
        if not scan.torn:
            return window
        window.problems.append(MalformedOtlp(f"a window is damaged: {scan.problem}"))
        behind = next_frame(tape, scan.end) if scan.end else None
        if behind is None:
            return window
        scan = Scan(tape, behind)


def _decompressed(data: bytes) -> bytes:
    try:
        return decompress(data, WINDOW_BYTES)
    except DamagedFrame as problem:
        raise MalformedOtlp(f"a window cannot be decompressed: {problem}") from None


def _take(payload: memoryview, instance: bytes, window: Window) -> None:
    try:
        found = decoded(payload)
    except (msgspec.DecodeError, RecursionError) as problem:
        raise MalformedOtlp(f"a frame of a window holds no record: {problem}") from None
    if isinstance(found, Fact):
        window.facts.append(_checked(found, instance))
    elif isinstance(found, SpanRecord):
        window.spans.append(found.otlp)
    elif isinstance(found, LogEntry):
        window.logs.append(found.otlp)
    elif isinstance(found, Link):
        window.links.append(_checked_link(found, instance))


def _checked_link(link: Link, instance: bytes) -> Link:
    """Return ``link``. Raises `MalformedOtlp` if it does not belong to the instance."""
    if link.instance != instance or not all(
        len(one) == DIGEST_BYTES for one in (link.link, link.digest)
    ):
        raise MalformedOtlp("a link of a window is none of its process")
    try:
        statement_of(link)
    except CorruptTape as problem:
        raise MalformedOtlp(problem.what) from None
    return link


def _checked(fact: Fact, instance: bytes) -> Fact:
    """Return ``fact`` as if it had been sent alone.

    Raises `MalformedOtlp` if it would be rejected.
    """
    if fact.instance != instance:
        raise MalformedOtlp(f"{a.PLAYHEAD_INSTANCE} of a fact is not that of its resource")
    if fact.name not in KNOWN:
        raise MalformedOtlp(f"event_name is {fact.name!r}, which this version does not know")
    if len(fact.trace_id) not in (0, 16):
        raise MalformedOtlp(f"trace_id has {len(fact.trace_id)} bytes")
    if len(fact.span_id) not in (0, 8):
        raise MalformedOtlp(f"span_id has {len(fact.span_id)} bytes")
    if fact.seq < 0:
        raise MalformedOtlp(f"{a.PLAYHEAD_SEQ} is {fact.seq}, below zero")
    if not 0 <= fact.lane < _LANES:
        raise MalformedOtlp(f"{a.PLAYHEAD_LANE} is not of 64 bits")
    exchange = fact.exchange
    if exchange is not None and not (
        0 <= exchange.lane < _LANES and exchange.kind and "/" not in exchange.kind
    ):
        raise MalformedOtlp(f"{a.PLAYHEAD_EXCHANGE_ID} is not lane/kind/ordinal")
    at = fact.delivery
    if at is not None and not (_is_int64(at.batch) and _is_int64(at.order)):
        raise MalformedOtlp(f"{a.PLAYHEAD_DELIVERY_BATCH} is out of range")
    if fact.body is not None:
        _check_body(fact.body)
    for name, value in fact.attributes.items():
        if type(value) is not str:
            fact.attributes[name] = _value(value, name, 0)
    check_shape(fact)
    return fact


def _check_body(body: Content) -> None:
    for size in (body.size, body.base_bytes):
        if not 0 <= size <= INT64_MAX:
            raise MalformedOtlp(f"{a.PLAYHEAD_CONTENT_SIZE} is {size}")


def _is_int64(number: int) -> bool:
    return INT64_MIN <= number <= INT64_MAX


def _value(value: Any, name: str, depth: int) -> Any:
    """Return ``value`` as `playhead_core.otlp.any_values` would have transmitted it."""
    if type(value) is int:
        return value if _is_int64(value) else str(value)
    if value is None or type(value) in _PLAIN:
        return value
    if depth == DEEPEST:
        raise MalformedOtlp(f"{name} is nested more than {DEEPEST} deep")
    if type(value) is list:
        items = cast(list[Any], value)
        return (
            items
            if _TEXT.issuperset(map(type, items))
            else [_value(item, name, depth + 1) for item in items]
        )
    if type(value) is dict and all(type(key) is str for key in cast(dict[Any, Any], value)):
        return {key: _value(item, name, depth + 1) for key, item in cast(dict[str, Any], value).items()}
    raise MalformedOtlp(f"{name} holds what is no value of an attribute")
