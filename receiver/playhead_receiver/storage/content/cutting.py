"""Cuts the large values out of a span's bytes, before the writer takes the span."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec
from blake3 import blake3

from playhead_receiver.storage.content.cut_points import LargeBody, list_end, seams
from playhead_receiver.storage.values.stored import SpanLocation

DIGEST_BYTES = 16
CHECK_BYTES = 8
KEPT_BYTES = 32 * 1024 * 1024
KEPT_PER_KEY = 2


Finder: TypeAlias = Callable[[bytes, int, int], list[LargeBody]]
"""Finds large values between two offsets, such as `cut_points.bodies`."""


class Piece(msgspec.Struct, gc=False, array_like=True):
    """A large value of a span."""

    offset: int
    """Where it belongs in `CutSpan.rest`."""
    begin: int
    """Where it begins in `CutSpan.source`."""
    end: int
    digest: bytes
    kind: int
    seams: list[int] | None
    """Possible cuts after ``base_bytes``, as offsets in the value; None: not determined yet."""
    base: bytes = b""
    """Digest of an earlier text that is a prefix of the value; empty if there is none."""
    base_bytes: int = 0
    key: bytes = b""
    """As `LargeBody.key`."""
    tail_bytes: int = 0
    """How much of the value is left in the span after the piece: the end of a list."""


class CutSpan(msgspec.Struct, gc=False, array_like=True):
    """A span split into its own bytes and its large values."""

    rest: bytes
    pieces: list[Piece]
    check: bytes
    """The first `CHECK_BYTES` bytes of the digest of the whole span."""
    source: bytes
    """The bytes that the pieces are slices of."""


class _Tip(msgspec.Struct, gc=False):
    text: bytes
    digest: bytes
    hasher: Any


class Cutter:
    """Cuts spans. Caches the latest values of each trace, because later values often begin with them.

    Only the thread that holds `turn` may use it. Several threads that cut at once would only contend
    for the interpreter lock.
    """

    def __init__(self) -> None:
        self._tips: OrderedDict[tuple[bytes, bytes], list[_Tip]] = OrderedDict()
        self._bytes = 0
        self.turn = threading.Lock()

    def cut(self, trace_id: bytes, span: SpanLocation, find: Finder) -> CutSpan | None:
        """Cut a span or a log record; None if it has no large values. ``find``: finds them."""
        source, at, end = span.source, span.begin, span.end
        found = find(source, at, end)
        if not found:
            return None
        parts = [span.front]
        pieces: list[Piece] = []
        offset = len(span.front)
        for body in found:
            if body.begin < at:  # bodies overlap: the parts would not join to the span
                return None
            parts.append(source[at : body.begin])
            offset += body.begin - at
            piece = self._piece(trace_id, source, body, offset)
            piece.key, piece.tail_bytes = body.key, body.end - piece.end
            pieces.append(piece)
            at = piece.end
        parts += (source[at:end], span.back)
        whole = blake3(span.front)
        whole.update(memoryview(source)[span.begin : end])
        whole.update(span.back)
        return CutSpan(b"".join(parts), pieces, whole.digest()[:CHECK_BYTES], source)

    def _piece(self, trace_id: bytes, span: bytes, found: LargeBody, offset: int) -> Piece:
        begin, end, kind = found.begin, found.end, found.kind
        if kind == 1:
            end = list_end(span, begin, end)
        size = end - begin
        key = (trace_id, found.key)
        for tip in self._tips.get(key, ()):
            known = len(tip.text)
            if known <= size and span.startswith(tip.text, begin):
                break
        else:
            body = span[begin:end]
            hasher = blake3(body)
            digest = hasher.digest()[:DIGEST_BYTES]
            self._remember(key, _Tip(body, digest, hasher), None)
            return Piece(offset, begin, end, digest, kind, None)
        if known == size:
            return Piece(offset, begin, end, tip.digest, kind, None)
        body = span[begin:end]
        hasher = tip.hasher.copy()
        hasher.update(memoryview(body)[known:])
        digest = hasher.digest()[:DIGEST_BYTES]
        self._remember(key, _Tip(body, digest, hasher), tip)
        cuts = _seams_behind(body, known, kind)
        return Piece(offset, begin, end, digest, kind, cuts, tip.digest, known)

    def _remember(self, key: tuple[bytes, bytes], tip: _Tip, instead: _Tip | None) -> None:
        tips = self._tips.setdefault(key, [])
        self._tips.move_to_end(key)
        tips.insert(0, tip)
        self._bytes += len(tip.text)
        if instead is not None:
            tips.remove(instead)
            self._bytes -= len(instead.text)
        elif len(tips) > KEPT_PER_KEY:
            self._bytes -= len(tips.pop().text)
        while self._bytes > KEPT_BYTES and len(self._tips) > 1:
            _, dropped = self._tips.popitem(last=False)
            self._bytes -= sum(len(one.text) for one in dropped)


def check_of(span: bytes) -> bytes:
    """The checksum of a span, verified when the span is put together again: `CHECK_BYTES` bytes."""
    return blake3(span).digest()[:CHECK_BYTES]


def together(rest: bytes, texts: list[tuple[int, bytes]]) -> bytes:
    """Insert texts into ``rest`` at their offsets, which ascend."""
    parts: list[bytes] = []
    at = 0
    for offset, text in texts:
        parts += (rest[at:offset], text)
        at = offset
    parts.append(rest[at:])
    return b"".join(parts)


def _seams_behind(body: bytes, begin: int, kind: int) -> list[int]:
    """Seams in the new part of a body that extends an earlier one; the new part starts at ``begin``."""
    rest = body[begin:]
    if kind == 1:
        rest = b"[" + rest[1:] if body[:1] == b"[" and rest[:1] == b"," else b""
    return [begin + one for one in seams(rest, kind)]
