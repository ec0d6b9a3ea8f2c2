"""The program's ends of the pipes to a child process.

`PipeEnd` stands where `subprocess` has its `io.FileIO`, below the buffers; who reads or writes by the
number of the descriptor (``communicate``, asyncio) is met in ``os.read`` and ``os.write``.
"""

from __future__ import annotations

import errno
import functools
import io
import os
import stat
import types
from collections.abc import Callable
from typing import Any, Final, Protocol

from playhead_instrumentation.runtime import lanes
from playhead_instrumentation.runtime.patching import PATCHES, Outcome
from playhead_instrumentation.session.session import current

ENDS: Final[dict[int, PipeEnd]] = {}
"""By number of the descriptor."""

CHUNK_BYTES = 65536
"""So much is read at once where all is wanted."""


class Told(Protocol):
    """The exchange of a child, as a pipe to it tells what goes through."""

    @property
    def passes(self) -> bool:
        """Whether nothing is recorded of it any more."""
        ...

    def read(self, stream: str, size: int, live: Callable[[int], bytes | None]) -> bytes | None:
        """At most ``size`` bytes of a stream; nothing at its end, None where nothing is there yet."""
        ...

    def write(self, data: Any, live: Callable[[], int | None]) -> int | None:
        """The program writes to its stdin; how much was taken, None where there is no room."""
        ...

    def closes(self, stream: str) -> None:
        """The program closes a pipe to it."""
        ...


class PipeEnd(io.FileIO):
    """Our end of a pipe: what goes through it is told to the child's exchange."""

    child: Told | None = None
    stream = ""

    def of(self, child: Told, stream: str) -> None:
        """From now on it belongs to ``child``."""
        self.child, self.stream = child, stream
        self._inode = os.fstat(self.fileno()).st_ino
        ENDS[self.fileno()] = self

    def _asked(self) -> Told | None:
        child = self.child
        return None if child is None or child.passes else child

    def belongs(self) -> bool:
        """Whether its descriptor is still this pipe."""
        try:
            return os.fstat(self.fileno()).st_ino == self._inode
        except (OSError, ValueError):
            return False

    def read(self, size: int | None = -1, /) -> Any:
        """As `io.FileIO`."""
        if size is None or size < 0:
            return self.readall()
        child = self._asked()
        return super().read(size) if child is None else child.read(self.stream, size, super().read)

    def readinto(self, buffer: Any, /) -> Any:
        """As `io.FileIO`."""
        child = self._asked()
        if child is None:
            return super().readinto(buffer)
        view = memoryview(buffer).cast("B")
        data = child.read(self.stream, len(view), super().read)
        if data is None:
            return None
        view[: len(data)] = data
        return len(data)

    def readall(self) -> Any:
        """As `io.FileIO`."""
        if self._asked() is None:
            return super().readall()
        pieces: list[bytes] = []
        while piece := self.read(CHUNK_BYTES):
            pieces.append(piece)
        return None if piece is None and not pieces else b"".join(pieces)

    def write(self, data: Any, /) -> Any:
        """As `io.FileIO`."""
        child = self._asked()
        if child is None:
            return super().write(data)
        return child.write(data, functools.partial(super().write, data))

    def close(self) -> None:
        """As `io.FileIO`."""
        child = self.child
        if child is not None and not self.closed:
            self.child = None
            if ENDS.get(self.fileno()) is self:
                del ENDS[self.fileno()]
            try:
                child.closes(self.stream)
            finally:
                super().close()
            return
        super().close()

    def live(self, read: Callable[[int], bytes]) -> Callable[[int], bytes]:
        """How it is read by its number."""
        return read

    def ends(self, data: bytes) -> bytes:
        """Its end, as who reads by its number learns it: nothing comes."""
        return data

    def drain(self) -> None:
        """At replay: it is not to be readable any more."""
        blocking = os.get_blocking(self.fileno())
        os.set_blocking(self.fileno(), False)
        try:
            _read(self.fileno(), CHUNK_BYTES)
        except BlockingIOError:
            pass
        finally:
            os.set_blocking(self.fileno(), blocking)


def belongs_to(file: Any, child: Told, stream: str) -> None:
    """From now on what goes through ``file``, an end of a pipe with or without layers, is told."""
    raw = getattr(getattr(file, "buffer", file), "raw", file)
    if isinstance(raw, PipeEnd):
        raw.of(child, stream)


def end_of(child: Told, stream: str) -> PipeEnd | None:
    """The end of a child's pipe that is open."""
    for end in list(ENDS.values()):
        if end.child is child and end.stream == stream:
            return end
    return None


_read, _write = os.read, os.write


def watch_numbers() -> None:
    """Have ``os.read`` and ``os.write`` tell of these pipes."""
    PATCHES.around_all(os, {"read": _read_number, "write": _write_number})


def _read_number(read: Any, fd: Any, length: Any, /) -> bytes:
    end = ENDS.get(fd) if ENDS else None
    child = end._asked() if end is not None and end.belongs() else None  # pyright: ignore[reportPrivateUsage]
    if end is None or child is None:
        return read(fd, length)
    data = child.read(end.stream, length, end.live(functools.partial(read, fd)))
    if data is None:
        raise Outcome(BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN)))
    return end.ends(data) if not data and length else data


def _write_number(write: Any, fd: Any, data: Any, /) -> int:
    end = ENDS.get(fd) if ENDS else None
    child = end._asked() if end is not None and end.belongs() else None  # pyright: ignore[reportPrivateUsage]
    if child is None:
        return write(fd, data)
    return child.write(data, functools.partial(write, fd, data)) or 0


def opening(original: types.ModuleType) -> types.ModuleType:
    """The module ``io`` for `subprocess`: opens such pipes as `PipeEnd`."""
    module = types.ModuleType(original.__name__, original.__doc__)
    module.__dict__.update(original.__dict__)
    module.__dict__["open"] = functools.wraps(original.open)(functools.partial(_open, original.open))
    return module


def _open(
    original: Callable[..., Any], file: Any, mode: str = "r", buffering: int = -1, *more: Any
) -> Any:
    if more or type(file) is not int or current() is None or lanes.current() is lanes.SHADOW:
        return original(file, mode, buffering, *more)
    raw = PipeEnd(file, mode)
    if buffering == 0:
        return raw
    size = buffering
    if buffering in (-1, 1):
        size = getattr(os.fstat(file), "st_blksize", 0)
        size = size if size > 1 else io.DEFAULT_BUFFER_SIZE
    try:
        return io.BufferedWriter(raw, size) if "w" in mode else io.BufferedReader(raw, size)
    except BaseException:
        raw.close()
        raise


def kind_of(number: int) -> str:
    """What a descriptor is that a child was given: file, pipe, or null for any device."""
    mode = os.fstat(number).st_mode
    if stat.S_ISREG(mode):
        return "file"
    return "pipe" if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) else "null"


def may_answer(number: int) -> bool:
    """Whether a child that has this descriptor can send through it what no recording sees."""
    import fcntl

    try:
        writes = fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY
        return writes and kind_of(number) == "pipe"
    except OSError:
        return False
