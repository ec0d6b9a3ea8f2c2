"""Several frames compressed together, so that repetitions across them are stored once."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from playhead_receiver.storage.content.compressed_frames import compress, decoded, decompress

BLOCK_BYTES = 1024 * 1024
"""Plain bytes of frames after which a block is full."""
LEVEL = 9
"""zstd level. Blocks are written once, off the acknowledgement path."""

_encode = msgspec.msgpack.Encoder().encode
_decode: msgspec.msgpack.Decoder[dict[int, msgspec.Raw]] = msgspec.msgpack.Decoder(
    dict[int, msgspec.Raw]
)


def pack_block(frames: Mapping[int, bytes]) -> bytes:
    """Make a block of plain frames, given by number."""
    return compress(_encode({id: msgspec.Raw(plain) for id, plain in frames.items()}), LEVEL)


def open_block(data: bytes) -> dict[int, bytes]:
    """The inverse of `pack_block`. `CorruptTape` if the block is damaged."""
    return {id: bytes(plain) for id, plain in decoded(_decode, decompress(data)).items()}
