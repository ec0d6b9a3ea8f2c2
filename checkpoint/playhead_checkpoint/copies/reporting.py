"""Where a recording hears of what is put into stores. Without one nothing happens here."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playhead_checkpoint.copies.cleaning import Redacts
    from playhead_checkpoint.copies.copier import StateCopier
    from playhead_checkpoint.store.protocol import Checkpoint
    from playhead_checkpoint.tree.nodes import Node
    from playhead_checkpoint.tree.reading import Load


def told(
    load: Load,
    stored: Checkpoint,
    packed: bytes,
    fresh: Mapping[bytes, Node],
    roots: Collection[bytes],
) -> None:
    """A store keeps a packed state now. A recording wraps this function.

    ``load``: reads nodes of the store. ``fresh``: those that were sent to it, by digest. ``roots``: the
    nodes that the packed state refers to.
    """


def noted(
    load: Load, id: bytes, packed: Mapping[str, bytes], fresh: Mapping[bytes, Node], *, replace: bool
) -> None:
    """A store keeps packed notes of a checkpoint now; else as `told`.

    ``replace``: they win over earlier ones.
    """


def copier(redactor: Redacts, most_bytes: int) -> StateCopier:
    """What makes copies for a recording; only then it is imported."""
    from playhead_checkpoint.copies.copier import StateCopier

    return StateCopier(redactor, most_bytes)
