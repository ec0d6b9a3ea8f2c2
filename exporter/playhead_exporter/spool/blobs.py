"""Splits the long body of a fact into blobs, which a tape can hold."""

from __future__ import annotations

import msgspec

from playhead_core.facts import Content, Fact, digest_of
from playhead_semconv import attributes as a
from playhead_semconv import events as e

BLOB_BYTES = 1 << 20
"""Maximum size of an inline body, and of the body of one blob fact."""


def split(fact: Fact, body: Content, data: bytes) -> list[Fact]:
    """Blob facts that hold ``data``, the inline part of ``body``; then ``fact`` with a reference."""
    digest = body.digest or digest_of(data)
    start = body.base_bytes if body.base is not None else 0
    parts = [
        Fact(
            fact.time_ns,
            fact.lane,
            e.PLAYHEAD_BLOB,
            fact.trace_id,
            fact.span_id,
            attributes={
                a.PLAYHEAD_BLOB_DIGEST: digest.hex(),
                a.PLAYHEAD_BLOB_OFFSET: start + offset,
                a.PLAYHEAD_BLOB_SIZE: body.size,
            },
            body=Content.chunk(data[offset : offset + BLOB_BYTES]),
        )
        for offset in range(0, len(data), BLOB_BYTES)
    ]
    reference = Content(digest, body.size, None, body.base, body.base_bytes)
    return [*parts, msgspec.structs.replace(fact, body=reference)]
