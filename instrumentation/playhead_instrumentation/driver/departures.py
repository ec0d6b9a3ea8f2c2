"""What may keep an ask from going out: an operator, a rule, or a tape that tells of them."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from playhead_instrumentation.driver.call import Call
    from playhead_instrumentation.driver.gate import Turn


class Departure(Protocol):
    """The turn of an ask. A thread calls `wait`, a task awaits it; one of them, once."""

    def wait(self) -> None:
        """Block until the ask may go out."""
        ...

    def __await__(self) -> Generator[Any, None, None]:
        """The same for a task."""
        ...


class Departures(Protocol):
    """Says which asks wait. Methods may be called from any thread; only the waits take time."""

    def departure(self, call: Call, key: str, body: bytes | None) -> Departure | None:
        """What the ask of a call waits for; None: nothing. Its request fact is on the tape.

        ``key``, ``body``: what is asked; the body as it goes out, None if it comes in pieces.
        """
        ...

    def arrival(self, call: Call, turn: Turn) -> Turn:
        """``turn``, or one that also waits as long as the program is paused."""
        ...

    def answered(self, call: Call, values: dict[str, Any]) -> None:
        """The head of an answer is on the tape. Safe in a finalizer."""
        ...

    def ended(self, call: Call) -> None:
        """The end of an exchange is on the tape. Safe in a finalizer."""
        ...


class _AtOnce:
    """Nothing keeps the ask."""

    def wait(self) -> None:
        """At once."""

    def __await__(self) -> Generator[Any, None, None]:
        return
        yield


AT_ONCE: Departure = _AtOnce()
