"""Protects the ports against pages in browsers: other origins, DNS rebinding, sniffing, caching.

A browser names the page that makes a request in ``Origin`` and ``Sec-Fetch-Site``, which the page cannot
change; programs send neither. A page can make its own host name resolve to this machine (DNS rebinding),
and then read all answers and write data without a token. But it cannot change the Host header either.
"""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from playhead_core.errors import StoreUnavailable
from playhead_receiver.auth.guard import Guard

PORTS = {"http": 80, "https": 443}
"""Ports that are left out of addresses."""
OWN_SITES = frozenset(("", "same-origin", "none"))
"""Values of ``Sec-Fetch-Site`` for our own pages, typed addresses, and programs."""
REFUSAL_TEXT = "requests of pages of other origins are refused"


class OwnOrigin:
    """Wraps an application. Answers 403 to requests of pages of other origins, with or without a token.

    Following a link from another page is allowed. ``public_url``: a further address of ours, if a
    proxy changes the Host header.
    """

    def __init__(self, app: ASGIApp, public_url: str = "") -> None:
        self._app = app
        self._public = host_and_port(public_url)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI interface."""
        if scope["type"] == "http" and self._is_foreign(scope["method"], Headers(scope=scope)):
            await JSONResponse({"detail": REFUSAL_TEXT}, 403)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _is_foreign(self, method: str, headers: Headers) -> bool:
        for origin in headers.getlist("origin"):
            scheme, _, _ = origin.partition("://")
            own = host_and_port(f"{scheme}://{headers.get('host', '')}")
            page = host_and_port(origin)
            if page is None or page not in (own, self._public):
                return True
        follows_link = method in ("GET", "HEAD") and headers.get("sec-fetch-mode") == "navigate"
        return headers.get("sec-fetch-site", "") not in OWN_SITES and not follows_link


def host_and_port(url: str) -> tuple[str, int] | None:
    """Host, in lower case, and port of an address; None if it has no host, as the origin ``null``.

    The scheme is ignored: a proxy may terminate TLS.

    >>> place_of("https://playhead.test")
    ('playhead.test', 443)
    """
    try:
        found = urlsplit(url.strip())
        port = found.port
    except ValueError:
        return None
    if not found.hostname:
        return None
    return found.hostname, port or PORTS.get(found.scheme, 0)


SAFE = {"x-content-type-options": "nosniff", "cache-control": "no-store"}


class SafeAnswers:
    """Wraps an application: adds the headers `SAFE` to every answer that does not have them itself."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI interface."""

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SAFE.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, send_safely)


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
            status, detail = 0, ""
            host = host_of(headers.get("host", ""))
            if host not in self._names and not is_own(host):
                status = 421
                detail = "without tokens this receiver is only reachable by its IP address or localhost"
            elif not all(self._answers(page_of(one), host) for one in headers.getlist("origin")):
                status = 403
                detail = "without tokens this receiver refuses pages of other hosts"
            if status and self._is_open():
                await JSONResponse({"detail": detail}, status)(scope, receive, send)
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
