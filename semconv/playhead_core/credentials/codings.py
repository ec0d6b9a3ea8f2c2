"""Content codings of answers: decoders and encoders that work chunk by chunk."""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

RAW_DEFLATE: Final = "raw-deflate"
"""Name on the tape for the coding ``deflate`` without the header of zlib, as some servers send it."""

Pack = Callable[[bytes], bytes]


class Decoder(Protocol):
    """Decodes one answer."""

    @property
    def coding(self) -> str:
        """The coding as it turned out to be; with it, `codec` encodes the same way."""
        ...

    def __call__(self, data: bytes, /) -> bytes:
        """Return the output for the input ``data``. Raises what the library of the coding raises."""
        ...


class Encoder:
    """Encodes one answer. What it returns for a chunk can be decoded without the next chunk."""

    def __init__(self, pack: Pack, finish: Callable[[], bytes]) -> None:
        """``pack`` flushes what it encodes; ``finish`` returns what ends the encoded data."""
        self.pack = pack
        self.finish = finish


Codec = tuple[Decoder, Callable[[], Encoder]]


def codec(encoding: str) -> Codec | None:
    """Return a decoder and a factory of encoders; None for an unknown coding.

    ``encoding``: a coding, or several in the order in which they were applied, joined by commas.
    """
    names = [name for part in encoding.split(",") if (name := part.strip().lower()) not in _NONE]
    codecs = [_codec(name) for name in names]
    found = [one for one in codecs if one is not None]
    if not found or len(found) < len(codecs):
        return None
    return found[0] if len(found) == 1 else (_Stacked(found), lambda: _stacked(found))


_NONE: Final = ("", "identity")


def _codec(name: str) -> Codec | None:
    if name in ("gzip", "x-gzip"):
        return _Members(name, lambda: zlib.decompressobj(31)), lambda: _deflating(31)
    if name in ("deflate", RAW_DEFLATE):
        return _Inflate(), lambda: _deflating(15 if name == "deflate" else -15)
    if name == "zstd" and (module := _first_of("compression.zstd", "zstandard", "backports.zstd")):
        return _zstd(module)
    if name == "br" and (module := _first_of("brotli", "brotlicffi")):
        return _Plain(name, module.Decompressor().process), lambda: _brotli(module.Compressor())
    return None


class _Plain:
    def __init__(self, coding: str, unpack: Pack) -> None:
        self.coding = coding
        self._unpack = unpack

    def __call__(self, data: bytes) -> bytes:
        return self._unpack(data)


class _Members:
    """Decodes several members, one after the other; trailing data that is no member is dropped."""

    def __init__(self, coding: str, begin: Callable[[], Any]) -> None:
        self.coding = coding
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

    coding = "deflate"

    def __init__(self) -> None:
        self._stream: Any = None

    def __call__(self, data: bytes) -> bytes:
        if not data:
            return b""
        if self._stream is None:
            wrapped = data[0] & 0x0F == 8 and (len(data) < 2 or int.from_bytes(data[:2]) % 31 == 0)
            self.coding = "deflate" if wrapped else RAW_DEFLATE
            self._stream = zlib.decompressobj(15 if wrapped else -15)
        stream: Any = self._stream
        return stream.decompress(data)


class _Stacked:
    """Decodes several codings, the last one first."""

    def __init__(self, codecs: Sequence[Codec]) -> None:
        self._decoders = [decoder for decoder, _ in codecs]

    @property
    def coding(self) -> str:
        return ", ".join(one.coding for one in self._decoders)

    def __call__(self, data: bytes) -> bytes:
        for unpack in reversed(self._decoders):
            data = unpack(data)
        return data


def _stacked(codecs: Sequence[Codec]) -> Encoder:
    encoders = [begin() for _, begin in codecs]

    def pack(data: bytes) -> bytes:
        for one in encoders:
            data = one.pack(data)
        return data

    def finish() -> bytes:
        data = b""
        for one in encoders:
            data = (one.pack(data) if data else b"") + one.finish()
        return data

    return Encoder(pack, finish)


def _first_of(*names: str) -> Any:
    for name in names:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    return None


def _deflating(wbits: int) -> Encoder:
    packer = zlib.compressobj(wbits=wbits)
    return Encoder(lambda data: packer.compress(data) + packer.flush(zlib.Z_SYNC_FLUSH), packer.flush)


def _zstd(module: Any) -> Codec:
    if module.__name__ == "zstandard":

        def begin() -> Encoder:
            packer: Any = module.ZstdCompressor().compressobj()
            flush = module.COMPRESSOBJ_FLUSH_BLOCK
            return Encoder(lambda data: packer.compress(data) + packer.flush(flush), packer.flush)

        return _Members("zstd", lambda: module.ZstdDecompressor().decompressobj()), begin

    def begin_standard() -> Encoder:
        packer: Any = module.ZstdCompressor()
        return Encoder(lambda data: packer.compress(data, packer.FLUSH_BLOCK), packer.flush)

    return _Members("zstd", module.ZstdDecompressor), begin_standard


def _brotli(packer: Any) -> Encoder:
    return Encoder(lambda data: packer.process(data) + packer.flush(), packer.finish)
