"""Compares two requests that may differ in volatile values: leaf by leaf, in a text place by place.

A text is read from its beginning. Where the two sides first differ, `Evidence` must vouch for a span of
the current text that covers the place, and say what corresponds to it in the recorded text. Then the
comparison continues after both spans. So the text between volatile values has to be equal, and the time
taken is linear in the length of the texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

from playhead_core.difference import SIDE_CHARS, Difference
from playhead_core.normalize.documents import (
    Absent,
    Document,
    Unequal,
    decoded,
    document,
    is_encoded,
    is_number,
    pieces,
    unequal,
)
from playhead_core.normalize.forms import Form

MOST_PLACES: Final = 10_000
"""Volatile places of one request at most."""

MOST_CHARS: Final = 1 << 20
"""Characters of all pairs of one request at most, both sides together."""


class Pair(NamedTuple):
    """A recorded value and the current value in its place."""

    recorded: str
    now: str
    form: str
    """Name of the form that both have (`forms`)."""


class Counterpart(NamedTuple):
    """A span of the current text, and what corresponds to it."""

    start: int
    end: int
    recorded_end: int
    """End of the recorded span.

    It starts as far before the recorded place as ``start`` before the current.
    """
    form: Form


@dataclass(frozen=True, slots=True)
class Unlike:
    """The first place where two requests differ in something that is not volatile."""

    path: str
    """``request line``, ``$.messages[3].content``, ``header x-request-id``, …"""
    recorded: str
    now: str
    """The text of each side at that place, at most `SIDE_CHARS` characters."""
    why: str
    """Why the difference is not volatile: a clause."""

    @property
    def difference(self) -> Difference:
        """The difference without the reason."""
        return Difference(self.path, self.recorded, self.now)

    def __str__(self) -> str:
        return f"{self.path}: tape {self.recorded}, now {self.now}: {self.why}"


class Evidence(Protocol):
    """Vouches for values. Each method returns a match, or a clause that says why there is none."""

    def in_text(
        self, now: str, at: int, recorded: str, recorded_at: int, since: int
    ) -> Counterpart | str:
        """Vouch for a span of ``now`` with ``at`` in it or at its end, starting at ``since`` or later.

        The sides differ at ``at`` and ``recorded_at``; before these they are equal as far back as
        ``since``. Either place may be at the end of its text. Takes a bounded time.
        """
        ...

    def as_number(self, now: str, recorded: str) -> Form | str:
        """Vouch for a number of a JSON document, as it is written, without its sign."""
        ...


@dataclass(frozen=True, slots=True)
class ComparedRequest:
    """The parts of a request that are compared."""

    body: Document
    line: str = ""
    """Method and URL."""
    values: tuple[tuple[str, str], ...] = ()
    """More texts, each with the name of its place, as ``("header x-request-id", "…")``."""

    @classmethod
    def of(cls, body: bytes, line: str = "", values: Iterable[tuple[str, str]] = ()) -> ComparedRequest:
        """``body``: its bytes, uncompressed; a multipart body without its boundary."""
        return cls(document(body), line, tuple(values))


def compare(
    recorded: ComparedRequest, now: ComparedRequest, evidence: Evidence
) -> tuple[Pair, ...] | Unlike:
    """Return the pairs in which the requests differ, each once; or where they differ otherwise."""
    comparison = _Comparison(evidence)
    found = comparison.run(recorded, now)
    return tuple(comparison.pairs) if found is None else found


class _Comparison:
    def __init__(self, evidence: Evidence) -> None:
        self.pairs: dict[Pair, None] = {}
        self._evidence = evidence
        self._places = 0
        self._chars = 0

    def run(self, recorded: ComparedRequest, now: ComparedRequest) -> Unlike | None:
        if recorded.line != now.line:
            found = self._line(recorded.line, now.line)
            if found is not None:
                return found
        names = [[name for name, _ in values] for values in (recorded.values, now.values)]
        if names[0] != names[1]:
            return Unlike("values", ", ".join(names[0]), ", ".join(names[1]), "other values are there")
        for (name, one), (_, other) in zip(recorded.values, now.values, strict=True):
            found = None if one == other else self._text(name, one, other)
            if found is not None:
                return found
        for leaf in unequal(recorded.body, now.body):
            found = self._leaf(leaf, recorded.body.kind)
            if found is not None:
                return found
        return None

    def _line(self, recorded: str, now: str) -> Unlike | None:
        if is_encoded(recorded) or is_encoded(now):
            return self._encoded("request line", recorded, now)
        return self._text("request line", recorded, now)

    def _leaf(self, leaf: Unequal, kind: str) -> Unlike | None:
        one, other = leaf.recorded, leaf.now
        if is_number(one) and is_number(other):
            return self._number(leaf.path, str(one), str(other))
        if one is Absent.DEEP:
            return Unlike(leaf.path, one.value, one.value, "what is nested so deep is not compared")
        if one is Absent.ABSENT or other is Absent.ABSENT:
            return Unlike(leaf.path, _shown(one), _shown(other), "one side does not have it")
        if type(one) is not str or type(other) is not str:
            return Unlike(leaf.path, _shown(one), _shown(other), "only texts and numbers are volatile")
        if kind == "form":
            return self._encoded(leaf.path, one, other)
        return self._text(leaf.path, one, other)

    def _number(self, path: str, recorded: str, now: str) -> Unlike | None:
        if recorded.startswith("-") is not now.startswith("-"):
            return Unlike(path, recorded[:SIDE_CHARS], now[:SIDE_CHARS], "the signs differ")
        found = self._evidence.as_number(now.lstrip("-"), recorded.lstrip("-"))
        if not isinstance(found, str):
            found = self._keep(Pair(recorded.lstrip("-"), now.lstrip("-"), found.name))
        return None if not found else Unlike(path, recorded[:SIDE_CHARS], now[:SIDE_CHARS], found)

    def _encoded(self, path: str, recorded: str, now: str) -> Unlike | None:
        sides = pieces(recorded), pieces(now)
        if len(sides[0]) != len(sides[1]):
            return Unlike(path, *excerpts(recorded, now), "they have other parts")
        in_query = "?" not in now
        for index, (one, other) in enumerate(zip(*sides, strict=True)):
            in_query |= other == "?"
            if one == other:
                continue
            if index % 2:
                return Unlike(path, *excerpts(recorded, now), "they have other parts")
            plain = decoded(one, in_query=in_query), decoded(other, in_query=in_query)
            found = self._text(path, *plain)
            if found is not None:
                return found
        return None

    def _text(self, path: str, recorded: str, now: str) -> Unlike | None:
        at = recorded_at = since = 0
        while True:
            shared = shared_length(now, at, recorded, recorded_at)
            at, recorded_at = at + shared, recorded_at + shared
            if at == len(now) and recorded_at == len(recorded):
                return None
            found = self._evidence.in_text(now, at, recorded, recorded_at, since)
            if isinstance(found, str):
                return Unlike(path, *excerpts(recorded, now, recorded_at, at), found)
            start = recorded_at - (at - found.start)
            pair = Pair(
                recorded[start : found.recorded_end], now[found.start : found.end], found.form.name
            )
            why = self._keep(pair)
            if why:
                return Unlike(path, *excerpts(recorded, now, recorded_at, at), why)
            at, recorded_at, since = found.end, found.recorded_end, found.end

    def _keep(self, pair: Pair) -> str:
        """Add a pair; returns why there may be no more, or an empty text."""
        self._places += 1
        if pair not in self.pairs:
            self.pairs[pair] = None
            self._chars += len(pair.recorded) + len(pair.now)
        if self._places > MOST_PLACES or self._chars > MOST_CHARS:
            return f"one request may differ in {MOST_PLACES} places and {MOST_CHARS} characters"
        return ""


def shared_length(now: str, at: int, recorded: str, recorded_at: int) -> int:
    """Return how many characters two texts share from a place in each on.

    >>> shared_length("abcdef", 2, "cdxf", 0)
    2
    """
    step, shared = 64, 0
    most = min(len(now) - at, len(recorded) - recorded_at)
    while shared < most:
        size = min(step, most - shared)
        start, other = at + shared, recorded_at + shared
        if now[start : start + size] == recorded[other : other + size]:
            shared += size
            step = min(step * 2, 1 << 16)
        elif size == 1:
            break
        else:
            # The difference is in this block: search its first half, then the rest.
            step = size // 2
            most = shared + size
    return shared


def excerpts(recorded: str, now: str, recorded_at: int = 0, at: int = 0) -> tuple[str, str]:
    """Return the text around a place in each of two texts, as the sides of a difference."""
    before = min(40, at, recorded_at)
    return _excerpt(recorded, recorded_at - before), _excerpt(now, at - before)


def _excerpt(text: str, start: int) -> str:
    end = start + SIDE_CHARS - 2
    cut = text[start:end].encode("utf-8", "replace").decode()
    return ("…" if start else "") + cut + ("…" if end < len(text) else "") or "(empty)"


def _shown(value: Any) -> str:
    if isinstance(value, Absent):
        return value.value
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "an array"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)[:SIDE_CHARS] or "(empty)"


def compared_answer(headers: Sequence[str], pieces: Iterable[bytes]) -> ComparedRequest:
    """``headers``: name, value, name, value, …; ``pieces``: of the body, uncompressed."""
    named = zip(headers[::2], headers[1::2], strict=False)
    return ComparedRequest.of(b"".join(pieces), "", [(f"header {name}", value) for name, value in named])
