"""Serves the web pages: files of this package, without recorded data.

The pages get everything they show from the query API, with the token in the fragment of their address.
So they need no token themselves. A content security policy lets a browser load and run only files from
here: no inline scripts, and nothing from other origins.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs

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
"""Path below which the files of the pages are, each below a digest of all files: browsers can cache
them forever and files of different versions never mix. The first page is ``/``."""

KEPT: Final = "public, max-age=31536000, immutable"
NO_LIBRARIES: Final = "the pages have no libraries here: make web"


class Pages:
    """Wraps the application of the query API: answers ``/`` and ``/web/…`` itself.

    The API authenticates callers by a header that only a page with the token can send, never a cookie.
    No response may be read by a page of another origin, and `OwnOrigin` refuses requests of such pages.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        named = {path.relative_to(FOLDER).as_posix(): path.read_bytes() for path in _paths()}
        below = f"{BELOW}{_digest(named)}/"
        self._page = named.pop(START).replace(BELOW.encode(), below.encode())
        self._files = {below + name: content for name, content in named.items()}
        self._below = below
        self._opened: dict[str, bytes] = {}
        self._headers = _headers(self._page)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI interface."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = scope["path"]
        if path == "/" or path.startswith(BELOW):
            await self._answer(path, scope)(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _answer(self, path: str, scope: Scope) -> Response:
        if scope["method"] not in ("GET", "HEAD"):
            return PlainTextResponse("only GET", 405, {**self._headers, "allow": "GET, HEAD"})
        if path != "/" and path not in self._files:
            return PlainTextResponse("there is no such page", 404, self._headers)
        if f"{self._below}lib/preact.js" not in self._files:
            return PlainTextResponse(NO_LIBRARIES, 503, self._headers)
        if path == "/":
            page = self._page_of(self._view(scope["query_string"]))
            return Response(page, headers={**self._headers, "content-type": KINDS[".html"]})
        kind = KINDS[Path(path).suffix]
        headers = {**self._headers, "content-type": kind, "cache-control": KEPT}
        return Response(self._files[path], headers=headers)

    def _view(self, query: bytes) -> str:
        """The view of an address, as `viewOf` of the pages finds it."""
        place = parse_qs(query.decode("latin-1"))
        view = place.get("view", [""])[-1]
        if f"{self._below}views/{view}.js" in self._files:
            return view
        return "run" if "run" in place else "runs"

    def _page_of(self, view: str) -> bytes:
        """The page, with links to all modules that a view begins with."""
        if view not in self._opened:
            begin = (f"{self._below}{name}.js" for name in ("ahead", "main", f"views/{view}"))
            links = "".join(
                f'<link rel="modulepreload" href="{path}">\n'
                for path in first_modules(self._files, self._page, begin)
            )
            self._opened[view] = self._page.replace(b"</head>", links.encode() + b"</head>")
        return self._opened[view]


def _paths() -> list[Path]:
    return sorted(path for path in FOLDER.rglob("*") if path.suffix in KINDS)


def _digest(files: dict[str, bytes]) -> str:
    whole = hashlib.sha256()
    for name, content in files.items():
        whole.update(name.encode() + hashlib.sha256(content).digest())
    return whole.hexdigest()[:16]


def _headers(page: bytes) -> dict[str, str]:
    """The page names its modules in an import map, the one thing inside of it that a browser reads."""
    digests = " ".join(
        f"'sha256-{b64encode(hashlib.sha256(one).digest()).decode()}'" for one in maps_of(page)
    )
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


_IMPORTED = re.compile(rb"""(?:^|[;}])\s*(?:import|export)\b[^"';(]*["']([^"']+)["']""", re.MULTILINE)
"""Static imports of a module; not the dynamic ones with ``import(…)``."""
_MAP = re.compile(rb'<script type="importmap">(.*?)</script>', re.DOTALL)


def maps_of(page: bytes) -> list[bytes]:
    """The import maps within a page: what names without a path stand for."""
    return _MAP.findall(page)


def first_modules(files: Mapping[str, bytes], page: bytes, begin: Iterable[str]) -> list[str]:
    """Paths of some modules and of all that they import, directly or not, in the order of their imports.

    ``files``: contents by path. ``page``: where the import map is.
    """
    names: dict[str, str] = {}
    for one in maps_of(page):
        names |= json.loads(one)["imports"]
    found: dict[str, None] = {}
    waiting = list(begin)
    while waiting:
        path = waiting.pop(0)
        if path in found or path not in files:
            continue
        found[path] = None
        for imported in _IMPORTED.findall(files[path]):
            name = imported.decode()
            waiting.append(names.get(name) or posixpath.normpath(posixpath.join(path, "..", name)))
    return list(found)
