"""Checkpoints on the tapes of a run: places that were marked to go back to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from playhead_replay.run.run import Run
from playhead_semconv import attributes as a
from playhead_semconv import events as e
from playhead_semconv.errors import UsageError
from playhead_semconv.tape.indexed_tapes import IndexedTape
from playhead_semconv.tape.span_starts import TELL_STARTS, starts_among


@dataclass(frozen=True, slots=True)
class StoredState:
    """A checkpoint of a framework in a store of checkpoints, as the tape tells of it."""

    id: str
    """In the store, hexadecimal."""
    parent: str
    """Id of the one before it; empty: the first."""
    thread: str
    name: str
    """What the framework calls it."""
    size_bytes: int
    digest: str


@dataclass(frozen=True, slots=True)
class MarkedPlace:
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
    """Where its state is kept besides; None: it is only a place on the tape."""

    @property
    def name(self) -> str:
        """``c1``."""
        return f"c{self.number}"


def checkpoints_of(run: Run) -> list[MarkedPlace]:
    """The checkpoints of all processes of a run, in order of time."""
    steps = {step.span.span_id: step.number for step in run.steps}
    found: list[MarkedPlace] = []
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
                MarkedPlace(
                    0,
                    str(at.get(a.PLAYHEAD_CHECKPOINT_KIND, "")),
                    str(at.get(a.PLAYHEAD_CHECKPOINT_LABEL, "")),
                    max((number for seq, number in begun if seq < fact.seq), default=0),
                    fact.span_id.hex(),
                    fact.seq,
                    fact.time_ns,
                    tuple(map(str, cast("list[Any]", names))) if isinstance(names, list) else (),
                    tape,
                    _stored(at),
                )
            )
    found.sort(key=lambda one: (one.time_ns, one.seq))
    return [replace(one, number=number) for number, one in enumerate(found, 1)]


def _stored(at: Mapping[str, Any]) -> StoredState | None:
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
    )


def checkpoint_named(run: Run, name: str) -> MarkedPlace:
    """A checkpoint of a run, by ``c1``, its id in a store, or the name that a framework gave it.

    Of one that was put several times, the last. `UsageError` if the run has none of that name.
    """
    found = checkpoints_of(run)
    for one in reversed(found):
        if one.name == name or (one.stored is not None and name in (one.stored.id, one.stored.name)):
            return one
    has = f"it has c1 to c{len(found)}" if found else "the program marks them: playhead.checkpoint()"
    raise UsageError(
        f"{run.name} has no checkpoint {name}", cause=has, hint=f"playhead checkpoints {run.name}"
    )
