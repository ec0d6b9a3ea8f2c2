"""Where the large values of a span lie in its bytes, and where each could be cut.

Agents resend their history: the value of an attribute is often an earlier value plus some messages. A
*body* is the part of a value that may be a prefix of a longer one; its *seams* are the ends of its
messages. Nothing is decoded and nothing need be valid: a body is a slice of the span's bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby, pairwise

import msgspec

LEAST_BYTES = 96
"""Values up to this size stay in the span."""

LEAST_OBJECT_BYTES = 16 * 1024
"""A text with a list somewhere inside is cut if it has at least this many bytes."""

FAMILY_ATTRIBUTES = 32
"""A span with more attributes than this is checked for messages that have attributes of their own."""

MOST_SEAMS = 2048
"""How many seams of a body are used: the last ones. The bytes before them are one piece."""

_elements = msgspec.json.Decoder(list[msgspec.Raw])
_BETWEEN_OBJECTS = re.compile(rb"\}(?=\s*,\s*\{)")
_LIST_END = re.compile(rb"\s*\]\s*\Z")
_OF_A_MESSAGE = re.compile(rb"((?:.*[._])?(?:messages|prompts?|completions?)\.)(\d+)(?:\.|\Z)")

_LENGTH_DELIMITED = 2
_ATTRIBUTE_TAG, _EVENTS = 9 << 3 | 2, 11
_EVENT_ATTRIBUTES = 3
_LOG_BODY, _LOG_ATTRIBUTES = 5, 6
_KEY, _VALUE = 1, 2
_STRING, _ARRAY, _KVLIST, _BYTES = 1, 5, 6, 7
_VALUE_TAG = _VALUE << 3 | 2
_KINDS = {kind << 3 | 2: kind for kind in (_STRING, _ARRAY, _KVLIST, _BYTES)}
_OPENING, _CLOSING, _SPACE = b"[] "

_LARGE_ATTRIBUTE = re.compile(rb"\x4a(?:[\x61-\x7f]|[\x80-\xff]{1,4}[\x01-\x7f])\x0a[\x01-\x7f]")
"""Tag and length of an attribute of at least 97 bytes, then tag and length of its key."""


class LargeBody(msgspec.Struct, gc=False):
    """A slice of a span's bytes that other spans may repeat."""

    key: bytes
    """The attribute's name, or the common prefix of the names of several attributes."""
    begin: int
    end: int
    kind: int
    """Number of the field of `AnyValue` that holds it; 0 for several attributes in a row."""


def bodies(data: bytes, begin: int, end: int) -> list[LargeBody]:
    """The large values in the OTLP span between ``begin`` and ``end``, in ascending order."""
    found: list[LargeBody] = []
    try:
        _of_span(data, begin, end, found)
    except (IndexError, ValueError):
        return []  # not in the expected encoding: the span stays uncut
    found.sort(key=lambda body: body.begin)
    return found


def plain_bodies(data: bytes, begin: int, end: int) -> list[LargeBody]:
    """`bodies` of a span without rows of attributes and without events, found by a pattern search.

    A match counts as an attribute if the sizes within it agree. An attribute in an unusual encoding is
    not found, and stays in the span.
    """
    found: list[LargeBody] = []
    at = begin
    while (begins := _LARGE_ATTRIBUTE.search(data, at, end)) is not None:
        at = begins.start() + 1
        try:
            length, inner = varint_at(data, at)
            stop = inner + length
            key = begins.end()
            value = key + data[key - 1]
            if stop > end or data[value] != _VALUE_TAG:
                continue
            length, inner = varint_at(data, value + 1)
            kind = _KINDS.get(data[inner])
            if inner + length != stop or kind is None:
                continue
            length, inner = varint_at(data, inner + 1)
        except (IndexError, ValueError):
            continue
        if inner + length == stop:
            at = stop
            if length > LEAST_BYTES:
                found.append(LargeBody(data[key:value], inner, stop, kind))
    return found


def log_bodies(data: bytes, begin: int, end: int) -> list[LargeBody]:
    """The large values in the OTLP log record between ``begin`` and ``end``, in ascending order."""
    found: list[LargeBody] = []
    try:
        for number, at, stop, _ in fields(data, begin, end):
            if number == _LOG_ATTRIBUTES and stop - at > LEAST_BYTES:
                _of_attribute(data, at, stop, found)
            elif number == _LOG_BODY and stop - at > LEAST_BYTES:
                _of_value(data, at, stop, b"", found)
    except (IndexError, ValueError):
        return []
    found.sort(key=lambda body: body.begin)
    return found


def seams(body: bytes, kind: int) -> list[int]:
    """Offsets at which ``body`` may be cut, ascending; at the last one a longer body would continue."""
    if kind == _ARRAY:
        found = [end for _, _, end, _ in fields(body, 0, len(body))]
    elif kind == 0:
        found = _messages(body)
    elif kind == _STRING:
        found = _elements_end(body)
        if not found and len(body) >= LEAST_OBJECT_BYTES and body[:1] in (b"[", b"{"):
            found = [seam.end() for seam in _BETWEEN_OBJECTS.finditer(body)]
    else:
        found = []
    return found[-MOST_SEAMS:]


def list_end(data: bytes, begin: int, end: int) -> int:
    """Where a longer version of the JSON list between ``begin`` and ``end`` would continue.

    ``end`` if the text is not a list.
    """
    if data[begin] != _OPENING:
        return end
    if data[end - 1] == _CLOSING and data[end - 2] > _SPACE:
        return end - 1
    closing = _LIST_END.search(data, max(begin, end - 64), end)
    return closing.start() if closing else end


def fields(data: bytes, at: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Protobuf fields between ``at`` and ``end``: number, payload begin, payload end, field begin.

    `ValueError` or `IndexError` if the bytes are not protobuf fields.
    """
    while at < end:
        start = at
        tag = data[at]
        at += 1
        if tag & 0x80:
            tag, at = varint_at(data, start)
        kind = tag & 7
        if kind == _LENGTH_DELIMITED:
            size = data[at]
            at += 1
            if size & 0x80:
                size, at = varint_at(data, at - 1)
            stop = at + size
        elif kind == 0:
            stop = at
            while data[stop] & 0x80:
                stop += 1
            stop += 1
        elif kind == 1:
            stop = at + 8
        elif kind == 5:
            stop = at + 4
        else:
            raise ValueError(f"wire type {kind}")
        if stop > end:
            raise ValueError("a field ends beyond its message")
        yield tag >> 3, at, stop, start
        at = stop


def varint_at(data: bytes, at: int) -> tuple[int, int]:
    """The number encoded at ``at``, and where it ends. `ValueError` or `IndexError` if there is none."""
    value = data[at]
    if value < 0x80:
        return value, at + 1
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("a number of more than 64 bits")


def _of_span(span: bytes, at: int, end: int, found: list[LargeBody]) -> None:
    attributes: list[tuple[int, int, int]] = []
    while at < end:
        if span[at] == _ATTRIBUTE_TAG:  # fast path: nearly all fields of a span are attributes
            start = at
            at += 2
            size = span[at - 1]
            if size & 0x80:
                size, at = varint_at(span, at - 1)
            attributes.append((at, at + size, start))
            at += size
            continue
        number, begin, stop, _ = next(fields(span, at, end))
        at = stop
        if number == _EVENTS and stop - begin > LEAST_BYTES:
            for inner, begins, stops, _ in fields(span, begin, stop):
                if inner == _EVENT_ATTRIBUTES and stops - begins > LEAST_BYTES:
                    _of_attribute(span, begins, stops, found)
    if at != end:
        raise ValueError("a field ends beyond its message")
    if len(attributes) > FAMILY_ATTRIBUTES:
        for family, begin, stop in _families(span, attributes):
            found.append(LargeBody(family, begin, stop, 0))
    rows = [body for body in found if body.kind == 0]
    for begin, stop, _ in attributes:
        if stop - begin > LEAST_BYTES and not any(row.begin < stop <= row.end for row in rows):
            _of_attribute(span, begin, stop, found)


def _families(span: bytes, attributes: list[tuple[int, int, int]]) -> Iterator[tuple[bytes, int, int]]:
    """Consecutive attributes that hold one list of messages: ``llm.input_messages.0.role``, …"""
    named = [(_family(_key(span, begin, stop)), stop, start) for begin, stop, start in attributes]
    for family, row in groupby(named, key=lambda one: one[0]):
        if family is None:
            continue
        members = list(row)
        begin, stop = members[0][2], members[-1][1]
        contiguous = all(one[2] == before[1] for before, one in pairwise(members))
        if contiguous and stop - begin > LEAST_BYTES:
            yield family, begin, stop


def _family(key: bytes) -> bytes | None:
    found = _OF_A_MESSAGE.match(key)
    return found[1] if found else None


def _messages(body: bytes) -> list[int]:
    """Ends of the messages in consecutive attributes."""
    ends: list[int] = []
    before = b""
    for _, begin, stop, start in fields(body, 0, len(body)):
        found = _OF_A_MESSAGE.match(_key(body, begin, stop))
        index = found[2] if found else b""
        if before and index != before:
            ends.append(start)
        before = index
    ends.append(len(body))
    return ends


def _key(span: bytes, at: int, end: int) -> bytes:
    for number, begin, stop, _ in fields(span, at, end):
        if number == _KEY:
            return span[begin:stop]
    return b""


def _of_attribute(span: bytes, at: int, end: int, found: list[LargeBody]) -> None:
    key = b""
    for number, begin, stop, _ in fields(span, at, end):
        if number == _KEY:
            key = span[begin:stop]
        elif number == _VALUE:
            _of_value(span, begin, stop, key, found)


def _of_value(span: bytes, at: int, end: int, key: bytes, found: list[LargeBody]) -> None:
    for kind, begin, stop, _ in fields(span, at, end):
        if kind in (_STRING, _ARRAY, _KVLIST, _BYTES) and stop - begin > LEAST_BYTES:
            found.append(LargeBody(key, begin, stop, kind))


def _elements_end(body: bytes) -> list[int]:
    """Ends of the elements of a JSON list without its closing bracket; empty if it is not a list."""
    if body[:1] != b"[":
        return []
    try:
        elements = _elements.decode(body + b"]")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return []
    ends: list[int] = []
    at = 1
    for element in elements:
        piece = bytes(element)
        at = body.index(piece, at) + len(piece)
        ends.append(at)
    return ends
