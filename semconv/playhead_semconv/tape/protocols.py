"""The two seams that cross rooms: where facts go, and where they come from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from playhead_semconv.facts import Content, Fact
from playhead_semconv.settings import Settings


class Sink(Protocol):
    """Takes facts. Never raises, never stalls.

    `append` numbers the fact (``instance``, ``seq``), makes it survive the death of the process, and
    returns its number. When it cannot be kept (a full or frozen disk, for longer than the memory
    budget lasts) the number is still given, so that the gap shows. Safe from any thread, from a
    finalizer that runs inside another append, and after fork.
    """

    @property
    def instance(self) -> bytes:
        """The process instance whose facts these are: 16 bytes; another one after fork."""
        ...

    def append(self, fact: Fact) -> int:
        """Keep one fact; its sequence number."""
        ...


class Outlet(Protocol):
    """What an agent process sends its record through. Found by entry point ``playhead_outlet``."""

    @property
    def sink(self) -> Sink:
        """Where facts go."""
        ...

    @property
    def span_processor(self) -> Any:
        """An OTel `SpanProcessor` that keeps finished spans, sampled or not."""
        ...

    def import_all(self) -> None:
        """Import in this thread what its own threads import when they need it first."""
        ...

    def flush(self, timeout_s: float) -> bool:
        """Deliver what is there; False if something is still undelivered after ``timeout_s``."""
        ...

    def close(self, timeout_s: float) -> bool:
        """Flush, then stop. What is still undelivered stays in the spool. Idempotent."""
        ...


class OpenOutlet(Protocol):
    """The entry point: opens the outlet of this process. May raise; the caller then says so."""

    def __call__(self, resource: dict[str, Any], settings: Settings | None = None) -> Outlet:
        """``resource``: attributes of the OTel resource. ``settings``: by default the environment's."""
        ...


class Tape(Protocol):
    """The facts of one process instance, in order. A spool folder, a file, rows of a store, memory."""

    @property
    def instance(self) -> bytes:
        """Whose facts these are."""
        ...

    def facts(self, after: int = -1) -> Iterator[Fact]:
        """Facts with ``seq > after``, ascending. A hole in the numbers is a gap."""
        ...

    def read(self, content: Content) -> bytes:
        """The bytes of a content of this tape, digest verified. `TapeError` if they are not there."""
        ...
