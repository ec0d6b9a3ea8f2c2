"""Opening files, and noticing their close, when what was written becomes an effect."""

from __future__ import annotations

import functools
import io
import os
import weakref
from collections.abc import Callable
from typing import Any, Final, cast

from playhead_core.errors import PlayheadError
from playhead_core.process.own_messages import Log
from playhead_instrumentation.libraries.files.covered import absolute, asked, covered
from playhead_instrumentation.libraries.files.readers import PACKAGES, PLACES
from playhead_instrumentation.libraries.files.recorded import Files
from playhead_instrumentation.patching.attribution import readers
from playhead_instrumentation.patching.attribution.readers import THROUGH
from playhead_instrumentation.patching.patches import PATCHES

log = Log(__name__)

_os_open: Final = os.open
_os_close: Final = os.close

# The program's own opener may run below these frames.
PLACES[__file__] = readers.PLACES[__file__] = THROUGH


def opening(files: Files, live: Any, path: Any, flags: int, mode: int = 0o777, **kwargs: Any) -> int:
    """See `os.open`."""
    name = absolute(files, path, kwargs.get("dir_fd"))
    if name is None or (name.startswith(PACKAGES) and not flags & _WRITING and not files.touched(name)):
        return live(path, flags, mode, **kwargs)
    if flags & _UNNAMED == _UNNAMED:
        return _unnamed(
            files, name, lambda place: live(path if place is None else place, flags, mode, **kwargs)
        )

    def real(place: str | None, flags: int) -> int:
        return live(path, flags, mode, **kwargs) if place is None else live(place, flags, mode)

    return files.open(name, flags, mode, real)


def _unnamed(files: Files, name: str, opens: Callable[[str | None], int]) -> int:
    """Open a file without a name (``O_TMPFILE``). It is not recorded, and is made wherever possible."""
    made: list[int] = []

    def real(place: str | None) -> bool:
        made.append(opens(place))
        return True

    files.query("tmpfile", name, real)
    if not made:
        made.append(os.memfd_create("unnamed"))
    return made[0]


_WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_UNNAMED: Final = getattr(os, "O_TMPFILE", 1 << 62)


def open_stream(
    files: Files,
    live: Any,
    file: Any,
    mode: Any = "r",
    buffering: int = -1,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    closefd: bool = True,
    opener: Any = None,
) -> Any:
    """See `open`."""
    arguments = (mode, buffering, encoding, errors, newline, closefd)
    if opener is not None or isinstance(file, int):
        stream = live(file, *arguments, opener)
    else:
        reading = isinstance(mode, str) and not set(mode) & {"w", "a", "x", "+"}
        name = covered(files, file) if reading else absolute(files, file)
        if name is None:
            return live(file, *arguments, opener)

        def real(path: Any, flags: int) -> int:
            return _opened(files, name, path, flags)

        stream = live(file, *arguments, real)
        if reading:
            return stream
    _settle_when_closed(files, stream, closefd)
    return stream


def _opened(files: Files, name: str, path: Any, flags: int) -> int:
    """Return the descriptor for `open`; if recording itself fails, the real one."""
    made: list[int] = []

    def really(place: str | None, flags: int) -> int:
        made.append(_os_open(path if place is None else place, flags, 0o666))
        return made[-1]

    try:
        return files.open(name, flags, 0o666, really)
    except (OSError, PlayheadError):
        raise
    except Exception:
        if not PATCHES.forgiving:
            raise
        log.debug("playhead failed while a file was opened", exc_info=True)
    return made[0] if made else really(None, flags)


def _settle_when_closed(files: Files, stream: Any, closefd: bool) -> None:
    """Call `Files.closing` when the file is closed, whichever layer of the stream is closed.

    The raw file closes through its attribute ``close``, also when it is garbage-collected. If there are
    layers above the raw file, which close it when they are collected, our ``close`` keeps it alive until
    then. Without layers it must not, or the raw file would be collected later than before.
    """
    try:
        fd = stream.fileno()
    except (OSError, ValueError, AttributeError):
        return
    if not closefd or files.folder_of(fd) is None:
        return
    raw = getattr(stream, "buffer", stream)
    raw = getattr(raw, "raw", raw)
    if not isinstance(raw, io.FileIO):
        return
    reach = weakref.ref(raw) if raw is stream else functools.partial(_itself, raw)
    cast("Any", raw).close = _settling_close(files, fd, reach)


def _itself(raw: io.FileIO) -> io.FileIO:
    return raw


def _settling_close(files: Files, fd: int, reach: Callable[[], io.FileIO | None]) -> Callable[[], None]:
    # Bound here, because this may run after the interpreter has cleared its modules.
    really, close_fd = io.FileIO.close, _os_close
    left = [fd]

    def close() -> None:
        raw = reach()
        if left and not (raw is not None and raw.closed):
            try:
                files.closing(left.pop())
            except Exception:
                log.debug("playhead failed while a file was closed", exc_info=True)
            if raw is None:
                close_fd(fd)
        if raw is not None:
            vars(raw).pop("close", None)
            really(raw)

    return close


def closing(original: Any) -> Any:
    """See `os.close`."""

    @functools.wraps(original)
    def close(fd: Any) -> None:
        try:
            files = asked()
            if files is not None and isinstance(fd, int) and files.folder_of(fd) is not None:
                files.closing(fd)
        except Exception:
            if not PATCHES.forgiving:
                raise
            log.debug("playhead failed while a file was closed", exc_info=True)
        original(fd)

    return close
