"""Hashes of tasks, futures and threads that are the same in every execution.

Programs put these objects into sets. By default their hash is an address, so the order of a set differs
from run to run. Here the hash comes from the lane that first asks for it and a count in that lane.
Equality and identity are unchanged. The tasks and futures of asyncio are C types, whose hash cannot be
changed: `asyncio.Task` and `asyncio.Future` become subclasses that differ in nothing else.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import gc
import threading
from abc import ABCMeta
from collections.abc import Callable
from types import ModuleType
from typing import Any, cast

from playhead_core.process.own_messages import Log
from playhead_instrumentation.patching.lane_hooks import has_lane
from playhead_instrumentation.patching.lanes import GC, UNRECORDED, current
from playhead_instrumentation.patching.patches import PATCHES, Patches, required

log = Log(__name__)

_KEPT = "_playhead_hash"
_ORIGINAL = "_playhead_original"


def watch(patches: Patches, session: object = None) -> None:
    """Patch the types."""
    patches.attempt("hashes of asyncio", _patch_asyncio)
    patches.attempt("hashes of concurrent.futures", _patch_futures)
    patches.attempt("hashes of threading", _patch_threads)


def patch_kombu(module: ModuleType) -> None:
    """Channels of kombu, of which a worker holds a set."""
    PATCHES.put(required(module, "Channel"), "__hash__", _stable_by_attribute)


def patch_vine(module: ModuleType) -> None:
    """Promises of vine, of which the loop of a worker holds a set: what it has to do next."""
    PATCHES.put(required(module, "promise"), "__hash__", _stable_by_attribute)


def _made(one: object, kind: str) -> int:
    """Compute the hash of ``one`` when it is first asked for."""
    try:
        lane = current()
        if lane is not UNRECORDED and lane is not GC:
            return hash((lane.hash, lane.next_ordinal(kind)))
    except Exception:
        log.debug("playhead could not make a hash", exc_info=True)
    return object.__hash__(one)


class _Stands(ABCMeta):
    """Metaclass of a stand-in type: instances of the original type are instances of the stand-in.

    It is an `ABCMeta`, so that a class of the program may also have an abstract base.
    """

    def __instancecheck__(cls, instance: object) -> bool:
        original = cls.__dict__.get(_ORIGINAL)
        return (
            super().__instancecheck__(instance) if original is None else isinstance(instance, original)
        )

    def __subclasscheck__(cls, subclass: type) -> bool:
        original = cls.__dict__.get(_ORIGINAL)
        return (
            super().__subclasscheck__(subclass) if original is None else issubclass(subclass, original)
        )


def _stable_by_attribute(self: Any) -> int:
    try:
        return self._playhead_hash
    except AttributeError:
        self._playhead_hash = made = _made(self, "hash")
        return made


def _standing_in(original: Any) -> Any:
    """A subclass of a type of asyncio whose instances have a stable hash."""

    body = {
        "__slots__": (_KEPT,),
        "__hash__": _stable_by_attribute,
        "__module__": original.__module__,
        "__qualname__": original.__qualname__,
        "__doc__": original.__doc__,
        _ORIGINAL: original,
    }
    return _Stands(original.__name__, (original,), body)


def _hashing_new(original: Any) -> Any:
    """The ``__new__`` of a task. It sets the hash: an eager task is put into a set while it runs."""

    def new(cls: Any, *_: object, **__: object) -> Any:
        task = original.__new__(cls)
        task._playhead_hash = _made(task, "hash")
        return task

    return new


def _patch_asyncio() -> None:
    module: Any = asyncio
    for name, home in (("Future", asyncio.futures), ("Task", asyncio.tasks)):
        original = required(home, name)
        if _ORIGINAL in vars(original):
            continue
        ours = _standing_in(original)
        if name == "Task":
            ours.__new__ = _hashing_new(original)
        for place in (module, home):
            if getattr(place, name, None) is original:
                PATCHES.put(place, name, ours)
    make: Any = getattr(module, "create_eager_task_factory", None)
    if make is not None:  # Python 3.12
        eager = make(module.Task)
        tasks: Any = asyncio.tasks
        for place in (module, tasks):
            PATCHES.put(place, "eager_task_factory", eager)
    gathering: Any = getattr(asyncio.tasks, "_GatheringFuture", None)
    if gathering is not None:
        PATCHES.put(gathering, "__hash__", _stable_by_attribute)


def _patch_futures() -> None:
    owner: Any = concurrent.futures.Future
    if not _is_patched(owner):
        for one in gc.get_referrers(owner):
            if isinstance(one, owner):
                _stays(one)
        PATCHES.put(owner, "__hash__", _stable("hash of a job"))


def _patch_threads() -> None:
    owner: Any = threading.Thread
    if not _is_patched(owner):
        # Whether an executor starts another worker depends on timing, so workers are not counted.
        stable = _stable("hash of a thread", has_lane)
        for one in list(required(threading, "_dangling")):
            _stays(one)
        PATCHES.put(owner, "__hash__", stable)


def _is_patched(owner: Any) -> bool:
    return hasattr(owner.__hash__, "__playhead__")


def _stays(one: Any) -> None:
    """Keep the present hash of ``one``, because a set may already hold it by that hash."""
    vars(one)[_KEPT] = object.__hash__(one)


def _stable(kind: str, counts: Callable[[Any], bool] = lambda _: True) -> Callable[[Any], int]:
    def stable(self: Any) -> int:
        kept = self.__dict__.get(_KEPT)
        if kept is None:
            made = _made(self, kind) if counts(self) else object.__hash__(self)
            kept = self.__dict__[_KEPT] = made
        return cast("int", kept)

    stable.__dict__["__playhead__"] = True
    return stable
