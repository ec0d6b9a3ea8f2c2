"""Avoids converting messages again that were converted before.

An agent sends its whole history with every call: each request body repeats the messages of an earlier
one, byte for byte, and appends some. `PrefixCache` remembers runs of messages as they appeared in a
body, with their JSON text, in a tree: a node is a run of bytes that may follow its parent's. Looking up
a body walks down the tree as long as the bytes match, so it costs one comparison of bytes.
"""

from __future__ import annotations

import re
import secrets
import threading
from collections.abc import Callable

import msgspec

SENTINEL = b'"%s"' % secrets.token_hex(16).encode()
"""Replaces the known messages in a body that is parsed without them; occurs in no other body."""

_CHILDREN = 64
"""Runs that may follow the same run; the most recently used are kept."""


class Known(msgspec.Struct, frozen=True):
    """Messages at the start of a body's array that were converted before."""

    start: int
    """Offset in bytes where the first of them begins."""
    end: int
    """Offset in bytes where the last of them ends."""
    texts: list[bytes]
    """Their JSON, including the separating commas; to be joined."""
    node: _Node


class _Node:
    __slots__ = ("children", "source", "text")

    def __init__(self, source: bytes, text: bytes) -> None:
        self.source = source
        self.text = text
        self.children: list[_Node] = []


class PrefixCache:
    """Remembers converted messages, up to ``capacity_bytes`` (sources and texts); then it starts over.

    For several threads: a thread that finds the cache in use works without it. After ``os.fork`` the
    child may or may not be able to use it, but never waits.
    """

    def __init__(self, capacity_bytes: int = 16 << 20) -> None:
        self._capacity_bytes = capacity_bytes
        self._lock = threading.Lock()
        self._roots: dict[str, _Node] = {}
        self._memo: dict[tuple[str, bytes], bytes] = {}
        self._size_bytes = 0

    def find(self, wire: str, field: str, body: bytes) -> Known | None:
        """Return the longest known run at the start of what looks like the array ``field`` in ``body``.

        The caller must verify that it is that array: the same bytes might appear elsewhere.
        """
        root = self._roots.get(wire)
        start = array_start(field, body)
        if root is None or start < 0 or not self._lock.acquire(blocking=False):
            return None
        try:
            node, end, texts = root, start, list[bytes]()
            while node.children:
                child = node.children[0]  # nearly always the right one
                if not body.startswith(child.source, end) and not (child := _other(node, body, end)):
                    break
                node = child
                end += len(node.source)
                texts.append(node.text)
            return Known(start, end, texts, node) if texts else None
        finally:
            self._lock.release()

    def add(self, wire: str, after: Known | None, runs: list[tuple[bytes, bytes]]) -> None:
        """Remember ``runs`` (source, text), neither empty, each following the one before it."""
        size = sum(len(source) + len(text) for source, text in runs)
        if not runs or size > self._capacity_bytes or not self._lock.acquire(blocking=False):
            return
        try:
            self._make_room(size)  # may drop what the runs follow; then they are dropped with it
            node = after.node if after else self._roots.setdefault(wire, _Node(b"", b""))
            for source, text in runs:
                child = _Node(source, text)
                node.children.insert(0, child)
                del node.children[_CHILDREN:]
                node = child
        finally:
            self._lock.release()

    def memo(self, kind: str, source: bytes, convert: Callable[[], bytes]) -> bytes:
        """Return ``convert()``, cached by ``source``."""
        found = self._memo.get((kind, source))
        if found is not None:
            return found
        text = convert()
        size = len(source) + len(text)
        if size <= self._capacity_bytes and self._lock.acquire(blocking=False):
            try:
                self._make_room(size)
                self._memo[kind, source] = text
            finally:
                self._lock.release()
        return text

    def _make_room(self, size: int) -> None:
        """Reserve ``size`` bytes; drop everything if there is no room."""
        if self._size_bytes + size > self._capacity_bytes:
            self._roots, self._memo, self._size_bytes = {}, {}, 0
        self._size_bytes += size


def _other(node: _Node, body: bytes, at: int) -> _Node | None:
    """Return a child other than the first whose source is at ``at``; it becomes the first."""
    children = node.children
    for index in range(1, len(children)):
        if body.startswith(children[index].source, at):
            children.insert(0, children.pop(index))
            return children[0]
    return None


def array_start(field: str, body: bytes) -> int:
    """Return where the first item of the array ``field`` seems to begin; -1 if nowhere."""
    found = re.compile(rb'"%s"\s*:\s*\[\s*' % field.encode()).search(body)
    return found.end() if found else -1
