"""The receiver for a recording: the one that runs on the data folder, or one of our own."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from playhead_receiver.host.data_folder import data_dir
from playhead_receiver.host.writer_lock import Listening, WriterLock, running
from playhead_semconv.errors import StoreBusy

if TYPE_CHECKING:
    from playhead_receiver.server import Receiver
    from playhead_semconv.settings import Settings

PATIENCE_S = 15.0
"""Seconds to wait for a receiver that holds the lock and does not listen yet."""

POLL_S = 0.02

LOOPBACK = "127.0.0.1"

BACKLOG = 2048
"""Largest number of connections that wait while the receiver starts."""


class ReceiverForRun:
    """Finds a receiver for a data folder, and embeds one if there is none.

    The receiver of another process may go away at any time; `listening` checks again on each call.
    """

    def __init__(
        self,
        data_dir: Path,
        store: str = "",
        blobs: str = "",
        references: str = "",
    ) -> None:
        self._data_dir = data_dir
        self._store = store
        self._blobs = blobs
        self._references = references
        self._own: Starting | None = None

    @property
    def embedded(self) -> bool:
        """Whether the receiver runs in this process."""
        return self._own is not None

    def soon(self) -> Listening:
        """The receiver of the data folder, without waiting until an embedded one has started.

        Requests to it wait until then. `StoreBusy` as in `listening`, `StoreUnavailable` if the folder
        is not writable.
        """
        if self._own is None and running(self._data_dir) is None:
            with suppress(StoreBusy):
                self._embed()
        return self.listening() if self._own is None else self._own.listening

    def listening(self) -> Listening:
        """The receiver of the data folder, with its current address.

        `StoreBusy` when a process holds the folder for long and does not listen; errors of starting an
        embedded receiver.
        """
        if self._own is not None:
            self._own.wait()
            return self._own.listening
        deadline = time.monotonic() + PATIENCE_S
        while True:
            found = running(self._data_dir)
            if found is not None and found.http:
                return found
            try:
                if found is None:
                    self._embed()
                    return self.listening()
            except StoreBusy:
                if time.monotonic() > deadline:
                    raise
            if time.monotonic() > deadline:
                holder = f"process {found.pid}" if found is not None else "another process"
                raise StoreBusy(
                    f"{holder} writes to {self._data_dir} and does not listen",
                    hint="choose another: --data-dir DIR",
                )
            time.sleep(POLL_S)

    def close(self) -> None:
        """Stop the embedded receiver. Idempotent."""
        own, self._own = self._own, None
        if own is not None:
            own.stop()

    def _embed(self) -> None:
        lock = WriterLock.take(self._data_dir)

        def receiver(listener: socket.socket) -> Receiver:
            from playhead_receiver.configuration import Addresses, Configuration, Had, Storage
            from playhead_receiver.server import Receiver
            from playhead_receiver.store.content.references import References

            configuration = Configuration(
                Addresses(http_port=0, grpc_port=None, query_port=0),
                storage=Storage(self._store, self._blobs),
                references=References.named(self._references),
            )
            return Receiver(self._data_dir, configuration, had=Had(lock, listener))

        self._own = Starting(receiver, lock)


class Starting:
    """An embedded receiver that is loaded and started in a thread; its socket listens at once."""

    def __init__(self, make: Callable[[socket.socket], Receiver], lock: WriterLock) -> None:
        self._make = make
        self._lock = lock
        self._receiver: Receiver | None = None
        self._problem: BaseException | None = None
        self._listener = socket.create_server((LOOPBACK, 0), backlog=BACKLOG)
        self.listening = Listening(os.getpid(), f"http://{LOOPBACK}:{self._listener.getsockname()[1]}")
        self._thread = threading.Thread(target=self._start, name="playhead-starting", daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Wait until it has started. Raises the error if it could not start."""
        self._thread.join()
        if self._problem is not None:
            raise self._problem

    def stop(self) -> None:
        """Stop the receiver."""
        self._thread.join()
        if self._receiver is not None:
            self._receiver.stop()

    def _start(self) -> None:
        try:
            receiver = self._make(self._listener)
            receiver.start()
            self._receiver = receiver
        except BaseException as problem:
            self._problem = problem
            self._listener.close()  # waiting connections are refused
            self._lock.release()


@contextmanager
def receiver_for(settings: Settings) -> Generator[ReceiverForRun]:
    """A `ReceiverForRun` that is closed on exit."""
    found = ReceiverForRun(data_dir(settings), settings.store, settings.blobs, settings.references)
    try:
        yield found
    finally:
        found.close()
