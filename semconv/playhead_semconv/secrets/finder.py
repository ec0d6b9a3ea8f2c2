"""Finds credentials in any bytes: one pass searches for names, shapes and known values.

If none of the literals occurs with which a name, a shape or a known value begins, that pass is all the
work (Aho-Corasick in Rust, under 2 µs a KB). If one occurs, a pattern decides.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum
from functools import lru_cache
from itertools import islice
from typing import Final, NamedTuple

from ahocorasick_rs import BytesAhoCorasick, Implementation

from playhead_semconv.secrets import masks
from playhead_semconv.secrets.fields import FIELDS, SecretField, styles
from playhead_semconv.secrets.shapes import SHAPES, Shape

RECOGNISABLE = 6
"""Leading bytes of a known value that are enough to recognize it."""

FRESH = 8
"""Known values that are searched for one by one before the automaton is rebuilt."""

MOST_SAID = 500
"""Known values that are followed at most where a model outputs them in pieces."""

DENSE_PATTERNS = 4000
"""With more literals than this, the smaller but slower automaton is used."""


class Kind(IntEnum):
    """How a credential was found."""

    KNOWN = 0
    """A known value."""
    BEGUN = 1
    """The data ends within a known value; ``rest`` is the missing part."""
    SHAPE = 2
    """A shape. ``rest``: what ends a private key, where the data ends within it; else empty."""
    FIELD = 3
    """The value of a field. ``rest``: what closes it, where the data ends within it; empty: complete."""
    ADDRESS = 4
    """The userinfo of a URL, before the host."""
    MASK = 5
    """A mask of a credential: nothing to learn."""
    PIECE = 6
    """A known value begins here, or a string ends with its beginning: another may hold the rest."""
    UNSURE = 7
    """The data ends within what may become a shape."""


class CredentialSpan(NamedTuple):
    """Position of a credential: first byte, and the byte after the last."""

    begin: int
    end: int
    kind: Kind
    rest: bytes = b""


_OPENS_STRING: Final = re.compile(
    rb"(\\*)[\"']\s{0,8}(?::|=>)\s{0,8}(?:\{\s*\\*[\"']value\\*[\"']\s*:\s*)?\[?\s{0,8}[bru]?(\\*)([\"'])"
)
"""What follows the name of a JSON field (or of a key in a dictionary as Python prints it)."""
_IN_STRING: Final = {
    b'"': re.compile(rb'(?:[^"\\]|\\.)*\\?', re.DOTALL),
    b"'": re.compile(rb"(?:[^'\\]|\\.)*\\?", re.DOTALL),
}
_SCHEME: Final = re.compile(
    rb"(?:Bearer|Basic|Token|ApiKey|Digest|token|bearer|basic)(?:\s+|%20)", re.DOTALL
)
_ASSIGNED: Final = re.compile(
    rb"[\"']?\s{0,8}(?:=>|:=|[:=>]|%3[DdAa])\s{0,8}"
    rb"(?:(?:Bearer|Basic|Token|ApiKey|token|bearer|basic)(?:\s+|%20))?"
    rb"(?:(\\*[\"'])([^\s\"'\\]+)\1|([^\s\"'&;,<>(){}\[\]\\|`]+))"
)
"""What follows the name of a setting: ``NAME=value``, ``name: value``, ``<name>value``."""
_LINE: Final = rb"(?:\r\n|\\+r\\+n)"
_PART: Final = re.compile(
    rb"\\*\"(?:;[^\r\n\\]*)?%(line)b(?:[^\r\n\\]+%(line)b)*%(line)b([^\r\n\\]+)" % {b"line": _LINE}
)
"""What follows the name of a multipart part."""
_OPTION: Final = re.compile(rb"\s+([^\s\"'\\-][^\s\"'\\]*)")
_ADDRESS: Final = re.compile(
    rb"://(?:[^/?#@\s:\"'\\]*:([^/?#@\s\"'\\]+)|(?=[^@]{0,255}[0-9])([A-Za-z0-9_.~%-]{16,}))@"
)
_HARMLESS: Final = re.compile(
    rb"\A(?:[$<{%].*|\*+|\[redacted\]|\.{3,}|(?:string|str|text|number|integer|int|bool|boolean|object|none|null"
    rb"|nil|true|false|bearer|basic|token|required|optional|password|secret|hidden|redacted|undefined|example))\Z",
    re.IGNORECASE | re.DOTALL,
)
_IDENTIFIER: Final = re.compile(rb"\A[A-Za-z_][A-Za-z_.]*[0-9]?\Z")
_OPAQUE: Final = re.compile(rb"(?=.*[0-9])(?=.*[A-Za-z])[\w.~+/=-]{16,}\Z", re.DOTALL)
_PATH: Final = re.compile(rb"\A(?:~|\.{1,2})?/(?:[a-z][a-z0-9._-]*/)*[a-z0-9._-]*\Z")


_BEHIND_NAME: Final = frozenset(bytes((one,)) for one in b"\"'\\=:>% \t")
"""Characters after a name that can introduce a value: the ``token`` in ``max_tokens`` has none."""


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
        meaning = _Shape(re.compile(shape.pattern(), re.DOTALL), usual)
        found |= dict.fromkeys((start.encode() for start in shape.starts), meaning)
    for field in fields:
        for style in styles(field.words):
            found.setdefault(style.encode(), _Name(field.alone))
    return tuple(found), tuple(found.values())


class Finder:
    """Finds credentials in bytes. Reading takes no lock; learning replaces the data that readers use."""

    def __init__(
        self,
        most: int = 4000,
        fields: tuple[SecretField, ...] = FIELDS,
        shapes: tuple[Shape, ...] = SHAPES,
    ) -> None:
        """``most``: known values at a time; beyond that the oldest are forgotten."""
        self._most = most
        self._static = _literals(fields, shapes)
        self._all: dict[bytes, None] = {}
        self._said: dict[bytes, None] = {}
        self._fresh: tuple[bytes, ...] = ()
        self._by_start: dict[bytes, tuple[bytes, ...]] = {}
        self.longest_bytes = 0
        """Length of the longest known value."""
        self._built: _Built | None = None

    def add(self, values: Iterable[bytes], said: bytes = b"") -> bool:
        """Search for ``values`` from now on; returns whether any of them is new.

        ``said``: the value as a model would output it, piece by piece.
        """
        if said:
            self._said = {**dict.fromkeys(list(self._said)[-MOST_SAID:]), said: None}
        new = [value for value in dict.fromkeys(values) if value not in self._all]
        if not new:
            return False
        known = {**self._all, **dict.fromkeys(new)}
        by_start = dict(self._by_start)
        for value in new:
            start = value[:RECOGNISABLE]
            by_start[start] = tuple(sorted((*by_start.get(start, ()), value), key=len, reverse=True))
        for oldest in list(islice(known, max(0, len(known) - self._most))):
            del known[oldest]
            start = oldest[:RECOGNISABLE]
            others = tuple(value for value in by_start.pop(start, ()) if value != oldest)
            if others:
                by_start[start] = others
        fresh = (*self._fresh, *dict.fromkeys(value[:RECOGNISABLE] for value in new))
        self._all, self._by_start = known, by_start
        self.longest_bytes = max(map(len, known))
        if self._built is None or len(fresh) > FRESH:
            self._built, self._fresh = None, ()
        else:
            self._fresh = fresh
        return True

    def _build(self) -> _Built:
        literals, meanings = self._static
        starts = [start for start in self._by_start if start not in literals]
        pieces = [piece for one in self._said for piece in _pieces(one[:RECOGNISABLE])]
        meanings = (*meanings, *[_KNOWN] * len(starts), *[_PIECES] * len(pieces))
        wanted = [*literals, *starts, *pieces]
        dense = Implementation.DFA if len(wanted) < DENSE_PATTERNS else None
        automaton = BytesAhoCorasick(wanted, implementation=dense)
        self._built = found = automaton.find_matches_as_indexes, meanings
        return found

    def find(self, data: bytes) -> list[CredentialSpan]:
        """Return the credentials in ``data``; they may overlap."""
        literals, meanings = self._built or self._build()
        hits = literals(data, True)
        if not hits and not self._fresh:
            return []
        spans: list[CredentialSpan] = []
        shaped = 0  # where the last shape ended: what begins within it is part of it
        for index, begin, end in hits:
            meaning = meanings[index]
            span: CredentialSpan | None
            if isinstance(meaning, _Name):
                if data[end : end + 1] not in _BEHIND_NAME:
                    continue
                span = _under(data, begin, end, meaning.alone)
            elif meaning is _KNOWN:
                spans += self._known(data, begin)
                continue
            elif meaning is _PIECES:
                span = CredentialSpan(begin, end, Kind.PIECE)
            elif isinstance(meaning, _Shape):
                if begin < shaped:
                    continue
                span = _shaped(data, begin, meaning)
                shaped = span.end if span is not None and span.kind is Kind.SHAPE else shaped
            elif meaning is _MASKS:
                span = _mask(data, begin)
            else:
                span = _address(data, begin)
            if span is not None:
                spans.append(span)
        for start in self._fresh:
            at = data.find(start)
            while at >= 0:
                spans += self._known(data, at)
                at = data.find(start, at + 1)
        return spans

    def _known(self, data: bytes, at: int) -> Iterator[CredentialSpan]:
        """Yield the longest known value at ``at``, and the longest one within which the data ends."""
        left, begun = len(data) - at, False
        for value in self._by_start.get(data[at : at + RECOGNISABLE], ()):
            if len(value) > left:
                if not begun and value.startswith(data[at:]):
                    begun = True
                    yield CredentialSpan(at, len(data), Kind.BEGUN, value[left:])
            elif data.startswith(value, at):
                yield CredentialSpan(at, at + len(value), Kind.KNOWN)
                return
        if not begun:
            yield CredentialSpan(at, at + RECOGNISABLE, Kind.PIECE)

    def begins(self, text: bytes) -> tuple[bytes, bytes] | None:
        """Return the longest end of ``text`` that begins a known value, and the rest of that value."""
        best = 0
        value = b""
        for one in self._said:
            for size in range(min(len(text), len(one) - 1), best, -1):
                if text.endswith(one[:size]):
                    best, value = size, one
                    break
        return (value[:best], value[best:]) if best else None


def _pieces(start: bytes) -> list[bytes]:
    """Return the possible ends of a string that ends with the beginning of a known value."""
    return [start[:size] + b'"' for size in range(2, len(start))] + [
        before + start[:1] + b'"' for before in (b'"', b" ")
    ]


def _under(data: bytes, begin: int, end: int, alone: bool) -> CredentialSpan | None:
    """Return the value under the name ``data[begin:end]``; None where it is not a credential."""
    after = data[end : end + 1]
    if after in (b'"', b"'", b"\\"):
        if alone and data[begin - 1 : begin] not in (b'"', b"'"):
            return None
        opening = _OPENS_STRING.match(data, end)
        if opening is not None and opening[1] == opening[2]:
            return _string(data, opening, data[begin:end], alone)
        part = _PART.match(data, end)
        if part is not None:
            return CredentialSpan(*part.span(1), Kind.FIELD)
        if after == b"\\":
            return None
    if alone and data[begin - 1 : begin].isalnum():
        return None
    found = _ASSIGNED.match(data, end)
    if found is None:
        if after in b" \t" and data[max(0, begin - 24) : begin].rpartition(b" ")[2].startswith(b"--"):
            found = _OPTION.match(data, end)
            if found is not None and _plausible(found[1]):
                return CredentialSpan(*found.span(1), Kind.FIELD)
        return None
    group = 2 if found[2] is not None else 3
    value = found[group]
    if not _plausible(value) or (alone and _OPAQUE.match(value) is None):
        return None
    return CredentialSpan(*found.span(group), Kind.FIELD)


def _string(data: bytes, opening: re.Match[bytes], name: bytes, alone: bool) -> CredentialSpan | None:
    """Return the value of the JSON field ``name``, which begins behind ``opening``."""
    at, escape, quote = opening.end(), opening[2], opening[3]
    end, closed = _string_end(data, at, escape, quote)
    scheme = _SCHEME.match(data, at, end)
    if scheme is not None:
        at = scheme.end()
    value = data[at:end]
    if not value:
        return None
    if closed:
        prose = (
            value.count(b" ") > 1 and not value.startswith(b"-----") and name.lower() != b"passphrase"
        )
        if prose or _HARMLESS.match(value) or (alone and _OPAQUE.match(value) is None):
            return None
    elif alone and _OPAQUE.match(value) is None:
        return None
    return CredentialSpan(at, end, Kind.FIELD, b"" if closed else escape + quote)


def _string_end(data: bytes, at: int, escape: bytes, quote: bytes) -> tuple[int, bool]:
    if not escape:
        found = _IN_STRING[quote].match(data, at)
        end = at if found is None else found.end()
        return end, data[end : end + 1] == quote
    end = string_end(data, at, escape + quote)
    return (len(data), False) if end is None else (end, True)


def string_end(data: bytes, at: int, closing: bytes, escapes: int = 0) -> int | None:
    """Return where a string ends that ``closing`` ends: a quote, after backslashes in a nested string.

    None: its end is not in ``data``. ``escapes``: backslashes of the string directly before ``at``,
    where it may end. A level of JSON doubles each backslash and puts one before a quote, so the number
    of backslashes before a quote tells to which level it belongs.
    """
    depth, quote = len(closing) - 1, closing[-1:]
    end = data.find(quote, at)
    while end >= 0:
        begin = end
        while begin > at and data[begin - 1] == 0x5C:
            begin -= 1
        count = end - begin + (escapes if begin == at else 0)
        if count % (2 * depth + 2) == depth:
            return end - depth
        end = data.find(quote, end + 1)
    return None


def _plausible(value: bytes) -> bool:
    """Whether a value in plain text, outside of JSON, can be a credential.

    >>> _plausible(b"hunter2hunter2"), _plausible(b"config.api_key"), _plausible(b"must")
    (True, False, False)
    """
    if len(value) < 8 or _HARMLESS.match(value) or _IDENTIFIER.match(value) or _PATH.match(value):
        return value.startswith(b"[redacted]")
    return not value.isalpha() and not (value.isdigit() and len(value) < 12)


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


LONGEST_BEGUN: Final = 100
_BEGUN: Final = re.compile(rb"(?<![A-Za-z0-9_])(?=[\w.~+/-]*[0-9])[\w.~+/-]{6,}\Z")
"""What may become a shape, at the end of the data."""

_MASK: Final = re.compile(masks.PATTERN)


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
