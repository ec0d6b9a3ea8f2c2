"""The byte budget of a span. What is too large for it goes to the tape as a blob and leaves a reference.

Nothing is truncated. The largest attributes go first, until the rest fits.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from playhead_core.facts import Content, Fact, digest_of
from playhead_core.tape.protocols import Sink
from playhead_genai.providers import CONTENT_ATTRIBUTES
from playhead_instrumentation.patching.unpatched import REAL
from playhead_semconv import attributes as a
from playhead_semconv import events as e

PART_BYTES = 1 << 20
"""Largest part of a blob in one fact."""

REFERENCE_BYTES = 64
"""An attribute of at most this size is not replaced by a reference."""


@dataclass(frozen=True, slots=True)
class SpanOnTape:
    """A span as facts refer to it."""

    trace_id: bytes = b""
    span_id: bytes = b""
    lane: int = 0
    """Hash of the lane in which its work was done."""
    exchange: str = ""
    """Instance and exchange id of the exchange from which its content can be derived."""


UNKNOWN = SpanOnTape()
"""A span that no fact refers to."""


def fit(
    attributes: dict[str, Any],
    budget_bytes: int,
    sink: Sink | None,
    *,
    span: SpanOnTape = UNKNOWN,
    longest: int | None = None,
) -> dict[str, Any]:
    """Return ``attributes`` within ``budget_bytes``; what does not fit becomes a blob in ``sink``.

    An attribute ``NAME`` that moved is replaced by ``NAME_ref`` = ``blob:`` + BLAKE3 in hex. What can be
    derived from the exchange of the ``span`` is on the tape already and needs no blob: its
    ``NAME_ref`` is ``exchange:`` + that id. So the size of a run's tape stays linear in the length of
    the run. ``longest``: characters that a string may have (the SDK would truncate the JSON in it
    there). Without a sink there is nowhere to move to, and the attributes stay as they are.
    """
    if sink is None or _surely_fits(attributes, budget_bytes, longest):
        return attributes
    sizes = {name: size_of(value) for name, value in attributes.items()}
    total = sum(sizes.values()) + sum(map(len, sizes))
    moved: list[str] = []
    for name in sorted(sizes, key=lambda name: sizes[name], reverse=True):
        if sizes[name] <= REFERENCE_BYTES:
            break
        value = attributes[name]
        too_long = longest is not None and isinstance(value, str) and len(value) > longest
        if total > budget_bytes or too_long:
            moved.append(name)
            total -= sizes[name] - REFERENCE_BYTES
    if not moved:
        return attributes
    fitting = {name: value for name, value in attributes.items() if name not in moved}
    for name in moved:
        if span.exchange and name in CONTENT_ATTRIBUTES:
            fitting[f"{name}_ref"] = f"exchange:{span.exchange}"
            continue
        digest = keep_blob(sink, bytes_of(attributes[name]), span)
        fitting[f"{name}_ref"] = f"blob:{digest.hex()}"
    return fitting


def keep_blob(sink: Sink, data: bytes, span: SpanOnTape) -> bytes:
    """Put ``data`` of a span on the tape as blob facts; returns its digest."""
    digest = digest_of(data)
    now_ns = REAL.time_ns()
    for offset in range(0, len(data), PART_BYTES):
        sink.append(
            Fact(
                now_ns,
                span.lane,
                e.PLAYHEAD_BLOB,
                span.trace_id,
                span.span_id,
                attributes={
                    a.PLAYHEAD_BLOB_DIGEST: digest.hex(),
                    a.PLAYHEAD_BLOB_OFFSET: offset,
                    a.PLAYHEAD_BLOB_SIZE: len(data),
                },
                body=Content.chunk(data[offset : offset + PART_BYTES]),
            )
        )
    return digest


def _surely_fits(attributes: dict[str, Any], budget_bytes: int, longest: int | None) -> bool:
    """Whether the attributes fit even if each character takes four bytes. Nearly always true."""
    most = sum(map(len, attributes))
    for value in attributes.values():
        if isinstance(value, str):
            if longest is not None and len(value) > longest:
                return False
            most += 4 * len(value)
        else:
            most += size_of(value)
    return most <= budget_bytes


def size_of(value: Any) -> int:
    """Return about how many bytes ``value`` takes in a span."""
    if isinstance(value, str):
        return len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))
    if isinstance(value, bytes):
        return len(value)
    if isinstance(value, int | float | bool) or value is None:
        return 8
    return len(bytes_of(value))


def bytes_of(value: Any) -> bytes:
    """Return the bytes of a blob: text as UTF-8, bytes as they are, anything else as JSON."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, bytes):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
