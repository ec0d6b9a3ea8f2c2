"""Requests that wait for a destination and are kept nowhere else: a file each, in a bounded folder."""

from __future__ import annotations

import os
import threading
from collections import deque
from pathlib import Path

import msgspec

from playhead_exporter.shipping.endpoint import Signal
from playhead_receiver.forward.cursor import FOLDER
from playhead_receiver.host.durable_files import keep
from playhead_semconv.errors import StoreUnavailable
from playhead_semconv.facts import digest_of

MOST_BYTES = 64 * 1024 * 1024
"""Of one destination; above it the oldest go."""
BLOCK_BYTES = 4096
"""What a file takes on disk at least."""


class Waiting(msgspec.Struct, frozen=True):
    """A request that waits."""

    path: Path
    signal: Signal
    size_bytes: int


class Outbox:
    """The queue of a destination; ``name``: `Destination.name`. Safe from any thread.

    What `put` has taken survives a power cut; what was sent just before one may be sent again.
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
        """Requests that had to go because there were too many."""
        self.filled = threading.Event()
        """Set by each request that is put in."""
        self._load()

    def put(self, signal: Signal, body: bytes) -> None:
        """Keep a request; the oldest go where there is no room. `StoreUnavailable`."""
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
        """The oldest requests of one signal, up to ``most_bytes`` of them and at least one."""
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
                except OSError:  # somebody has removed it, or the disk does not give it back
                    self._take(one)
                    self.dropped += 1
                size += one.size_bytes
        return found

    def done(self, one: Waiting) -> None:
        """It does not wait any more."""
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
