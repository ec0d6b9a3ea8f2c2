"""Reconstructs SQLite databases from tapes: the content when opened, plus later changes.

Before each exchange the agent records the changes so far (`playhead.database`). So the state between two
steps has everything that was committed when the later one began.
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
from playhead_replay.databases.tables import Table, tables_of
from playhead_replay.json_objects.recorded import DatabaseItem
from playhead_replay.run.run import Run
from playhead_replay.workspace.file_changes import HERE, two_names
from playhead_replay.workspace.folding import REDACTED, UNRECORDED
from playhead_replay.workspace.resumable_fold import ResumableFold
from playhead_semconv import attributes as a
from playhead_semconv import events as e

_Databases: TypeAlias = dict[str, "DatabaseState"]

OPENED = "file/database "
"""Prefix of the kind of a read with the content of a database when it was opened."""

WHY: Mapping[str, str] = {
    "large": "it has changed, and is too large to be recorded at each step",
    "busy": "it was locked when it was read",
    "content": "no content was recorded",
}
"""Texts for the values of `playhead.database.unkept`."""

UNKEPT = "it was too large or locked when it was opened"


@dataclass(frozen=True, slots=True)
class DatabaseState:
    """A database at one time."""

    name: str
    """Its path as on the tape; relative if below the folder of the run."""
    image: bytes | None
    """The bytes of its file, including its log; None if unknown."""
    why: str = ""
    """Why they are unknown or inexact; empty if exact."""

    def tables(self, most_rows: int) -> tuple[list[Table], str]:
        """Its tables with their first rows, and why they are not known or not exact."""
        if self.image is None:
            return [], self.why
        try:
            return tables_of(self.image, most_rows), self.why
        except ValueError as problem:
            return [], str(problem)

    def to_json(self, most_rows: int) -> DatabaseItem:
        """As an object of plain values."""
        tables, inexact = self.tables(most_rows)
        shown = [table.to_json() for table in tables]
        return {"path": self.name, "tables": shown, "inexact": inexact or None}


@dataclass(frozen=True, slots=True)
class _DatabaseFact:
    """A fact about databases with its tape."""

    fact: Fact
    tape: IndexedTape
    latest_ns: int
    """The latest time on the tape so far: facts of several threads may be out of order."""


class DatabaseHistory:
    """The databases of a run over time."""

    def __init__(self, run: Run) -> None:
        self._facts = list(
            merge(*(_database_facts(tape) for tape in run.tapes), key=lambda one: one.latest_ns)
        )
        self._named = {
            str(one.fact.attributes.get(a.PLAYHEAD_DATABASE_PATH, ""))
            for one in self._facts
            if one.fact.name == e.PLAYHEAD_DATABASE
        }
        self._indexes: dict[str, list[int]] = {tape.instance.hex(): [] for tape in run.tapes}
        """Indexes in `_facts` of the facts of each process."""
        for at, one in enumerate(self._facts):
            self._indexes[one.tape.instance.hex()].append(at)
        self._fold = ResumableFold(self._facts, _Databases, self._apply, _Databases.copy, _weight)

    def before(self, ends: Mapping[str, int]) -> list[DatabaseState]:
        """Return the databases before the given facts, by name. ``ends``: see `RunState.ends`."""
        then: _Databases = {}
        known = [
            (indexes, bisect_left(indexes, ends.get(instance, 0), key=self._seq_at))
            for instance, indexes in self._indexes.items()
        ]
        many = sum(count for _, count in known)
        if all(not count or indexes[count - 1] < many for indexes, count in known):
            then = self._fold.at(many)
        else:  # processes overlap: some earlier facts come after later ones of another process
            for at in sorted(at for indexes, count in known for at in indexes[:count]):
                self._apply(then, self._facts[at])
        return [replace(one, name=name.removeprefix(HERE)) for name, one in sorted(then.items())]

    def _seq_at(self, place: int) -> int:
        return self._facts[place].fact.seq

    def _apply(self, then: _Databases, one: _DatabaseFact) -> None:
        fact, at = one.fact, one.fact.attributes
        if fact.name == e.PLAYHEAD_READ:
            _opened(then, str(at[a.PLAYHEAD_READ_KIND]).removeprefix(OPENED), one)
        elif fact.name == e.PLAYHEAD_DATABASE:
            _changed(then, str(at.get(a.PLAYHEAD_DATABASE_PATH, "")), one)
        else:
            self._moved(then, str(at[a.PLAYHEAD_EFFECT_KIND]), str(at.get(a.PLAYHEAD_EFFECT_TARGET, "")))

    def _moved(self, then: _Databases, op: str, target: str) -> None:
        if op == "file.write":
            known = then.get(target)
            if (
                known is not None and target not in self._named
            ):  # recorded by a version that does not record changes
                then[target] = replace(known, why=UNRECORDED)
        elif op == "file.rename":
            old, new = two_names(target)
            moved = then.pop(old, None)
            then.pop(new, None)
            if moved is not None:
                then[new] = replace(moved, name=new)
        else:
            then.pop(target, None)


def _opened(then: _Databases, name: str, one: _DatabaseFact) -> None:
    at = one.fact.attributes
    if a.PLAYHEAD_FILE_ERROR in at:
        then.pop(name, None)
    elif one.fact.body is not None:
        image = _read(one)
        then[name] = DatabaseState(name, image, UNRECORDED if image is None else _redacted(at))
    elif a.PLAYHEAD_FILE_SIZE in at:
        then[name] = DatabaseState(name, None, UNKEPT)


def _changed(then: _Databases, name: str, one: _DatabaseFact) -> None:
    at = one.fact.attributes
    unkept = at.get(a.PLAYHEAD_DATABASE_UNKEPT)
    if unkept is not None:
        then[name] = DatabaseState(name, None, WHY.get(str(unkept), UNRECORDED))
        return
    before = then.get(name)
    held, why = (b"", "") if before is None or before.image is None else (before.image, before.why)
    try:
        image = with_blocks(held, decode_blocks(_read(one) or b""))
    except ValueError as problem:
        then[name] = DatabaseState(name, None, f"its changes cannot be read: {problem}")
        return
    then[name] = DatabaseState(name, image, _redacted(at) or why)


def _database_facts(tape: IndexedTape) -> Iterator[_DatabaseFact]:
    latest_ns = 0
    for fact in tape.named(e.PLAYHEAD_READ, e.PLAYHEAD_EFFECT, e.PLAYHEAD_DATABASE):
        if _is_relevant(fact):
            latest_ns = max(latest_ns, fact.time_ns)
            yield _DatabaseFact(fact, tape, latest_ns)


def _is_relevant(fact: Fact) -> bool:
    at: Mapping[str, Any] = fact.attributes
    if fact.name == e.PLAYHEAD_READ:
        return str(at.get(a.PLAYHEAD_READ_KIND, "")).startswith(OPENED)
    if fact.name == e.PLAYHEAD_EFFECT:
        wanted = ("file.write", "file.rename", "file.remove", "file.unlink")
        return at.get(a.PLAYHEAD_EFFECT_KIND) in wanted
    return True


def _read(one: _DatabaseFact) -> bytes | None:
    body = one.fact.body
    if body is None or not (body.digest or body.inline is not None):
        return None
    try:
        return one.tape.read(body)
    except TapeError:
        return None


def _redacted(at: Mapping[str, Any]) -> str:
    return REDACTED if at.get(a.PLAYHEAD_REDACTED_COUNT) else ""


def _weight(then: _Databases) -> int:
    """Weight in units of 256 bytes: 256 MiB of images weigh as much as a million files."""
    return sum(1 + len(one.image or b"") // 256 for one in then.values())
