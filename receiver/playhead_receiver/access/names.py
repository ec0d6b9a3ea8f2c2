"""Which name a request may call an open receiver by.

A page in a browser can have a name of its own point to this machine (DNS rebinding) and then read
whatever is answered without a token. It cannot change the name that the request carries.
"""

from __future__ import annotations

import ipaddress

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from playhead_receiver.access.guard import Guard
from playhead_semconv.errors import StoreUnavailable


class KnownNames:
    """An application that, while it is open, is called by address, ``localhost`` or ``names``."""

    def __init__(self, app: ASGIApp, guard: Guard, names: frozenset[str] = frozenset()) -> None:
        self._app = app
        self._guard = guard
        self._names = names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """As ASGI has it. Another name: 421."""
        if scope["type"] == "http":
            name = host_of(Headers(scope=scope).get("host", ""))
            if name not in self._names and not is_own(name) and self._is_open():
                said = {"detail": "without a token this receiver is called by its address, or localhost"}
                await JSONResponse(said, 421)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _is_open(self) -> bool:
        try:
            return not self._guard.required
        except StoreUnavailable:  # which the application will say
            return False


def host_of(header: str) -> str:
    """The name in a Host header: without port and brackets, in lower case."""
    header = header.strip().lower()
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.partition(":")[0].removesuffix(".")


def is_own(name: str) -> bool:
    """Whether nobody else can have a name point here: an address, ``localhost``, or none at all."""
    if not name or name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
