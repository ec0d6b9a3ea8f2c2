"""The lock that allows one writer per data directory, and the record of where it listens."""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from playhead_core.errors import StoreBusy, StoreUnavailable

FILE = "receiver.lock"
PATIENCE_S = 0.5
"""Seconds for which `take` tries where the lock names a holder: it may be about to end."""
TESTED_S = 10.0
"""Seconds for which it tries where the lock names none: another process is only testing the lock."""


class Listening(msgspec.Struct, frozen=True):
    """The receiver that writes to a data directory."""

    pid: int
    http: str = ""
    """``http://127.0.0.1:4318``; empty if it does not listen there, or not yet."""
    grpc: str = ""
    """``127.0.0.1:4317``; as above."""
    query: str = ""
    """``http://127.0.0.1:4319``; as above."""
    key: str = ""
    """A token for users who may read the data folder. Valid until the process ends."""
    passing: bool = False
    """Whether it is embedded in a command, and ends with it."""
    store: str = ""
    """`store_mark` of the database that it writes to; empty: the data directory."""


def store_mark(url: str) -> str:
    """A short name of a database that does not contain its credentials; empty for none."""
    return hashlib.sha256(url.encode()).hexdigest()[:16] if url else ""


def destination_of(data_dir: str | os.PathLike[str], url: str) -> str:
    """Where a receiver stores, whatever its address: its data folder, and a mark of its database."""
    return f"{os.path.realpath(data_dir)} {store_mark(url)}".rstrip()


class WriterLock:
    """The right to write to a data directory: a file lock, held until `release` or process end."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor: int | None = descriptor

    @property
    def folder(self) -> Path:
        """The data directory."""
        return self._path.parent

    @classmethod
    def take(cls, data_dir: str | os.PathLike[str], *, waits: bool = False) -> WriterLock:
        """Take the lock; make the directory if it is missing. `StoreBusy` names the holder, if any.

        ``waits``: until the holder has released it, however long. `StoreUnavailable` if the directory
        cannot be used.
        """
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
        if waits:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        began_s = time.monotonic()
        while not _locked(descriptor, fcntl.LOCK_EX):
            holder = _read(descriptor)
            if time.monotonic() - began_s > (PATIENCE_S if holder else TESTED_S):
                os.close(descriptor)
                raise _busy(folder, holder)
            time.sleep(0.01)
        lock = cls(path, descriptor)
        lock.announce()
        return lock

    def announce(
        self,
        http: str = "",
        grpc: str = "",
        query: str = "",
        key: str = "",
        *,
        passing: bool = False,
        store: str = "",
    ) -> None:
        """Record in the lock file where this process listens, and the key that admits callers."""
        if self._descriptor is None:
            return
        listening = Listening(os.getpid(), http, grpc, query, key, passing, store)
        text = msgspec.json.encode(listening) + b"\n"
        os.pwrite(self._descriptor, text, 0)
        os.ftruncate(self._descriptor, len(text))

    def release(self) -> None:
        """Release the lock. Idempotent."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            with suppress(OSError):  # the file cannot be written; the free lock is visible nevertheless
                os.ftruncate(descriptor, 0)
            os.close(descriptor)


def running(data_dir: str | os.PathLike[str]) -> Listening | None:
    """The receiver that writes to a data directory now; None if there is none."""
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
