"""What a store of checkpoints is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

import msgspec

from playhead_checkpoint.tree.difference import StateChange
from playhead_checkpoint.tree.types import Types

CheckpointKind: TypeAlias = Literal["auto", "manual", "framework", "workspace"]

RESTS_ON_PARENT: Final = "rests-on-parent"
"""Label of a checkpoint of a thread whose state is not whole without its parent."""

MEMORY: Final = "memory"
"""First label of a checkpoint that is an item: those of other names in its thread stand beside it."""


class Lineage(msgspec.Struct, frozen=True):
    """Where a checkpoint comes from.

    ``run``: trace id, 16 bytes, or empty. ``span``: span id, 8 bytes, or empty. ``parent``: id of
    the checkpoint before it, or empty; it need not be there (any longer). ``time_ns``: nanoseconds
    since 1970, UTC; 0: now. ``labels``: at most 64, of at most 256 characters. ``id``: 16 bytes;
    empty: it follows from state and lineage, so the same put is the same checkpoint. ``thread``: a
    conversation of a framework, over all of its runs; ``name``: of the checkpoint in it, by which it
    is ordered there.
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

    ``id``: 16 bytes. ``size_bytes``: the state packed as a whole, nothing shared. ``digest``: 32 bytes,
    equal for equal states. ``lineage`` has id and time as they are stored.
    """

    id: bytes
    lineage: Lineage
    size_bytes: int
    digest: bytes


class Contents(NamedTuple):
    """A checkpoint with its state, and with its notes by key."""

    checkpoint: Checkpoint
    state: Any
    notes: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Freed:
    """What a deletion took away. ``stored_bytes``: of the nodes, as they were on disk."""

    checkpoints: int = 0
    nodes: int = 0
    stored_bytes: int = 0


@runtime_checkable
class CheckpointStore(Protocol):
    """Keeps states by their content: a checkpoint takes what no other one has.

    Any thread and any process may use it at the same time. What `put` has returned survives the death of
    the process; a put that did not return left a whole checkpoint or none. All methods raise
    `StoreUnavailable` when the store cannot be used now, and `CorruptTape` when it is damaged.
    """

    def put(
        self,
        state: Any,
        lineage: Lineage = ...,
        types: Types | None = None,
        *,
        replace: bool = False,
    ) -> Checkpoint:
        """Keep a state. A put with an id that is there, of the same state, run and parent, changes
        nothing; of another one it is refused, or with ``replace`` takes the place of that one, whose
        notes stay, at once.

        `StateRefused`: a value cannot be stored; `CheckpointTaken`: the id is that of another
        checkpoint.
        """
        ...

    def checkpoint(self, id: bytes) -> Checkpoint:
        """The checkpoint of an id. `CheckpointUnknown`: there is none."""
        ...

    def state(self, id: bytes, types: Types | None = None) -> Any:
        """The state, as new objects. A value of a type that is not in ``types`` is an `Unregistered`.

        ``types``: default is what the store was opened with. `CheckpointUnknown`.
        """
        ...

    def contents(self, id: bytes, types: Types | None = None) -> Contents:
        """The checkpoint of an id, its state and notes, as they were at one time; else as `state`."""
        ...

    def difference(self, before: bytes, after: bytes) -> list[StateChange]:
        """What differs between the states of two checkpoints. `CheckpointUnknown`."""
        ...

    def latest(self, run: bytes) -> Checkpoint | None:
        """The checkpoint of a run that was put last."""
        ...

    def checkpoints(
        self, run: bytes | None = None, *, before: bytes = b"", limit: int = 100
    ) -> list[Checkpoint]:
        """Checkpoints, those put last first; ``before``: only those put before that one.

        ``run``: only those of one run. `CheckpointUnknown`: there is no ``before``.
        """
        ...

    def of_thread(self, thread: str, *, before: str = "", limit: int | None = None) -> list[Checkpoint]:
        """Checkpoints of a thread, greatest name first; ``before``: only those of smaller names."""
        ...

    def threads(self, start: str = "") -> list[str]:
        """The threads whose names start so, in order."""
        ...

    def note(
        self, id: bytes, notes: Mapping[str, Any], types: Types | None = None, *, replace: bool = False
    ) -> None:
        """Say more about a checkpoint, all or nothing; ``notes``: values by key.

        A key that is there keeps its value, unless ``replace`` is said. The checkpoint may come later.
        `StateRefused`.
        """
        ...

    def notes(self, id: bytes, types: Types | None = None) -> dict[str, Any]:
        """What was said about a checkpoint, in the order in which it was said."""
        ...

    def delete(self, ids: Sequence[bytes]) -> Freed:
        """Delete checkpoints, notes of theirs, and unused nodes. Unknown ids are passed over."""
        ...

    def delete_run(self, run: bytes) -> Freed:
        """Delete the checkpoints of a run, as `delete`.

        Those stay on which checkpoints of other runs rest, as `RESTS_ON_PARENT` says.
        """
        ...

    def damages(self) -> list[str]:
        """Read the whole store, and return a line for each damaged or missing part."""
        ...

    def close(self) -> None:
        """Close it. Nothing happens when it is closed."""
        ...
