"""A window as an OTLP request, encoded without a protobuf library: most agents send nothing else.

`playhead_core.otlp.windows` reads it. Field numbers are those of opentelemetry-proto,
`opentelemetry/proto/logs/v1/logs.proto`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from playhead_core.facts import SCHEMA_VERSION
from playhead_core.otlp_bytes.protobuf import attributes, field
from playhead_semconv import attributes as a
from playhead_semconv import events as e

VERSION = 1
"""Version of the window format; a receiver states the version that it reads."""
WINDOW_BYTES = 1024 * 1024
"""Largest window: bytes of its tape file, including the first line."""
LEVEL = 3
"""Compression level of zstd."""
SCOPE = "playhead"


def window_request(
    tape: bytes, first: int, last: int, instance: bytes, resource: Mapping[str, Any]
) -> bytes:
    """Return an `ExportLogsServiceRequest` with one window of the instance that ``resource`` describes.

    ``tape``: at most `WINDOW_BYTES`. ``first``, ``last``: numbers of its first and last fact.
    """
    own = {a.PLAYHEAD_INSTANCE: instance.hex(), a.PLAYHEAD_SCHEMA: SCHEMA_VERSION}
    names = {**resource, **{name: value for name, value in own.items() if name not in resource}}
    scope = field(1, field(1, SCOPE.encode()))
    logs = field(1, attributes(1, names)) + field(2, scope + field(2, window_record(tape, first, last)))
    return field(1, logs)


def window_record(tape: bytes, first: int, last: int) -> bytes:
    """Return the `LogRecord` of a window."""
    numbers = {a.PLAYHEAD_WINDOW_FIRST: first, a.PLAYHEAD_WINDOW_LAST: last}
    body = field(5, field(7, _compressed(tape)))
    return body + attributes(6, numbers) + field(12, e.PLAYHEAD_WINDOW.encode())


def _compressed(data: bytes) -> bytes:
    import zstandard  # only senders and readers of windows need it

    return zstandard.ZstdCompressor(level=LEVEL).compress(data)
