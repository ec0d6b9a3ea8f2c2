"""Decodes the content encodings of OTLP/HTTP bodies, up to a size limit."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from io import BytesIO

from playhead_core.errors import MalformedOtlp, TooLarge, WireError
from playhead_core.zstd_frames import library

MAX_BYTES = 64 * 1024 * 1024
"""Largest request, before and after decompression; OTLP's recommended limit."""

SMALLER = "send smaller batches"

STEP_BYTES = 1024 * 1024
"""Output bytes per step."""
SLICE_BYTES = 64 * 1024
"""Input bytes per step of zlib. They are few because each step copies the unused rest."""
ZSTD_WINDOW_LOG = 27
"""Binary logarithm of the largest window: 128 MiB."""
ZSTD_SLICE_BYTES = 4 * 1024
"""Input bytes per step of zstd: a body may have millions of frames, and each copies the unused rest."""


class UnsupportedEncoding(WireError):
    """A content type or encoding that OTLP does not know."""

    code = "otlp-unsupported"


def decompress(
    body: bytes,
    encoding: str,
    limit_bytes: int = MAX_BYTES,
    grow: Callable[[int], None] = lambda size_bytes: None,
) -> bytes:
    """Decode ``body``; ``encoding``: empty, identity, gzip, deflate or zstd.

    `UnsupportedEncoding`; `MalformedOtlp` if it cannot be decoded; `TooLarge` if the output has more
    than ``limit_bytes``, before much more than that is produced. ``grow`` is called with the number of
    new output bytes at each step, and may raise.
    """
    name = encoding.strip().lower()
    if name in ("", "identity"):
        return body
    undo = _ENCODINGS.get(name)
    if undo is None:
        raise UnsupportedEncoding(
            f"content encoding {name!r} is not supported", hint=f"use one of: {', '.join(_ENCODINGS)}"
        )
    return undo(body, _Output(limit_bytes, grow))


class _Output:
    """The output so far."""

    def __init__(self, limit_bytes: int, grow: Callable[[int], None]) -> None:
        self._limit = limit_bytes
        self._grow = grow
        self._buffer = BytesIO()
        self._size = 0

    def add(self, data: bytes) -> None:
        """Append output. `TooLarge` above the limit."""
        self._size += len(data)
        if self._size > self._limit:
            raise too_large(self._limit)
        self._grow(len(data))
        self._buffer.write(data)

    def whole(self) -> bytes:
        """The whole output."""
        return self._buffer.getvalue()


def too_large(limit_bytes: int) -> TooLarge:
    """The error for a request above the limit."""
    return TooLarge(f"the request is larger than {limit_bytes} bytes", hint=SMALLER)


def _zlib(body: bytes, out: _Output, window: int) -> bytes:
    whole = memoryview(body)
    at = 0
    while at < len(body):
        inflater = zlib.decompressobj(window)
        rest: bytes | memoryview = b""
        while not inflater.eof:
            if not rest:
                rest = whole[at : at + SLICE_BYTES]
                at += len(rest)
            try:
                data = inflater.decompress(rest, STEP_BYTES)
            except zlib.error as problem:
                raise MalformedOtlp(f"the body cannot be decompressed: {problem}") from None
            if not data and not rest:
                raise MalformedOtlp("the body cannot be decompressed: it ends too early")
            out.add(data)
            rest = inflater.unconsumed_tail
        at -= len(inflater.unused_data)
    return out.whole()


def _gzip(body: bytes, out: _Output) -> bytes:
    if not body:
        raise MalformedOtlp("the body cannot be decompressed: it is empty")
    return _zlib(body, out, 16 + zlib.MAX_WBITS)


def _deflate(body: bytes, out: _Output) -> bytes:
    try:
        zlib.decompressobj().decompress(body[:2])
    except zlib.error:  # some senders omit the zlib header
        return _zlib(body, out, -zlib.MAX_WBITS)
    return _zlib(body, out, zlib.MAX_WBITS)


def _zstd(body: bytes, out: _Output) -> bytes:
    zstd = library()
    options = {zstd.DecompressionParameter.window_log_max: ZSTD_WINDOW_LOG}
    inflater = zstd.ZstdDecompressor(options=options)
    try:
        for start in range(0, len(body), ZSTD_SLICE_BYTES):
            rest = body[start : start + ZSTD_SLICE_BYTES]
            while rest or not (inflater.eof or inflater.needs_input):
                if inflater.eof:
                    inflater = zstd.ZstdDecompressor(options=options)
                out.add(inflater.decompress(rest, STEP_BYTES))
                rest = inflater.unused_data
    except zstd.ZstdError as problem:
        raise MalformedOtlp(f"the body cannot be decompressed: {problem}") from None
    if not inflater.eof:
        raise MalformedOtlp("the body cannot be decompressed: it ends too early")
    return out.whole()


_ENCODINGS: dict[str, Callable[[bytes, _Output], bytes]] = {
    "gzip": _gzip,
    "deflate": _deflate,
    "zstd": _zstd,
}
