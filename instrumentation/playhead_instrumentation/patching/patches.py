"""The patches of this process, and those that failed and why.

All patches are made here. A patch is applied when its module is imported, or at once if it already is. A
failure never reaches the program or another patch. The outcome is kept by name.

A target is an attribute of a module or a class. It is wrapped once, however many boundaries patch it:
`Patches.around` adds a *layer*, a function that is called with the next callable and the arguments of
the call. `Patches.put` replaces an attribute. `Patches.undo` undoes both.
"""

from __future__ import annotations

import functools
import importlib
import sys
import threading
from collections.abc import Callable, Mapping
from types import BuiltinFunctionType, CodeType, FrameType, ModuleType
from typing import Any, Final, TypeVar

import wrapt

from playhead_core.errors import PlayheadError
from playhead_core.process.own_messages import Log
from playhead_instrumentation.patching.layers import (
    ABSENT,
    WRAPPERS,
    FollowingCall,
    Layer,
    Target,
    guarded,
    guarded_async,
    own_value,
)

log = Log(__name__)

T = TypeVar("T")

Apply = Callable[[ModuleType], object]
"""Patches a module that has just been imported. Raises `Unpatchable`, or any exception, on failure."""

OUTER, MIDDLE, INNER = 10, 20, 30
"""Order of layers: lower ones are called first."""

ROOM: Final = __name__.partition(".")[0]


class Unpatchable(Exception):
    """The module does not have what the patch needs; the text says what."""


class Patches:
    """The patches of a process, by names that the program's author knows: ``openai``, ``httpx2``."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._patched: dict[str, None] = {}
        self._unpatched: dict[str, str] = {}
        self._watched: set[tuple[str, Any]] = set()
        self._targets: dict[tuple[int, str], Target] = {}
        self._replaced: list[tuple[Any, str, Any, Any, Callable[[], bool] | None]] = []
        """Owner, name, old value (`ABSENT`: no value of its own), new value, and whether the new value
        stays at `undo`."""
        self._also: dict[Callable[[], None], None] = {}
        self._lapses: dict[Layer, Callable[[], None]] = {}
        self.forgiving = True
        """Whether a failing layer is skipped. Not in a replay, where the call would reach the world."""
        self.like: Callable[[Any, Any], Any] = lambda original, wrapper: wrapper
        """Makes a stand-in for the first that calls the second; see `native`."""
        self.call: Final[Callable[..., Any]] = functools.partial(guarded, self)
        """``call(layer, function, *args, **kwargs)`` runs ``layer`` around ``function``, for a
        replacement that is no target of `around`."""
        self.call_async: Final[Callable[..., Any]] = functools.partial(guarded_async, self)
        """`call` for coroutine functions."""
        self.on_failure: Callable[[str, str], None] | None = None
        """Called with name and reason of each patch that failed."""

    def when_imported(self, module: str, name: str, apply: Apply | str) -> None:
        """Apply a patch when ``module`` is imported; at once if it already is.

        The same patch is applied only once. ``apply``: a function, or its place ``MODULE:FUNCTION`` in
        this distribution, which is then imported only when needed.
        """
        said = apply if isinstance(apply, str) else name
        with self._lock:
            watched = self._watched
            if (module, said) in watched:
                return
            watched.add((module, said))

        def hook(imported: ModuleType) -> None:
            if watched is self._watched:  # else the patches were undone before the import
                self.attempt(name, lambda: (found(apply) if isinstance(apply, str) else apply)(imported))

        call_when_imported(module, hook)

    def attempt(self, name: str, patch: Callable[[], object]) -> bool:
        """Run ``patch`` and keep its outcome under ``name``. Never raises."""
        try:
            patch()
        except Exception as problem:
            self.failed(name, problem)
            return False
        with self._lock:
            self._patched[name] = None
        return True

    def failed(self, name: str, problem: Exception) -> None:
        """Note that ``name`` could not be patched, and why."""
        reason = str(problem) if isinstance(problem, Unpatchable) else _described(problem)
        with self._lock:
            self._unpatched[name] = reason
        if self.on_failure is not None:
            self.on_failure(name, reason)

    def around(
        self,
        owner: Any,
        name: str,
        layer: Layer,
        *,
        order: int = MIDDLE,
        lapse: Callable[[], None] | None = None,
    ) -> None:
        """Route calls of ``owner.name`` through ``layer``. Raises `Unpatchable` if there is no target.

        The same layer is added only once. Layers are called in order of ``order``, equal ones in the
        order of addition. The attribute of a class is a plain function, which is called with the
        instance. ``lapse``: called when the layer has failed and was skipped.
        """
        with self._lock:
            if lapse is not None:
                self._lapses[layer] = lapse
            target = self._targets.get((id(owner), name))
            if target is None:
                target = Target(owner, name, required(owner, name), self)
                setattr(owner, name, target.wrapper)
                self._targets[id(owner), name] = target
                self._at_home(owner, target)
            target.add(layer, order)

    def _at_home(self, owner: Any, target: Target) -> None:
        """Patch a C function also in the module in its ``__module__``, where `pickle` looks it up."""
        original = target.original
        if type(target.wrapper) is BuiltinFunctionType:
            home, name = sys.modules.get(str(original.__module__)), original.__name__
            if home is not None and home is not owner and getattr(home, name, None) is original:
                self.put(home, name, target.wrapper)

    def around_all(self, owner: Any, layers: Mapping[str, Layer], *, order: int = MIDDLE) -> None:
        """`around` for each layer. Raises `Unpatchable`, and patches none, if a target is missing."""
        for name in layers:
            required(owner, name)
        for name, layer in layers.items():
            self.around(owner, name, layer, order=order)

    def put(self, owner: Any, name: str, value: Any, stays: Callable[[], bool] | None = None) -> None:
        """Set ``owner.name`` and keep the old value. ``stays``: whether `undo` leaves the new value."""
        with self._lock:
            before: Any = own_value(owner, name)
            setattr(owner, name, value)
            self._replaced.append((owner, name, before, value, stays))

    def put_all(self, owner: Any, values: Mapping[str, Any]) -> None:
        """`put` for each value."""
        for name, value in values.items():
            self.put(owner, name, value)

    def also(self, undo: Callable[[], None]) -> None:
        """Make `undo` call ``undo``, for patches of other things than attributes. Added only once."""
        with self._lock:
            self._also[undo] = None

    def covers(self, owner: Any, name: str) -> bool:
        """Whether ``owner.name`` has a layer."""
        return (id(owner), name) in self._targets

    def meant(self, layer: Layer, following: FollowingCall, problem: Exception) -> BaseException | None:
        """The error for the program where a layer raised ``problem``; None: use the following call."""
        if not self.forgiving or isinstance(problem, PlayheadError) or problem is following.error:
            return problem
        if _is_of_handler(problem):
            return problem
        log.debug("playhead failed in a patch", exc_info=problem)
        if layer in self._lapses:
            self._lapses[layer]()
        return following.error

    def undo(self) -> None:
        """Undo all patches. Wrappers that other code has wrapped in the meantime become transparent."""
        with self._lock:
            self._watched = set()
            for target in self._targets.values():
                target.take_off()
            self._targets.clear()
            while self._replaced:
                owner, name, before, value, stays = self._replaced.pop()
                if own_value(owner, name) is not value or (stays is not None and stays()):
                    continue
                if before is ABSENT:
                    delattr(owner, name)
                else:
                    setattr(owner, name, before)
            also, self._also = list(self._also), {}
            self._patched, self._unpatched = {}, {}
        for one in also:
            try:
                one()
            except Exception:
                log.debug("playhead could not undo a patch", exc_info=True)

    def take_off(self, owner: Any) -> None:
        """Undo `around` for all attributes of ``owner``, and keep no reference to it."""
        with self._lock:
            keys = [key for key in self._targets if key[0] == id(owner)]
            targets = [self._targets.pop(key) for key in keys]
        for target in targets:
            target.take_off()

    def patched(self) -> list[str]:
        """Names of the patches so far, in order."""
        with self._lock:
            return [name for name in self._patched if name not in self._unpatched]

    def unpatched(self) -> list[str]:
        """Failed patches, as ``name: reason``."""
        with self._lock:
            return [f"{name}: {reason}" for name, reason in self._unpatched.items()]


_handlers: Final[set[CodeType]] = set()
"""Code objects that call the program's handlers of signals, which may run in the middle of a layer."""


def calls_handler(function: T) -> T:
    """Decorator for a function that calls a handler: what that raises is no failure of a layer."""
    code: Any = getattr(function, "__code__", None)
    _handlers.add(code)
    return function


def _is_of_handler(problem: BaseException) -> bool:
    trace = problem.__traceback__
    while trace is not None and trace.tb_frame.f_code not in _handlers:
        trace = trace.tb_next
    return trace is not None


def calling() -> FrameType | None:
    """The frame that called the target of the running layer."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame.f_code not in WRAPPERS:
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return frame.f_back


def found(place: str) -> Any:
    """The function at ``MODULE:FUNCTION`` of this distribution; imports the module."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(f"{ROOM}.{module}"), name)


def required(owner: Any, name: str) -> Any:
    """``owner.name``. Raises `Unpatchable` where it is missing."""
    found = getattr(owner, name, None)
    if found is None:
        raise Unpatchable(f"no {getattr(owner, '__name__', owner)}.{name}")
    return found


def _described(problem: Exception) -> str:
    text = str(problem)
    return f"{type(problem).__name__}: {text}" if text else type(problem).__name__


PATCHES = Patches()
"""The patches of this process."""


def call_when_imported(name: str, call: Callable[[ModuleType], object]) -> None:
    """Call ``call`` once with the whole module ``name``: when it is imported, or now if it already is.

    If another thread is importing it, this waits for that thread.
    """
    called: list[ModuleType] = []

    def hook(module: ModuleType) -> None:
        called.append(module)
        if getattr(module.__spec__, "_initializing", False):
            importlib.import_module(name)  # waits if another thread is importing it
        call(module)

    wrapt.register_post_import_hook(hook, name)
    if called:
        return
    # A thread that had looked for the module before the hook was registered imports it without the hook.
    # The import system has a function that waits for it, but no public one.
    wait_for_import = getattr(vars(importlib).get("_bootstrap"), "_lock_unlock_module", None)
    if wait_for_import is not None:
        wait_for_import(name)
    module = sys.modules.get(name)
    if module is not None and not called:
        hook(module)
