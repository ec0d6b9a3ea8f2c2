"""Several frames compressed as one: what they have in common is found across them."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from playhead_receiver.store.content.compressed_frames import compress, decoded, decompress

BLOCK_BYTES = 1024 * 1024
"""Plain bytes of frames that one block takes before the next one begins."""
LEVEL = 9
"""Blocks are written once, off the acknowledgement path."""

_encode = msgspec.msgpack.Encoder().encode
_decode: msgspec.msgpack.Decoder[dict[int, msgspec.Raw]] = msgspec.msgpack.Decoder(
    dict[int, msgspec.Raw]
)


def pack_block(frames: Mapping[int, bytes]) -> bytes:
    """A block of plain frames by their numbers."""
    return compress(_encode({id: msgspec.Raw(plain) for id, plain in frames.items()}), LEVEL)


def open_block(data: bytes) -> dict[int, bytes]:
    """The inverse of `pack_block`. `CorruptTape`."""
    return {id: bytes(plain) for id, plain in decoded(_decode, decompress(data)).items()}
