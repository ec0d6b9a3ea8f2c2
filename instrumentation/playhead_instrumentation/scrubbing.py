"""Scrubbing an answer as it arrives: chunk by chunk, each with its length kept.

A secret that two chunks share is masked in both: of the first one's end as soon as it is recognisable,
of the second one's start by what is known of the first.
"""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable, Iterable
from typing import Any, Protocol

RECOGNISABLE = 6
"""So many bytes of a secret at the end of a chunk are taken to be its beginning."""


CARRIED_BYTES = 64
"""So much of the last chunk is looked at again with the next: the name of a field may stand there."""


class Known:
    """The values that are looked for. Reading takes no lock; adding replaces what is read."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.values: tuple[bytes, ...] = ()
        """Longest first."""
        self.starts: tuple[bytes, ...] = ()
        """Their first bytes, `RECOGNISABLE` many, each once."""
        self.longest_bytes = 0
        self._all: dict[bytes, None] = {}

    def add(self, values: Iterable[bytes]) -> bool:
        """Whether any of them is new."""
        new = [value for value in values if value not in self._all]
        if not new:
            return False
        known = {**self._all, **dict.fromkeys(new)}
        for oldest in list(known)[: max(0, len(known) - self._most)]:
            del known[oldest]
        self._all = known
        self.values = tuple(sorted(known, key=len, reverse=True))
        self.longest_bytes = len(self.values[0])
        self.starts = tuple({value[:RECOGNISABLE]: None for value in known})
        return True

    def find(self, data: bytes) -> list[tuple[int, int]]:
        """Where values stand in ``data``, first and past-last byte; may overlap."""
        spans: list[tuple[int, int]] = []
        for start in self.starts:
            at = data.find(start)
            while at >= 0:
                for value in self.values:
                    if data.startswith(value, at):
                        spans.append((at, at + len(value)))
                        break
                at = data.find(start, at + 1)
        return spans

    def unfinished(self, data: bytes) -> tuple[int, bytes] | None:
        """Where a value begins that ``data`` ends within, and the rest that is to come."""
        for start in self.starts:
            at = data.find(start, max(0, len(data) - len(self.values[0])))
            while at >= 0:
                end = data[at:]
                for value in self.values:
                    if len(value) > len(end) and value.startswith(end):
                        return at, value[len(end) :]
                at = data.find(start, at + 1)
        return None


Find = Callable[[bytes], list[tuple[int, int]]]
"""Finds spans of bytes: first and past-last."""


class Scrubber:
    """Takes the credentials out of one response. ``count``: how many values so far."""

    def __init__(
        self,
        known: Known,
        fields: Find | None,
        learn: Callable[[bytes], None],
        content_encoding: str = "",
    ) -> None:
        """``fields``: finds secret fields by their names, in text that is JSON.

        ``learn`` takes the value of one that came in pieces.
        """
        self.count = 0
        encoding = content_encoding.strip().lower()
        plain = _Plain(known, fields, learn)
        self._plain = plain
        self._coded = None if encoding in ("", "identity") else _Coded(encoding, plain)

    def chunk(self, data: bytes) -> bytes:
        """``data`` as it may go on tape."""
        kept = self._plain.chunk(data) if self._coded is None else self._coded.chunk(data)
        self.count = self._plain.count
        return kept


class _Plain:
    """Scrubs text as it is."""

    def __init__(self, known: Known, fields: Find | None, learn: Callable[[bytes], None]) -> None:
        self.count = 0
        self._known = known
        self._fields = fields
        self._learn = learn
        self._carried_bytes = RECOGNISABLE - 1 if fields is None else CARRIED_BYTES
        self._before = b""
        """End of what came before."""
        self._rest = b""
        """What is to come of a known value that the last chunk ended within."""
        self._field: bytes | None = None
        """What came so far of the value of a secret field that the last chunk ended within."""

    def chunk(self, data: bytes) -> bytes:
        spans = self._continued(data) if self._rest or self._field is not None else []
        before = len(self._before)
        window = self._before + data
        found = self._known.find(window)
        if self._fields is not None and self._field is None:
            found += self._named(window)
        unfinished = self._known.unfinished(window) if not self._rest else None
        if unfinished is not None:
            found.append((unfinished[0], len(window)))
            self._rest = unfinished[1]
        self._before = window[-self._carried_bytes :]
        for begin, end in found:
            if end > before:
                spans.append((max(0, begin - before), end - before))
                self.count += 1
        return masked(data, spans) if spans else data

    def _named(self, window: bytes) -> list[tuple[int, int]]:
        assert self._fields is not None
        found = self._fields(window)
        for begin, end in found:
            if end == len(window):
                self._field = window[begin:]
        return found

    def _continued(self, data: bytes) -> list[tuple[int, int]]:
        spans: list[tuple[int, int]] = []
        rest, self._rest = self._rest, b""
        if rest:
            if data.startswith(rest):
                spans.append((0, len(rest)))
            elif rest.startswith(data):
                spans.append((0, len(data)))
                self._rest = rest[len(data) :]
        if self._field is not None:
            end = _closing_quote(data)
            spans.append((0, len(data) if end < 0 else end))
            self._field += data if end < 0 else data[:end]
            if end >= 0:
                self._learn(self._field)
                self._field = None
        return spans


def _closing_quote(data: bytes) -> int:
    at = data.find(b'"')
    while at > 0 and data[at - 1] == 0x5C:
        at = data.find(b'"', at + 1)
    return at


def masked(data: bytes, spans: list[tuple[int, int]]) -> bytes:
    """``data`` with stars in ``spans``."""
    kept = bytearray(data)
    for begin, end in spans:
        kept[begin:end] = b"*" * (end - begin)
    return bytes(kept)


class _Codec(Protocol):
    """One direction of a content coding."""

    def __call__(self, data: bytes, /) -> bytes: ...


class _Coded:
    """Scrubs a compressed response: looks into it, and packs it anew where it must change something.

    When the first secret comes late, what stands before it is on tape already as it came; from there on
    nothing can be told without packing all of it anew, so the rest is withheld.
    """

    def __init__(self, encoding: str, plain: _Plain) -> None:
        self._plain = plain
        self._codec = codec(encoding)
        self._pack: _Codec | None = None
        self._untouched = 0
        self._withheld = False

    def chunk(self, data: bytes) -> bytes:
        if self._codec is None:
            return data
        unpack, packer = self._codec
        try:
            text = unpack(data)
        except Exception:
            # Not what its header says; the program's own decoder will not make text of it either.
            return data
        kept = self._plain.chunk(text)
        if self._withheld:
            return b""
        if kept == text and self._pack is None:
            self._untouched += 1
            return data
        if self._pack is None:
            if self._untouched:
                self._withheld = True
                return b""
            self._pack = packer()
        return self._pack(kept)


def codec(encoding: str) -> tuple[_Codec, Callable[[], _Codec]] | None:
    """Unpacks, and makes what packs, chunk by chunk; None for a coding that nobody here knows."""
    if encoding in ("gzip", "x-gzip"):
        return zlib.decompressobj(31).decompress, lambda: _packing(zlib.compressobj(wbits=31))
    if encoding == "deflate":
        return _Inflate(), lambda: _packing(zlib.compressobj())
    if encoding == "zstd" and (module := _library("zstandard")):
        return module.ZstdDecompressor().decompressobj().decompress, lambda: _packing(
            module.ZstdCompressor().compressobj(), module.COMPRESSOBJ_FLUSH_BLOCK
        )
    if encoding == "br" and (module := _library("brotli") or _library("brotlicffi")):
        return module.Decompressor().process, lambda: _brotli(module.Compressor())
    return None


class _Inflate:
    """Unpacks deflate with or without its header, as servers send it."""

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


def _packing(packer: Any, flush: int = zlib.Z_SYNC_FLUSH) -> _Codec:
    return lambda data: packer.compress(data) + packer.flush(flush)


def _brotli(packer: Any) -> _Codec:
    return lambda data: packer.process(data) + packer.flush()
