"""Long answers end when nobody waits for them any more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from anyio import from_thread
from starlette.requests import Request

LOOKS_AFTER = 500
"""Items between two looks at the connection."""

Item = TypeVar("Item")


def while_wanted(request: Request, items: Iterable[Item]) -> Iterator[Item]:
    """These items, or the first of them if the caller goes away meanwhile.

    For an endpoint that runs in a thread. A page asks anew at each key and leaves what it asked before.
    """
    for number, item in enumerate(items, 1):
        if number % LOOKS_AFTER == 0 and from_thread.run(request.is_disconnected):
            return
        yield item
