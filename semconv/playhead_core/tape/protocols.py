"""The interfaces between packages: sinks of facts, and tapes that they are read from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

from playhead_core.facts import Content, Fact


class Sink(Protocol):
    """Takes the facts of one process, in order. Never raises and never stalls.

    What is appended survives the death of the process: nothing is buffered in the process alone. Who
    records something appends its fact first and lets the program see it afterwards::

        seq = sink.append(Fact(time_ns, lane, "playhead.exchange.data", exchange=id, body=content))
        return data   # the program may now act on it; the tape knows

    Safe from any thread, from a finalizer that runs inside another append, and after a fork: the child
    continues with a tape of its own.
    """

    @property
    def instance(self) -> bytes:
        """The process instance to which the facts belong: 16 bytes; a new one after a fork.

        Lanes and bodies that facts of another instance declared must be declared again.
        """
        ...

    def append(self, fact: Fact) -> int:
        """Number a fact and store it. Returns its number: from 0, one more for each fact.

        ``fact``: without credentials; its ``instance`` and ``seq`` are set here, in a copy. A fact that
        cannot be stored (a full or frozen disk, for longer than the memory budget lasts) gets a number,
        too, so that the gap shows.
        """
        ...


class TapeExporter(Protocol):
    """Receives everything that an agent process records. Found by entry point ``playhead_outlet``."""

    on_control_request: Callable[[str], str]
    """Called from a thread of its own if a command of the same user on this machine asks the process to
    accept commands, with the name of who asks. Returns why it does not; empty if it does."""

    @property
    def sink(self) -> Sink:
        """Where facts go."""
        ...

    @property
    def span_processor(self) -> Any:
        """An OTel `SpanProcessor` that keeps finished spans, sampled or not."""
        ...

    def append_log(self, scope_logs: bytes) -> None:
        """Store a log record of the program, as OTLP `ScopeLogs` bytes. Never raises."""
        ...

    def prepare_for_eventlet(self) -> None:
        """From now on its threads import nothing."""
        ...

    def flush(self, timeout_s: float) -> bool:
        """Deliver all stored facts; False if some are undelivered after ``timeout_s``."""
        ...

    def close(self, timeout_s: float) -> bool:
        """Flush, then stop. What is still undelivered stays in the spool. Idempotent."""
        ...


class Tape(Protocol):
    """The facts of one process instance, in order. A spool folder, a file, rows of a store, memory."""

    @property
    def instance(self) -> bytes:
        """The process instance that the facts belong to."""
        ...

    def facts(self, after: int = -1) -> Iterator[Fact]:
        """Yield facts with ``seq > after``, ascending. A missing number is a gap."""
        ...

    def read(self, content: Content) -> bytes:
        """Return the bytes of a content of this tape, digest verified.

        Raises `TapeError` if they are missing.
        """
        ...
