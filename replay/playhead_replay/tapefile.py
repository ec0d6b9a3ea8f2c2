"""Tape files: the processes of a run in one self-contained file of frames.

docs/tape-format.md describes the bytes. A name that ends in ``.gz`` is compressed.
"""

from __future__ import annotations

import gzip
import os
import tempfile
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import msgspec

from playhead_semconv import attributes as a
from playhead_semconv import events as e
from playhead_semconv.errors import CorruptTape, TapeMissing
from playhead_semconv.facts import Fact
from playhead_semconv.frames import (
    WHOLE,
    Footer,
    Header,
    Record,
    Scan,
    SpanRecord,
    encode,
    read_whole,
    too_new,
)
from playhead_semconv.frames_text import from_text, is_text, require_text
from playhead_semconv.seams import Tape
from playhead_semconv.tapes import MemoryTape

SUFFIX = ".tape"
COMPRESSED = ".gz"
GZIP = b"\x1f\x8b"
LEVEL = 6


@dataclass(frozen=True, slots=True)
class TapeFile:
    """What a tape file holds."""

    tapes: list[MemoryTape]
    """One per process, in the order of the file: the process that the run began in is the first."""
    spans: list[bytes] = field(default_factory=list[bytes])
    """Finished spans, OTLP `ResourceSpans` bytes of one span each, in the order of their end."""
    resources: dict[bytes, dict[str, Any]] = field(default_factory=dict[bytes, dict[str, Any]])
    """Attributes of the OTel resource, by process instance."""
    damage: str = ""
    """Why reading stopped before the end of the file; empty when the file is whole."""

    @property
    def tape(self) -> MemoryTape:
        """The tape of the process that the run began in; empty where the file holds none."""
        return self.tapes[0] if self.tapes else MemoryTape([])


def write_tape_file(
    path: Path,
    tape: Tape | Sequence[Tape],
    spans: Iterable[bytes] = (),
    resources: Mapping[bytes, Mapping[str, Any]] | None = None,
) -> int:
    """Write the tapes of a run and finished ``spans`` to ``path``, readable by the owner only.

    ``resources``: attributes of the OTel resource by process instance. The file stands alone: content
    that only the tape's reader could resolve is written out. It appears under its name when it is
    whole. Returns its size in bytes.
    """
    tapes = list(tape) if isinstance(tape, Sequence) else [tape]
    handle, partial = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            if path.name.endswith(COMPRESSED):
                with gzip.GzipFile("", "wb", LEVEL, file, mtime=0) as packed:
                    _write(packed, tapes, spans, resources or {})
            else:
                _write(file, tapes, spans, resources or {})
            file.flush()
            size = file.tell()
        os.replace(partial, path)
    except BaseException:
        os.unlink(partial)
        raise
    return size


def _write(
    file: IO[bytes] | gzip.GzipFile,
    tapes: list[Tape],
    spans: Iterable[bytes],
    resources: Mapping[bytes, Mapping[str, Any]],
) -> None:
    facts = finished = 0
    file.write(WHOLE)
    for tape in tapes:
        resource = dict(resources.get(tape.instance, {}))
        file.write(encode(Header(tape.instance, time.time_ns(), resource=resource)))
        for fact in standing_alone(tape):
            facts += 1
            file.write(encode(fact))
    for otlp in spans:
        finished += 1
        file.write(encode(SpanRecord(otlp)))
    file.write(encode(Footer(facts, finished)))


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
    """A tape file that must be whole; in text form, too.

    `TapeMissing` where there is no such file, `CorruptTape` with the position where it is damaged,
    `TapeTooNew` where a later version has written it.
    """
    data, problem = bytes_of(path)
    if is_text(data):
        return _gathered(from_text(require_text(data, path.name), path.name))
    found = _gathered(read_whole(data, path.name))
    if problem:
        raise CorruptTape(f"{path.name} is damaged: {problem}", cause="its compressed bytes are cut")
    return found


def read_unfinished(path: Path) -> TapeFile:
    """A tape file whose writer may have died: what can be read of it, and what is wrong with it.

    `TapeMissing`, `TapeTooNew`.
    """
    data, problem = bytes_of(path)
    scan = Scan(data)
    found = _gathered(record for _, record in scan)
    if scan.too_new:
        raise too_new(path.name, scan.too_new)
    if not scan.torn and not problem:
        return found
    damage = f"{path.name} ends at byte {scan.end}: {scan.problem or problem}"
    return TapeFile(found.tapes, found.spans, found.resources, damage)


def is_tape(path: Path) -> bool:
    """Whether a file is a tape, by its first bytes. `TapeMissing` where there is none."""
    first = bytes_of(path, 4096)[0]
    return first.startswith(WHOLE[:-2]) or is_text(first)


def bytes_of(path: Path, limit_bytes: int = -1) -> tuple[bytes, str]:
    """The (first) bytes of a file, decompressed, and why they end early where they do."""
    try:
        with open(path, "rb") as file:
            data = file.read(limit_bytes)
    except (FileNotFoundError, IsADirectoryError):
        raise TapeMissing(f"no tape at {path}", hint="playhead ls") from None
    if not data.startswith(GZIP):
        return data, ""
    reader = zlib.decompressobj(wbits=31)
    try:
        plain = reader.decompress(data)
    except zlib.error as problem:
        return b"", str(problem)
    return plain, "" if reader.eof or limit_bytes >= 0 else "its compressed bytes end early"


def _gathered(records: Iterable[Record]) -> TapeFile:
    facts: dict[bytes, list[Fact]] = {}
    resources: dict[bytes, dict[str, Any]] = {}
    spans: list[bytes] = []
    of = b""
    for record in records:
        if isinstance(record, Fact):
            facts.setdefault(record.instance or of, []).append(record)
        elif isinstance(record, SpanRecord):
            spans.append(record.otlp)
        elif isinstance(record, Header):
            of = record.instance
            facts.setdefault(of, [])
            resources[of] = dict(record.resource)
    tapes = [MemoryTape(some, instance) for instance, some in facts.items()]
    return TapeFile(tapes, spans, resources)
