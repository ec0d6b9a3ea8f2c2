"""Replaces credentials in a protobuf message, so that it stays one: the lengths around them fit again.

What a field of bytes is, a text or a message, only its schema says. It is taken for a message where it
can be read as one and a credential lies in a field of it, else for a text.

Source: https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from playhead_core.credentials.masks import replaced, united
from playhead_core.otlp_bytes import read_varint, varint

_VARINT, _BYTES = 0, 2
_SIZES: Final = {1: 8, 5: 4}
"""Bytes of the fields of fixed length, by their types."""

_DEEPEST: Final = 50
"""The reader takes a field that is nested deeper for a text."""

Spans = Sequence[tuple[int, int]]


def replaced_in_message(data: bytes, spans: Spans) -> bytes | None:
    """Return the message in ``data`` with a placeholder for each span; None if it is no message."""
    try:
        return _rewritten(data, united(spans), _DEEPEST)
    except ValueError:
        return None


def _rewritten(data: bytes, spans: Spans, deepest: int) -> bytes:
    """As `replaced_in_message`. ValueError: it is no message, or a span is in no field of bytes."""
    parts: list[bytes] = []
    at = copied = 0
    left = list(spans)
    while at < len(data):
        tag, at = read_varint(data, at)
        kind = tag & 7
        if kind == _VARINT:
            _, at = read_varint(data, at)
        elif kind == _BYTES:
            length_at = at
            size, begin = read_varint(data, at)
            at = begin + size
            within = [(one - begin, end - begin) for one, end in left if begin <= one and end <= at]
            if within:
                left = left[len(within) :]
                new = _of_bytes(data[begin:at], within, deepest)
                parts += (data[copied:length_at], varint(len(new)), new)
                copied = at
        elif kind in _SIZES:
            at += _SIZES[kind]
        else:
            raise ValueError("no field begins here")
        if at > len(data) or not tag >> 3 or any(begin < at for begin, _ in left):
            raise ValueError("a field is longer than the message, or a credential is in none of bytes")
    return b"".join([*parts, data[copied:]])


def _of_bytes(data: bytes, spans: Spans, deepest: int) -> bytes:
    if deepest:
        try:
            return _rewritten(data, spans, deepest - 1)
        except ValueError:
            pass
    return replaced(data, spans)
