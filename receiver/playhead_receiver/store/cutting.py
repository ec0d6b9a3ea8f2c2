"""A span's bytes without its large values, and each of those: done before the writer's turn."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

import msgspec
from blake3 import blake3

from playhead_receiver.store.seams import Body, bodies, list_end, seams

DIGEST_BYTES = 16
KEPT_BYTES = 32 * 1024 * 1024
KEPT_PER_KEY = 2


class Piece(msgspec.Struct):
    """A large value of a span."""

    offset: int
    """Where in the rest it belongs."""
    body: bytes
    digest: bytes
    kind: int
    seams: list[int] | None
    """Where it could be cut behind ``base_bytes``; None: not looked for yet."""
    base: bytes = b""
    """Digest of an earlier text that it begins with."""
    base_bytes: int = 0


class CutSpan(msgspec.Struct):
    """A span in two: what is its own, and its large values."""

    rest: bytes
    pieces: list[Piece]
    check: bytes
    """The first bytes of the digest of the whole."""


class _Tip(msgspec.Struct):
    text: bytes
    digest: bytes
    hasher: Any


class Cutter:
    """Cuts spans. Keeps the latest values of a trace, which the next ones begin with; any thread."""

    def __init__(self) -> None:
        self._tips: OrderedDict[tuple[bytes, bytes], list[_Tip]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def cut(self, trace_id: bytes, span: bytes) -> CutSpan | None:
        """``span`` in two; None if it has no large values."""
        found = bodies(span)
        if not found:
            return None
        rest: list[bytes] = []
        pieces: list[Piece] = []
        at = size = 0
        for body in found:
            whole = span[body.begin : body.end]
            end = body.begin + (list_end(whole) if body.kind == 1 else len(whole))
            rest.append(span[at : body.begin])
            size += body.begin - at
            pieces.append(self._piece(trace_id, body, whole, end - body.begin, size))
            at = end
        rest.append(span[at:])
        cut = CutSpan(b"".join(rest), pieces, check_of(span))
        return cut if together(cut.rest, [(one.offset, one.body) for one in pieces]) == span else None

    def _piece(self, trace_id: bytes, found: Body, whole: bytes, end: int, offset: int) -> Piece:
        body = whole if end == len(whole) else whole[:end]
        key = (trace_id, found.key)
        with self._lock:
            tips = self._tips.get(key, ())
            tip = next((one for one in tips if body.startswith(one.text)), None)
        if tip is None:
            hasher = blake3(body)
            cuts, base, base_bytes = None, b"", 0
        else:
            base, base_bytes = tip.digest, len(tip.text)
            hasher = tip.hasher.copy()
            hasher.update(body[base_bytes:])
            cuts = _seams_behind(body, base_bytes, found.kind)
        digest = hasher.digest()[:DIGEST_BYTES]
        if tip is None or len(body) > base_bytes:
            self._keep(key, _Tip(body, digest, hasher), tip)
        return Piece(offset, body, digest, found.kind, cuts, base, base_bytes)

    def _keep(self, key: tuple[bytes, bytes], tip: _Tip, instead: _Tip | None) -> None:
        with self._lock:
            tips = self._tips.setdefault(key, [])
            self._tips.move_to_end(key)
            if instead is not None and instead in tips:
                tips.remove(instead)
                self._bytes -= len(instead.text)
            tips.insert(0, tip)
            self._bytes += len(tip.text)
            while len(tips) > KEPT_PER_KEY:
                self._bytes -= len(tips.pop().text)
            while self._bytes > KEPT_BYTES and len(self._tips) > 1:
                _, dropped = self._tips.popitem(last=False)
                self._bytes -= sum(len(one.text) for one in dropped)


def check_of(span: bytes) -> bytes:
    """What a span is compared with when it is put together again: 8 bytes."""
    return blake3(span).digest()[:8]


def together(rest: bytes, texts: list[tuple[int, bytes]]) -> bytes:
    """``rest`` with texts put in at offsets, ascending."""
    parts: list[bytes] = []
    at = 0
    for offset, text in texts:
        parts += (rest[at:offset], text)
        at = offset
    parts.append(rest[at:])
    return b"".join(parts)


def _seams_behind(body: bytes, begin: int, kind: int) -> list[int]:
    """Seams of what is new in a body that goes on from an earlier one."""
    rest = body[begin:]
    if kind == 1:
        rest = b"[" + rest[1:] if body[:1] == b"[" and rest[:1] == b"," else b""
    return [begin + one for one in seams(rest, kind)]
