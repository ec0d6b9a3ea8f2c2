"""Sends the requests of a tape to an ASGI application."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from playhead_core.facts import ErrorRecord, Part
from playhead_core.rerun.headers import with_headers
from playhead_instrumentation.libraries.inbound.asgi import TEXT
from playhead_instrumentation.libraries.inbound.exchange import BROKEN, END
from playhead_instrumentation.patching.lanes import Shadow, of_requests
from playhead_instrumentation.patching.unpatched import REAL
from playhead_instrumentation.recorder.decision import Played
from playhead_instrumentation.recorder.driver import Driver
from playhead_instrumentation.recorder.exceptions import again
from playhead_semconv import attributes as a

DISCONNECT = "http.disconnect"

STARTUP_FAILED = 3
"""Exit status of a server whose application does not start."""


class AsgiServer:
    """An application that was started, and its requests, each in a task of its own as in a server."""

    def __init__(self, driver: Driver, app: Any, headers: Mapping[str, str]) -> None:
        """``headers``: replace the recorded headers of the requests."""
        self._driver = driver
        self._app = app
        self._headers = headers
        self._state: dict[str, Any] = {}
        self._started = asyncio.Event()
        self._startup_error = ""
        self._lifespan: asyncio.Task[None] | None = None

    async def serve(self, requests: Sequence[Played]) -> None:
        """Start the application, send the requests, and wait for the tasks that they started."""
        self._lifespan = asyncio.ensure_future(self._live())
        await self._started.wait()
        if self._startup_error:
            sys.stderr.write(f"{self._startup_error}\n")
            sys.exit(STARTUP_FAILED)
        self._driver.booted()
        asked = [asyncio.ensure_future(self._ask(played)) for played in requests]
        await asyncio.wait(asked)
        await rest(self._driver)

    async def _live(self) -> None:
        waiting: list[dict[str, str]] = [{"type": "lifespan.startup"}]

        async def receive() -> dict[str, str]:
            if waiting:
                return waiting.pop()
            return await asyncio.get_running_loop().create_future()

        async def send(message: Mapping[str, Any]) -> None:
            if message["type"] == "lifespan.startup.failed":
                self._startup_error = str(message.get("message") or "the application does not start")
            self._started.set()

        version = {"version": "3.0", "spec_version": "2.0"}
        scope = {"type": "lifespan", "asgi": version, "state": self._state}
        try:
            await self._app(scope, receive, send)
        except Exception:
            pass  # it does not support lifespan
        finally:
            self._started.set()

    async def _ask(self, played: Played) -> None:
        client = _Client(self._driver, played)
        scope = _scope(played.exchange.ask.details, self._headers)
        scope["state"] = self._state.copy()
        try:
            await self._app(scope, client.receive, client.send)
        except Exception:
            return  # on the tape; a server would have answered 500


class _Client:
    """The client that sent the request and reads the answer."""

    def __init__(self, driver: Driver, played: Played) -> None:
        self._driver = driver
        self._played = played
        self._received = 0
        self._sent = 0

    async def receive(self) -> dict[str, Any]:
        """Return the next message of the tape; after the last one, wait forever."""
        parts = self._played.exchange.parts
        if self._received >= len(parts):
            await self._driver.gate.never()
        number, self._received = self._received, self._received + 1
        return _message(parts[number], self._played.part(number))

    async def send(self, message: Mapping[str, Any]) -> None:
        """Accept messages as far as the recorded client did."""
        if str(message["type"]).endswith("response.start"):
            return
        number, self._sent = self._sent, self._sent + 1
        sent = [part for part in self._played.exchange.sent if _kind(part) != BROKEN]
        if number >= len(sent):
            if sent and _kind(sent[-1]) != END:
                await self._driver.gate.never()  # the recorded client had gone
            return
        if number == len(sent) - 1 and self._leaves(len(sent)):
            await self._driver.gate.never()
        place = self._played.exchange.sent.index(sent[number])
        behind = self._played.exchange.sent[place + 1 : place + 2]
        if behind and _kind(behind[0]) == BROKEN:
            raise again(_error(behind[0]), OSError)

    def _leaves(self, sent: int) -> bool:
        """Whether the client left after ``sent`` messages, which the program is about to learn."""
        parts = self._played.exchange.parts
        gone = bool(parts) and _kind(parts[-1]) == DISCONNECT and parts[-1].after >= sent
        return gone and self._received == len(parts) and _kind(self._played.exchange.sent[-1]) != END


def _kind(part: Part) -> str:
    return str(part.attributes.get(a.PLAYHEAD_INBOUND_MESSAGE, ""))


def _error(part: Part) -> ErrorRecord:
    at = part.attributes
    return ErrorRecord(
        str(at.get(a.PLAYHEAD_ERROR_MODULE, "builtins")),
        str(at.get(a.PLAYHEAD_ERROR_QUALNAME, "OSError")),
        str(at.get(a.PLAYHEAD_ERROR_MESSAGE, "")),
        list(at.get(a.PLAYHEAD_ERROR_ARGS, [])),
    )


def _message(part: Part, data: bytes) -> dict[str, Any]:
    kind, _, text = _kind(part).partition(" ")
    if kind in ("", END):
        return {"type": "http.request", "body": data, "more_body": kind != END}
    if kind in (DISCONNECT, "websocket.connect"):
        return {"type": kind}
    if kind == "websocket.disconnect":
        return {"type": kind, "code": 1005, "reason": None}
    if text == TEXT:
        return {"type": kind, "text": data.decode("utf-8", "surrogatepass")}
    return {"type": kind, "bytes": data}


def _scope(at: Mapping[str, Any], headers: Mapping[str, str]) -> dict[str, Any]:
    raw = str(at.get(a.URL_PATH, "/"))
    flat = [
        word.encode("latin-1") for word in with_headers(at.get(a.PLAYHEAD_HTTP_HEADERS, []), headers)
    ]
    websocket = at.get(a.NETWORK_PROTOCOL_NAME) == "websocket"
    scope: dict[str, Any] = {
        "type": "websocket" if websocket else "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": str(at.get(a.NETWORK_PROTOCOL_VERSION, "1.1")),
        "scheme": str(at.get(a.URL_SCHEME, "http")),
        "path": unquote(raw),
        "raw_path": raw.encode("latin-1"),
        "query_string": str(at.get(a.URL_QUERY, "")).encode("latin-1"),
        "root_path": str(at.get(a.PLAYHEAD_INBOUND_ROOT, "")),
        "headers": list(zip(flat[::2], flat[1::2], strict=True)),
        "client": _peer(at, a.CLIENT_ADDRESS, a.CLIENT_PORT),
        "server": _peer(at, a.SERVER_ADDRESS, a.SERVER_PORT),
        "extensions": {},
    }
    if websocket:
        named = [value.decode("latin-1") for name, value in scope["headers"] if _offers(name)]
        scope["subprotocols"] = [one.strip() for value in named for one in value.split(",")]
    else:
        scope["method"] = str(at.get(a.HTTP_REQUEST_METHOD, "GET"))
    return scope


def _offers(name: bytes) -> bool:
    return name.lower() == b"sec-websocket-protocol"


def _peer(at: Mapping[str, Any], address: str, port: str) -> tuple[str, int | None] | None:
    return (str(at[address]), at.get(port)) if address in at else None


LOOK_S = 0.01
"""Seconds between two checks for such tasks."""

PATIENCE_S = 5.0
"""Seconds to wait for them after the tape holds nothing more for them."""


async def rest(driver: Driver) -> None:
    """Wait for the tasks that requests have left behind."""
    mine = asyncio.current_task()
    until_s = REAL.now_s() + PATIENCE_S
    with Shadow():
        while any(not task.done() for task in of_requests if task is not mine):
            if REAL.now_s() >= until_s:
                return
            if driver.gate.expects():
                until_s = REAL.now_s() + PATIENCE_S
            await asyncio.sleep(LOOK_S)
