"""Pages of other origins are refused, with and without a token.

A browser says of each request which page made it: in ``Origin``, and in ``Sec-Fetch-Site``, neither of
which the page can change. Programs send neither.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

PORTS = {"http": 80, "https": 443}
"""Ports that are left out of addresses."""
OWN_SITES = frozenset(("", "same-origin", "none"))
"""What ``Sec-Fetch-Site`` is for our own pages, for an address that a person typed, and for programs."""
SAID = "pages of another origin are not answered here"


class OwnOrigin:
    """Wraps an application. Requests that a page of another origin makes are answered with 403.

    A person may follow a link from elsewhere. ``public_url``: a further address of ours, where a proxy
    stands in front that changes the Host header.
    """

    def __init__(self, app: ASGIApp, public_url: str = "") -> None:
        self._app = app
        self._public = place_of(public_url)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI interface."""
        if scope["type"] == "http" and self._is_foreign(scope["method"], Headers(scope=scope)):
            await JSONResponse({"detail": SAID}, 403)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _is_foreign(self, method: str, headers: Headers) -> bool:
        for origin in headers.getlist("origin"):
            scheme, _, _ = origin.partition("://")
            own = place_of(f"{scheme}://{headers.get('host', '')}")
            page = place_of(origin)
            if page is None or page not in (own, self._public):
                return True
        follows_link = method in ("GET", "HEAD") and headers.get("sec-fetch-mode") == "navigate"
        return headers.get("sec-fetch-site", "") not in OWN_SITES and not follows_link


def place_of(url: str) -> tuple[str, int] | None:
    """Host, in lower case, and port of an address; None where it has none, as the origin ``null``.

    The scheme does not count: who ends TLS in front of us is still us.

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
