"""Passes on what is not stored: metrics, and log records that are no facts.

They have a queue on disk of their own, and a thread of their own, so a destination that takes spans
alone has its spans, and one that is away holds up nobody.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator

from google.protobuf.message import DecodeError

from playhead_exporter.shipping.endpoint import Signal
from playhead_receiver.forward.delivery import REQUEST_BYTES, Counts, Delivery, Say, say_nothing
from playhead_receiver.forward.destination import Destination
from playhead_receiver.forward.outbox import Outbox
from playhead_receiver.forward.trimming import Trimmer

POLL_S = 0.5


class Relay:
    """One destination and the thread that passes on to it.

    A request that it refuses, or has no place for, is dropped and counted. `ConfigurationError` if there
    are no headers where it wants some.
    """

    def __init__(
        self, destination: Destination, data_dir: str | os.PathLike[str], say: Say = say_nothing
    ) -> None:
        self.signals = {Signal.METRICS, Signal.LOGS} if destination.logs else {Signal.METRICS}
        self._stop = threading.Event()
        what = "metrics and log records" if destination.logs else "metrics"
        self._delivery = Delivery(destination, self._stop, what, say)
        self._trimmer = Trimmer(destination)
        self._outbox = Outbox(data_dir, destination.name)
        self._thread = threading.Thread(target=self._run, name="playhead-relay", daemon=True)
        self.counts = Counts()
        """Requests, as they came in."""

    def put(self, signal: str, body: bytes) -> None:
        """Keep an export request, to be sent soon, if the destination gets such. `StoreUnavailable`."""
        if signal in self.signals:
            self._outbox.put(Signal(signal), body)

    def start(self) -> None:
        """Begin with what is left of the last time."""
        self._thread.start()

    def ask_to_stop(self) -> None:
        """Let it stop soon, and do not wait for that."""
        self._stop.set()
        self._outbox.filled.set()

    def stop(self) -> None:
        """Stop soon; the rest is sent when it starts again. Idempotent."""
        self.ask_to_stop()
        if self._thread.ident is not None:
            self._thread.join()
        self._delivery.close()

    @property
    def dropped(self) -> int:
        """Requests that went because its queue was full."""
        return self._outbox.dropped

    @property
    def waiting(self) -> int:
        """Requests in its queue."""
        return len(self._outbox)

    @property
    def problem(self) -> str:
        """Why nothing gets through just now; empty while it does."""
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
            except DecodeError:  # a disk that lost power
                self.counts.refused += 1
