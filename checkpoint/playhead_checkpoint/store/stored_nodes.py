"""Nodes as engines store them: compressed where that pays, with their length beside."""

from __future__ import annotations

from typing import Final

from playhead_checkpoint.values.nodes import LARGEST_NODE_BYTES, damaged

_WORTH_BYTES: Final = 256
_LEVEL: Final = 3


def squeezed(node: bytes) -> bytes:
    """The node as it is stored: shorter than it is, or itself."""
    if len(node) < _WORTH_BYTES:
        return node
    import zstandard  # small states do without it

    data = zstandard.ZstdCompressor(level=_LEVEL).compress(node)
    return data if len(data) < len(node) else node


def stretched(data: bytes, size: int) -> bytes:
    """The node of ``size`` bytes. `CorruptTape`: it is none, or too large."""
    if len(data) == size:
        return data
    import zstandard

    try:
        if not len(data) < size <= LARGEST_NODE_BYTES or zstandard.frame_content_size(data) != size:
            raise damaged(f"a node of {size} bytes is stored in {len(data)}")
        return zstandard.ZstdDecompressor().decompress(data, allow_extra_data=False)
    except zstandard.ZstdError as problem:
        raise damaged(str(problem)) from None
