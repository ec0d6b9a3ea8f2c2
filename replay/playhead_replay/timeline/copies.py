"""Reads the copies of checkpoint states from the tapes of a run."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from playhead_checkpoint.copies.copier import Copy, NotesCopy, read_copy, read_notes_copy
from playhead_checkpoint.tree import nodes
from playhead_core.errors import TapeError
from playhead_core.facts import Content, Fact
from playhead_core.tape.indexed_tapes import IndexedTape
from playhead_replay.run.run import Run
from playhead_semconv import events as e


class RecordedCopy(NamedTuple):
    """A copy on a tape."""

    tape: IndexedTape
    fact: Fact
    content: Content

    def read(self) -> Copy | NotesCopy:
        """Decode the copy. `TapeError`, `CorruptTape`."""
        data = self.tape.read(self.content)
        return read_copy(data) if self.fact.name == e.PLAYHEAD_CHECKPOINT else read_notes_copy(data)


def copy_in(fact: Fact) -> Content | None:
    """Return the copy in a fact about a checkpoint; None if it has none."""
    body = fact.body
    if body is None or not body.digest or body.base is not None:
        return body
    return Content(body.digest, body.size)


class CopiedNodes:
    """The nodes in the copies of a run, by digest. The copies are indexed at the first request."""

    def __init__(self, run: Run) -> None:
        self._tapes: Final = run.tapes
        self._found: dict[bytes, tuple[RecordedCopy, int]] | None = None

    def places(self) -> list[RecordedCopy]:
        """Return all copies, in order of time."""
        found = [
            RecordedCopy(tape, fact, content)
            for tape in self._tapes
            for fact in tape.named(e.PLAYHEAD_CHECKPOINT, e.PLAYHEAD_CHECKPOINT_NOTES)
            if (content := copy_in(fact)) is not None
        ]
        return sorted(found, key=lambda one: (one.fact.time_ns, one.fact.seq))

    def load(self, digests: Collection[bytes]) -> Mapping[bytes, bytes]:
        """Return nodes by their digests. `TapeError` if one is not on the tapes of the run."""
        if self._found is None:
            self._found = self._index_copies()
        found: dict[bytes, bytes] = {}
        for digest in digests:
            if digest not in self._found:
                raise TapeError(
                    f"a part of the state ({digest.hex()[:16]}) is not on the tapes of the run"
                )
            place, at = self._found[digest]
            found[digest] = place.read().nodes[at]
        return found

    def _index_copies(self) -> dict[bytes, tuple[RecordedCopy, int]]:
        found: dict[bytes, tuple[RecordedCopy, int]] = {}
        for place in self.places():
            try:
                held = place.read().nodes
            except TapeError:  # reading a state that needs it raises the error
                continue
            for at, node in enumerate(held):
                found.setdefault(nodes.digest_of(node), (place, at))
        return found
