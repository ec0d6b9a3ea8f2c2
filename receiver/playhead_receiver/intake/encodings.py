"""Content encodings of OTLP/HTTP bodies, undone within a limit."""

from __future__ import annotations

import zlib
from collections.abc import Callable

import zstandard

from playhead_semconv.errors import MalformedOtlp, TooLarge, WireError

MAX_BYTES = 64 * 1024 * 1024
"""Largest request, before and after decompression; OTLP's recommended limit."""

ZSTD_WINDOW_BYTES = 1 << 27
ZSTD_SLICE_BYTES = 1024
"""zstd has no limit of its own on what comes out, so little goes in at a time."""


class UnsupportedEncoding(WireError):
    """A content type or encoding that OTLP does not know."""

    code = "otlp-unsupported"


def decompress(body: bytes, encoding: str, limit_bytes: int = MAX_BYTES) -> bytes:
    """``body`` without its content encoding (``""``, identity, gzip, deflate, zstd).

    `UnsupportedEncoding`, `MalformedOtlp`, or `TooLarge` if more than ``limit_bytes`` would come out;
    no more than that is ever produced.
    """
    name = encoding.strip().lower()
    if name in ("", "identity"):
        return body
    undo = _ENCODINGS.get(name)
    if undo is None:
        raise UnsupportedEncoding(
            f"content encoding {name!r} is not supported", hint=f"use one of: {', '.join(_ENCODINGS)}"
        )
    data = undo(body, limit_bytes)
    if len(data) > limit_bytes:
        raise too_large(limit_bytes)
    return data


def too_large(limit_bytes: int) -> TooLarge:
    """The error of a request over the limit."""
    return TooLarge(f"the request is larger than {limit_bytes} bytes", hint="send smaller batches")


def _zlib(body: bytes, limit_bytes: int, window: int) -> bytes:
    out: list[bytes] = []
    size = 0
    rest = body
    while rest:
        inflater = zlib.decompressobj(window)
        try:
            data = inflater.decompress(rest, limit_bytes + 1 - size)
        except zlib.error as problem:
            raise MalformedOtlp(f"the body cannot be decompressed: {problem}") from None
        out.append(data)
        size += len(data)
        if size > limit_bytes:
            break
        if not inflater.eof:
            raise MalformedOtlp("the body cannot be decompressed: it ends too early")
        rest = inflater.unused_data
    return b"".join(out)


def _gzip(body: bytes, limit_bytes: int) -> bytes:
    if not body:
        raise MalformedOtlp("the body cannot be decompressed: it is empty")
    return _zlib(body, limit_bytes, 16 + zlib.MAX_WBITS)


def _deflate(body: bytes, limit_bytes: int) -> bytes:
    try:
        return _zlib(body, limit_bytes, zlib.MAX_WBITS)
    except MalformedOtlp:  # some senders leave the zlib header out
        return _zlib(body, limit_bytes, -zlib.MAX_WBITS)


def _zstd(body: bytes, limit_bytes: int) -> bytes:
    out: list[bytes] = []
    size = 0
    inflater = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW_BYTES).decompressobj()
    try:
        for start in range(0, len(body), ZSTD_SLICE_BYTES):
            rest = body[start : start + ZSTD_SLICE_BYTES]
            while rest and size <= limit_bytes:
                if inflater.eof:
                    inflater = zstandard.ZstdDecompressor(
                        max_window_size=ZSTD_WINDOW_BYTES
                    ).decompressobj()
                data = inflater.decompress(rest)
                out.append(data)
                size += len(data)
                rest = inflater.unused_data
    except zstandard.ZstdError as problem:
        raise MalformedOtlp(f"the body cannot be decompressed: {problem}") from None
    if size <= limit_bytes and not inflater.eof:
        raise MalformedOtlp("the body cannot be decompressed: it ends too early")
    return b"".join(out)


_ENCODINGS: dict[str, Callable[[bytes, int], bytes]] = {
    "gzip": _gzip,
    "deflate": _deflate,
    "zstd": _zstd,
}
