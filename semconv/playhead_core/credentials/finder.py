"""Finds credentials in any bytes: one pass searches for names, shapes and known values.

If none of the literals occurs with which a name, a shape or a known value begins, that pass is all the
work (Aho-Corasick in Rust, under 2 µs a KB). If one occurs, a pattern decides.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import islice
from typing import Final, NamedTuple

from ahocorasick_rs import BytesAhoCorasick, Implementation

from playhead_core.credentials import masks
from playhead_core.credentials.fields import FIELDS, SecretField, styles
from playhead_core.credentials.listed_values import values_under
from playhead_core.credentials.named_values import FOLLOWS_NAME, CredentialSpan, Kind
from playhead_core.credentials.shapes import SHAPES, Shape
from playhead_core.lazy_patterns import lazy

RECOGNISABLE = 6
"""Leading bytes of a known value that are enough to recognize it."""

FRESH = 8
"""Known values that are searched for one by one before the automaton is rebuilt."""

MOST_SAID = 500
"""Limit of known values that are followed through the pieces of a model's output."""

NESTED_BYTES = 64
"""Leading bytes of a value without quotes in which another name is looked at: ``secret: token=…``."""

DENSE_PATTERNS = 4000
"""With more literals than this, the smaller but slower automaton is used."""


_ADDRESS: Final = lazy(
    rb"://(?:[^/?#@\s:\"'\\]*:([^/?#@\s\"'\\]+)|(?=[^@]{0,255}[0-9])([A-Za-z0-9_.~%-]{16,}))@"
)


class _Name(NamedTuple):
    alone: bool


class _Shape(NamedTuple):
    pattern: re.Pattern[bytes]
    usual_behind: tuple[bytes, ...]


_ADDRESSES, _MASKS, _KNOWN, _PIECES = object(), object(), object(), object()

_Built = tuple[Callable[[bytes, bool], list[tuple[int, int, int]]], tuple[object, ...]]
"""Finds literals in data (index, first byte, byte after the last); and what each of them means."""


@lru_cache(4)
def _literals(
    fields: tuple[SecretField, ...], shapes: tuple[Shape, ...]
) -> tuple[tuple[bytes, ...], tuple[object, ...]]:
    """Return the literals to search for besides known values, and what each means."""
    found: dict[bytes, object] = {b"://": _ADDRESSES, masks.MARK: _MASKS}
    for shape in shapes:
        usual = tuple(text.encode() for text in shape.usual_behind)
        meaning = _Shape(lazy(shape.pattern(), re.DOTALL), usual)
        found |= dict.fromkeys((start.encode() for start in shape.starts), meaning)
    for field in fields:
        for style in styles(field.words):
            found.setdefault(style.encode(), _Name(field.alone))
    return tuple(found), tuple(found.values())


class _Known:
    """The known values at one moment, and the automaton for them. Only ``built`` changes.

    A thread that finds credentials and one that adds a value must not undo each other's work: a value
    that a search misses is written to the tape. So an automaton belongs to the values it was built from,
    and a change makes another object.
    """

    __slots__ = ("all", "built", "by_start", "fresh", "is_dense", "longest_bytes", "said")

    def __init__(self) -> None:
        self.all: dict[bytes, None] = {}
        self.by_start: dict[bytes, tuple[bytes, ...]] = {}
        self.said: dict[bytes, None] = {}
        self.fresh: tuple[bytes, ...] = ()
        """Starts of values that ``built`` does not have."""
        self.longest_bytes = 0
        self.built: _Built | None = None
        self.is_dense = False
        """Whether ``built`` is the faster automaton."""

    def plus(self, new: list[bytes], said: bytes, most: int) -> _Known:
        """Return these values and ``new``, without the oldest beyond ``most``."""
        made = _Known()
        made.said = self.said
        if said:
            made.said = {**dict.fromkeys(list(self.said)[-MOST_SAID:]), said: None}
        made.all = known = {**self.all, **dict.fromkeys(new)}
        made.by_start = by_start = dict(self.by_start)
        for value in new:
            start = value[:RECOGNISABLE]
            by_start[start] = tuple(sorted((*by_start.get(start, ()), value), key=len, reverse=True))
        for oldest in list(islice(known, max(0, len(known) - most))):
            del known[oldest]
            start = oldest[:RECOGNISABLE]
            others = tuple(value for value in by_start.pop(start, ()) if value != oldest)
            if others:
                by_start[start] = others
        made.longest_bytes = max(map(len, known), default=0)
        fresh = (*self.fresh, *dict.fromkeys(value[:RECOGNISABLE] for value in new))
        if self.built is not None and len(fresh) <= FRESH:
            made.built, made.fresh, made.is_dense = self.built, fresh, self.is_dense
        return made


class Finder:
    """Finds credentials in bytes. Safe from any thread and signal handler, without a lock."""

    def __init__(
        self,
        most: int = 4000,
        fields: tuple[SecretField, ...] = FIELDS,
        shapes: tuple[Shape, ...] = SHAPES,
        *,
        dense: bool = True,
    ) -> None:
        """``most``: known values at a time; beyond that the oldest are forgotten.

        ``dense``: whether to build the automaton that searches three times as fast at once, which takes
        ten times as long. If not, `speed_up` builds it.
        """
        self._most = most
        self._dense = dense
        self._static = _literals(fields, shapes)
        self._known = _Known()

    @property
    def longest_bytes(self) -> int:
        """Length of the longest known value."""
        return self._known.longest_bytes

    def add(self, values: Iterable[bytes], said: bytes = b"") -> bool:
        """Search for ``values`` from now on; returns whether any of them is new.

        ``said``: the value as a model would output it, piece by piece.
        """
        values = list(dict.fromkeys(values))
        while True:
            before = self._known
            new = [value for value in values if value not in before.all]
            if not new and (not said or said in before.said):
                return False
            after = before.plus(new, said, self._most)
            # CPython switches threads and runs signal handlers only at calls and backward jumps, so
            # nothing happens between these two lines. Otherwise another thread's value would be lost.
            if self._known is before:
                self._known = after
                return bool(new)

    def speed_up(self) -> None:
        """Build the faster automaton if there is none. It takes some ms: for a background thread."""
        if not self._known.is_dense:
            self._build(self._known, True)

    def _build(self, known: _Known, dense: bool) -> _Built:
        literals, meanings = self._static
        starts = [start for start in known.by_start if start not in literals]
        pieces = [piece for one in known.said for piece in _pieces(one[:RECOGNISABLE])]
        meanings = (*meanings, *[_KNOWN] * len(starts), *[_PIECES] * len(pieces))
        wanted = [*literals, *starts, *pieces]
        kind = Implementation.DFA if dense else Implementation.ContiguousNFA
        automaton = BytesAhoCorasick(
            wanted, implementation=kind if len(wanted) < DENSE_PATTERNS else None
        )
        known.built = found = automaton.find_matches_as_indexes, meanings
        known.is_dense = dense
        return found

    def find(self, data: bytes) -> list[CredentialSpan]:
        """Return the credentials in ``data``; they may overlap."""
        known = self._known
        literals, meanings = known.built or self._build(known, self._dense)
        hits = literals(data, True)
        if not hits and not known.fresh:
            return []
        spans: list[CredentialSpan] = []
        shaped = 0  # end of the last shape: a match that begins before it is part of it
        listed = 0  # end of the last list: its items are found already
        settled = assigned = 0  # a range within a value without quotes: a name in it introduces no other
        for index, begin, end in hits:
            meaning = meanings[index]
            span: CredentialSpan | None
            if isinstance(meaning, _Name):
                if (
                    data[end : end + 1] not in FOLLOWS_NAME
                    or begin < listed
                    or settled < begin < assigned
                ):
                    continue
                values = values_under(data, begin, end, meaning.alone)
                span = values[0] if values else None
                if len(values) > 1:
                    listed = values[-1].end
                    spans += values[1:]
                if span is not None and begin >= assigned and span.end - end > NESTED_BYTES:
                    if data[span.begin - 1 : span.begin] not in (b'"', b"'"):
                        settled, assigned = end + NESTED_BYTES, span.end
            elif meaning is _KNOWN:
                spans += _known_at(known, data, begin)
                continue
            elif meaning is _PIECES:
                span = CredentialSpan(begin, end, Kind.PIECE)
            elif isinstance(meaning, _Shape):
                if begin < shaped:
                    continue
                span = _shaped(data, begin, meaning)
            elif meaning is _MASKS:
                span = _mask(data, begin)
            else:
                span = _address(data, begin)
            if span is None or _within_binary(data, begin, span.end):
                continue
            if span.kind is Kind.SHAPE:
                shaped = span.end
            spans.append(span)
        for start in known.fresh:
            at = data.find(start)
            while at >= 0:
                spans += _known_at(known, data, at)
                at = data.find(start, at + 1)
        return spans

    def begins(self, text: bytes) -> tuple[bytes, bytes] | None:
        """Return the longest end of ``text`` that begins a known value, and the rest of that value."""
        best = 0
        value = b""
        for one in self._known.said:
            for size in range(min(len(text), len(one) - 1), best, -1):
                if text.endswith(one[:size]):
                    best, value = size, one
                    break
        return (value[:best], value[best:]) if best else None


def _known_at(known: _Known, data: bytes, at: int) -> Iterator[CredentialSpan]:
    """Yield the longest known value at ``at``, and the longest one within which the data ends."""
    left, begun = len(data) - at, False
    for value in known.by_start.get(data[at : at + RECOGNISABLE], ()):
        if len(value) > left:
            if not begun and value.startswith(data[at:]):
                begun = True
                yield CredentialSpan(at, len(data), Kind.BEGUN, value[left:])
        elif data.startswith(value, at):
            yield CredentialSpan(at, at + len(value), Kind.KNOWN)
            return
    if not begun:
        yield CredentialSpan(at, at + RECOGNISABLE, Kind.PIECE)


def _pieces(start: bytes) -> list[bytes]:
    """Return the possible ends of a string that ends with the beginning of a known value."""
    return [start[:size] + b'"' for size in range(2, len(start))] + [
        before + start[:1] + b'"' for before in (b'"', b" ")
    ]


def _shaped(data: bytes, begin: int, shape: _Shape) -> CredentialSpan | None:
    pattern = shape.pattern
    found = pattern.match(data, begin)
    if found is None:
        if len(data) - begin > LONGEST_BEGUN or _BEGUN.match(data, begin) is None:
            return None
        if data.endswith(shape.usual_behind, 0, begin):
            return None
        return CredentialSpan(begin, len(data), Kind.UNSURE)
    group = "secret" if "secret" in pattern.groupindex else 0
    return CredentialSpan(
        *found.span(group), Kind.SHAPE, b"-" if data[begin : begin + 5] == b"-----" else b""
    )


def _within_binary(data: bytes, begin: int, end: int) -> bool:
    """Whether the bytes in this range are not text, so that a name or a prefix in them is chance.

    Images, archives and random data contain ``-u `` or ``pwd=`` now and then. A mask would change the
    file, and its replay would read other bytes. Text is valid UTF-8 (the data may end within a
    character), or, in other encodings, has no control characters around it.
    """
    value = data[begin:end]
    if value.isascii():
        return False
    try:
        codecs.utf_8_decode(value, "strict", False)
    except UnicodeDecodeError:
        return _CONTROL.search(data, max(0, begin - AROUND_BYTES), end + AROUND_BYTES) is not None
    return False


AROUND_BYTES: Final = 64
"""Bytes before and after a value in which control characters are looked for."""

_CONTROL: Final = lazy(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
"""Control characters that text does not have; it may have white space and escape sequences."""

LONGEST_BEGUN: Final = 100
_BEGUN: Final = lazy(rb"(?<![A-Za-z0-9_])(?=[\w.~+/-]*[0-9])[\w.~+/-]{6,}\Z")
"""What may become a shape, at the end of the data."""

_MASK: Final = lazy(masks.PATTERN)


def _mask(data: bytes, mark: int) -> CredentialSpan | None:
    found = _MASK.match(data, mark - 1) if mark else None
    if found is None:
        return None
    leaked = 0 if found[0][:1] == b"*" else found[0][0] - 0x30
    return CredentialSpan(max(0, found.start() - leaked), found.end(), Kind.MASK)


def _address(data: bytes, begin: int) -> CredentialSpan | None:
    found = _ADDRESS.match(data, begin)
    if found is None:
        return None
    return CredentialSpan(*found.span(1 if found[1] is not None else 2), Kind.ADDRESS)
