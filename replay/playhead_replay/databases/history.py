"""What tapes say of SQLite databases: what one held when it was opened, and what has changed since.

Before each exchange it is told what has changed by then (`playhead.database`). So a moment between two
steps has what was committed when the later one began.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from heapq import merge
from typing import Any, TypeAlias

from playhead_core.databases import decode_blocks, with_blocks
from playhead_core.errors import TapeError
from playhead_core.facts import Fact
from playhead_core.tape.indexed_tapes import IndexedTape
from playhead_replay.run.run import Run
from playhead_replay.workspace.file_changes import HERE, two_names
from playhead_replay.workspace.folding import REDACTED, UNTOLD
from playhead_replay.workspace.marked_fold import MarkedFold
from playhead_semconv import attributes as a
from playhead_semconv import events as e

_Then: TypeAlias = dict[str, "DatabaseThen"]

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
    latest_ns: int
    """The latest time on the tape up to it: facts of several threads may stand out of order."""


class DatabaseHistory:
    """The databases of a run over time."""

    def __init__(self, run: Run) -> None:
        self._told = list(merge(*(_told_by(tape) for tape in run.tapes), key=lambda one: one.latest_ns))
        self._named = {
            str(one.fact.attributes.get(a.PLAYHEAD_DATABASE_PATH, ""))
            for one in self._told
            if one.fact.name == e.PLAYHEAD_DATABASE
        }
        self._places: dict[str, list[int]] = {tape.instance.hex(): [] for tape in run.tapes}
        """For each process where its facts stand in `_told`."""
        for at, one in enumerate(self._told):
            self._places[one.tape.instance.hex()].append(at)
        self._fold = MarkedFold(self._told, _Then, self._apply, _Then.copy, _weight)

    def before(self, ends: Mapping[str, int]) -> list[DatabaseThen]:
        """The databases before these facts, by name. ``ends``: see `RunMoment.ends`."""
        then: _Then = {}
        known = [
            (places, bisect_left(places, ends.get(instance, 0), key=self._seq_at))
            for instance, places in self._places.items()
        ]
        many = sum(count for _, count in known)
        if all(not count or places[count - 1] < many for places, count in known):
            then = self._fold.at(many)
        else:  # what one process did before the moment stands behind what another did after it
            for at in sorted(at for places, count in known for at in places[:count]):
                self._apply(then, self._told[at])
        return [replace(one, name=name.removeprefix(HERE)) for name, one in sorted(then.items())]

    def _seq_at(self, place: int) -> int:
        return self._told[place].fact.seq

    def _apply(self, then: _Then, one: _Told) -> None:
        fact, at = one.fact, one.fact.attributes
        if fact.name == e.PLAYHEAD_READ:
            _opened(then, str(at[a.PLAYHEAD_READ_KIND]).removeprefix(OPENED), one)
        elif fact.name == e.PLAYHEAD_DATABASE:
            _changed(then, str(at.get(a.PLAYHEAD_DATABASE_PATH, "")), one)
        else:
            self._moved(then, str(at[a.PLAYHEAD_EFFECT_KIND]), str(at.get(a.PLAYHEAD_EFFECT_TARGET, "")))

    def _moved(self, then: _Then, op: str, target: str) -> None:
        if op == "file.write":
            known = then.get(target)
            if known is not None and target not in self._named:  # recorded before changes were told
                then[target] = replace(known, why=UNTOLD)
        elif op == "file.rename":
            old, new = two_names(target)
            moved = then.pop(old, None)
            then.pop(new, None)
            if moved is not None:
                then[new] = replace(moved, name=new)
        else:
            then.pop(target, None)


def _opened(then: _Then, name: str, one: _Told) -> None:
    at = one.fact.attributes
    if a.PLAYHEAD_FILE_ERROR in at:
        then.pop(name, None)
    elif one.fact.body is not None:
        image = _read(one)
        then[name] = DatabaseThen(name, image, UNTOLD if image is None else _redacted(at))
    elif a.PLAYHEAD_FILE_SIZE in at:
        then[name] = DatabaseThen(name, None, UNKEPT)


def _changed(then: _Then, name: str, one: _Told) -> None:
    at = one.fact.attributes
    unkept = at.get(a.PLAYHEAD_DATABASE_UNKEPT)
    if unkept is not None:
        then[name] = DatabaseThen(name, None, WHY.get(str(unkept), UNTOLD))
        return
    before = then.get(name)
    held, why = (b"", "") if before is None or before.image is None else (before.image, before.why)
    try:
        image = with_blocks(held, decode_blocks(_read(one) or b""))
    except ValueError as problem:
        then[name] = DatabaseThen(name, None, f"its changes cannot be read: {problem}")
        return
    then[name] = DatabaseThen(name, image, _redacted(at) or why)


def _told_by(tape: IndexedTape) -> Iterator[_Told]:
    latest_ns = 0
    for fact in tape.named(e.PLAYHEAD_READ, e.PLAYHEAD_EFFECT, e.PLAYHEAD_DATABASE):
        if _tells(fact):
            latest_ns = max(latest_ns, fact.time_ns)
            yield _Told(fact, tape, latest_ns)


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


def _weight(then: _Then) -> int:
    """In units of 256 bytes: images of 256 MiB together are as heavy as a million files."""
    return sum(1 + len(one.image or b"") // 256 for one in then.values())
