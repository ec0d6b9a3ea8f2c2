"""Passes on what is not forwarded from the store: metrics, and log records that are no facts.

They have their own queue on disk and their own thread. So a destination that accepts only spans still
gets its spans, and one that is unreachable delays no others.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator

from google.protobuf.message import DecodeError

from playhead_exporter.delivery import Signal
from playhead_receiver.forward.delivery import (
    REQUEST_BYTES,
    Counts,
    DestinationConnection,
    Say,
    say_nothing,
)
from playhead_receiver.forward.delivery_state import Outbox
from playhead_receiver.forward.destination import Destination
from playhead_receiver.forward.trimming import Trimmer

POLL_S = 0.5


class Relay:
    """One destination and the thread that passes requests on to it.

    A request that it refuses, or does not support, is dropped and counted. `ConfigurationError` if
    headers that the destination names are missing.
    """

    def __init__(
        self, destination: Destination, data_dir: str | os.PathLike[str], say: Say = say_nothing
    ) -> None:
        self.signals = {Signal.METRICS, Signal.LOGS} if destination.logs else {Signal.METRICS}
        self._stop = threading.Event()
        what = "metrics and log records" if destination.logs else "metrics"
        self._delivery = DestinationConnection(destination, self._stop, what, say)
        self._trimmer = Trimmer(destination)
        self._outbox = Outbox(data_dir, destination.name)
        self._thread = threading.Thread(target=self._run, name="playhead-relay", daemon=True)
        self.counts = Counts()
        """Counts of whole requests, as they were received."""

    def put(self, signal: str, body: bytes) -> bool:
        """Queue an export request if the destination gets this signal; whether it does.

        `StoreUnavailable`.
        """
        if signal not in self.signals:
            return False
        self._outbox.put(Signal(signal), body)
        return True

    def start(self) -> None:
        """Start with what the queue still holds."""
        self._thread.start()

    def ask_to_stop(self) -> None:
        """Ask the thread to stop, without waiting for it."""
        self._stop.set()
        self._outbox.filled.set()

    def stop(self) -> None:
        """Stop the thread; what is left is sent after the next start. Idempotent."""
        self.ask_to_stop()
        if self._thread.ident is not None:
            self._thread.join()
        self._delivery.close()

    @property
    def dropped(self) -> int:
        """Number of requests that were dropped because the queue was full, or could not be read."""
        return self._outbox.dropped

    @property
    def waiting(self) -> int:
        """Number of requests in the queue."""
        return len(self._outbox)

    @property
    def problem(self) -> str:
        """Why nothing gets through at the moment; empty if deliveries work."""
        return self._delivery.problem

    def _run(self) -> None:
        while not self._stop.is_set():
            self._outbox.filled.clear()
            found = self._outbox.oldest(REQUEST_BYTES)
            if not found:
                self._outbox.filled.wait(POLL_S)
                continue
            signal = found[0][0].signal
            parts = list(self._trimmed(signal, (body for _, body in found)))
            if parts and not self._delivery.deliver(signal, parts, self.counts, wanted=False):
                return
            for waiting, _ in found:
                self._outbox.done(waiting)

    def _trimmed(self, signal: Signal, bodies: Iterable[bytes]) -> Iterator[bytes]:
        for body in bodies:
            try:
                yield self._trimmer.trim_request(signal, body)
            except DecodeError:  # the file is damaged, for example by a power cut
                self.counts.refused += 1
