"""A patched target, the layers around it, and what the program gets where a layer fails."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import BuiltinFunctionType, CodeType
from typing import Any, Final, Protocol, TypeVar

import msgspec

T = TypeVar("T")

Layer = Callable[..., Any]
"""``layer(following, *args, **kwargs)``: calls ``following`` to do what the target does."""


class ErrorInstead(Exception):
    """Raised by a layer: the program gets ``error`` in place of the outcome of the following call."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error


class Guard(Protocol):
    """Decides what the program gets where a layer fails."""

    forgiving: bool
    """Whether a failed layer is skipped; else its error reaches the program."""
    like: Callable[[Any, Any], Any]
    """Makes a stand-in for the first that calls the second."""

    def meant(self, layer: Layer, following: FollowingCall, problem: Exception) -> BaseException | None:
        """The error for the program where ``layer`` raised ``problem``; None: use the following call."""
        ...


class FollowingCall(msgspec.Struct):
    """The callable after a layer, whether it was called, and its result or error."""

    call: Callable[..., Any]
    began: bool = False
    ended: bool = False
    result: Any = None
    error: BaseException | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the callable and keep its outcome."""
        self.began, self.ended, self.error = True, False, None
        try:
            self.result = result = self.call(*args, **kwargs)
        except BaseException as error:
            self.error = error
            raise
        self.ended = True
        return result

    def raise_again(self, problem: Exception) -> None:
        """Raise the error of the original, if any; ``problem`` may come from handling that error."""
        if not self.began or self.ended:
            return
        raised, self.error = self.error, None  # break the cycle of the error and its frames
        try:
            raise raised or problem
        finally:
            del raised, problem


class _AsyncFollowing(FollowingCall):
    """A `FollowingCall` for a coroutine function."""

    async def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.began, self.ended, self.error = True, False, None
        try:
            self.result = result = await self.call(*args, **kwargs)
        except BaseException as error:
            self.error = error
            raise
        self.ended = True
        return result


def guarded(guard: Guard, layer: Layer, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call ``layer``; where the layer itself fails, give the outcome of the following call."""
    if FollowingCall is None:  # pyright: ignore[reportUnnecessaryComparison]
        return call(*args, **kwargs)  # the interpreter ends and has cleared this module
    following = FollowingCall(call)
    error: BaseException
    try:
        return layer(following if guard.forgiving else call, *args, **kwargs)
    except ErrorInstead as outcome:
        error = outcome.error
    except Exception as problem:
        known = guard.meant(layer, following, problem)
        if known is problem:
            del known
            raise
        if known is None:
            return following.result if following.ended else call(*args, **kwargs)
        error = known
        del known
    finally:
        following.error = None  # break the cycle of the error and its frames
    try:
        raise error
    finally:
        del error


async def guarded_async(
    guard: Guard, layer: Layer, call: Callable[..., Any], *args: Any, **kwargs: Any
) -> Any:
    """`guarded` for coroutine functions."""
    following = _AsyncFollowing(call)
    error: BaseException
    try:
        return await layer(following if guard.forgiving else call, *args, **kwargs)
    except ErrorInstead as outcome:
        error = outcome.error
    except Exception as problem:
        known = guard.meant(layer, following, problem)
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


ABSENT: Final[Any] = object()
"""Stands for an attribute that an owner does not have itself."""


def _is_same(one: Layer, other: Layer) -> bool:
    """Whether two layers do the same; a `functools.partial` equals no other that `==` compares."""
    if isinstance(one, functools.partial) and isinstance(other, functools.partial):
        return (one.func, one.args, one.keywords) == (other.func, other.args, other.keywords)
    return one == other


class Target:
    """One attribute, wrapped once, and its layers."""

    def __init__(self, owner: Any, name: str, original: Any, patches: Guard) -> None:
        self._owner = owner
        self._name = name
        self._patches = patches
        self._before = own_value(owner, name)
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
        """Add a layer once. Layers are called in order of ``order``."""
        if any(_is_same(one, layer) for _, one in self._layers):
            return
        self._layers.append((order, layer))
        self._layers.sort(key=lambda item: item[0])
        call = self.original
        for _, one in reversed(self._layers):
            guard = guarded_async if inspect.iscoroutinefunction(one) else guarded
            call = functools.partial(guard, self._patches, one, call)
        self.call = call

    def take_off(self) -> None:
        """Restore the attribute. A wrapper that other code has wrapped becomes transparent."""
        self._layers.clear()
        self.call = self.original
        if own_value(self._owner, self._name) is self.wrapper:
            if self._before is ABSENT:
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
    """Stand-in for a C function: like that it does not become a method and is pickled by its name."""

    def __init__(self, target: Target, original: Any) -> None:
        functools.update_wrapper(self, original)
        self._target = target

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._target.call(*args, **kwargs)

    def __reduce__(self) -> str:
        return str(self.__dict__["__qualname__"])

    def __repr__(self) -> str:
        return repr(self.__dict__["__wrapped__"])


WRAPPERS: Final[set[CodeType]] = {_Function.__call__.__code__}
"""Code objects of stand-ins for targets."""


def stands_for(function: T) -> T:
    """Decorator for a stand-in of a function that is not made here, for `patches.calling`."""
    code: Any = getattr(function, "__code__", None)
    WRAPPERS.add(code)
    return function


def own_value(owner: Any, name: str) -> Any:
    """The raw attribute ``name`` in the dictionary of ``owner`` itself; else `ABSENT`."""
    return getattr(owner, "__dict__", {}).get(name, ABSENT)
