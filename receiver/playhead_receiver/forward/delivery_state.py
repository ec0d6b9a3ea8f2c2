"""Delivery state of destinations on disk: cursors into the store, and queues of other requests.

Requests that are not in the store are queued as one file each, in a folder of bounded size.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from pathlib import Path

import msgspec

from playhead_core.errors import StoreUnavailable
from playhead_core.facts import digest_of
from playhead_exporter.delivery import Signal
from playhead_receiver.system.durable_files import keep

FOLDER = "forward"


class Cursor(msgspec.Struct):
    """The delivery state of a destination."""

    endpoint: str
    position: int
    """Everything up to this position was read."""
    waiting: list[int] = []
    """Positions, up to ``position``, of spans that still wait for their facts."""
    open: list[str] = []
    """Ids of traces for which it is not decided yet whether they are sent."""


class CursorFile:
    """A cursor file; ``name``: `Destination.name`."""

    def __init__(self, data_dir: str | os.PathLike[str], name: str) -> None:
        self._path = Path(data_dir) / FOLDER / f"{digest_of(name.encode()).hex()[:16]}.json"
        self._name = name

    def load(self, beginning: int) -> Cursor:
        """Read the cursor; one at position ``beginning`` if there is no readable file."""
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=Cursor)
        except (FileNotFoundError, msgspec.DecodeError):
            return Cursor(self._name, beginning)

    def save(self, cursor: Cursor) -> None:
        """Write the cursor atomically. `StoreUnavailable` if that is impossible."""
        try:
            keep(self._path, msgspec.json.encode(cursor))
        except OSError as problem:
            raise StoreUnavailable(f"{self._path} cannot be written", cause=str(problem)) from problem


MOST_BYTES = 64 * 1024 * 1024
"""Most bytes in the queue of one destination; above it the oldest requests are dropped."""
BLOCK_BYTES = 4096
"""Least space of a file on disk."""


class Waiting(msgspec.Struct, frozen=True):
    """A request in the queue."""

    path: Path
    signal: Signal
    size_bytes: int


class Outbox:
    """The queue of a destination; ``name``: `Destination.name`. Safe from any thread.

    Requests that `put` has accepted survive a power cut. Those sent just before it may be sent again.
    """

    def __init__(
        self, data_dir: str | os.PathLike[str], name: str, most_bytes: int = MOST_BYTES
    ) -> None:
        self._folder = Path(data_dir) / FOLDER / digest_of(name.encode()).hex()[:16]
        self._most = most_bytes
        self._lock = threading.Lock()
        self._queue: deque[Waiting] = deque()
        self._size = 0
        self._next = 0
        self.dropped = 0
        """Number of requests that were dropped because the queue was full, or could not be read."""
        self.filled = threading.Event()
        """Set by each `put`."""
        self._load()

    def put(self, signal: Signal, body: bytes) -> None:
        """Add a request; the oldest ones are dropped if the queue is full. `StoreUnavailable`."""
        with self._lock:
            path = self._folder / f"{self._next:020}.{signal}"
            self._next += 1
        try:
            keep(path, body)
        except OSError as problem:
            raise StoreUnavailable(f"{path} cannot be written", cause=str(problem)) from problem
        with self._lock:
            self._add(Waiting(path, signal, max(len(body), BLOCK_BYTES)))
            while self._size > self._most and len(self._queue) > 1:
                self._take(self._queue[0])
                self.dropped += 1
        self.filled.set()

    def oldest(self, most_bytes: int) -> list[tuple[Waiting, bytes]]:
        """The oldest requests, all of one signal: at least one, and up to ``most_bytes`` in total."""
        found: list[tuple[Waiting, bytes]] = []
        size = 0
        with self._lock:
            for one in tuple(self._queue):
                if found and one.signal is not found[0][0].signal:
                    break
                if found and size + one.size_bytes > most_bytes:
                    break
                try:
                    found.append((one, one.path.read_bytes()))
                except OSError:  # the file was removed, or cannot be read
                    self._take(one)
                    self.dropped += 1
                size += one.size_bytes
        return found

    def done(self, one: Waiting) -> None:
        """Remove a request from the queue."""
        with self._lock:
            if one in self._queue:
                self._take(one)

    def __len__(self) -> int:
        return len(self._queue)

    def _load(self) -> None:
        signals = {f".{signal}": signal for signal in Signal}
        for path in sorted(self._folder.glob("*")):
            if path.suffix in signals and path.stem.isdecimal():
                size = max(path.stat().st_size, BLOCK_BYTES)
                self._add(Waiting(path, signals[path.suffix], size))
                self._next = int(path.stem) + 1

    def _add(self, one: Waiting) -> None:
        self._queue.append(one)
        self._size += one.size_bytes

    def _take(self, one: Waiting) -> None:
        self._queue.remove(one)
        self._size -= one.size_bytes
        one.path.unlink(missing_ok=True)
