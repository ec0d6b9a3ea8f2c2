"""The protocol of checkpoint stores and its value types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

import msgspec

from playhead_checkpoint.tree.difference import StateChange
from playhead_checkpoint.tree.types import Types

CheckpointKind: TypeAlias = Literal["auto", "manual", "framework", "workspace"]

RESTS_ON_PARENT: Final = "rests-on-parent"
"""Label of a checkpoint of a thread whose state needs its parent to be complete."""

MEMORY: Final = "memory"
"""First label of a checkpoint that is an item: other names in its thread are other items."""


class Lineage(msgspec.Struct, frozen=True):
    """Where a checkpoint comes from.

    ``run``: trace id, 16 bytes, or empty. ``span``: span id, 8 bytes, or empty. ``parent``: id of
    the checkpoint before it, or empty; it need not exist. ``time_ns``: nanoseconds since 1970,
    UTC; 0: now. ``labels``: at most 64, of at most 256 characters. ``id``: 16 bytes; empty: derived from
    state and lineage, so that the same put makes the same checkpoint. ``thread``: a conversation of a
    framework, over all of its runs; ``name``: of the checkpoint in it, which defines the order.
    """

    run: bytes = b""
    span: bytes = b""
    kind: CheckpointKind = "manual"
    parent: bytes = b""
    time_ns: int = 0
    labels: tuple[str, ...] = ()
    id: bytes = b""
    thread: str = ""
    name: str = ""


class Checkpoint(msgspec.Struct, frozen=True):
    """A stored checkpoint, without its state.

    ``id``: 16 bytes. ``size_bytes``: of the packed state, without sharing. ``digest``: 32 bytes, equal
    for equal states. ``lineage``: with the stored id and time.
    """

    id: bytes
    lineage: Lineage
    size_bytes: int
    digest: bytes


class Contents(NamedTuple):
    """A checkpoint with its state and its notes by key."""

    checkpoint: Checkpoint
    state: Any
    notes: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Freed:
    """Result of a deletion. ``stored_bytes``: size of the deleted nodes on disk."""

    checkpoints: int = 0
    nodes: int = 0
    stored_bytes: int = 0


@runtime_checkable
class CheckpointStore(Protocol):
    """Stores states by content: a checkpoint takes only the space that it does not share with others.

    Threads and processes may use it concurrently. A checkpoint that `put` has returned survives the
    death of the process; a put that did not return left a whole checkpoint or none. All methods raise
    `StoreUnavailable` if the store cannot be used now, and `CorruptTape` if it is damaged.
    """

    def put(
        self,
        state: Any,
        lineage: Lineage = ...,
        types: Types | None = None,
        *,
        replace: bool = False,
    ) -> Checkpoint:
        """Store a state.

        If the id exists with the same state, run and parent, nothing changes. If it belongs to another
        checkpoint, that one is replaced with ``replace`` (its notes stay), else `CheckpointTaken`.
        `StateRefused` if a value cannot be stored.
        """
        ...

    def checkpoint(self, id: bytes) -> Checkpoint:
        """Return the checkpoint with an id. `CheckpointUnknown` if there is none."""
        ...

    def state(self, id: bytes, types: Types | None = None) -> Any:
        """Return the state as new objects. A value of a type that is not in ``types`` is `Unregistered`.

        ``types``: by default those with which the store was opened. `CheckpointUnknown`.
        """
        ...

    def contents(self, id: bytes, types: Types | None = None) -> Contents:
        """Return checkpoint, state and notes, consistently; else as `state`."""
        ...

    def difference(self, before: bytes, after: bytes) -> list[StateChange]:
        """Compare the states of two checkpoints. `CheckpointUnknown`."""
        ...

    def latest(self, run: bytes) -> Checkpoint | None:
        """Return the checkpoint of a run that was stored last."""
        ...

    def checkpoints(
        self, run: bytes | None = None, *, before: bytes = b"", limit: int = 100
    ) -> list[Checkpoint]:
        """Return checkpoints, the newest first; ``before``: only those stored before that one.

        ``run``: only those of one run. `CheckpointUnknown` if ``before`` does not exist.
        """
        ...

    def of_thread(self, thread: str, *, before: str = "", limit: int | None = None) -> list[Checkpoint]:
        """Return checkpoints of a thread, greatest name first; ``before``: only smaller names."""
        ...

    def threads(self, start: str = "") -> list[str]:
        """Return the threads whose names begin with ``start``, sorted."""
        ...

    def note(
        self, id: bytes, notes: Mapping[str, Any], types: Types | None = None, *, replace: bool = False
    ) -> None:
        """Add notes to a checkpoint, all or none; ``notes``: values by key.

        An existing key keeps its value, unless ``replace`` is set. The checkpoint may be stored later.
        `StateRefused`.
        """
        ...

    def notes(self, id: bytes, types: Types | None = None) -> dict[str, Any]:
        """Return the notes of a checkpoint, in the order in which they were added."""
        ...

    def delete(self, ids: Sequence[bytes]) -> Freed:
        """Delete checkpoints, their notes, and unused nodes. Unknown ids are ignored."""
        ...

    def delete_run(self, run: bytes) -> Freed:
        """Delete the checkpoints of a run, as `delete`.

        Checkpoints that other runs need (see `RESTS_ON_PARENT`) stay.
        """
        ...

    def damages(self) -> list[str]:
        """Read the whole store, and return a line for each damaged or missing part."""
        ...

    def close(self) -> None:
        """Close the store. Idempotent."""
        ...
