"""Guards of a replay that the kernel does not isolate, or not fully, because namespaces are not allowed.

Actions of Python below all boundaries (`posix.open`, `io.FileIO`, a raw fork) are refused. Actions in C
cannot be refused: the load of a library that is able to act so is put on the tape, and the report says
that nothing kept it from the world. If the recording has no files, the user has agreed that files are
changed for real; the changes are put on the tape.
"""

from __future__ import annotations

import functools
import os
import sys
import sysconfig
import threading
from collections.abc import Callable, Collection, Mapping
from importlib.machinery import EXTENSION_SUFFIXES
from types import FrameType, ModuleType
from typing import Any, Final, TypeAlias

from playhead_core.errors import WorldBlocked
from playhead_core.facts import Fidelity
from playhead_core.process.module_coverage import REPEATED, UNHELD, unseen
from playhead_instrumentation.libraries.subprocess import in_full
from playhead_instrumentation.libraries.system import guarded_actions
from playhead_instrumentation.libraries.system.guarded_actions import (
    ALL,
    CALLS,
    FILES,
    may_write,
    text_of,
)
from playhead_instrumentation.patching import lanes
from playhead_instrumentation.patching.attribution.owners import (
    CallSite,
    Owner,
    caller,
    installed,
    owner_of,
)
from playhead_instrumentation.patching.patches import INNER, PATCHES
from playhead_instrumentation.session.session import Session, current
from playhead_semconv import attributes as a

Heard: TypeAlias = Mapping[str, tuple[str | None, Callable[..., str | None]]]

READING: Final = frozenset(
    "clock_gettime getegid geteuid getgid getpid getppid getrandom gettimeofday getuid "
    "nanosleep sleep strerror strlen time usleep".split()
)
"""Symbols of the C library that change nothing."""

_seen: set[tuple[str, str]] = set()
_busy = threading.local()


class WorldUnheld(WorldBlocked, PermissionError):
    """A replay refuses this action. An `OSError`, since programs expect one from the system."""

    def __init__(self, what: str, who: CallSite) -> None:
        place = f"{who.place}: " if who.place else ""
        WorldBlocked.__init__(
            self,
            f"the replay does not let {who.library or 'the program'} do this: {what}",
            cause=f"{place}no boundary records it, and here the kernel does not keep it from the world",
            hint="allow namespaces of users and mounts, or mark what does it with @playhead.tool",
        )
        self.errno = 13
        self.strerror = self.what

    __str__ = WorldBlocked.__str__


def watch(held: Collection[str], folder: str) -> None:
    """Guard the areas that are not in ``held``; the replay itself may write below ``folder``."""
    session = current()
    missing = ALL - frozenset(held)
    if session is None or not session.driver.fenced or not missing:
        return
    files = session.driver.files
    own = [folder] if files is None else [folder, files.scratch]
    may_write(one for one in own if one)
    for module in list(sys.modules):
        _loaded(module, "")
    _install(frozenset(missing))


@functools.cache
def _install(missing: frozenset[str]) -> None:
    if FILES in missing:
        sys.dont_write_bytecode = True
    for area, modules, names, said in CALLS:
        if area in missing:
            for module in modules.split():
                for name in names.split():
                    _before(area, module, name, said)
    # Python cannot remove an audit hook.
    sys.addaudithook(functools.partial(_audit, missing, EVENTS))


def _before(area: str, module: str, name: str, said: Callable[..., str | None]) -> None:
    """Refuse calls of ``module.name`` for which ``said`` names an action (None: harmless)."""

    def layer(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        _asked(area, said(*args, **kwargs))
        return original(*args, **kwargs)

    def apply(imported: ModuleType) -> None:
        owner, _, last = name.rpartition(".")
        place = getattr(imported, owner, None) if owner else imported
        if hasattr(place, last):
            PATCHES.around(place, last, layer, order=INNER)

    PATCHES.when_imported(module, f"{module}.{name}", apply)


def _audit(missing: frozenset[str], heard: Heard, event: str, arguments: tuple[Any, ...]) -> None:
    """Hears every event. ``heard`` is there even if the names of this module are gone, at the end."""
    look = heard.get(event)
    if look is None or getattr(_busy, "now", False):
        return
    area, said = look
    if area is not None and area not in missing:
        return
    _busy.now = True
    try:
        what = said(*arguments)
    finally:
        _busy.now = False
    _asked(area, what)


def _asked(area: str | None, what: str | None) -> None:
    """Raise `WorldUnheld`, unless the action is harmless (None) or done by code that runs for real."""
    session = current()
    if what is None or session is None or not session.driver.fenced:
        return
    if lanes.current() is lanes.UNRECORDED or in_full.allowed() or lanes.in_own_thread():
        return
    if _between_workers(sys._getframe(2)):  # pyright: ignore[reportPrivateUsage]
        return
    who = caller(3)
    if area == FILES and not session.has("files"):
        _once(session, REPEATED, what, who)
        return
    _note(session, "world", what, who, Fidelity.BLOCKED)
    raise WorldUnheld(what, who)


def _between_workers(frame: FrameType | None) -> bool:
    """Return whether `multiprocessing` does it, to pass data between processes of the replay."""
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith(_WORKERS):
            return not name.endswith("shared_memory.py")
        if name.startswith("<") or owner_of(name) not in (Owner.STANDARD, Owner.OURS):
            return False
        frame = frame.f_back
    return False


def _note(session: Session, kind: str, what: str, who: CallSite, fidelity: Fidelity) -> None:
    found = {a.PLAYHEAD_EFFECT_LIBRARY: who.library, a.PLAYHEAD_EFFECT_PLACE: who.place}
    text = session.redactor.text(what)
    session.driver.effect(
        kind, text, fidelity=fidelity, attributes={name: value for name, value in found.items() if value}
    )


def _unheld(what: str, who: CallSite) -> None:
    """Note, once per place, that the program can reach something unguarded."""
    session = current()
    if session is not None and session.driver.fenced:
        _once(session, UNHELD, what, who)


def _once(session: Session, kind: str, what: str, who: CallSite) -> None:
    if (what, who.place) not in _seen:
        _seen.add((what, who.place))
        _note(session, kind, what, who, Fidelity.LIVE)


def _library(name: Any, *_: Any) -> None:
    text = text_of(name or "")
    if os.sep in text and _by_others(sys._getframe(1)):  # pyright: ignore[reportPrivateUsage]
        _unheld(f"{text} through ctypes", caller(3))


def _symbol(_: Any, name: Any) -> None:
    if name not in READING and _by_others(sys._getframe(1)):  # pyright: ignore[reportPrivateUsage]
        text = name if isinstance(name, str) else text_of(name) if isinstance(name, bytes) else name
        _unheld(f"{text} through ctypes", caller(3))


def _by_others(frame: FrameType | None) -> bool:
    """Return whether the user of ctypes is neither the standard library nor playhead."""
    while frame is not None:
        name = frame.f_code.co_filename
        owner = owner_of(name)
        if owner is not Owner.OURS and not name.startswith(_CTYPES):
            return owner is not Owner.STANDARD
        if owner is Owner.OURS and name != __file__:
            return False
        frame = frame.f_back
    return False


def _loaded(module: Any, path: Any, *_: Any) -> None:
    known = unseen(module)
    if known is not None and known.in_c:
        top = module.partition(".")[0]
        _unheld(f"{top}, which works in C", CallSite(top))
    elif isinstance(path, str) and path.endswith(tuple(EXTENSION_SUFFIXES)) and not installed(path):
        _unheld(f"{module}, compiled code", CallSite(module))


_STANDARD: Final = os.path.realpath(sysconfig.get_path("stdlib"))
_WORKERS: Final = os.path.join(_STANDARD, "multiprocessing", "")
_CTYPES: Final = os.path.join(_STANDARD, "ctypes", "")

EVENTS: Final[Heard] = {
    **guarded_actions.EVENTS,
    "ctypes.dlopen": (None, _library),
    "ctypes.dlsym": (None, _symbol),
    "ctypes.dlsym/handle": (None, _symbol),
    "import": (None, _loaded),
}
"""Audit event → its area (None: possibly all), and a function that names the action."""
