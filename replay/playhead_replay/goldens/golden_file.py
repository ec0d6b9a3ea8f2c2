"""A golden's file: the tapes of a run in text form, without values that change by themselves.

The times of facts, process and span ids and heartbeats differ each time a program is recorded, and no
replay depends on them. They are replaced by values that are derived from the golden's name. So the diff
of a golden that is recorded again shows only what the agent does differently.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import msgspec

from playhead_core.errors import TapeMissing
from playhead_core.facts import Fact, Fidelity, digest_of
from playhead_core.tape.frames import Header, Plain
from playhead_core.tape.frames_text import STEP_NS, to_text
from playhead_core.tape.protocols import Tape
from playhead_core.tape.span_starts import starts_of
from playhead_replay.report.comparison import edits_of
from playhead_replay.run.run import Run
from playhead_replay.tape_files.tape_file import (
    SHARED,
    read_tape_file,
    standing_alone,
    write_tape_file,
    written,
)
from playhead_semconv import attributes as a
from playhead_semconv import events as e

BEGAN_NS = 946_684_800_000_000_000
"""Start time of every golden: the first second of the year 2000."""

FOLDER = "playhead.golden.folder"
"""Resource attribute of a golden: folder in which its program starts, relative to the golden."""

EDITED = "playhead.golden.edited"
"""Resource attribute of a golden: what was edited at the fork that it was made from."""

DESCRIPTION = "playhead.golden.description"
"""Resource attribute of a golden: what it shows, in the words of its author."""

EXPECT = "playhead.golden.expect"
"""Resource attribute of a golden: what a later run has to fulfil, as conditions."""

_IDS = re.compile(r"(?<![0-9a-f])(?:[0-9a-f]{32}|[0-9a-f]{16})(?![0-9a-f])")
_LEFT_OUT = (
    e.PLAYHEAD_ARTIFACT,
    e.PLAYHEAD_DATABASE,
    e.PLAYHEAD_PROCESS_HEARTBEAT,
    e.PLAYHEAD_WORKSPACE,
    e.PLAYHEAD_WORKSPACE_FILE,
)
_OF_A_REPLAY = (
    a.PLAYHEAD_FIDELITY,
    a.PLAYHEAD_ORIGIN_INSTANCE,
    a.PLAYHEAD_ORIGIN_SEQ,
    a.PLAYHEAD_REDACTED_LATE,
    a.PLAYHEAD_RUN_ORIGIN,
)
"""Attributes only on the tape of a replay."""

_NEWS = (a.PLAYHEAD_RUN_MODULES, a.PLAYHEAD_RUN_IMPORTED)
"""Reported by heartbeats and at the end of a process as it appears; a golden has it on the last fact."""


@dataclass(frozen=True, slots=True)
class Purpose:
    """Why a golden is kept."""

    description: str = ""
    expect: Sequence[str] = ()
    """Conditions that a later run has to fulfil (`playhead_replay.goldens.conditions`). Where there are
    any, they take the place of the recorded outcome."""

    def attributes(self) -> dict[str, Any]:
        """As resource attributes of the golden."""
        found = {DESCRIPTION: self.description, EXPECT: list(self.expect)}
        return {name: value for name, value in found.items() if value}

    @classmethod
    def of(cls, resource: Mapping[str, Any]) -> Purpose:
        """The inverse of `attributes`."""
        expect: Any = resource.get(EXPECT)
        conditions = tuple(map(str, cast("list[Any]", expect))) if isinstance(expect, list) else ()
        return cls(str(resource.get(DESCRIPTION, "")), conditions)


@dataclass(frozen=True, slots=True)
class StoredGolden:
    """A golden that has been read."""

    run: Run
    folder: Path
    """Folder in which its program is started."""
    purpose: Purpose


@dataclass(frozen=True, slots=True)
class Golden:
    """A golden that has been written."""

    path: Path
    size_bytes: int
    redacted: int
    """Number of values that were redacted before they reached the tape."""
    edited: list[str]
    """What was edited at a fork, as `playhead_replay.report.comparison.edits_of` names it."""
    rebuilt: int
    """Number of answers that were rebuilt from spans: a replay of it is ``semantic``, never exact."""


def write_golden(
    path: Path, run: Run, *, compressed: bool = False, purpose: Purpose = Purpose()
) -> Golden:
    """Write ``run`` as a golden. It appears under its name only when it is complete.

    ``compressed``: as a packed tape file instead of text. `TapeMissing` if the run has no tape or was
    recorded without content.
    """
    tapes = [tape for tape in run.tapes if any(True for _ in tape.facts())]
    if not tapes:
        raise TapeMissing(
            f"{run.name} has no tape, so it cannot be replayed", hint="playhead record SCRIPT"
        )
    for exchange in run.exchanges:
        if not exchange.has_content:
            raise TapeMissing(
                f"{run.name} was recorded without content",
                cause=f"{exchange.name} has no bytes",
                hint="record it with its content: playhead record --content full SCRIPT",
            )
    path.parent.mkdir(parents=True, exist_ok=True)
    name = path.name.partition(".")[0]
    resource: dict[str, Any] = {FOLDER: os.path.relpath(run.command.cwd or ".", path.absolute().parent)}
    edited = edits_of(run)
    if edited:
        resource[EDITED] = edited
    resource |= purpose.attributes()
    if compressed:
        size = write_tape_file(path, tapes, resources={tape.instance: resource for tape in tapes})
    else:
        data = to_text(settled(tapes, name, resource)).encode()
        size = len(data)
        with written(path, SHARED) as file:  # a golden is committed, so others must be able to read it
            file.write(data)
    stated = [one.exchange.ask.details.get(a.PLAYHEAD_FIDELITY) for one in run.exchanges]
    return Golden(path, size, _redacted(tapes), edited, stated.count(Fidelity.SEMANTIC))


def read_golden(path: Path) -> tuple[Run, Path]:
    """The run of a golden, and the folder in which its program is started.

    In text form or packed. `TapeMissing`; `CorruptTape` with the line.
    """
    found = read_stored(path)
    return found.run, found.folder


def read_stored(path: Path) -> StoredGolden:
    """A golden with everything it holds. Errors as in `read_golden`."""
    found = read_tape_file(path)
    run = Run.of_tapes(found.tapes, found.spans, path.name.partition(".")[0])
    resource = found.resources.get(found.tape.instance, {})
    folder = resource.get(FOLDER)
    if folder is None:  # an exported tape that was placed among the goldens
        return StoredGolden(run, Path(run.command.cwd or "."), Purpose())
    place = (path.absolute().parent / str(folder)).resolve()
    return StoredGolden(run, place, Purpose.of(resource))


def settled(tapes: Sequence[Tape], name: str, resource: dict[str, Any]) -> Iterator[Plain]:
    """The records of ``tapes`` in the normalized form of a golden of that name."""
    ids = _Ids(name)
    for tape in tapes:
        ids.learn(tape)
    for tape in tapes:
        instance = ids.instances[tape.instance]
        yield Header(instance, BEGAN_NS, resource=resource)
        found = list(standing_alone(tape))
        news = _news(found)
        facts = _needed(found)
        for seq, fact in enumerate(facts):
            attributes = {
                key: ids.replaced(value)
                for key, value in as_recorded(fact.attributes).items()
                if key not in _NEWS
            }
            time_ns = BEGAN_NS + seq * STEP_NS
            for begun in attributes.get(a.PLAYHEAD_ASK_SPANS, ()):
                begun["time_ns"] = time_ns
            if seq == len(facts) - 1:
                attributes |= news
            if a.PLAYHEAD_PROCESS_LAST_SEQ in attributes:
                attributes[a.PLAYHEAD_PROCESS_LAST_SEQ] = len(facts) - 1
            if fact.name == e.PLAYHEAD_PROCESS_START:
                attributes[a.PLAYHEAD_RUN_MODE] = "record"
            yield msgspec.structs.replace(
                fact,
                time_ns=time_ns,
                trace_id=ids.of(fact.trace_id),
                span_id=ids.of(fact.span_id),
                attributes=attributes,
                instance=instance,
                seq=seq,
            )


def as_recorded(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of a fact on the tape of a replay as they are on the tape of a recording.

    The fidelity ``semantic`` stays: an answer that was rebuilt from a span is never exact.
    """
    return {
        name: value
        for name, value in attributes.items()
        if name not in _OF_A_REPLAY or value == Fidelity.SEMANTIC
    }


def _needed(found: list[Fact]) -> list[Fact]:
    """The facts that a replay needs: without those that are left out, and without their blobs."""
    needed = [fact for fact in found if fact.name not in _LEFT_OUT]
    bodies = {fact.body.digest for fact in needed if fact.body is not None}
    of_others = {
        fact.body.digest.hex()
        for fact in found
        if fact.name in _LEFT_OUT and fact.body is not None and fact.body.digest not in bodies
    }
    return [fact for fact in needed if fact.attributes.get(a.PLAYHEAD_BLOB_DIGEST) not in of_others]


def _news(facts: list[Fact]) -> dict[str, list[str]]:
    told = {
        name: {str(one) for fact in facts for one in fact.attributes.get(name, ())} for name in _NEWS
    }
    return {name: sorted(words) for name, words in told.items() if words}


class _Ids:
    """Replacement ids derived from a name, assigned in the order in which the original ids occurred."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._new: dict[str, str] = {}
        self.instances: dict[bytes, bytes] = {}

    def learn(self, tape: Tape) -> None:
        self.instances[tape.instance] = self.of(tape.instance)
        for fact in tape.facts():
            self.of(fact.trace_id)
            for start in reversed(starts_of(fact)):
                self.of(start.span_id)
            self.of(fact.span_id)

    def of(self, id: bytes) -> bytes:
        if not any(id):
            return id
        text = id.hex()
        if text not in self._new:
            made = digest_of(f"{self._name}/{len(self._new)}".encode())
            self._new[text] = made[: len(id)].hex()
        return bytes.fromhex(self._new[text])

    def replaced(self, value: Any) -> Any:
        """An attribute's value with the ids in it replaced."""
        if isinstance(value, str):
            return _IDS.sub(lambda found: self._new.get(found.group(), found.group()), value)
        if isinstance(value, list):
            return [self.replaced(one) for one in cast("list[Any]", value)]
        if isinstance(value, dict):
            found = cast("dict[str, Any]", value)
            return {key: self.replaced(one) for key, one in found.items()}
        return value


def _redacted(tapes: Sequence[Tape]) -> int:
    facts: Iterator[Fact] = (fact for tape in tapes for fact in tape.facts())
    return sum(int(fact.attributes.get(a.PLAYHEAD_REDACTED_COUNT, 0)) for fact in facts)
