"""What is patched in this process, what could not be, and why.

Every patch goes through here: it is applied when its module is imported (or at once, where it already
is), a failure of one never reaches the program or another patch, and the outcome is known by name.

A target is an attribute of a module or a class. It is wrapped once, however many boundaries stand before
it: `Patches.around` adds a *layer*, a function that is called with whatever comes after it and with the
arguments of the call. `Patches.put` replaces an attribute. Both are undone by `Patches.undo`.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import logging
import sys
import threading
from collections.abc import Callable, Mapping
from types import BuiltinFunctionType, CodeType, FrameType, ModuleType
from typing import Any, Final, TypeVar

import wrapt

from playhead_semconv.errors import PlayheadError

log = logging.getLogger(__name__)

T = TypeVar("T")

Apply = Callable[[ModuleType], object]
"""Patches a module that has just been imported. Raises `Unpatchable`, or anything, if it cannot."""

Layer = Callable[..., Any]
"""``layer(following, *args, **kwargs)``: does what the target does by calling ``following``."""

OUTER, MIDDLE, INNER = 10, 20, 30
"""Places of layers: the lower one is called first."""

ROOM: Final = __name__.partition(".")[0]


class Unpatchable(Exception):
    """The module does not have what the patch needs; the text says what."""


class Outcome(Exception):
    """Raised by a layer: what the program gets, instead of what comes after the layer, is ``error``."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error


class Patches:
    """The patches of a process. Names are those the program's author knows: ``openai``, ``httpx2``."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._patched: dict[str, None] = {}
        self._unpatched: dict[str, str] = {}
        self._watched: set[tuple[str, Any]] = set()
        self._targets: dict[tuple[int, str], _Target] = {}
        self._replaced: list[tuple[Any, str, Any, Any, Callable[[], bool] | None]] = []
        """Owner, name, what stood there (`_ABSENT`: nothing of its own), what stands there now, and
        whether that stays."""
        self._also: dict[Callable[[], None], None] = {}
        self._lapses: dict[Layer, Callable[[], None]] = {}
        self.forgiving = True
        """Whether a layer that fails is passed by. A replay does not: what is beyond it is the world."""
        self.like: Callable[[Any, Any], Any] = lambda original, wrapper: wrapper
        """What stands in the place of the first and calls the second; see `native`."""
        self.on_failure: Callable[[str, str], None] | None = None
        """Told of each patch that failed: name and reason."""

    def when_imported(self, module: str, name: str, apply: Apply | str) -> None:
        """Apply a patch when ``module`` is imported; at once if it is. Twice the same is once.

        ``apply``: a function, or where it is found, ``MODULE:FUNCTION`` of this distribution, which is
        then not imported before.
        """
        said = apply if isinstance(apply, str) else name
        with self._lock:
            watched = self._watched
            if (module, said) in watched:
                return
            watched.add((module, said))

        def hook(imported: ModuleType) -> None:
            if getattr(imported.__spec__, "_initializing", False):
                importlib.import_module(module)  # waits, where another thread is in the midst of it
            if watched is self._watched:  # else it was undone before the module was imported
                self.attempt(name, lambda: (found(apply) if isinstance(apply, str) else apply)(imported))

        wrapt.register_post_import_hook(hook, module)

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
        """Keep that ``name`` could not be patched, and why."""
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
        """Have calls of ``owner.name`` go through ``layer``; `Unpatchable` where there is no such thing.

        The same layer twice is once. Of several the one with the lowest ``order`` is called first, of
        equal ones the one that came first. The attribute of a class is a plain function, which is called
        with the instance. ``lapse``: called when the layer has failed and was passed by.
        """
        with self._lock:
            if lapse is not None:
                self._lapses[layer] = lapse
            target = self._targets.get((id(owner), name))
            if target is None:
                target = _Target(owner, name, required(owner, name), self)
                setattr(owner, name, target.wrapper)
                self._targets[id(owner), name] = target
                self._at_home(owner, target)
            target.add(layer, order)

    def _at_home(self, owner: Any, target: _Target) -> None:
        """A function of C also where it says that it is of, as `pickle` looks for it there."""
        original = target.original
        if type(target.wrapper) is BuiltinFunctionType:
            home, name = sys.modules.get(str(original.__module__)), original.__name__
            if home is not None and home is not owner and getattr(home, name, None) is original:
                self.put(home, name, target.wrapper)

    def around_all(self, owner: Any, layers: Mapping[str, Layer], *, order: int = MIDDLE) -> None:
        """`around` each of them, where all are there; else none, and `Unpatchable`."""
        for name in layers:
            required(owner, name)
        for name, layer in layers.items():
            self.around(owner, name, layer, order=order)

    def put(self, owner: Any, name: str, value: Any, stays: Callable[[], bool] | None = None) -> None:
        """Set ``owner.name``, and remember what stood there. ``stays``: whether `undo` leaves it."""
        with self._lock:
            before: Any = _own(owner, name)
            setattr(owner, name, value)
            self._replaced.append((owner, name, before, value, stays))

    def put_all(self, owner: Any, values: Mapping[str, Any]) -> None:
        """`put` each of them."""
        for name, value in values.items():
            self.put(owner, name, value)

    def also(self, undo: Callable[[], None]) -> None:
        """Have `undo` call ``undo``, for what is no attribute. The same twice is once."""
        with self._lock:
            self._also[undo] = None

    def covers(self, owner: Any, name: str) -> bool:
        """Whether ``owner.name`` has a layer."""
        return (id(owner), name) in self._targets

    def call(self, layer: Layer, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Run ``layer`` before ``call``, for a replacement that is no target of `around`."""
        return _guarded(self, layer, call, *args, **kwargs)

    async def call_async(self, layer: Layer, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """The same for coroutine functions."""
        return await _guarded_async(self, layer, call, *args, **kwargs)

    def meant(self, layer: Layer, following: Following, problem: Exception) -> BaseException | None:
        """What the program gets where a layer raised ``problem``; None: what comes after it gives."""
        if not self.forgiving or isinstance(problem, PlayheadError) or problem is following.error:
            return problem
        log.debug("playhead failed in a patch", exc_info=problem)
        if layer in self._lapses:
            self._lapses[layer]()
        return following.error

    def undo(self) -> None:
        """Take off what is outermost; what somebody else has wrapped meanwhile passes through."""
        with self._lock:
            self._watched = set()
            for target in self._targets.values():
                target.take_off()
            self._targets.clear()
            while self._replaced:
                owner, name, before, value, stays = self._replaced.pop()
                if _own(owner, name) is not value or (stays is not None and stays()):
                    continue
                if before is _ABSENT:
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

    def patched(self) -> list[str]:
        """Names of what is patched so far, in the order of patching."""
        with self._lock:
            return [name for name in self._patched if name not in self._unpatched]

    def unpatched(self) -> list[str]:
        """What could not be patched, as ``name: reason``."""
        with self._lock:
            return [f"{name}: {reason}" for name, reason in self._unpatched.items()]


_ABSENT: Final[Any] = object()


class _Target:
    """One attribute, wrapped once, and the layers before it."""

    def __init__(self, owner: Any, name: str, original: Any, patches: Patches) -> None:
        self._owner = owner
        self._name = name
        self._patches = patches
        self._before = _own(owner, name)
        self.original = original
        self._layers: list[tuple[int, Layer]] = []
        self.call: Callable[..., Any] = original
        if inspect.iscoroutinefunction(original):
            wrapper = self._asynchronous()
        elif isinstance(original, BuiltinFunctionType) and inspect.ismodule(owner):
            wrapper = _Function(self, original)
        else:
            wrapper = self._wrapped()
        wrapper.__dict__["__playhead__"] = self
        self.wrapper = patches.like(original, wrapper)

    def add(self, layer: Layer, order: int) -> None:
        if any(one == layer for _, one in self._layers):
            return
        self._layers.append((order, layer))
        self._layers.sort(key=lambda item: item[0])
        call = self.original
        for _, one in reversed(self._layers):
            guard = _guarded_async if inspect.iscoroutinefunction(one) else _guarded
            call = functools.partial(guard, self._patches, one, call)
        self.call = call

    def take_off(self) -> None:
        self._layers.clear()
        self.call = self.original
        if _own(self._owner, self._name) is self.wrapper:
            if self._before is _ABSENT:
                delattr(self._owner, self._name)
            else:
                setattr(self._owner, self._name, self._before)

    def _wrapped(self) -> Any:
        @functools.wraps(self.original)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return self.call(*args, **kwargs)

        return stands_for(wrapper)

    def _asynchronous(self) -> Any:
        @functools.wraps(self.original)
        async def wrapper(*args: Any, **kwargs: Any) -> Any:
            return await self.call(*args, **kwargs)

        return stands_for(wrapper)


class _Function:
    """A function of C: like the original it does not become a method, and is pickled by its name."""

    def __init__(self, target: _Target, original: Any) -> None:
        functools.update_wrapper(self, original)
        self._target = target

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._target.call(*args, **kwargs)

    def __reduce__(self) -> str:
        return str(self.__dict__["__qualname__"])

    def __repr__(self) -> str:
        return repr(self.__dict__["__wrapped__"])


_wrappers: Final[set[CodeType]] = {_Function.__call__.__code__}
"""Code of what stands in the place of a target."""


def stands_for(function: T) -> T:
    """Decorates what stands in the place of a function by itself, for `calling`."""
    code: Any = getattr(function, "__code__", None)
    _wrappers.add(code)
    return function


def calling() -> FrameType | None:
    """The frame that called the target of the layer that runs now."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame.f_code not in _wrappers:
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return frame.f_back


class Following:
    """What comes after a layer, whether it was called, and what it gave or raised."""

    __slots__ = ("_call", "began", "ended", "error", "result")

    def __init__(self, call: Callable[..., Any]) -> None:
        self._call = call
        self.began = self.ended = False
        self.result: Any = None
        self.error: BaseException | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it."""
        self.began, self.ended, self.error = True, False, None
        try:
            self.result = result = self._call(*args, **kwargs)
        except BaseException as error:
            self.error = error
            raise
        self.ended = True
        return result

    def raise_again(self, problem: Exception) -> None:
        """Raise the error of the original, if any: ``problem`` may come from handling it."""
        if not self.began or self.ended:
            return
        raised, self.error = self.error, None  # it holds the frames that hold this one
        try:
            raise raised or problem
        finally:
            del raised, problem


class _AsyncFollowing(Following):
    """The same of a coroutine function."""

    __slots__ = ()

    async def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.began, self.ended, self.error = True, False, None
        try:
            self.result = result = await self._call(*args, **kwargs)
        except BaseException as error:
            self.error = error
            raise
        self.ended = True
        return result


def _guarded(patches: Patches, layer: Layer, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call ``layer``; where it fails by itself, the result is that of what comes after it."""
    following = Following(call)
    error: BaseException
    try:
        return layer(following if patches.forgiving else call, *args, **kwargs)
    except Outcome as outcome:
        error = outcome.error
    except Exception as problem:
        known = patches.meant(layer, following, problem)
        if known is problem:
            del known
            raise
        if known is None:
            return following.result if following.ended else call(*args, **kwargs)
        error = known
        del known
    finally:
        following.error = None  # it holds the frames that hold this one
    try:
        raise error
    finally:
        del error


async def _guarded_async(
    patches: Patches, layer: Layer, call: Callable[..., Any], *args: Any, **kwargs: Any
) -> Any:
    """The same for coroutine functions."""
    following = _AsyncFollowing(call)
    error: BaseException
    try:
        return await layer(following if patches.forgiving else call, *args, **kwargs)
    except Outcome as outcome:
        error = outcome.error
    except Exception as problem:
        known = patches.meant(layer, following, problem)
        if known is problem:
            del known
            raise
        if known is None:
            return following.result if following.ended else await call(*args, **kwargs)
        error = known
        del known
    finally:
        following.error = None
    try:
        raise error
    finally:
        del error


def found(place: str) -> Any:
    """What ``MODULE:FUNCTION`` of this distribution names; imports the module."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(f"{ROOM}.{module}"), name)


def required(owner: Any, name: str) -> Any:
    """``owner.name``, or `Unpatchable` saying that it is not there."""
    found = getattr(owner, name, None)
    if found is None:
        raise Unpatchable(f"no {getattr(owner, '__name__', owner)}.{name}")
    return found


def _own(owner: Any, name: str) -> Any:
    """What stands in ``owner`` itself under ``name``, as it stands there."""
    return getattr(owner, "__dict__", {}).get(name, _ABSENT)


def _described(problem: Exception) -> str:
    text = str(problem)
    return f"{type(problem).__name__}: {text}" if text else type(problem).__name__


PATCHES = Patches()
"""The patches of this process."""
