"""Packs the spans of one trace in one commit into one frame. Texts already stored become references."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import msgspec
from blake3 import blake3

from playhead_receiver.storage.content.compressed_frames import compress
from playhead_receiver.storage.content.cut_points import seams
from playhead_receiver.storage.content.cutting import DIGEST_BYTES, CutSpan, Piece
from playhead_receiver.storage.content.texts import SPAN, TEXT, address_of, frame_of, relative

REMEMBERED = 131_072
"""Texts in one generation of the index's cache, which has two."""

LEAST_PART_BYTES = 64
"""A shorter part is stored inline and not shared."""

LOOKED_UP = 256
"""How many prefixes of a text are looked up on disk, the longest first."""

_encode = msgspec.msgpack.Encoder().encode


class Recent:
    """Digest → address of the recently used texts."""

    def __init__(self) -> None:
        self._young: dict[bytes, int] = {}
        self._old: dict[bytes, int] = {}

    def get(self, digest: bytes) -> int | None:
        """The address of a text; None if it is not in the cache."""
        found = self._young.get(digest)
        if found is None:
            found = self._old.get(digest)
            if found is not None:
                self.put(digest, found)
        return found

    def put(self, digest: bytes, address: int) -> None:
        """Remember the address of a text."""
        self._young[digest] = address
        if len(self._young) > REMEMBERED:
            self._old, self._young = self._young, {}

    def clear(self) -> None:
        """Forget all."""
        self._young.clear()
        self._old.clear()


class TextIndex:
    """Finds texts that are stored already. A miss costs a second copy of the text, nothing else.

    ``stored`` looks a digest up on disk; ``store`` keeps one there, for texts that others may extend.
    ``kept`` says which of many digests are on disk.
    """

    def __init__(
        self,
        stored: Callable[[bytes], int | None],
        store: Callable[[bytes, int], None],
        kept: Callable[[list[bytes]], Collection[bytes]],
    ) -> None:
        self.pieces = Recent()
        self.wholes = Recent()
        self._stored = stored
        self._store = store
        self._kept = kept

    def clear(self) -> None:
        """Empty the caches."""
        self.pieces.clear()
        self.wholes.clear()

    def find(self, digest: bytes) -> int | None:
        """The address of a text by its digest, from the caches; None if they do not hold it."""
        found = self.wholes.get(digest)
        return self.pieces.get(digest) if found is None else found

    def worth_asking(self, digests: list[bytes]) -> Collection[bytes]:
        """Those of ``digests`` that may be on disk."""
        return self._kept(digests)

    def find_stored(self, digest: bytes) -> int | None:
        """The address of a text by its digest, from disk; None if it is not there."""
        found = self._stored(digest)
        if found is not None:
            self.wholes.put(digest, found)
        return found

    def add_whole(self, digest: bytes, address: int) -> None:
        """Register a text that others may extend, in the cache and on disk."""
        self.wholes.put(digest, address)
        self._store(digest, address)


class Frame:
    """A frame that is being filled."""

    def __init__(self, index: TextIndex, number: int) -> None:
        self._index = index
        self._number = number
        self._items: list[Any] = []
        self.refers_to: set[int] = set()
        """Addresses of the texts in other frames that this frame refers to."""
        self.size_bytes = 0
        """Size of the items, once `data` has encoded them."""

    @property
    def items(self) -> list[Any]:
        """The items. Callers change nothing in them."""
        return self._items

    @property
    def next_place(self) -> int:
        """The place of the next item."""
        return len(self._items)

    def data(self) -> bytes:
        """The frame, compressed."""
        plain = _encode(self._items)
        self.size_bytes = len(plain)
        return compress(plain)

    def add(self, cut: CutSpan | bytes) -> None:
        """Put a span or a log record at `next_place`, and the texts that it needs after it."""
        if isinstance(cut, bytes):
            self._items.append(cut)
            return
        item: list[Any] = [SPAN, cut.rest, cut.check]
        self._items.append(item)
        for piece in cut.pieces:
            item += (piece.offset, self._refer(self._text(cut.source, piece)))

    def _refer(self, address: int) -> int:
        if frame_of(address) != self._number:
            self.refers_to.add(address)
        return relative(address, self._number)

    def _add(self, item: Any) -> int:
        self._items.append(item)
        return address_of(self._number, len(self._items) - 1)

    def _text(self, source: bytes, piece: Piece) -> int:
        found = self._index.find(piece.digest)
        if found is not None:
            return found
        begin, base, cuts = 0, None, piece.seams
        if piece.base:
            base = self._index.find(piece.base)
            begin = piece.base_bytes if base is not None else 0
        body = source[piece.begin + begin : piece.end]
        if base is None:
            cuts = seams(body, piece.kind)
            begin, base = self._longest_beginning(body, cuts)
            if base is not None and begin == len(body):
                return base
            body = body[begin:]
        parts = self._parts(body, [cut - begin for cut in cuts or () if cut > begin])
        if base is None and len(parts) == 1:
            if isinstance(parts[0], int):
                return parts[0]
            address = self._add(parts[0])
            self._index.pieces.put(piece.digest, address)
            return address
        item = [TEXT, None if base is None else self._refer(base)]
        item += [part if isinstance(part, bytes) else self._refer(part) for part in parts]
        address = self._add(item)
        if cuts:
            self._index.add_whole(piece.digest, address)
        else:
            self._index.wholes.put(piece.digest, address)
        return address

    def _longest_beginning(self, body: bytes, cuts: list[int]) -> tuple[int, int | None]:
        """Length and address of the longest stored prefix of ``body``; 0 and None if there is none."""
        if len(cuts) < 2:
            return 0, None
        hasher = blake3()
        at = 0
        begins: list[tuple[int, bytes]] = []
        for cut in cuts:
            hasher.update(body[at:cut])
            begins.append((cut, hasher.digest()[:DIGEST_BYTES]))
            at = cut
        begins.reverse()
        for cut, digest in begins:
            found = self._index.find(digest)
            if found is not None:
                return cut, found
        asked = begins[:LOOKED_UP]
        kept = self._index.worth_asking([digest for _, digest in asked])
        for cut, digest in asked:
            found = self._index.find_stored(digest) if digest in kept else None
            if found is not None:
                return cut, found
        return 0, None

    def _parts(self, body: bytes, cuts: list[int]) -> list[Any]:
        """Cut ``body`` into parts: short ones as bytes, others by address, each stored only once."""
        parts: list[Any] = []
        begin = 0
        for cut in (*cuts, len(body)):
            if cut == begin:
                continue
            part = body[begin:cut]
            begin = cut
            if len(part) >= LEAST_PART_BYTES:
                digest = blake3(part).digest()[:DIGEST_BYTES]
                address = self._index.pieces.get(digest)
                if address is None:
                    address = self._add(part)
                    self._index.pieces.put(digest, address)
                parts.append(address)
            elif parts and isinstance(parts[-1], bytes):
                parts[-1] += part
            else:
                parts.append(part)
        return parts
