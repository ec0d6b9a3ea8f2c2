"""Scrubs an answer as it arrives: chunk by chunk, each with its length kept.

A credential that spans two chunks is masked in both: at the end of the first as soon as it is
recognizable, at the start of the second by what is known from the first. A credential that a model
outputs in pieces, in several events of a stream, is masked in each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, Protocol

import msgspec

from playhead_core.credentials.finder import RECOGNISABLE, Finder
from playhead_core.credentials.masks import SHORTEST_BYTES, is_number, mask, nines, piece
from playhead_core.credentials.named_values import CredentialSpan, Kind, string_end
from playhead_core.lazy_patterns import lazy

CARRIED_BYTES = 64
"""Bytes of the last chunk that are searched again with the next: they may hold the name of a field."""

_EVENT_ENDS: Final = (b"\n\n", b"\r\n\r\n")

Piece = tuple[int, int, bytes]
"""First byte, the byte after the last, and the replacement."""


class Scrubber(Protocol):
    """Removes the credentials from one response."""

    count: int
    """How many values were removed so far."""
    unpacked: str
    """Content coding that the tape lacks for the last piece and everything after it; empty: none."""

    def chunk(self, data: bytes) -> bytes:
        """Return ``data`` as it may go on the tape."""
        ...


class _Open(msgspec.Struct):
    """A credential within which the last chunk ended."""

    at: int
    """Bytes of its mask that are on the tape."""
    rest: bytes | None = None
    """The missing part of a known value; None: ``closing`` determines the end."""
    closing: Callable[[bytes, bytes], int | None] | None = None
    """Returns its end in the next chunk, from what came so far and that chunk; None: it is later."""
    so_far: bytes = b""
    number: bool = False
    """Whether the mask consists of nines."""

    def mask(self, data: bytes) -> bytes:
        """Return the next part of the mask, for ``data``."""
        return nines(data) if self.number else piece(self.at, len(data))


class PlainScrubber:
    """Scrubs uncompressed data."""

    unpacked = ""

    def __init__(self, finder: Finder, learn: Callable[[bytes], object], *, events: bool) -> None:
        self.count = 0
        self._find = finder.find
        self._learn = learn
        self._before = b""
        """The end of the preceding data."""
        self._open: _Open | None = None
        self._said = _Said(finder) if events else None

    @property
    def is_open(self) -> bool:
        """Whether the data so far ended within a credential."""
        return self._open is not None

    def chunk(self, data: bytes) -> bytes:
        """See `Scrubber.chunk`."""
        pieces = self.pieces(data)
        return _with(data, pieces) if pieces else data

    def pieces(self, data: bytes) -> list[Piece]:
        """Return what is replaced in the next ``data``, and by what; pieces may overlap."""
        window = self._before + data if self._before else data
        spans = self._find(window)
        said = self._said
        # Only text that a model outputs continues beyond the end of an event.
        ends = said is not None and data.endswith(_EVENT_ENDS)
        self._before = b"" if ends else window[-CARRIED_BYTES:]
        if not spans and self._open is None and (said is None or said.due is None):
            return []
        pieces = list(self._continued(data))
        start = pieces[-1][1] if pieces else 0
        pieces += self._new(data, window, spans, start)
        if said is not None and (said.due is not None or any(span.kind is Kind.PIECE for span in spans)):
            pieces += self._spoken(said, data)
        return pieces

    def _continued(self, data: bytes) -> Iterator[Piece]:
        """Yield the beginning of ``data`` that continues a credential of the last chunk."""
        going = self._open
        if going is None or not data:
            return
        self._open = None
        if going.rest is not None:
            if data.startswith(going.rest):
                yield 0, len(going.rest), going.mask(going.rest)
            elif going.rest.startswith(data):
                yield 0, len(data), going.mask(data)
                rest = going.rest[len(data) :]
                self._open = _Open(going.at + len(data), rest, number=going.number)
            return
        assert going.closing is not None
        end = going.closing(going.so_far, data)
        said = going.so_far + data
        if end is None:
            yield 0, len(data), piece(going.at, len(data))
            self._open = _Open(going.at + len(data), None, going.closing, said)
        else:
            if end > 0:
                yield 0, end, piece(going.at, end)
            self._learn(said[: len(going.so_far) + end])

    def _new(
        self, data: bytes, window: bytes, spans: list[CredentialSpan], start: int
    ) -> Iterator[Piece]:
        before = len(window) - len(data)
        for span in spans:
            kind, end = span.kind, span.end - before
            if kind in (Kind.PIECE, Kind.MASK) or end <= start:
                continue
            if self._open is not None and start == len(data):
                return
            begin = span.begin - before
            if begin < 0 and start:
                continue  # this is the credential that continued
            leaked, begin = max(0, -begin), max(0, begin)
            whole = end - begin
            open_ = self._opened(window, span, whole)
            if open_ is not None:
                self._open = open_
            elif kind is not Kind.KNOWN:
                self._learn(window[span.begin : span.end])
            if open_.number if open_ is not None else is_number(window, span.begin, span.end):
                new = nines(data[begin:end])
            elif open_ is not None or whole >= SHORTEST_BYTES:
                new = piece(0, whole, leaked)
            else:
                new = mask(whole)
            yield begin, end, new
            self.count += 1

    def _opened(self, window: bytes, span: CredentialSpan, size: int) -> _Open | None:
        """Return how ``span`` continues, where the window may end within it; None if it does not."""
        so_far = window[span.begin :]
        if span.kind is Kind.BEGUN:
            number = span.rest.isdigit() and is_number(window, span.begin, span.end)
            return _Open(size, span.rest, number=number)
        if span.end != len(window):
            return None
        if span.kind is Kind.FIELD and span.rest:
            return _Open(size, None, _closing(span.rest), so_far)
        if span.kind in (Kind.SHAPE, Kind.UNSURE):
            return _Open(size, None, _outside_key if span.rest else _outside_word, so_far)
        return None

    def _spoken(self, said: _Said, data: bytes) -> Iterator[Piece]:
        for found in said.event(data):
            self.count += 1
            yield found


def _closing(closing: bytes) -> Callable[[bytes, bytes], int | None]:
    """Return a function that finds the end of a string: a quote, or one after backslashes."""

    def end(so_far: bytes, data: bytes) -> int | None:
        return string_end(data, 0, closing, len(so_far) - len(so_far.rstrip(b"\\")))

    return end


_BEHIND_WORD: Final = lazy(rb"[^\w.~+/=-]")


def _outside_word(so_far: bytes, data: bytes) -> int | None:
    found = _BEHIND_WORD.search(data)
    return None if found is None else found.start()


def _outside_key(so_far: bytes, data: bytes) -> int | None:
    end = data.find(b"-----")
    return None if end < 0 else end


TEXTS: Final = (
    "content|text|delta|arguments|partial_json|thinking|reasoning_content|reasoning|refusal|value|output"
    "|completion|response|token|generated_text|answer|transcript|summary|input|data|message|generation"
)
"""The fields of events in which providers stream text."""
_STRING: Final = lazy(rb'"(?:%b)"\s*:\s*"((?:[^"\\]|\\.)*)"' % TEXTS.encode())


class _Said:
    """Follows a known value that is spread over the texts of several events."""

    def __init__(self, finder: Finder) -> None:
        self._begins = finder.begins
        self.due: bytes | None = None
        """The missing part of the value; None if none has begun."""
        self._seen = 0
        self._masked = 0

    def event(self, data: bytes) -> Iterator[Piece]:
        """Yield the masks for the texts in ``data``."""
        for found in _STRING.finditer(data):
            if found[1]:
                yield from self._text(found[1], found.start(1))

    def _text(self, text: bytes, at: int) -> Iterator[Piece]:
        due = self.due
        if due is not None:
            shared = len(due) if text.startswith(due) else len(text) if due.startswith(text) else 0
            if shared:
                yield from self._masks(at, shared)
                self.due = due[shared:] or None
                if self.due is not None or shared == len(text):
                    return
                text, at = text[shared:], at + shared
        self.due, self._seen, self._masked = None, 0, 0
        begun = self._begins(text)
        if begun is not None:
            end, self.due = begun
            yield from self._masks(at + len(text) - len(end), len(end))

    def _masks(self, at: int, size: int) -> Iterator[Piece]:
        """Mask ``size`` more bytes of the value at ``at``, once it is recognizable."""
        before, self._seen = self._seen, self._seen + size
        if self._seen >= RECOGNISABLE:
            yield at, at + size, piece(self._masked, size, before)
            self._masked += size


def _with(data: bytes, pieces: list[Piece]) -> bytes:
    """Return ``data`` with ``pieces`` replaced; where two overlap, both apply."""
    kept = bytearray(data)
    for begin, end, new in sorted(pieces, key=lambda one: one[1] - one[0]):
        kept[begin:end] = new
    return bytes(kept)
