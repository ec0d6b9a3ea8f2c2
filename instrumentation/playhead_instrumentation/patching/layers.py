"""Layers around a patched target, and what the program gets where a layer fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import msgspec

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
