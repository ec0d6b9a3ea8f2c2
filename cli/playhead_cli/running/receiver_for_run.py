"""The receiver for a recording: the running one of the data folder, or an embedded one."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from playhead_core.errors import PlayheadError, StoreBusy
from playhead_receiver.system.defaults import data_dir, require_descriptors
from playhead_receiver.system.writer_lock import Listening, WriterLock, running, store_mark

if TYPE_CHECKING:
    from playhead_core.settings import Settings
    from playhead_receiver.server import Receiver

PATIENCE_S = 15.0
"""Seconds to wait for a receiver that holds the lock and does not listen yet."""

POLL_S = 0.02

LOOPBACK = "127.0.0.1"

STORES = "stores"
"""Folder in the data folder with the files of receivers that write to a database instead."""

BACKLOG = 2048
"""Largest number of pending connections while the receiver starts."""


class ReceiverForRun:
    """Finds a receiver for a data folder, and embeds one if there is none.

    The receiver of another process may go away at any time; `listening` checks again on each call. One
    that is embedded in another command ends with that command: then this process embeds the next one, at
    the same address, which its agent knows.
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
        self._embedding = threading.Lock()
        self._is_closed = False
        self._successor: threading.Thread | None = None

    @property
    def embedded(self) -> bool:
        """Whether the receiver runs in this process."""
        return self._own is not None

    @property
    def folder(self) -> Path:
        """The folder of the receiver, separate for each database."""
        mark = store_mark(self._store)
        found = running(self._data_dir) if mark else None
        if not mark or (found is not None and found.store == mark):
            return self._data_dir
        return self._data_dir / STORES / mark

    def running(self) -> Listening | None:
        """Return the receiver that runs now; None if there is none."""
        return running(self.folder)

    def soon(self) -> Listening:
        """Return the receiver of the data folder, without waiting until an embedded one has started.

        Requests to it wait until then. `StoreBusy` as in `listening`, `StoreUnavailable` if the folder
        is not writable, `ConfigurationError` if this process may open too few files.
        """
        if self._own is None and self.running() is None:
            require_descriptors()
            with suppress(StoreBusy):
                self._embed(WriterLock.take(self.folder))
        if self._own is not None:
            return self._own.listening
        return self.listening()

    def listening(self) -> Listening:
        """Return the receiver of the data folder, with its current address.

        `StoreBusy` when a process holds the folder for long and does not listen; `ConfigurationError` if
        this process may open too few files; errors of starting an embedded receiver.
        """
        deadline = time.monotonic() + PATIENCE_S
        while True:
            own = self._own
            if own is not None:
                own.wait()
                return own.listening
            found = self.running()
            if found is not None and found.http:
                if found.passing:
                    self._follow(found)
                return found
            try:
                if found is None:
                    require_descriptors()
                    self._embed(WriterLock.take(self.folder))
                    continue
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
        with self._embedding:
            self._is_closed = True
            own, self._own = self._own, None
        if own is not None:
            own.stop()

    def _follow(self, found: Listening) -> None:
        if self._successor is None:
            self._successor = threading.Thread(
                target=self._succeed, args=(found,), name="playhead-successor", daemon=True
            )
            self._successor.start()

    def _succeed(self, before: Listening) -> None:
        """Wait for the end of the command that embeds ``before``, then embed a receiver in its place."""
        with suppress(PlayheadError, OSError):  # at the end `listening` finds or embeds another one
            lock = WriterLock.take(self.folder, waits=True)
            try:
                self._embed(lock, int(before.http.rpartition(":")[2]))
            except OSError:
                lock.release()

    def _embed(self, lock: WriterLock, port: int = 0) -> None:
        """Embed a receiver that listens at ``port``; 0: any. OSError if the port is in use."""
        with self._embedding:
            if self._is_closed or self._own is not None:
                lock.release()
            else:
                self._own = Starting(self._make(lock), lock, port)

    def _make(self, lock: WriterLock) -> Callable[[socket.socket], Receiver]:
        def receiver(listener: socket.socket) -> Receiver:
            from playhead_receiver.config.configuration import (
                Addresses,
                Configuration,
                Inherited,
                Storage,
            )
            from playhead_receiver.server import Receiver
            from playhead_receiver.storage.content.references import References

            configuration = Configuration(
                Addresses(http_port=0, grpc_port=None, query_port=0),
                storage=Storage(self._store, self._blobs),
                references=References.named(self._references),
            )
            return Receiver(lock.folder, configuration, inherited=Inherited(lock, listener))

        return receiver


class Starting:
    """An embedded receiver that is loaded and started in a thread; its socket listens at once."""

    def __init__(
        self, make: Callable[[socket.socket], Receiver], lock: WriterLock, port: int = 0
    ) -> None:
        self._make = make
        self._lock = lock
        self._receiver: Receiver | None = None
        self._problem: BaseException | None = None
        self._listener = socket.create_server((LOOPBACK, port), backlog=BACKLOG)
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
