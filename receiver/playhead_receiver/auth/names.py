"""Checks the Host and Origin headers of requests to a receiver that requires no token.

A page in a browser can make its own host name resolve to this machine (DNS rebinding), and then read
all answers and write data without a token. It cannot change the Host header of the request, nor the
Origin header that the browser adds.
"""

from __future__ import annotations

import ipaddress

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from playhead_core.errors import StoreUnavailable
from playhead_receiver.auth.guard import Guard


class KnownNames:
    """Wraps an application. While no token is required, it checks the hosts of requests.

    Requests must be for an IP address, ``localhost`` or one of ``names``.
    Pages in a browser are answered only if they come from the same host, this machine, or ``names``.
    """

    def __init__(self, app: ASGIApp, guard: Guard, names: frozenset[str] = frozenset()) -> None:
        self._app = app
        self._guard = guard
        self._names = names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI interface. Answers 421 to other host names, and 403 to pages from elsewhere."""
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            status, said = 0, ""
            host = host_of(headers.get("host", ""))
            if host not in self._names and not is_own(host):
                status = 421
                said = "without a token this receiver is called by its address, or localhost"
            elif not all(self._answers(page_of(one), host) for one in headers.getlist("origin")):
                status = 403
                said = "without a token this receiver answers no pages from elsewhere"
            if status and self._is_open():
                await JSONResponse({"detail": said}, status)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _answers(self, page: str, host: str) -> bool:
        return page in self._names or page == host or is_here(page)

    def _is_open(self) -> bool:
        try:
            return not self._guard.required
        except StoreUnavailable:  # the application will report it
            return False


def host_of(header: str) -> str:
    """The name in a Host header: without port and brackets, in lower case."""
    header = header.strip().lower()
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.partition(":")[0].removesuffix(".")


def page_of(origin: str) -> str:
    """The host name in an Origin header; ``null`` if it has none."""
    return host_of(origin.strip().partition("://")[2]) or "null"


def is_own(name: str) -> bool:
    """Whether DNS cannot redirect a name here: an address, ``localhost``, or the empty name."""
    if not name or name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def is_here(name: str) -> bool:
    """Whether a name stands for this machine: a loopback address, or ``localhost``."""
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return bool(name) and is_own(name)
