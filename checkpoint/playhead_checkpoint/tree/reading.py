"""Makes values from nodes. Stored data is hostile: digests, kinds, depth and sizes are checked."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from playhead_checkpoint.tree import nodes
from playhead_checkpoint.tree.encoding import head
from playhead_checkpoint.tree.entries import opened
from playhead_checkpoint.tree.nodes import DICT, LIST, TEXT, Node, Ref, damaged
from playhead_checkpoint.tree.stored_nodes import Leaves, NodeCache
from playhead_checkpoint.tree.types import Types
from playhead_core.errors import CorruptTape

Load: TypeAlias = Callable[[Collection[bytes]], Mapping[bytes, bytes]]
"""Loads nodes by their digests; missing ones are left out."""

LARGEST_STATE_BYTES: Final = 1 << 29
"""Largest size of one value in bytes of nodes, repeated nodes counted each time."""
_REF_BYTES: Final = 256
"""Memory that a node takes in addition to its own bytes while it is read."""


class Nodes:
    """Loads nodes and verifies them."""

    def __init__(self, load: Load, cache: NodeCache | None = None) -> None:
        self._load = load
        self._cache = NodeCache() if cache is None else cache
        self._loaded: dict[bytes, Node] = {}

    def want(self, refs: Iterable[Ref]) -> None:
        """Load the nodes of ``refs`` together. `CorruptTape` if one is missing or damaged."""
        digests: set[bytes] = set()
        for ref in refs:
            if ref.digest in self._loaded:
                continue
            if (known := self._cache.get(ref.digest)) is None:
                digests.add(ref.digest)
            else:
                self._loaded[ref.digest] = known
        found: Mapping[bytes, bytes] = self._load(digests) if digests else {}
        for digest in digests:
            if digest not in found:
                raise damaged(f"node {digest.hex()[:16]} is missing")
            node = self._loaded[digest] = nodes.opened(digest, found[digest])
            self._cache.add(digest, node)

    def want_all(self, refs: Iterable[Ref]) -> None:
        """Load ``refs`` and all nodes below, by level. `CorruptTape`: as `want`, or too large."""
        seen: set[Ref] = set()
        ahead = set(refs)
        size = 0
        while ahead:
            self.want(ahead)
            seen |= ahead
            below: set[Ref] = set()
            for ref in ahead:
                node = self[ref]
                size += len(node.payload)
                below.update(node.below)
            if size > LARGEST_STATE_BYTES:
                raise damaged(f"more than {LARGEST_STATE_BYTES} bytes of nodes")
            ahead = below - seen

    def known(self, ref: Ref) -> Node | None:
        """Return the node if it is in memory."""
        found = self._loaded.get(ref.digest) or self._cache.get(ref.digest)
        return None if found is None else nodes.of(ref, found)

    def __getitem__(self, ref: Ref) -> Node:
        return nodes.of(ref, self._loaded[ref.digest])


class _NotLoaded(Exception):
    """A node is not in memory."""


class Reader:
    """Unpacks values; ``cache``: shared cache of verified nodes.

    ``most_bytes``: largest size of one value, repeated nodes counted each time.
    """

    def __init__(
        self,
        load: Load,
        types: Types,
        cache: NodeCache | None = None,
        *,
        most_bytes: int = LARGEST_STATE_BYTES,
    ) -> None:
        self._most_bytes = most_bytes
        self._cache = NodeCache() if cache is None else cache
        self._nodes = Nodes(load, self._cache)
        self._types = types
        self._room = self._most_bytes
        self._depth = 0

    def value(self, data: bytes) -> Any:
        """Return the whole value. Equal parts are separate objects.

        `CorruptTape` if a node is missing or damaged, or the value is nested too deep or too large.
        """
        try:
            return self._from_memory(data)
        except _NotLoaded:
            self._nodes.want_all(nodes.refs_in(data))
            return self._from_memory(data)

    def _from_memory(self, data: bytes) -> Any:
        """Return the value, from nodes in memory alone. `_NotLoaded`."""
        self._room = self._most_bytes
        self._depth = 0
        try:
            return self._unpack(data)
        except nodes.UNPACKABLE as problem:
            raise damaged(f"{type(problem).__name__}: {problem}") from None

    def _unpack(self, data: bytes | memoryview) -> Any:
        """Unpack a value. A decoder is not kept: it would form a reference cycle with the reader."""
        return msgspec.msgpack.decode(data, ext_hook=self._extension)

    def _extension(self, code: int, data: memoryview) -> Any:
        self._depth += 1
        if self._depth > nodes.MOST_DEPTH:
            raise damaged(f"nested deeper than {nodes.MOST_DEPTH} levels")
        if code == nodes.TYPED:
            found = self._types.together(*nodes.named(self._unpack(data)))
        elif code == nodes.REF:
            found = self._whole(nodes.unpacked_ref(data))
        elif code == nodes.OPEN:
            refs, tail = nodes.opened_list(data)
            found: Any = self._whole(refs[0]) if refs else []
            for ref in refs[1:]:
                found += self._whole(ref)
            found += self._unpack(tail)
        else:
            raise damaged(f"an extension {code}")
        self._depth -= 1
        return found

    def _whole(self, ref: Ref) -> Any:
        """Return the value of a reference."""
        leaves = self._cache.leaves(ref) or self._leaves(ref)
        self._room -= leaves.size
        if self._room < 0:
            raise CorruptTape(f"a stored state takes more than {self._most_bytes} bytes")
        if ref.kind == LIST:
            return self._unpack(leaves.payloads[0])
        if ref.kind == DICT:
            pairs: dict[str, Any] = {}
            for payload in leaves.payloads:
                pairs.update(self._unpack(payload))
            if len(pairs) != ref.length:
                raise damaged(f"{len(pairs)} keys instead of {ref.length}")
            return pairs
        data = b"".join(leaves.payloads)
        return data.decode() if ref.kind == TEXT else data

    def _leaves(self, ref: Ref) -> Leaves:
        """Return the leaves below a reference, from nodes in memory."""
        found = [self._node(ref)]
        size = len(found[0].payload) + _REF_BYTES
        while found[0].level:
            found = [self._node(below) for node in found for below in node.below]
            size += sum(len(node.payload) + _REF_BYTES for node in found)
            if size > self._most_bytes:
                raise CorruptTape(f"a stored state takes more than {self._most_bytes} bytes")
        payloads = [node.payload for node in found]
        leaves = Leaves([_one_list(payloads)] if ref.kind == LIST else payloads, size)
        self._cache.add_leaves(ref, leaves)
        return leaves

    def _node(self, ref: Ref) -> Node:
        found = self._nodes.known(ref)
        if found is None:
            raise _NotLoaded
        return found


def _one_list(payloads: list[memoryview]) -> memoryview:
    """Join packed lists into one, which is then unpacked in one go."""
    if len(payloads) == 1:
        return payloads[0]
    starts = [opened(payload, 0) for payload in payloads]
    entries = (payload[start:] for payload, (_, start) in zip(payloads, starts, strict=True))
    return memoryview(head(LIST, sum(count for count, _ in starts)) + b"".join(entries))
