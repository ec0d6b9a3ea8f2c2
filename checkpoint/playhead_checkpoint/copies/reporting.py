"""Hooks that a recording patches to learn of stored states. Without a recording they do nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playhead_checkpoint.copies.cleaning import Redacts
    from playhead_checkpoint.copies.copier import StateCopier
    from playhead_checkpoint.store.protocol import Checkpoint
    from playhead_checkpoint.tree.nodes import Node
    from playhead_checkpoint.tree.reading import Load


def report_state(
    load: Load,
    stored: Checkpoint,
    packed: bytes,
    fresh: Mapping[bytes, Node],
    roots: Collection[bytes],
) -> None:
    """Report that a store has stored a packed state. A recording wraps this function.

    ``load``: reads nodes of the store. ``fresh``: nodes that were sent to it, by digest. ``roots``: the
    nodes that the packed state refers to.
    """


def report_notes(
    load: Load, id: bytes, packed: Mapping[str, bytes], fresh: Mapping[bytes, Node], *, replace: bool
) -> None:
    """Report that a store has stored packed notes of a checkpoint; else as `report_state`.

    ``replace``: they replace earlier ones.
    """


def copier(redactor: Redacts, most_bytes: int) -> StateCopier:
    """Make a copier for a recording; its module is imported only then."""
    from playhead_checkpoint.copies.copier import StateCopier

    return StateCopier(redactor, most_bytes)
