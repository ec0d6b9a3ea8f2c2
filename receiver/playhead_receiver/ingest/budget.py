"""A bound on the bytes of requests that are processed at once (backpressure)."""

from __future__ import annotations

import threading
from types import TracebackType

from playhead_core.errors import StoreUnavailable

IN_FLIGHT_BYTES = 128 * 1024 * 1024
"""Request bytes, sent and decompressed, that may be in memory before senders have to wait."""

RETRY_AFTER_S = 1
"""Seconds after which a sender may retry."""


class Overloaded(StoreUnavailable):
    """Too many bytes are in flight. The sender keeps its data and tries again."""

    code = "overloaded"


class Stalled(StoreUnavailable):
    """A request stopped arriving. Its sender may send it again."""

    code = "stalled"


class Budget:
    """Bytes that may be in flight. Safe from any thread."""

    def __init__(self, limit_bytes: int = IN_FLIGHT_BYTES) -> None:
        self._limit = limit_bytes
        self._taken = 0
        self._lock = threading.Lock()

    @property
    def taken_bytes(self) -> int:
        """Bytes in flight now."""
        return self._taken

    def take(self, size_bytes: int) -> None:
        """Reserve bytes. `Overloaded` if the limit is exceeded; a single request is always admitted."""
        with self._lock:
            if self._taken and self._taken + size_bytes > self._limit:
                raise Overloaded(
                    f"{self._taken} bytes are being stored already; retry in {RETRY_AFTER_S} s"
                )
            self._taken += size_bytes

    def give_back(self, size_bytes: int) -> None:
        """Return reserved bytes."""
        with self._lock:
            self._taken -= size_bytes


class Share:
    """Bytes that one request has reserved of a `Budget`, returned at the end of the ``with`` block."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._size = 0

    def grow(self, size_bytes: int) -> None:
        """Reserve more bytes. `Overloaded` if the limit is exceeded; the share is empty then."""
        if self._size:
            self._budget.give_back(self._size)
            self._size, wanted = 0, self._size + size_bytes
        else:
            wanted = size_bytes
        self._budget.take(wanted)
        self._size = wanted

    def __enter__(self) -> Share:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._budget.give_back(self._size)
        self._size = 0
