"""Content codings of answers: decoders and encoders that work chunk by chunk."""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable
from typing import Any, Protocol


class Codec(Protocol):
    """One direction of a content coding."""

    def __call__(self, data: bytes, /) -> bytes:
        """Return the output for the input ``data``."""
        ...


def codec(encoding: str) -> tuple[Codec, Callable[[], Codec]] | None:
    """Return a decoder and a factory of encoders, both chunk by chunk; None for an unknown coding."""
    if encoding in ("gzip", "x-gzip"):
        return _Members(lambda: zlib.decompressobj(31)), lambda: _packing(zlib.compressobj(wbits=31))
    if encoding == "deflate":
        return _Inflate(), lambda: _packing(zlib.compressobj())
    if encoding == "zstd" and (module := _library("zstandard")):
        return _Members(module.ZstdDecompressor().decompressobj), lambda: _packing(
            module.ZstdCompressor().compressobj(), module.COMPRESSOBJ_FLUSH_BLOCK
        )
    if encoding == "br" and (module := _library("brotli") or _library("brotlicffi")):
        return module.Decompressor().process, lambda: _brotli(module.Compressor())
    return None


class _Members:
    """Decodes several members, one after the other; trailing data that is no member is dropped."""

    def __init__(self, begin: Callable[[], Any]) -> None:
        self._begin = begin
        self._stream = begin()
        self._over = False

    def __call__(self, data: bytes) -> bytes:
        text = b""
        while data and not self._over:
            later = self._stream.eof
            if later:
                self._stream = self._begin()
            try:
                text += self._stream.decompress(data)
            except Exception:
                if not later:
                    raise
                self._over = True
            data = self._stream.unused_data if self._stream.eof else b""
        return text


class _Inflate:
    """Decodes deflate with or without its header, as servers send it."""

    def __init__(self) -> None:
        self._unpack: Any = None

    def __call__(self, data: bytes) -> bytes:
        if self._unpack is None:
            self._unpack = zlib.decompressobj(15 if data[:1] and data[0] & 0x0F == 8 else -15)
        return self._unpack.decompress(data)


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def _packing(packer: Any, flush: int = zlib.Z_SYNC_FLUSH) -> Codec:
    return lambda data: packer.compress(data) + packer.flush(flush)


def _brotli(packer: Any) -> Codec:
    return lambda data: packer.process(data) + packer.flush()
