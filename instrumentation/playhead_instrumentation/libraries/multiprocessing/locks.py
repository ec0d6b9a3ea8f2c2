"""Locks, semaphores and values that processes of `multiprocessing` share.

The state of a lock and the content of a shared value are on the tape of the process that asked. Events,
conditions, barriers and queues are built from these. In a replay no lock is held: there is no other
process.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any, cast

from playhead_instrumentation.libraries.common.recording import recording
from playhead_instrumentation.libraries.multiprocessing.exchange import answered
from playhead_instrumentation.patching.lanes import Shadow
from playhead_instrumentation.patching.patches import PATCHES, required

RECURSIVE = 0
"""Kind of a lock that its owner may acquire again."""


def patch(module: ModuleType) -> None:
    """Make `multiprocessing.synchronize`, or its copy in billiard, use our locks."""
    place = "_billiard" if hasattr(module, "_billiard") else "_multiprocessing"
    real: Any = required(required(module, place), "SemLock")
    if hasattr(real, "__playhead__"):
        return
    for name in ("acquire", "release", "_after_fork", "_count", "_is_mine", "_get_value", "_is_zero"):
        required(real, name)
    made = type(
        real.__name__, (_Lock, real), {"__module__": real.__module__, "__slots__": ("_held", "_by")}
    )
    core = ModuleType(place)
    core.__dict__.update(module.__dict__[place].__dict__)
    core.__dict__["SemLock"] = made
    PATCHES.put(module, place, core)
    barrier = required(module, "Barrier")
    for name in ("_state", "_count"):
        PATCHES.put(barrier, name, _read(required(barrier, name), f"shared/barrier.{name}"))


class _Lock:
    """Mixin that precedes the real lock among the bases of a class."""

    __slots__ = ()
    __playhead__ = True

    def acquire(self: Any, block: bool = True, timeout: float | None = None) -> bool:
        """See `acquire` of the real lock."""
        session, above = recording(), cast("Any", super())
        real: Callable[..., bool] = above.acquire
        if session is None:
            return real(block, timeout)
        played = session.driver.fenced
        if self.kind == RECURSIVE and self._is_mine():
            return self._took() if played else real(block, timeout)
        taken = session.driver.reads.read("pipe/taken", lambda: True if played else real(False))
        if not taken and block:
            taken = answered(session, "acquire", lambda: b"%d" % real(True, timeout)) == b"1"
        return self._took() if taken and played else bool(taken)

    def release(self: Any) -> None:
        """See `release` of the real lock."""
        session = recording()
        if session is None or not session.driver.fenced:
            return super().release()  # type: ignore[misc]
        if self.kind == RECURSIVE and not self._is_mine():
            raise AssertionError("attempt to release recursive lock not owned by thread")
        self._held = getattr(self, "_held", 0) - 1

    def __enter__(self: Any) -> bool:
        return self.acquire()

    def __exit__(self: Any, *_: object) -> None:
        self.release()

    def _took(self: Any) -> bool:
        self._held = getattr(self, "_held", 0) + 1
        self._by = threading.get_ident()
        return True

    def _after_fork(self: Any) -> None:
        self._held = 0
        super()._after_fork()  # type: ignore[misc]

    def _count(self: Any) -> int:
        session = recording()
        if session is not None and session.driver.fenced:
            return getattr(self, "_held", 0)
        return super()._count()  # type: ignore[misc]

    def _is_mine(self: Any) -> bool:
        session = recording()
        if session is not None and session.driver.fenced:
            return getattr(self, "_held", 0) > 0 and self._by == threading.get_ident()
        return super()._is_mine()  # type: ignore[misc]

    def _get_value(self: Any) -> int:
        session, above = recording(), cast("Any", super())
        real: Callable[[], int] = above._get_value
        return real() if session is None else session.driver.reads.read("pipe/value", real)

    def _is_zero(self: Any) -> bool:
        session, above = recording(), cast("Any", super())
        real: Callable[[], bool] = above._is_zero
        return real() if session is None else session.driver.reads.read("pipe/zero", real)


def patch_values(module: ModuleType) -> None:
    """Patch the reads of synchronized values and arrays."""
    array = required(module, "SynchronizedArray")
    if hasattr(required(array, "__getitem__"), "__playhead__"):
        return
    for owner, names in (
        (required(module, "Synchronized"), ("value",)),
        (required(module, "SynchronizedString"), ("value", "raw")),
    ):
        for name in names:
            PATCHES.put(owner, name, _read(required(owner, name), f"shared/{name}"))
    for name in ("__getitem__", "__getslice__"):
        PATCHES.put(array, name, _reading(required(array, name), f"shared/{name}"))


def _read(given: Any, kind: str) -> Any:
    """Return a property whose reads the driver answers."""
    return property(_reading(given.fget, kind), given.fset, given.fdel, given.__doc__)


def _reading(original: Any, kind: str) -> Any:
    @functools.wraps(original)
    def read(self: Any, *args: Any) -> Any:
        session = recording()
        if session is None or not _is_plain(self):
            return original(self, *args)

        def live() -> Any:
            with Shadow():
                return original(self, *args)

        return session.driver.reads.read(kind, live)

    read.__dict__["__playhead__"] = True
    return read


def _is_plain(shared: Any) -> bool:
    """Return whether it holds numbers or text."""
    held = getattr(shared, "_obj", None)
    kind = getattr(held, "_type_", "i")
    return getattr(kind, "_type_", kind) in tuple("cbBhHiIlLqQfd?u")
