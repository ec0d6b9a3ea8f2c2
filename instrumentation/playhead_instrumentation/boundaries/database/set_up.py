"""What a driver, a pool or a framework asks to get a connection ready, before the program uses it.

It belongs to the connection, not to the request that happened to open it. So its answers stand
(`standing`), as the connection itself does.
"""

from __future__ import annotations

from contextvars import ContextVar, Token
from typing import Any, Final

_sets_up: Final[ContextVar[bool]] = ContextVar("playhead_sets_up", default=False)


class SetUp:
    """Context manager around what gets a connection ready. Not reentrant."""

    def __enter__(self) -> None:
        self._token: Token[bool] = _sets_up.set(True)

    def __exit__(self, *_: object) -> None:
        _sets_up.reset(self._token)


def sets_up() -> bool:
    """Whether what is asked now gets a connection ready."""
    return _sets_up.get()


def setting_up(original: Any, *args: Any, **kwargs: Any) -> Any:
    """Layer of a function that gets a connection ready."""
    with SetUp():
        return original(*args, **kwargs)


async def setting_up_async(original: Any, *args: Any, **kwargs: Any) -> Any:
    """The same for a coroutine function."""
    with SetUp():
        return await original(*args, **kwargs)
