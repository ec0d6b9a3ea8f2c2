"""An index of texts by their first characters, to search for many of them at once."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Container
from typing import Final, Generic, TypeVar

S = TypeVar("S", str, bytes)
V = TypeVar("V")

HEAD: Final = 8
"""Characters by which a text is indexed; a shorter text by all of its characters."""


class Heads(Generic[S, V]):
    """Texts, each with a value.

    Whether one of them occurs at a place of a text takes constant time, however many there are: one
    lookup for each length among texts with the same head.
    """

    def __init__(self) -> None:
        self._found: dict[S, dict[int, dict[S, V]]] = {}
        """Values by head, then by length, then by text."""
        self._sizes: dict[int, int] = {}
        """Number of heads of each size."""
        self._sorted: list[S] = []
        self.longest = 0
        """At least the length of the longest text."""

    def __len__(self) -> int:
        return len(self._sorted)

    @property
    def heads(self) -> Container[S]:
        """The heads of all texts: eight characters, or a complete shorter text."""
        return self._found.keys()

    def get(self, text: S) -> V | None:
        """Return the value of ``text``; None if it is not indexed."""
        return self._found.get(text[:HEAD], {}).get(len(text), {}).get(text)

    def put(self, text: S, value: V) -> None:
        """Set the value of ``text``, which is not empty."""
        head = text[:HEAD]
        if head not in self._found:
            self._sizes[len(head)] = self._sizes.get(len(head), 0) + 1
        same = self._found.setdefault(head, {}).setdefault(len(text), {})
        if text not in same:
            insort(self._sorted, text)
        same[text] = value
        self.longest = max(self.longest, len(text))

    def drop(self, text: S) -> None:
        """Remove ``text``."""
        head, length = text[:HEAD], len(text)
        lengths = self._found.get(head)
        if lengths is None or text not in lengths.get(length, {}):
            return
        del lengths[length][text]
        del self._sorted[bisect_left(self._sorted, text)]
        if not lengths[length]:
            del lengths[length]
        if not lengths:
            del self._found[head]
            self._sizes[len(head)] -= 1
            if not self._sizes[len(head)]:
                del self._sizes[len(head)]

    def at(self, text: S, at: int) -> list[tuple[int, V]]:
        """Return the texts that occur in ``text`` at ``at``: end and value of each, longest first."""
        found: list[tuple[int, V]] = []
        for size in self._sizes:
            lengths = self._found.get(text[at : at + size])
            if lengths is None:
                continue
            for length, same in lengths.items():
                piece = text[at : at + length]
                if piece in same:
                    found.append((at + length, same[piece]))
        return sorted(found, key=lambda one: -one[0]) if len(found) > 1 else found

    def begins(self, piece: S) -> bool:
        """Whether an indexed text begins with ``piece`` and is longer."""
        at = bisect_left(self._sorted, piece)
        if at < len(self._sorted) and self._sorted[at] == piece:
            at += 1
        return at < len(self._sorted) and self._sorted[at].startswith(piece)
