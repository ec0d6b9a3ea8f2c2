"""States that a program put into checkpoint stores, read from their copies on the tapes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from playhead_checkpoint.copies.copier import read_copy
from playhead_checkpoint.store.protocol import MEMORY
from playhead_checkpoint.tree.reading import Reader
from playhead_checkpoint.tree.types import Types
from playhead_core.facts import Content, ExchangeId
from playhead_replay.run.run import Run
from playhead_replay.run.states import State
from playhead_replay.timeline.checkpoints import MarkedCheckpoint, StoredState, checkpoints_of
from playhead_replay.timeline.copies import CopiedNodes
from playhead_replay.timeline.shown_values import shown_value

KIND: Final = "checkpoint"
SHOWN_BYTES: Final = 1 << 25
"""Largest size of a state that is shown, repeated nodes counted each time."""
_TYPES: Final = Types()
"""Types of the standard library; of other classes the parts are shown."""


@dataclass(frozen=True, slots=True)
class CheckpointState(State):
    """A state that was put into a checkpoint store, read from its copy."""

    states: StoredStates | None = field(default=None, compare=False, repr=False)

    @property
    def document(self) -> Any:
        """The value as JSON. `TapeError` if a part of it is not on the tapes."""
        return None if self.states is None else self.states.value(self)

    @property
    def value(self) -> Any:
        """The same."""
        return self.document

    @property
    def body(self) -> bytes:
        """The same, as JSON."""
        return json.dumps(self.document, ensure_ascii=False).encode()

    @property
    def unkept(self) -> list[str]:
        """Always empty: a store refuses values that cannot be stored."""
        return []


class StoredStates:
    """The copied states of a run."""

    def __init__(self, run: Run) -> None:
        self._checkpoints: Final = [one for one in checkpoints_of(run) if one.stored is not None]
        self._nodes: Final = CopiedNodes(run)

    def before(self, ends: Mapping[str, int]) -> dict[str, CheckpointState]:
        """Return the last state of each name.

        ``ends``: number of the first later fact of each tape, by process instance (hex).
        """
        found: dict[str, CheckpointState] = {}
        for one in self._checkpoints:
            if one.stored is not None and one.seq < ends[one.tape.instance.hex()]:
                found[_name(one, one.stored)] = self._state(one, one.stored)
        return found

    def value(self, state: State) -> Any:
        """Return the value of a copy as JSON. `TapeError`, `CorruptTape`."""
        copy = read_copy(state.tape.read(state.content))
        reader = Reader(self._nodes.load, _TYPES, most_bytes=SHOWN_BYTES)
        return shown_value(reader.value(copy.packed))

    def _state(self, place: MarkedCheckpoint, stored: StoredState) -> CheckpointState:
        id = ExchangeId(0, KIND, place.seq)
        content = stored.copy or Content(b"", stored.size_bytes)
        name = _name(place, stored)
        return CheckpointState(name, id, place.seq, content, place.tape, place.step, states=self)


def _name(place: MarkedCheckpoint, stored: StoredState) -> str:
    """Return the name of a state: by its thread, if it has one."""
    if not stored.thread:
        return f"{KIND} {place.label or place.kind}"
    words = [place.label, stored.thread, stored.name if place.label == MEMORY else ""]
    return " ".join(word for word in words if word)
