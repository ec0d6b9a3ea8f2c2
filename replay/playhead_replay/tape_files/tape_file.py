"""Tape files: the processes of a run in one self-contained file of frames.

docs/tape-format.md describes the bytes. A name that ends in ``.gz`` is compressed.
"""

from __future__ import annotations

import gzip
import mmap
import os
import stat
import tempfile
import time
import zlib
from array import array
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import IO, Any, Protocol

import msgspec
from blake3 import blake3

from playhead_core.errors import CorruptTape, TapeMissing
from playhead_core.facts import Fact, digest_of
from playhead_core.integrity import ChainMapping, Link, Signature
from playhead_core.tape.frames import (
    CHAINED,
    LOGGED,
    WHOLE,
    Footer,
    Header,
    LogEntry,
    Scan,
    SpanRecord,
    encode,
    scan_whole,
    too_new,
)
from playhead_core.tape.frames_text import from_text, is_text, require_text
from playhead_core.tape.indexed_tapes import (
    Gathered,
    IndexedTape,
    MemoryTape,
    facts_at,
    frames_of,
    gather,
)
from playhead_core.tape.protocols import Tape
from playhead_semconv import attributes as a
from playhead_semconv import events as e

PRIVATE = 0o600
SHARED = 0o644
MOST_HELD, MOST_HELD_BYTES = 500, 1 << 20
"""Facts, and bytes in them, up to which the facts of a tape are held in memory as they are."""


@contextmanager
def written(path: Path, mode: int = PRIVATE) -> Generator[IO[bytes]]:
    """Open a temporary file that atomically replaces ``path`` when the block completes.

    The target of a link is replaced, not the link. A device or a pipe is written to directly. OSError.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not stat.S_ISREG(target.stat().st_mode):
        with open(target, "wb") as file:
            yield file
        return
    handle, partial = tempfile.mkstemp(dir=target.parent, prefix=target.name, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        os.chmod(partial, mode)
        os.replace(partial, target)
    except BaseException:
        os.unlink(partial)
        raise


SUFFIX = ".tape"
COMPRESSED = ".gz"
GZIP = b"\x1f\x8b"
LEVEL = 6
PIECE_BYTES = 1 << 20

PLAIN_BYTES = 64 << 20
MOST_TIMES = 50
"""Limits of an unpacked file: `PLAIN_BYTES` or this many times the packed size. Text compresses less."""


@dataclass(frozen=True, slots=True)
class TapeFile:
    """The content of a tape file."""

    tapes: list[IndexedTape]
    """One per process, in the order of the file; the first is the process in which the run began."""
    spans: Sequence[bytes] = ()
    """Finished spans, each as OTLP `ResourceSpans` bytes of one span, in the order of their end."""
    resources: dict[bytes, dict[str, Any]] = field(default_factory=dict[bytes, dict[str, Any]])
    """Attributes of the OTel resource, by process instance."""
    damage: str = ""
    """Why reading stopped before the end of the file; empty when the file is whole."""
    chains: dict[bytes, Sequence[Link]] = field(default_factory=dict[bytes, Sequence[Link]])
    """The links of each chain in the file, by process instance."""
    parts: dict[bytes, ChainMapping] = field(default_factory=dict[bytes, ChainMapping])
    """By process instance: how facts relate to the chain, if they are not simply its facts."""
    signature: Signature | None = None
    digest: bytes = b""
    """BLAKE3 of everything before the signature."""
    logs: Sequence[bytes] = ()
    """Log records, each as OTLP `ResourceLogs` bytes of one record, by time."""

    @property
    def tape(self) -> IndexedTape:
        """The tape of the process in which the run began; empty if the file holds none."""
        return self.tapes[0] if self.tapes else MemoryTape([])


class Keeper(Protocol):
    """Provides the chains for the facts that are written to a file."""

    def take(self, fact: Fact) -> None:
        """Take a fact as it is written; facts of a process must come in order."""
        ...

    def records(self) -> Iterable[Link | ChainMapping]:
        """The integrity records for all facts that were taken."""
        ...

    def sign(self, facts: int, spans: int, digest: bytes) -> Signature | None:
        """A signature over a file; ``facts`` and ``spans``: counts; ``digest``: of its bytes so far."""
        ...


def write_tape_file(
    path: Path,
    tape: Tape | Sequence[Tape],
    spans: Iterable[bytes] = (),
    resources: Mapping[bytes, Mapping[str, Any]] | None = None,
    keeper: Keeper | None = None,
    logs: Iterable[bytes] = (),
) -> int:
    """Write the tapes of a run and finished ``spans`` to ``path``, readable by the owner only.

    ``resources``: attributes of the OTel resource by process instance. The file is self-contained:
    content that only the tape's reader could resolve is written out. The file appears under its name
    only when it is complete. ``keeper``: provides the chains of the tapes, which are then written too.
    ``logs``: log records of the run, `ResourceLogs` bytes. Returns the size in bytes.
    """
    tapes = list(tape) if isinstance(tape, Sequence) else [tape]
    with written(path) as file:
        counted = _Counted(file)
        if path.name.endswith(COMPRESSED):
            with gzip.GzipFile("", "wb", LEVEL, counted, mtime=0) as packed:  # type: ignore[arg-type]
                _write(_Digested(packed), tapes, spans, resources or {}, keeper, iter(logs))
        else:
            _write(_Digested(counted), tapes, spans, resources or {}, keeper, iter(logs))
    return counted.size


class _Counted:
    """A writable file that counts bytes, because a pipe has no position."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.size = 0

    def write(self, data: bytes) -> int:
        self.size += len(data)
        return self._file.write(data)

    def flush(self) -> None:
        self._file.flush()


class _Digested:
    """Writes frames and computes the digest of all of them."""

    def __init__(self, file: _Counted | gzip.GzipFile) -> None:
        self._file = file
        self._hasher = blake3()

    def write(self, data: bytes) -> None:
        self._hasher.update(data)
        self._file.write(data)

    def digest(self) -> bytes:
        return self._hasher.digest()


def _write(
    file: _Digested,
    tapes: list[Tape],
    spans: Iterable[bytes],
    resources: Mapping[bytes, Mapping[str, Any]],
    keeper: Keeper | None,
    logs: Iterator[bytes],
) -> None:
    facts = finished = links = 0
    first_log = next(logs, None)
    file.write(LOGGED if first_log is not None else WHOLE if keeper is None else CHAINED)
    for tape in tapes:
        resource = dict(resources.get(tape.instance, {}))
        file.write(encode(Header(tape.instance, time.time_ns(), resource=resource)))
        for fact in standing_alone(tape):
            facts += 1
            file.write(encode(fact))
            if keeper is not None:
                keeper.take(fact)
    for otlp in spans:
        finished += 1
        file.write(encode(SpanRecord(otlp)))
    for otlp in chain(() if first_log is None else (first_log,), logs):
        links += 1
        file.write(encode(LogEntry(otlp)))
    if keeper is not None:
        for record in keeper.records():
            links += 1
            file.write(encode(record))
        signature = keeper.sign(facts, finished, file.digest())
        if signature is not None:
            links += 1
            file.write(encode(signature))
    file.write(encode(Footer(facts, finished, links)))


def standing_alone(tape: Tape) -> Iterator[Fact]:
    """The facts of ``tape``; a body that no fact on it contains is read and put inline."""
    held: set[bytes] = set()
    for fact in tape.facts():
        body = fact.body
        if fact.name == e.PLAYHEAD_BLOB:
            held.add(bytes.fromhex(fact.attributes[a.PLAYHEAD_BLOB_DIGEST]))
        elif body is not None:
            missing = body.inline is None if body.base is None else body.base not in held
            # Neither bytes nor a digest: the run was recorded without content.
            if missing and body.digest and body.digest not in held:
                body = msgspec.structs.replace(body, inline=tape.read(body), base=None, base_bytes=0)
                fact = msgspec.structs.replace(fact, body=body)
            if body.digest:
                held.add(body.digest)
        yield fact


def read_tape_file(path: Path) -> TapeFile:
    """Open a complete tape file, in packed or text form. Facts are read from it on demand.

    `TapeMissing` if there is no such file, `CorruptTape` with the position of the damage, `TapeTooNew`
    if a later version has written it.
    """
    data, problem = bytes_of(path)
    if is_text(data):
        text = require_text(bytes(data), path.name)
        try:
            data = frames_of(from_text(text, path.name))
        except (OverflowError, TypeError, ValueError) as problem:
            raise CorruptTape(f"{path.name} holds what no tape does: {problem}") from None
    found = _file_of(data, gather(data, scan_whole(data, path.name), path.name))
    if problem:
        raise CorruptTape(f"{path.name} is damaged: {problem}", cause="its compressed bytes are cut")
    return found


def read_unfinished(path: Path) -> TapeFile:
    """Read a tape file whose writer may have died: what is readable, and what is wrong with it.

    `TapeMissing`, `TapeTooNew`.
    """
    data, problem = bytes_of(path)
    scan = Scan(data)
    found = gather(data, scan, path.name)
    if scan.too_new:
        raise too_new(path.name, scan.too_new)
    damage = f"{path.name} ends at byte {scan.end}: {scan.problem or problem}"
    return _file_of(data, found, damage if scan.torn or problem else "")


def laid_out(facts: Iterable[Fact]) -> Sequence[Fact]:
    """The same facts. Many are spooled to an unnamed file, from which they are read on demand."""
    few: list[Fact] = []
    size, left = 0, iter(facts)
    for fact in left:
        few.append(fact)
        size += 0 if fact.body is None else len(fact.body.inline or b"")
        if len(few) > MOST_HELD or size > MOST_HELD_BYTES:
            break
    else:
        return few
    offsets = array("Q")
    with tempfile.TemporaryFile() as file:
        for fact in chain(few, left):
            offsets.append(file.tell())
            file.write(encode(fact))
        return facts_at(_mapped(file), offsets)


def is_tape(path: Path) -> bool:
    """Whether a file is a tape, judged by its first bytes. `TapeMissing` if there is no file."""
    first = bytes(bytes_of(path, 4096)[0][:4096])
    return first.startswith(WHOLE[:-2]) or is_text(first)


def bytes_of(path: Path, limit_bytes: int = -1) -> tuple[memoryview, str]:
    """The bytes of a file, at least the first ``limit_bytes``; and why they end early, if they do.

    They are memory-mapped; decompressed bytes are mapped from an unnamed file. `CorruptTape` if they
    decompress to more than a recording can.
    """
    try:
        with open(path, "rb") as file:
            if file.read(len(GZIP)) != GZIP:
                return _mapped(file), ""
            file.seek(0)
            with tempfile.TemporaryFile() as plain:
                problem = _unpack(file, plain, limit_bytes, Path(path).name)
                return _mapped(plain), problem
    except (FileNotFoundError, IsADirectoryError):
        raise TapeMissing(f"no tape at {path}", hint="playhead ls") from None


def _unpack(packed: IO[bytes], plain: IO[bytes], limit_bytes: int, name: str) -> str:
    """Decompress. Returns what is wrong, if anything. `CorruptTape` if it expands without end."""
    reader = zlib.decompressobj(wbits=31)
    most = max(PLAIN_BYTES, MOST_TIMES * os.fstat(packed.fileno()).st_size)
    piece = b""
    try:
        while not reader.eof and (piece := reader.unconsumed_tail or packed.read(PIECE_BYTES)):
            plain.write(reader.decompress(piece, PIECE_BYTES))
            if 0 <= limit_bytes <= plain.tell():
                return ""
            if plain.tell() > most:
                raise CorruptTape(
                    f"{name} unpacks to more than {most} bytes",
                    cause=f"no recording packs to less than a {MOST_TIMES}th",
                    hint=f"if you trust its author, unpack it yourself: gunzip {name}",
                )
    except zlib.error as problem:
        return str(problem)
    return "" if reader.eof else "its compressed bytes end early"


def _mapped(file: IO[bytes]) -> memoryview:
    file.flush()
    if not os.fstat(file.fileno()).st_size:
        return memoryview(b"")
    return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def _file_of(data: memoryview | bytes, found: Gathered, damage: str = "") -> TapeFile:
    at, signature = found.signature or (0, None)
    return TapeFile(
        found.tapes,
        found.spans,
        found.resources,
        damage,
        found.chains,
        found.parts,
        signature,
        digest_of(memoryview(data)[:at]) if signature is not None else b"",
        found.logs,
    )
