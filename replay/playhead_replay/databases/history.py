"""What tapes say of SQLite databases: what one held when it was opened, and what has changed since.

Before each exchange it is told what has changed by then (`playhead.database`). So a moment between two
steps has what was committed when the later one began.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from playhead_replay.run.run import Run
from playhead_replay.workspace.file_changes import HERE, two_names
from playhead_replay.workspace.folding import REDACTED, UNTOLD
from playhead_semconv import attributes as a
from playhead_semconv import events as e
from playhead_semconv.databases import decode_blocks, with_blocks
from playhead_semconv.errors import TapeError
from playhead_semconv.facts import Fact
from playhead_semconv.tape.indexed_tapes import IndexedTape

OPENED = "file/database "
"""Prefix of the kind of a read that has what a database held when it was opened."""

WHY: Mapping[str, str] = {
    "large": "it has changed, and is too large for that to be recorded at each step",
    "busy": "it was locked when it was looked at",
    "content": "no content was recorded",
}
"""What `playhead.database.unkept` means."""

UNKEPT = "it was too large to be kept when it was opened, or locked"


@dataclass(frozen=True, slots=True)
class DatabaseThen:
    """A database at a moment."""

    name: str
    """Its path as the tape spells it; relative in the folder of the run."""
    image: bytes | None
    """The bytes of its file, its log included; None where they are not known."""
    why: str = ""
    """Why they are not known, or not as they were; empty: they are exact."""


@dataclass(frozen=True, slots=True)
class _Told:
    """One fact about databases, with the tape that has it."""

    fact: Fact
    tape: IndexedTape
    place: int
    """Of the tape among those of the run."""


class DatabaseHistory:
    """The databases of a run over time. A moment behind the last one costs what is between them."""

    def __init__(self, run: Run) -> None:
        self._told = sorted(
            (
                _Told(fact, tape, place)
                for place, tape in enumerate(run.tapes)
                for fact in tape.named(e.PLAYHEAD_READ, e.PLAYHEAD_EFFECT, e.PLAYHEAD_DATABASE)
                if _tells(fact)
            ),
            key=lambda one: (one.fact.time_ns, one.place, one.fact.seq),
        )
        self._named = {
            str(one.fact.attributes.get(a.PLAYHEAD_DATABASE_PATH, ""))
            for one in self._told
            if one.fact.name == e.PLAYHEAD_DATABASE
        }
        self._instances = [tape.instance.hex() for tape in run.tapes]
        self._folded: dict[str, DatabaseThen] = {}
        self._ends: tuple[int, ...] = ()
        self._next = 0

    def before(self, ends: Mapping[str, int]) -> list[DatabaseThen]:
        """The databases before these facts, by name. ``ends``: see `RunMoment.ends`."""
        wanted = tuple(ends.get(instance, 0) for instance in self._instances)
        if not self._ends or any(new < old for new, old in zip(wanted, self._ends, strict=True)):
            self._folded, self._next = {}, 0
        pending = self._told[self._next :]
        taken = [one for one in pending if one.fact.seq < wanted[one.place]]
        for one in taken:
            self._fold(one)
        self._next += len(taken)
        # Where one process is ahead of another, what follows is not what was left: begin anew then.
        self._ends = wanted if taken == pending[: len(taken)] else ()
        return [
            replace(one, name=one.name.removeprefix(HERE)) for _, one in sorted(self._folded.items())
        ]

    def _fold(self, one: _Told) -> None:
        fact, at = one.fact, one.fact.attributes
        if fact.name == e.PLAYHEAD_READ:
            self._opened(str(at[a.PLAYHEAD_READ_KIND]).removeprefix(OPENED), one)
        elif fact.name == e.PLAYHEAD_DATABASE:
            self._changed(str(at.get(a.PLAYHEAD_DATABASE_PATH, "")), one)
        else:
            op = str(at[a.PLAYHEAD_EFFECT_KIND])
            self._moved(op, str(at.get(a.PLAYHEAD_EFFECT_TARGET, "")))

    def _opened(self, name: str, one: _Told) -> None:
        at = one.fact.attributes
        if a.PLAYHEAD_FILE_ERROR in at:
            self._folded.pop(name, None)
        elif one.fact.body is not None:
            image = _read(one)
            why = UNTOLD if image is None else _redacted(at)
            self._folded[name] = DatabaseThen(name, image, why)
        elif a.PLAYHEAD_FILE_SIZE in at:
            self._folded[name] = DatabaseThen(name, None, UNKEPT)

    def _changed(self, name: str, one: _Told) -> None:
        at = one.fact.attributes
        unkept = at.get(a.PLAYHEAD_DATABASE_UNKEPT)
        if unkept is not None:
            self._folded[name] = DatabaseThen(name, None, WHY.get(str(unkept), UNTOLD))
            return
        before = self._folded.get(name)
        try:
            held = b"" if before is None or before.image is None else before.image
            image = with_blocks(held, decode_blocks(_read(one) or b""))
        except ValueError as problem:
            self._folded[name] = DatabaseThen(name, None, f"its changes cannot be read: {problem}")
            return
        why = _redacted(at) or ("" if before is None or before.image is None else before.why)
        self._folded[name] = DatabaseThen(name, image, why)

    def _moved(self, op: str, target: str) -> None:
        if op == "file.write":
            known = self._folded.get(target)
            if known is not None and target not in self._named:  # recorded before changes were told
                self._folded[target] = replace(known, why=UNTOLD)
        elif op == "file.rename":
            old, new = two_names(target)
            moved = self._folded.pop(old, None)
            self._folded.pop(new, None)
            if moved is not None:
                self._folded[new] = replace(moved, name=new)
        else:
            self._folded.pop(target, None)


def _tells(fact: Fact) -> bool:
    at: Mapping[str, Any] = fact.attributes
    if fact.name == e.PLAYHEAD_READ:
        return str(at.get(a.PLAYHEAD_READ_KIND, "")).startswith(OPENED)
    if fact.name == e.PLAYHEAD_EFFECT:
        wanted = ("file.write", "file.rename", "file.remove", "file.unlink")
        return at.get(a.PLAYHEAD_EFFECT_KIND) in wanted
    return True


def _read(one: _Told) -> bytes | None:
    body = one.fact.body
    if body is None or not (body.digest or body.inline is not None):
        return None
    try:
        return one.tape.read(body)
    except TapeError:
        return None


def _redacted(at: Mapping[str, Any]) -> str:
    return REDACTED if at.get(a.PLAYHEAD_REDACTED_COUNT) else ""
