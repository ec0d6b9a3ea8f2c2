"""Reads the checkpoints of a run from its tapes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, cast

from playhead_checkpoint.store.protocol import Checkpoint
from playhead_core.errors import UsageError
from playhead_core.facts import Content, Fact
from playhead_core.tape.indexed_tapes import IndexedTape
from playhead_core.tape.span_starts import TELL_STARTS, starts_among
from playhead_replay.json_objects.recorded import StoredCheckpoint
from playhead_replay.run.run import Run
from playhead_replay.timeline.copies import copy_in
from playhead_semconv import attributes as a
from playhead_semconv import events as e


@dataclass(frozen=True, slots=True)
class StoredState:
    """A checkpoint of a framework in a checkpoint store, as recorded on the tape."""

    id: str
    """In the store, hexadecimal."""
    parent: str
    """Id of the previous checkpoint; empty for the first."""
    thread: str
    name: str
    """Its name in the framework."""
    size_bytes: int
    digest: str
    copy: Content | None = field(default=None, compare=False, repr=False)
    """The copy of the state on the tape; None if only the store has it."""


@dataclass(frozen=True, slots=True)
class MarkedCheckpoint:
    """One checkpoint of a run."""

    number: int
    """From 1, in order of time; ``c1`` on the command line."""
    kind: str
    """``manual``, ``auto`` or ``framework``."""
    label: str
    step: int
    """Number of the last step that had begun; 0 before the first."""
    span_id: str
    seq: int
    time_ns: int
    states: tuple[str, ...]
    """Names of the states that were reported for it."""
    tape: IndexedTape = field(compare=False, repr=False)
    stored: StoredState | None = None
    """Its state in a checkpoint store; None if it is only a position on the tape."""

    @property
    def name(self) -> str:
        """``c1``."""
        return f"c{self.number}"

    @property
    def names(self) -> tuple[str, ...]:
        """All names: that name, its id in a store, and its name in the framework."""
        return (self.name,) if self.stored is None else (self.name, self.stored.id, self.stored.name)


def checkpoints_of(run: Run) -> list[MarkedCheckpoint]:
    """Return the checkpoints of all processes of a run, in order of time."""
    steps = {step.span.span_id: step.number for step in run.steps}
    found: list[MarkedCheckpoint] = []
    for tape in run.tapes:
        begun = [
            (fact.seq, steps[fact.span_id.hex()])
            for fact in starts_among(tape.named(*TELL_STARTS))
            if fact.span_id.hex() in steps
        ]
        for fact in tape.named(e.PLAYHEAD_CHECKPOINT):
            at = fact.attributes
            names: Any = at.get(a.PLAYHEAD_CHECKPOINT_STATES)
            found.append(
                MarkedCheckpoint(
                    0,
                    str(at.get(a.PLAYHEAD_CHECKPOINT_KIND, "")),
                    str(at.get(a.PLAYHEAD_CHECKPOINT_LABEL, "")),
                    max((number for seq, number in begun if seq < fact.seq), default=0),
                    fact.span_id.hex(),
                    fact.seq,
                    fact.time_ns,
                    tuple(map(str, cast("list[Any]", names))) if isinstance(names, list) else (),
                    tape,
                    _stored(fact),
                )
            )
    found.sort(key=lambda one: (one.time_ns, one.seq))
    return [replace(one, number=number) for number, one in enumerate(found, 1)]


def _stored(fact: Fact) -> StoredState | None:
    at = fact.attributes
    id = str(at.get(a.PLAYHEAD_CHECKPOINT_ID, ""))
    if not id:
        return None
    size = at.get(a.PLAYHEAD_CHECKPOINT_SIZE_BYTES)
    return StoredState(
        id,
        str(at.get(a.PLAYHEAD_CHECKPOINT_PARENT, "")),
        str(at.get(a.PLAYHEAD_CHECKPOINT_THREAD, "")),
        str(at.get(a.PLAYHEAD_CHECKPOINT_NAME, "")),
        size if isinstance(size, int) else 0,
        str(at.get(a.PLAYHEAD_CHECKPOINT_DIGEST, "")),
        copy_in(fact),
    )


def checkpoint_named(run: Run, name: str) -> MarkedCheckpoint:
    """Return a checkpoint by ``c1``, its id in a store, or its name in a framework.

    If it was put several times, the last one; if it was copied to another thread, the original.
    `UsageError` if the run has no such checkpoint.
    """
    found = checkpoints_of(run)
    meant = [one for one in found if name in one.names]
    if meant:
        return [one for one in meant if _id(one) == _id(meant[0])][-1]
    has = f"it has c1 to c{len(found)}" if found else "the program marks them: playhead.checkpoint()"
    raise UsageError(
        f"{run.name} has no checkpoint {name}", cause=has, hint=f"playhead checkpoints {run.name}"
    )


def _id(place: MarkedCheckpoint) -> str:
    return place.name if place.stored is None else place.stored.id


def checkpoint_object(found: Checkpoint) -> StoredCheckpoint:
    """Return a checkpoint of a checkpoint store as an object of plain values."""
    lineage = found.lineage
    return {
        "id": found.id.hex(),
        "run": lineage.run.hex(),
        "span": lineage.span.hex(),
        "kind": lineage.kind,
        "parent": lineage.parent.hex(),
        "time_ns": lineage.time_ns,
        "labels": list(lineage.labels),
        "thread": lineage.thread,
        "name": lineage.name,
        "size_bytes": found.size_bytes,
        "digest": found.digest.hex(),
    }
