"""Watches this process with an audit hook: executed code, processes, files outside, connections."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
TRUSTED = tuple(
    {
        os.path.realpath(one)
        for one in (ROOT, sys.prefix, sys.base_prefix, *map(sysconfig.get_path, ("stdlib", "purelib")))
    }
)
"""Folders whose modules may be executed: ours, installed packages, the standard library."""

MAKERS = ("collections/__init__.py", "dataclasses.py", "attr/_make.py", "typing.py", "inspect.py")
"""Ends of the files that make classes, or annotations of classes, from text of their own."""

FOREIGN = ("antigravity", "this", "pty", "webbrowser", "evil", "idlelib", "turtle")
CHANGES = {
    "os.remove": slice(1),
    "os.rename": slice(2),
    "os.mkdir": slice(1),
    "os.rmdir": slice(1),
    "os.symlink": slice(1, 2),
    "os.link": slice(1, 2),
    "os.chmod": slice(1),
    "os.chown": slice(1),
    "os.truncate": slice(1),
    "os.utime": slice(1),
    "shutil.rmtree": slice(1),
    "sqlite3.connect": slice(1),
}
RUNS = {"subprocess.Popen", "os.system", "os.fork", "os.forkpty", "os.posix_spawn", "pty.spawn"}
BEGINNINGS = ("os.exec", "os.spawn", "ctypes.dlopen")


class Watched:
    """Notes what happens while it watches, in any thread."""

    def __init__(
        self, *inside: Path | str, trusted: Sequence[str] = (), allowed: Sequence[str] = ()
    ) -> None:
        """``inside``: the folders in which files may be written, or how their paths begin.

        ``trusted``: more folders whose code may be executed. ``allowed``: events that may happen.
        """
        self.problems: list[str] = []
        self._trusted = (*TRUSTED, *trusted)
        self._allowed = tuple(allowed)
        self.is_watching = False
        self._inside = tuple({str(one) for one in inside} | {os.path.realpath(one) for one in inside})
        sys.addaudithook(self._heard)

    def _heard(self, event: str, args: tuple[Any, ...]) -> None:
        if self.is_watching and (problem := self._problem(event, args)):
            self.problems.append(problem[:300])

    def _problem(self, event: str, args: tuple[Any, ...]) -> str:
        if event in self._allowed:
            return ""
        if event == "open":
            path, _, flags = args
            writes = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR)
            return f"opens {path!r} to write" if writes and self._is_outside(path) else ""
        if event in CHANGES:
            # A folder that is open is walked by relative names.
            outside = [one for one in args[CHANGES[event]] if self._is_outside(one, only_absolute=True)]
            return f"{event} {outside!r}" if outside else ""
        if event == "exec":
            file = str(args[0].co_filename)
            # Our template of a page; `mutants_used.shown` looks that nothing else became one.
            if file.startswith((*self._trusted, "<frozen ", "<template>")) or _is_maker():
                return ""
            return f"executes {args[0]!r} in {_frames()}"
        if event == "import" and str(args[0]).partition(".")[0] in FOREIGN:
            return f"imports {args[0]}"
        if event == "socket.connect":
            address = args[1]
            loopback = isinstance(address, tuple) and address[0] in ("127.0.0.1", "::1", "localhost")
            return "" if loopback else f"connects to {address!r}"
        if event in RUNS or event.startswith(BEGINNINGS):
            return f"{event} {args!r}"
        return ""

    def _is_outside(self, path: object, *, only_absolute: bool = False) -> bool:
        if not isinstance(path, str | bytes | os.PathLike):
            return False
        name = os.fsdecode(path)
        if name in (os.devnull, ":memory:") or (only_absolute and not os.path.isabs(name)):
            return False
        place = self._place(name)
        inside = (one if one.endswith("-") else one + os.sep for one in self._inside)
        return not (place in self._inside or place.startswith(tuple(inside)))

    def _place(self, name: str) -> str:
        folder, last = os.path.split(os.path.abspath(name))
        return os.path.join(os.path.realpath(folder), last)


def _is_maker() -> bool:
    """Whether a class is made from text, as `collections.namedtuple` does."""
    try:
        frame = sys._getframe(3)
    except ValueError:  # `python -c`: whoever starts a process is asked why
        return True
    return frame.f_code.co_filename.endswith(MAKERS)


def _frames() -> str:
    """Where that was, innermost last."""
    frame: Any = sys._getframe(1)
    found: list[str] = []
    while frame is not None and len(found) < 6:
        found.insert(0, f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}")
        frame = frame.f_back
    return " ".join(found)
