"""The states that a program put into stores of checkpoints, of their copies on the tapes of a run."""

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
from playhead_replay.timeline.checkpoints import MarkedPlace, StoredState, checkpoints_of
from playhead_replay.timeline.copies import CopiedNodes
from playhead_replay.timeline.shown_values import shown_value

KIND: Final = "checkpoint"
SHOWN_BYTES: Final = 1 << 25
"""Bytes that a state which is shown takes at most, a node counted as often as it stands there."""
_TYPES: Final = Types()
"""Those of the standard library; of the classes of a program the parts are shown."""


@dataclass(frozen=True, slots=True)
class KeptState(State):
    """A state that was put into a store of checkpoints; it is read from its copy."""

    states: StoredStates | None = field(default=None, compare=False, repr=False)

    @property
    def document(self) -> Any:
        """The value as JSON has it. `TapeError`: a part of it is not on the tapes of the run."""
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
        """Nothing: what cannot be kept is refused where it is put."""
        return []


class StoredStates:
    """The states of a run that are on its tapes as copies."""

    def __init__(self, run: Run) -> None:
        self._places: Final = [one for one in checkpoints_of(run) if one.stored is not None]
        self._nodes: Final = CopiedNodes(run)

    def before(self, ends: Mapping[str, int]) -> dict[str, KeptState]:
        """The last state of each name.

        ``ends``: number of the first fact of each tape that comes later, by process instance (hex).
        """
        found: dict[str, KeptState] = {}
        for one in self._places:
            if one.stored is not None and one.seq < ends[one.tape.instance.hex()]:
                found[_name(one, one.stored)] = self._state(one, one.stored)
        return found

    def value(self, state: State) -> Any:
        """The value of a copy as JSON has it. `TapeError`, `CorruptTape`."""
        copy = read_copy(state.tape.read(state.content))
        reader = Reader(self._nodes.load, _TYPES, most_bytes=SHOWN_BYTES)
        return shown_value(reader.value(copy.packed))

    def _state(self, place: MarkedPlace, stored: StoredState) -> KeptState:
        id = ExchangeId(0, KIND, place.seq)
        content = stored.copy or Content(b"", stored.size_bytes)
        name = _name(place, stored)
        return KeptState(name, id, place.seq, content, place.tape, place.step, states=self)


def _name(place: MarkedPlace, stored: StoredState) -> str:
    """What a state is called: by the thread in which one follows the other."""
    if not stored.thread:
        return f"{KIND} {place.label or place.kind}"
    words = [place.label, stored.thread, stored.name if place.label == MEMORY else ""]
    return " ".join(word for word in words if word)
