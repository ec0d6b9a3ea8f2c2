"""Tape files: one process instance in one self-contained file of frames."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from playhead_semconv import attributes as a
from playhead_semconv import events as e
from playhead_semconv.errors import TapeMissing
from playhead_semconv.facts import Fact
from playhead_semconv.frames import MAGIC, Header, Record, Scan, SpanRecord, encode, read_whole
from playhead_semconv.seams import Tape
from playhead_semconv.tapes import MemoryTape

SUFFIX = ".tape"


@dataclass(frozen=True, slots=True)
class TapeFile:
    """What a tape file holds."""

    tape: MemoryTape
    spans: list[bytes] = field(default_factory=list[bytes])
    """Finished spans, OTLP `ResourceSpans` bytes of one span each, in the order of their end."""
    damage: str = ""
    """Why reading stopped before the end of the file; empty when the file is whole."""


def write_tape_file(path: Path, tape: Tape, spans: Iterable[bytes] = ()) -> int:
    """Write ``tape`` and finished ``spans`` to ``path``, readable by the owner only.

    The file stands alone: content that only the tape's reader could resolve is written out. It
    appears under its name when it is whole. Returns its size in bytes.
    """
    header = Header(tape.instance, time.time_ns())
    handle, partial = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(MAGIC)
            file.write(encode(header))
            for fact in standing_alone(tape):
                file.write(encode(fact))
            for otlp in spans:
                file.write(encode(SpanRecord(otlp)))
            size = file.tell()
        os.replace(partial, path)
    except BaseException:
        os.unlink(partial)
        raise
    return size


def standing_alone(tape: Tape) -> Iterator[Fact]:
    """The facts of ``tape``; a body that no fact of it holds is read and put in line."""
    held: set[bytes] = set()
    for fact in tape.facts():
        body = fact.body
        if fact.name == e.PLAYHEAD_BLOB:
            held.add(bytes.fromhex(fact.attributes[a.PLAYHEAD_BLOB_DIGEST]))
        elif body is not None:
            missing = body.inline is None if body.base is None else body.base not in held
            # Without bytes and without a digest: the run was recorded without content.
            if missing and body.digest and body.digest not in held:
                body = msgspec.structs.replace(body, inline=tape.read(body), base=None, base_bytes=0)
                fact = msgspec.structs.replace(fact, body=body)
            if body.digest:
                held.add(body.digest)
        yield fact


def read_tape_file(path: Path) -> TapeFile:
    """A tape file that must be whole.

    `TapeMissing` where there is no such file, `CorruptTape` with the position where it is damaged.
    """
    return _gathered(read_whole(_bytes_of(path), path.name))


def read_unfinished(path: Path) -> TapeFile:
    """A tape file whose writer may have died: what can be read of it, and what is wrong with it."""
    scan = Scan(_bytes_of(path))
    found = _gathered(record for _, record in scan)
    if not scan.torn:
        return found
    return TapeFile(found.tape, found.spans, f"{path.name} ends at byte {scan.end}: {scan.problem}")


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise TapeMissing(f"no tape at {path}", hint="playhead ls") from None


def _gathered(records: Iterable[Record]) -> TapeFile:
    instance = b""
    facts: list[Fact] = []
    spans: list[bytes] = []
    for record in records:
        if isinstance(record, Fact):
            facts.append(record)
        elif isinstance(record, SpanRecord):
            spans.append(record.otlp)
        else:
            instance = record.instance
    return TapeFile(MemoryTape(facts, instance), spans)
