"""The program's ends of the pipes to a child process.

`PipeEnd` takes the place of the `io.FileIO` of `subprocess`, below the buffers. Code that reads or
writes by descriptor number (``communicate``, asyncio) is caught in ``os.read`` and ``os.write``.
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

from playhead_instrumentation.patching import lanes
from playhead_instrumentation.patching.layers import ErrorInstead
from playhead_instrumentation.patching.patches import PATCHES
from playhead_instrumentation.session.session import current

ENDS: Final[dict[int, PipeEnd]] = {}
"""Open pipe ends by descriptor number."""

CHUNK_BYTES = 65536
"""Bytes per read if the whole stream is wanted."""


class PipeListener(Protocol):
    """The exchange of a child, as a pipe end reports to it."""

    @property
    def passes(self) -> bool:
        """Whether recording of the child has stopped."""
        ...

    def read(self, stream: str, size: int, live: Callable[[int], bytes | None]) -> bytes | None:
        """Read at most ``size`` bytes of a stream; empty at its end, None if nothing is there yet."""
        ...

    def write(self, data: Any, live: Callable[[], int | None]) -> int | None:
        """Write to the child's stdin. Return the number of bytes taken; None if there is no room."""
        ...

    def closes(self, stream: str) -> None:
        """The program closes a pipe to the child."""
        ...


class PipeEnd(io.FileIO):
    """The program's end of a pipe. It reports what passes through it to the child's exchange."""

    child: PipeListener | None = None
    stream = ""

    def of(self, child: PipeListener, stream: str) -> None:
        """Attach this pipe end to ``child``."""
        self.child, self.stream = child, stream
        self._inode = os.fstat(self.fileno()).st_ino
        ENDS[self.fileno()] = self

    def _asked(self) -> PipeListener | None:
        child = self.child
        return None if child is None or child.passes else child

    def belongs(self) -> bool:
        """Return whether the descriptor still refers to this pipe."""
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
        """Return the function that reads the pipe for real, by descriptor number."""
        return read

    def ends(self, data: bytes) -> bytes:
        """Return what a read by descriptor number gives at the end of the stream: no bytes."""
        return data

    def drain(self) -> None:
        """Replay: drain the pipe so that `select` no longer reports it as readable."""
        blocking = os.get_blocking(self.fileno())
        os.set_blocking(self.fileno(), False)
        try:
            _read(self.fileno(), CHUNK_BYTES)
        except BlockingIOError:
            pass
        finally:
            os.set_blocking(self.fileno(), blocking)


def belongs_to(file: Any, child: PipeListener, stream: str) -> None:
    """Report what passes through ``file``, a pipe end with or without layers above it, from now on."""
    raw = getattr(getattr(file, "buffer", file), "raw", file)
    if isinstance(raw, PipeEnd):
        raw.of(child, stream)


def end_of(child: PipeListener, stream: str) -> PipeEnd | None:
    """Return the open pipe end of a child's stream; None if there is none."""
    for end in list(ENDS.values()):
        if end.child is child and end.stream == stream:
            return end
    return None


_read, _write = os.read, os.write


def watch_numbers() -> None:
    """Make ``os.read`` and ``os.write`` report what passes through these pipes."""
    PATCHES.around_all(os, {"read": _read_number, "write": _write_number})


def _read_number(read: Any, fd: Any, length: Any, /) -> bytes:
    end = ENDS.get(fd) if ENDS else None
    child = end._asked() if end is not None and end.belongs() else None  # pyright: ignore[reportPrivateUsage]
    if end is None or child is None:
        return read(fd, length)
    data = child.read(end.stream, length, end.live(functools.partial(read, fd)))
    if data is None:
        raise ErrorInstead(BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN)))
    return end.ends(data) if not data and length else data


def _write_number(write: Any, fd: Any, data: Any, /) -> int:
    end = ENDS.get(fd) if ENDS else None
    child = end._asked() if end is not None and end.belongs() else None  # pyright: ignore[reportPrivateUsage]
    if child is None:
        return write(fd, data)
    return child.write(data, functools.partial(write, fd, data)) or 0


def opening(original: types.ModuleType) -> types.ModuleType:
    """Return a copy of the module ``io`` for `subprocess` that opens pipes as `PipeEnd`."""
    module = types.ModuleType(original.__name__, original.__doc__)
    module.__dict__.update(original.__dict__)
    module.__dict__["open"] = functools.wraps(original.open)(functools.partial(_open, original.open))
    return module


def _open(
    original: Callable[..., Any], file: Any, mode: str = "r", buffering: int = -1, *more: Any
) -> Any:
    if more or type(file) is not int or current() is None or lanes.current() is lanes.UNRECORDED:
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
    """Kind of a descriptor that a child was given: file, pipe, or null for any device."""
    mode = os.fstat(number).st_mode
    if stat.S_ISREG(mode):
        return "file"
    return "pipe" if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) else "null"


def may_answer(number: int) -> bool:
    """Return whether a child can send data through this descriptor that no recording sees."""
    import fcntl

    try:
        writes = fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY
        return writes and kind_of(number) == "pipe"
    except OSError:
        return False
