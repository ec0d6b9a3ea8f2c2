"""The outputs of a process: its streams, its effects on the world, and how it ended."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from playhead_core.facts import Content, ErrorRecord, Fact
from playhead_core.process.module_coverage import REPEATED, UNHELD
from playhead_core.tape.folds import end_of
from playhead_core.tape.indexed_tapes import IndexedTape
from playhead_semconv import attributes as a
from playhead_semconv import events as e

STREAMS = ("stdout", "stderr")

MOST_TARGETS = 50

PIECES_A_LINE = 8
"""Largest number of pieces per line that are searched when only the last lines are requested."""


@dataclass(frozen=True, slots=True)
class Exit:
    """The regular end of a process."""

    code: int | None
    error: ErrorRecord | None
    """The exception that terminated the program."""
    time_ns: int

    def __str__(self) -> str:
        if self.error is not None and self.error.qualname != "SystemExit":
            return f"{self.error.qualname}: {self.error.message}"
        return "unknown" if self.code is None else str(self.code)


@dataclass(frozen=True, slots=True)
class Effect:
    """An effect on the world other than a stream."""

    kind: str
    target: str
    seq: int
    content: Content | None
    tape: IndexedTape = field(compare=False, repr=False)

    digest: str = ""
    """Digest of content that is not kept."""
    rows_digest: str = ""
    """Of a database: digest that is the same for the same rows in another order."""

    @property
    def body(self) -> bytes:
        """What was written, sent, …; empty if the tape does not hold it."""
        return b"" if self.content is None else self.tape.read(self.content)

    def __str__(self) -> str:
        return f"{self.kind} {self.target}"


@dataclass(slots=True)
class OutputStream:
    """What was written to stdout or stderr, in pieces."""

    pieces: list[tuple[int, bytes]] = field(default_factory=list[tuple[int, bytes]])
    """Sequence number of the fact and its bytes."""

    @property
    def data(self) -> bytes:
        """All bytes of the stream."""
        return b"".join(piece for _, piece in self.pieces)

    def seq_at(self, offset_bytes: int) -> int | None:
        """The fact that wrote the byte at ``offset_bytes``; None beyond the end."""
        for seq, piece in self.pieces:
            if offset_bytes < len(piece):
                return seq
            offset_bytes -= len(piece)
        return None


@dataclass(slots=True)
class Outputs:
    """All outputs of a process."""

    stdout: OutputStream = field(default_factory=OutputStream)
    stderr: OutputStream = field(default_factory=OutputStream)
    effects: list[Effect] = field(default_factory=list[Effect])
    exit: Exit | None = None
    """None: the process did not end regularly."""

    @classmethod
    def of_tape(cls, tape: IndexedTape) -> Outputs:
        """The outputs, folded from the effect and exit facts of a tape."""
        found = cls()
        for fact in tape.named(e.PLAYHEAD_EFFECT, e.PLAYHEAD_PROCESS_EXIT):
            if fact.name == e.PLAYHEAD_EFFECT:
                found._take(fact, tape)
            else:
                found.exit = _exit_of(fact)
        return found

    @staticmethod
    def exit_of(tape: IndexedTape) -> Exit | None:
        """How the process of a tape ended; reads no content."""
        ends = list(tape.named(e.PLAYHEAD_PROCESS_EXIT))
        return _exit_of(ends[-1]) if ends else None

    @staticmethod
    def last_of_stderr(tape: IndexedTape, lines: int) -> list[str]:
        """The last recorded lines that a process wrote to stderr, without empty ones.

        None where the recording has no content.
        """
        last: deque[Content] = deque(maxlen=lines * PIECES_A_LINE)
        for fact in tape.named(e.PLAYHEAD_EFFECT):
            body = fact.body
            if fact.attributes.get(a.PLAYHEAD_EFFECT_KIND) == "stderr" and body is not None:
                if body.digest or body.inline is not None:
                    last.append(body)
        written = b"".join(tape.read(one) for one in last).decode("utf-8", "replace")
        return [line for line in written.splitlines() if line.strip()][-lines:]

    def _take(self, fact: Fact, tape: IndexedTape) -> None:
        kind = str(fact.attributes.get(a.PLAYHEAD_EFFECT_KIND, ""))
        target = str(fact.attributes.get(a.PLAYHEAD_EFFECT_TARGET, ""))
        content = fact.body
        if content is not None and content.digest and content.base is None:
            content = Content(content.digest, content.size)
        digest = str(fact.attributes.get(a.PLAYHEAD_FILE_DIGEST, ""))
        rows_digest = str(fact.attributes.get(a.PLAYHEAD_FILE_ROWS_DIGEST, ""))
        effect = Effect(kind, target, fact.seq, content, tape, digest, rows_digest)
        if kind in STREAMS:
            stream = self.stdout if kind == "stdout" else self.stderr
            stream.pieces.append((fact.seq, effect.body))
        elif kind not in (UNHELD, REPEATED):
            self.effects.append(effect)


def unrecorded_traffic(tapes: Iterable[IndexedTape]) -> dict[str, list[str]]:
    """Hosts and socket files whose traffic with the program was not recorded, by library.

    At most `MOST_TARGETS` each. The library is empty for the program's own modules. Libraries that
    connect in C are not seen.
    """
    found: dict[str, dict[str, None]] = {}
    for at in (fact.attributes for tape in tapes for fact in tape.named(e.PLAYHEAD_EFFECT)):
        if at.get(a.PLAYHEAD_EFFECT_KIND) == "socket" and a.PLAYHEAD_FIDELITY not in at:
            targets = found.setdefault(str(at.get(a.PLAYHEAD_EFFECT_LIBRARY, "")), {})
            if len(targets) < MOST_TARGETS:
                targets[str(at.get(a.PLAYHEAD_EFFECT_TARGET, ""))] = None
    return {library: list(targets) for library, targets in found.items()}


def _exit_of(fact: Fact) -> Exit:
    code = fact.attributes.get(a.PLAYHEAD_PROCESS_EXIT_CODE)
    return Exit(None if code is None else int(code), end_of(fact).error, fact.time_ns)
