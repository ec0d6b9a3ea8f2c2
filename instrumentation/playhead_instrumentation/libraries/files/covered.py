"""Which `Files` answers file operations, and for which paths."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from typing import Any, TypeAlias

from playhead_core.errors import PlayheadError
from playhead_core.process.own_messages import Log
from playhead_instrumentation.libraries.ambient.stand_ins import getframe
from playhead_instrumentation.libraries.files.readers import DEVICES, PACKAGES, PLACES, by_agent
from playhead_instrumentation.libraries.files.recorded import Files
from playhead_instrumentation.patching import layers, patches
from playhead_instrumentation.patching.attribution import readers
from playhead_instrumentation.patching.attribution.readers import AGENT, MACHINERY, THROUGH
from playhead_instrumentation.patching.builtins import Behind
from playhead_instrumentation.patching.layers import FollowingCall
from playhead_instrumentation.patching.patches import PATCHES
from playhead_instrumentation.recorder.driver import Driver
from playhead_instrumentation.session.session import Session

log = Log(__name__)

ToAnswer: TypeAlias = Callable[..., Any]
"""``answer(files, live, *arguments)`` gives the result of a covered function."""

# The program's own opener may run below these frames.
for name in (__file__, layers.__file__, patches.__file__):
    PLACES[name] = readers.PLACES[name] = THROUGH

_files: Files | None = None
"""`Files` of the last session, even after its end: a replay writes to its scratch folder to the end."""


def files_of(driver: Driver) -> Files | None:
    """Return the `Files` of ``driver``; None if files are not recorded."""
    files = driver.files
    return files if isinstance(files, Files) else None


def answered_by(session: Session) -> None:
    """Set the `Files` that answers in this process: at the start of a session and after a fork."""
    global _files
    _files = files_of(session.driver)


def release() -> None:
    """Let a process that goes on after its session use files as before."""
    global _files
    _files = None


def asked() -> Files | None:
    """Return the `Files` that answers now; None: the real functions."""
    return None if _files is None or _files.ended else _files


def last() -> Files | None:
    """Return the `Files` of the last session, even after its end."""
    return _files


class Covered(metaclass=Behind):
    """Stand-in for a C function under the same name; see `Ambient`.

    If recording itself fails, the call falls back to the original.
    """

    def __init__(self, original: Callable[..., Any], answer: ToAnswer) -> None:
        self.__wrapped__ = original
        self.__doc__ = original.__doc__
        self.__name__ = original.__name__
        self.__qualname__ = original.__name__
        self.__module__ = original.__module__
        self.__text_signature__ = getattr(original, "__text_signature__", None)
        self._live = original
        self._answer = answer

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the result of the original, or the answer of the driver."""
        try:
            frame = getframe(1)
        except ValueError:  # the interpreter itself calls: for the lines of a traceback, or a callback
            return self._live(*args, **kwargs)
        place = PLACES.get(frame.f_code.co_filename)
        if place == MACHINERY or (place != AGENT and not by_agent(frame)):
            return self._live(*args, **kwargs)
        files = _files
        if files is None or files.ended:
            return self._live(*args, **kwargs)
        try:
            return self._asked(files, args, kwargs)
        except OSError as problem:
            if args and problem.filename is not None and problem.filename2 is None:
                # The name that the program gave; a replay uses absolute paths.
                problem.filename = args[0]
            raise

    def _asked(self, files: Files, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not PATCHES.forgiving:
            try:
                return self._answer(files, self._live, *args, **kwargs)
            except TypeError:
                self._refuse(args, kwargs)
                raise
        live = FollowingCall(self._live)
        try:
            return self._answer(files, live, *args, **kwargs)
        except PlayheadError:
            raise
        except Exception as problem:
            live.raise_again(problem)
            log.debug("playhead failed in %s", self.__name__, exc_info=True)
        return live.result if live.ended else self._live(*args, **kwargs)

    def _refuse(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Have the original raise the error if the arguments do not fit its signature."""
        try:
            inspect.signature(self._live).bind(*args, **kwargs)
        except ValueError:  # the original has no signature
            return
        except TypeError:
            self._live(*args, **kwargs)

    def __reduce__(self) -> str:
        return self.__qualname__

    def __repr__(self) -> str:
        return repr(self.__wrapped__)


def absolute(files: Files, path: Any, dir_fd: int | None = None) -> str | None:
    """Return the absolute path that the program means; None if it is not covered or no path."""
    if isinstance(path, int):
        return files.folder_of(path)
    try:
        name = os.fsdecode(path)
    except TypeError:
        return None
    if "\0" in name:
        return None
    if name[:1] != "/":
        base = files.cwd() if dir_fd is None else files.folder_of(dir_fd)
        if base is None or not name:
            return None
        name = f"{base}/{name}"
    elif name.startswith(DEVICES):
        return None
    return os.path.normpath(name).replace("//", "/", 1)


def covered(files: Files, path: Any, dir_fd: int | None = None) -> str | None:
    """Like `absolute`, for reads only: installed packages are not covered."""
    name = absolute(files, path, dir_fd)
    if name is not None and name.startswith(PACKAGES) and not files.touched(name):
        return None
    return name


def querying(
    op: str, out: Callable[[Any], Any], back: Callable[[Any], Any], default: str | None = None
) -> ToAnswer:
    """Return the answer for a query. ``out`` makes its result a plain value; ``back`` undoes that.

    ``default``: the path if the program gives none.
    """

    def answer(files: Files, live: Any, *arguments: Any, **kwargs: Any) -> Any:
        if not arguments and (default is None or "path" in kwargs):
            if "path" not in kwargs:
                return live(**kwargs)
            arguments = (kwargs.pop("path"),)
        path, *args = arguments or (default,)
        name = covered(files, default if path is None else path, kwargs.get("dir_fd"))
        if name is None:
            return live(path, *args, **kwargs)
        found: list[Any] = []

        def real(place: str | None) -> Any:
            if place is None:
                found.append(live(path, *args, **kwargs))
            else:
                kwargs.pop("dir_fd", None)
                found.append(live(place, *args, **kwargs))
            return out(found[-1])

        asked = op
        if args:
            asked = f"{op} {args[0]!r}"
        if kwargs.get("follow_symlinks") is False:
            asked = "lstat" if op == "stat" else f"l{op}"
        value = files.query(asked, name, real)
        return found[-1] if found else back(value)

    return answer


def parts_of(found: Any) -> Any:
    """Convert a result of `os.stat` to plain values."""
    _, (values, named) = found.__reduce__()[:2]
    return [list(values), named]


def stat_of(value: Any) -> os.stat_result:
    """Build a result of `os.stat` from values of `parts_of`."""
    return os.stat_result(tuple(value[0]), value[1])
