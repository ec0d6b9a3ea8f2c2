"""What a process put out: its streams, its effects on the world, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass, field

from playhead_semconv import attributes as a
from playhead_semconv import events as e
from playhead_semconv.facts import ErrorRecord, Fact
from playhead_semconv.seams import Tape
from playhead_semconv.tapes import end_of

STREAMS = ("stdout", "stderr")


@dataclass(frozen=True, slots=True)
class Exit:
    """How a process ended in order."""

    code: int | None
    error: ErrorRecord | None
    """The exception that left the program."""
    time_ns: int

    def __str__(self) -> str:
        if self.error is not None:
            return f"{self.error.qualname}: {self.error.message}"
        return "unknown" if self.code is None else str(self.code)


@dataclass(frozen=True, slots=True)
class Effect:
    """Something done to the world that is not a stream."""

    kind: str
    target: str
    body: bytes
    seq: int
    digest: str = ""
    """Of a content that is not kept."""

    def __str__(self) -> str:
        return f"{self.kind} {self.target}"


@dataclass(slots=True)
class Stream:
    """What was written to stdout or stderr, in pieces."""

    pieces: list[tuple[int, bytes]] = field(default_factory=list[tuple[int, bytes]])
    """Sequence number of the fact and its bytes."""

    @property
    def data(self) -> bytes:
        """All of it."""
        return b"".join(piece for _, piece in self.pieces)

    def seq_at(self, offset_bytes: int) -> int | None:
        """The fact that wrote the byte at ``offset_bytes``; None behind the end."""
        for seq, piece in self.pieces:
            if offset_bytes < len(piece):
                return seq
            offset_bytes -= len(piece)
        return None


@dataclass(slots=True)
class Outputs:
    """Everything a process put out."""

    stdout: Stream = field(default_factory=Stream)
    stderr: Stream = field(default_factory=Stream)
    effects: list[Effect] = field(default_factory=list[Effect])
    exit: Exit | None = None
    """None: the process did not end in order."""

    @classmethod
    def of_tape(cls, tape: Tape) -> Outputs:
        """The fold of the effect and exit facts of a tape."""
        found = cls()
        for fact in tape.facts():
            if fact.name == e.PLAYHEAD_EFFECT:
                found._take(fact, tape.read(fact.body) if fact.body is not None else b"")
            elif fact.name == e.PLAYHEAD_PROCESS_EXIT:
                found.exit = _exit_of(fact)
        return found

    @staticmethod
    def exit_of(tape: Tape) -> Exit | None:
        """How the process of a tape ended; reads no content."""
        ends = [fact for fact in tape.facts() if fact.name == e.PLAYHEAD_PROCESS_EXIT]
        return _exit_of(ends[-1]) if ends else None

    def _take(self, fact: Fact, body: bytes) -> None:
        kind = str(fact.attributes.get(a.PLAYHEAD_EFFECT_KIND, ""))
        if kind == "stdout":
            self.stdout.pieces.append((fact.seq, body))
        elif kind == "stderr":
            self.stderr.pieces.append((fact.seq, body))
        else:
            target = str(fact.attributes.get(a.PLAYHEAD_EFFECT_TARGET, ""))
            digest = str(fact.attributes.get(a.PLAYHEAD_FILE_DIGEST, ""))
            self.effects.append(Effect(kind, target, body, fact.seq, digest))


def _exit_of(fact: Fact) -> Exit:
    code = fact.attributes.get(a.PLAYHEAD_PROCESS_EXIT_CODE)
    return Exit(None if code is None else int(code), end_of(fact).error, fact.time_ns)
