"""Serves the pages: files of this package, and nothing that was recorded.

The pages ask the query API for everything they show, with the token that their address brought in its
fragment. So they need no token themselves. A policy lets a browser run and load what comes from here
and nothing else: neither a script inside of a page nor anything from elsewhere.
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from pathlib import Path
from typing import Final

from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

FOLDER: Final = Path(__file__).with_name("pages")
KINDS: Final = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
}
START: Final = "index.html"
BELOW: Final = "/web/"
"""Path below which the files of the pages are; the first page is ``/``."""

NO_LIBRARIES: Final = "the pages have no libraries here: make web"


class Pages:
    """Wraps the application of the query API: answers ``/`` and ``/web/…`` itself.

    The API knows who asks by a header that only a page with the token can send, never by a cookie, and
    no answer lets a page of another origin read it; `OwnOrigin` refuses what such pages ask.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._files = _files()
        self._headers = _headers(self._files.get("/", b""))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI interface."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = scope["path"]
        if path == "/" or path.startswith(BELOW):
            await self._answer(path, scope["method"])(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _answer(self, path: str, method: str) -> Response:
        content = self._files.get(path)
        if method not in ("GET", "HEAD"):
            return PlainTextResponse("only GET", 405, {**self._headers, "allow": "GET, HEAD"})
        if content is None:
            return PlainTextResponse("there is no such page", 404, self._headers)
        if f"{BELOW}lib/preact.js" not in self._files:
            return PlainTextResponse(NO_LIBRARIES, 503, self._headers)
        kind = KINDS[".html" if path == "/" else Path(path).suffix]
        return Response(content, headers={**self._headers, "content-type": kind})


def _files() -> dict[str, bytes]:
    """Content of each file of the pages, by its path here."""
    found = {
        f"{BELOW}{path.relative_to(FOLDER).as_posix()}": path.read_bytes()
        for path in FOLDER.rglob("*")
        if path.suffix in KINDS
    }
    found["/"] = found.pop(f"{BELOW}{START}")
    return found


def _headers(page: bytes) -> dict[str, str]:
    """The page names its modules in an import map, the one thing inside of it that a browser reads."""
    inside = re.findall(rb'<script type="importmap">(.*?)</script>', page, re.DOTALL)
    digests = " ".join(f"'sha256-{b64encode(hashlib.sha256(one).digest()).decode()}'" for one in inside)
    policy = (
        f"default-src 'none'; script-src 'self' {digests}; style-src 'self'; connect-src 'self'; "
        "img-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )
    return {
        "content-security-policy": policy,
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "cache-control": "no-cache",
    }
