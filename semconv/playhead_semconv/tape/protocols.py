"""The two interfaces between rooms: where facts go, and where they come from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from playhead_semconv.facts import Content, Fact
from playhead_semconv.settings import Settings


class Sink(Protocol):
    """Takes facts. Never raises and never stalls.

    `append` numbers the fact (``instance``, ``seq``), makes it survive the death of the process, and
    returns its number. If it cannot be kept (a full or frozen disk, for longer than the memory budget
    lasts), it still gets a number, so that the gap shows. Safe from any thread, from a finalizer that
    runs inside another append, and after fork.
    """

    @property
    def instance(self) -> bytes:
        """The process instance that the facts belong to: 16 bytes; a new one after fork."""
        ...

    def append(self, fact: Fact) -> int:
        """Keep one fact; returns its sequence number."""
        ...


class Outlet(Protocol):
    """Receives everything that an agent process records. Found by entry point ``playhead_outlet``."""

    @property
    def sink(self) -> Sink:
        """Where facts go."""
        ...

    @property
    def span_processor(self) -> Any:
        """An OTel `SpanProcessor` that keeps finished spans, sampled or not."""
        ...

    def import_all(self) -> None:
        """Import, in this thread, the modules that its own threads would import on first use."""
        ...

    def flush(self, timeout_s: float) -> bool:
        """Deliver what is there; False if something is still undelivered after ``timeout_s``."""
        ...

    def close(self, timeout_s: float) -> bool:
        """Flush, then stop. What is still undelivered stays in the spool. Idempotent."""
        ...


class OpenOutlet(Protocol):
    """The entry point: opens the outlet of this process. May raise; the caller reports the error."""

    def __call__(self, resource: dict[str, Any], settings: Settings | None = None) -> Outlet:
        """``resource``: attributes of the OTel resource. ``settings``: by default the environment's."""
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
