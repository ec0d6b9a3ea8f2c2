"""One replay or fork: a child process, its output, and how it ends."""

from __future__ import annotations

import os
import secrets
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Literal, TypeAlias

from playhead_core.errors import PlayheadError

State: TypeAlias = Literal["running", "ended", "cancelled"]
Kind: TypeAlias = Literal["replay", "fork"]

MOST_BYTES = 16 << 20
"""Number of bytes of a child's output stream that are kept, from its end."""
PIECE_BYTES = 1 << 16
LOOKS_S = 0.5
"""Seconds between two checks whether a reader has to stop."""
WAITED_S = 0.02
"""Seconds between two checks whether a child that has closed its streams has ended."""
PATIENCE_S = 5.0
"""Seconds that a cancelled child process may take to end before it is killed."""


class NotStarted(PlayheadError):
    """The child process cannot be started."""

    code = "rerun-not-started"


@dataclass(frozen=True, slots=True)
class Ordered:
    """An order to replay or fork a run, and the caller who gave it."""

    kind: Kind
    run: str
    trace_id: str
    step: int | None
    """Step at which a fork leaves its origin; None: from the beginning."""
    by: str


class Tail:
    """The end of a stream."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.is_cut = False

    def put(self, piece: bytes) -> None:
        """Append a piece."""
        self.data += piece
        if len(self.data) > MOST_BYTES:
            del self.data[: len(self.data) - MOST_BYTES]
            self.is_cut = True


class Rerun:
    """A child process in a process group of its own, read until it ends. Safe from any thread."""

    def __init__(
        self,
        ordered: Ordered,
        words: Sequence[str],
        environment: Mapping[str, str],
        ended: Callable[[], None] = lambda: None,
    ) -> None:
        """Start it. ``ended`` is called when it has ended. `NotStarted`."""
        self.id = secrets.token_hex(8)
        self.ordered = ordered
        self.started_ns = time.time_ns()
        self.ended_ns: int | None = None
        self.exit_code: int | None = None
        self.revision = 1
        """Counts changes: output, and the end."""
        self._ended = ended
        self._cancelled = False
        self._abandoned = False
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._out, self._err = Tail(), Tail()
        try:
            self._process = subprocess.Popen(
                list(words),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, **environment},
                start_new_session=True,
            )
        except OSError as problem:
            raise NotStarted(f"{words[0]} cannot be started", cause=str(problem)) from problem
        assert self._process.stdout is not None and self._process.stderr is not None
        streams = (self._process.stdout, self._out), (self._process.stderr, self._err)
        self._readers = [
            threading.Thread(target=self._read, args=pair, name="playhead-rerun", daemon=True)
            for pair in streams
        ]
        for reader in self._readers:
            reader.start()
        threading.Thread(target=self._wait, name="playhead-rerun", daemon=True).start()

    @property
    def state(self) -> State:
        """Whether it is running, has ended, or was cancelled."""
        if self.ended_ns is None:
            return "running"
        return "cancelled" if self._cancelled else "ended"

    @property
    def printed(self) -> bytes:
        """The end of what it wrote to stdout."""
        with self._lock:
            return bytes(self._out.data)

    @property
    def said(self) -> bytes:
        """The end of what it wrote to stderr."""
        with self._lock:
            return bytes(self._err.data)

    @property
    def is_cut(self) -> bool:
        """Whether it wrote more to stdout than is kept."""
        return self._out.is_cut

    def cancel(self) -> None:
        """Terminate it and its children; kill them if they do not end in time. Idempotent."""
        if self.ended_ns is None and not self._cancelled:
            self._cancelled = True
            self._signal(signal.SIGTERM)
            timer = threading.Timer(PATIENCE_S, self._kill)
            timer.daemon = True
            timer.start()

    def close(self) -> None:
        """Kill it and its children, and wait until it has ended."""
        self._cancelled = self._cancelled or self.ended_ns is None
        self._kill()
        self._over.wait()

    def _kill(self) -> None:
        self._signal(signal.SIGKILL)
        self._abandoned = True

    def _signal(self, number: signal.Signals) -> None:
        # Until it has been waited for, its process group id cannot be reused.
        with self._lock:
            if self._process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(self._process.pid, number)

    def _read(self, stream: IO[bytes], tail: Tail) -> None:
        # A process in another group may keep the stream open forever.
        while not self._abandoned:
            if not select.select([stream], [], [], LOOKS_S)[0]:
                continue
            piece = os.read(stream.fileno(), PIECE_BYTES)
            if not piece:
                break
            with self._lock:
                tail.put(piece)
                self.revision += 1
        stream.close()

    def _wait(self) -> None:
        for reader in self._readers:
            reader.join()
        while self.exit_code is None:
            with self._lock:  # no other thread waits for it, and never while it is being signalled
                self.exit_code = self._process.poll()
            time.sleep(WAITED_S)
        self._ended()
        with self._lock:
            self.ended_ns = time.time_ns()
            self.revision += 1
        self._over.set()
