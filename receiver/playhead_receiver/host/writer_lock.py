"""One writer per data directory, and where it listens."""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from playhead_semconv.errors import StoreBusy, StoreUnavailable

FILE = "receiver.lock"
PATIENCE_S = 0.5
"""How long `take` tries: somebody may be looking at the lock just now."""


class Listening(msgspec.Struct, frozen=True):
    """The receiver that writes to a data directory."""

    pid: int
    http: str = ""
    """``http://127.0.0.1:4318``; empty while it is not listening (yet), or where it does not."""
    grpc: str = ""
    """``127.0.0.1:4317``; as above."""
    query: str = ""
    """``http://127.0.0.1:4319``; as above."""
    key: str = ""
    """A token for it, of those who may read the data folder; ends with the process."""


class WriterLock:
    """The right to write to a data directory, held by a lock on a file until `release` or death."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor: int | None = descriptor

    @classmethod
    def take(cls, data_dir: str | os.PathLike[str]) -> WriterLock:
        """Take the lock; makes the directory. `StoreBusy`, naming the holder, if somebody has it."""
        folder = Path(data_dir)
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            path = folder / FILE
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as problem:
            raise StoreUnavailable(
                f"the data directory {folder} cannot be used",
                cause=str(problem),
                hint="choose another: --data-dir DIR",
            ) from problem
        deadline = time.monotonic() + PATIENCE_S
        while not _locked(descriptor, fcntl.LOCK_EX):
            if time.monotonic() > deadline:
                holder = _read(descriptor)
                os.close(descriptor)
                raise _busy(folder, holder)
            time.sleep(0.01)
        lock = cls(path, descriptor)
        lock.announce()
        return lock

    def announce(self, http: str = "", grpc: str = "", query: str = "", key: str = "") -> None:
        """Say where this process listens, and what opens it."""
        if self._descriptor is None:
            return
        text = msgspec.json.encode(Listening(os.getpid(), http, grpc, query, key)) + b"\n"
        os.pwrite(self._descriptor, text, 0)
        os.ftruncate(self._descriptor, len(text))

    def release(self) -> None:
        """Give the lock back. Idempotent."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            with suppress(
                OSError
            ):  # nothing can be written there; that nobody holds it is seen all the same
                os.ftruncate(descriptor, 0)
            os.close(descriptor)


def running(data_dir: str | os.PathLike[str]) -> Listening | None:
    """Who writes to a data directory now, None if nobody does."""
    try:
        descriptor = os.open(Path(data_dir) / FILE, os.O_RDWR)
    except OSError:
        return None
    try:
        return None if _locked(descriptor, fcntl.LOCK_SH) else _read(descriptor) or Listening(0)
    finally:
        os.close(descriptor)


def _locked(descriptor: int, how: int) -> bool:
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read(descriptor: int) -> Listening | None:
    try:
        return msgspec.json.decode(os.pread(descriptor, 4096, 0), type=Listening)
    except msgspec.DecodeError:
        return None


def _busy(folder: Path, holder: Listening | None) -> StoreBusy:
    if holder is None:
        return StoreBusy(f"another process writes to {folder}")
    where = f" and listens at {holder.http}" if holder.http else ""
    return StoreBusy(
        f"process {holder.pid} writes to {folder}{where}",
        hint=f"export PLAYHEAD_ENDPOINT={holder.http}"
        if holder.http
        else "choose another: --data-dir DIR",
    )
