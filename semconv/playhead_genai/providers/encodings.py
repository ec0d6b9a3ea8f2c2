"""Content encodings of HTTP bodies: gzip and deflate, and br and zstd where a decoder is importable.

An HTTP client asks for br or zstd only if it finds such a decoder itself. So whatever the client could
read can be decoded here. For truncated or damaged data the result is what could be decoded, and a
problem.
"""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

LIMIT_BYTES = 64 << 20
"""A body is decoded up to about this length; the rest is left out and reported."""

_SLICE_BYTES = 1024
"""Bytes decoded at once; bounds the cost of a few damaged or hostile bytes."""


class _Decoder(Protocol):
    def decode(self, data: bytes) -> bytes:
        """Decode the next bytes. Raises what its library raises."""
        ...

    def ended(self) -> bool:
        """Whether the data so far is complete."""
        ...


class _Zlib:
    """gzip (several members too) and deflate (with and without the zlib header)."""

    def __init__(self, encoding: str, data: bytes) -> None:
        if encoding == "deflate":
            wrapped = data[0] & 15 == 8 and int.from_bytes(data[:2], "big") % 31 == 0
            self._wbits = zlib.MAX_WBITS if wrapped else -zlib.MAX_WBITS
        else:
            self._wbits = zlib.MAX_WBITS | 16
        self._stream = zlib.decompressobj(self._wbits)

    def decode(self, data: bytes) -> bytes:
        out = b""
        while data:
            if self._stream.eof:
                self._stream = zlib.decompressobj(self._wbits)
            out += self._stream.decompress(data)
            data = self._stream.unused_data
        return out

    def ended(self) -> bool:
        return self._stream.eof


class _Zstd:
    def __init__(self, module: Any) -> None:
        self._start: Callable[[], Any] = (
            (lambda: module.ZstdDecompressor().decompressobj())
            if module.__name__ == "zstandard"
            else module.ZstdDecompressor
        )
        self._stream = self._start()

    def decode(self, data: bytes) -> bytes:
        out = b""
        while data:
            if self._stream.eof:
                self._stream = self._start()
            out += self._stream.decompress(data)
            data = self._stream.unused_data if self._stream.eof else b""
        return out

    def ended(self) -> bool:
        return self._stream.eof


class _Brotli:
    def __init__(self, module: Any) -> None:
        self._stream: Any = module.Decompressor()

    def decode(self, data: bytes) -> bytes:
        return self._stream.process(data)

    def ended(self) -> bool:
        return self._stream.is_finished()


def header(headers: Iterable[tuple[str, str]], name: str) -> str:
    """Return the values of ``name`` (lower case) joined by a comma; empty if there is none."""
    return ", ".join(value for key, value in headers if key.lower() == name)


def decode_body(headers: Iterable[tuple[str, str]], chunks: Sequence[bytes]) -> tuple[bytes, str]:
    """Return the body without its content encodings, and the problem found (empty: none)."""
    data = b"".join(chunks)
    for name in reversed(header(headers, "content-encoding").split(",")):
        encoding = name.strip().lower()
        if encoding in ("", "identity") or not data:
            continue
        decoder = _decoder(encoding, data)
        if decoder is None:
            return b"", f"content encoding {encoding} cannot be decoded here"
        data, problem = _decoded(decoder, encoding, data)
        if problem:
            return data, problem
    return data, ""


_MAGIC = ((b"\x1f\x8b", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"\x78", "deflate"))
"""First bytes → the encoding that they show."""

_PLAIN = frozenset(b'{["- \t\r\n\xef')
"""First bytes of JSON and of forms in parts, a byte order mark included."""


def decoded_request(body: bytes) -> bytes:
    """Return a request body without its content encoding; a body that shows none is returned as it is.

    Its bytes show the encoding, so that everything that reads bodies can do without the headers. br and
    deflate without a header have no such mark: the result must be JSON.
    """
    if not body or body[0] in _PLAIN or body[:64].isascii():
        return body
    names = [name for magic, name in _MAGIC if body.startswith(magic)] or ["br", "deflate"]
    for name in names:
        decoder = _decoder(name, body)
        if decoder is None:
            continue
        data, problem = _decoded(decoder, name, body)
        if not problem and data[:1] and data[0] in _PLAIN:
            return data
    return body


def _decoder(encoding: str, data: bytes) -> _Decoder | None:
    if encoding in ("gzip", "x-gzip", "deflate"):
        return _Zlib(encoding, data)
    if encoding == "zstd":
        module = _first_of("compression.zstd", "zstandard", "backports.zstd")
        return _Zstd(module) if module else None
    if encoding == "br":
        module = _first_of("brotli", "brotlicffi")
        return _Brotli(module) if module else None
    return None


def _first_of(*names: str) -> Any:
    for name in names:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    return None


def _decoded(decoder: _Decoder, encoding: str, data: bytes) -> tuple[bytes, str]:
    parts: list[bytes] = []
    size = 0
    for start in range(0, len(data), _SLICE_BYTES):
        try:
            part = decoder.decode(data[start : start + _SLICE_BYTES])
        except Exception:  # each library has an error class of its own
            return b"".join(parts), f"damaged {encoding} data"
        parts.append(part)
        size += len(part)
        if size > LIMIT_BYTES:
            return b"".join(parts), f"more than {LIMIT_BYTES} bytes of {encoding} data"
    return b"".join(parts), "" if decoder.ended() else f"truncated {encoding} data"
