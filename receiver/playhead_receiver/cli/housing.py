"""The receiver that a recording goes to: the one that runs on the data folder, or one of our own."""

from __future__ import annotations

import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from playhead_receiver.cli.configuration import data_dir
from playhead_receiver.lock import Listening, running
from playhead_semconv.errors import StoreBusy

if TYPE_CHECKING:
    from playhead_receiver.server import Receiver
    from playhead_semconv.settings import Settings

PATIENCE_S = 15.0
"""How long to wait for a receiver that has the lock and does not listen yet."""

POLL_S = 0.02


class Housing:
    """Finds a receiver for a data folder, and embeds one where there is none.

    Another process's receiver may go away at any time; `listening` looks again each time it is asked.
    """

    def __init__(self, data_dir: Path, store: str = "", blobs: str = "", references: str = "") -> None:
        self._data_dir = data_dir
        self._store = store
        self._blobs = blobs
        self._references = references
        self._own: Receiver | None = None

    @property
    def embedded(self) -> bool:
        """Whether the receiver is our own."""
        return self._own is not None

    def listening(self) -> Listening:
        """The receiver of the data folder, and where it listens now.

        `StoreBusy` when somebody holds the folder for long and does not listen.
        """
        if self._own is not None:
            return Listening(os.getpid(), self._own.http_endpoint)
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
        """Stop our own receiver. Idempotent."""
        own, self._own = self._own, None
        if own is not None:
            own.stop()

    def _embed(self) -> None:
        from playhead_receiver.references import References
        from playhead_receiver.server import Receiver

        receiver = Receiver(
            self._data_dir,
            store=self._store,
            blobs=self._blobs,
            http_port=0,
            grpc_port=None,
            references=References.named(self._references),
        )
        receiver.start()
        self._own = receiver


@contextmanager
def housing(settings: Settings) -> Generator[Housing]:
    """A `Housing` that is closed at the end."""
    found = Housing(data_dir(settings), settings.store, settings.blobs, settings.references)
    try:
        yield found
    finally:
        found.close()
