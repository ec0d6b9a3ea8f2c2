"""MCP sessions over HTTP that a tape has opened: a real server does not know them.

Before the first live request of such a session, the handshake is sent to the server again. The server
gives the session a new id, which replaces the recorded one from then on. Calls are not repeated: their
effects belong to the server, which is not a child of the program.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any, NamedTuple, cast

NAME = "mcp-session-id"
INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
OF_BODY = ("content-length", "content-encoding", "transfer-encoding", NAME)


class _Handshake(NamedTuple):
    """The request that began a session."""

    request: Any
    body: bytes


class Sessions:
    """Sessions that were played in this process. For one event loop at a time."""

    def __init__(self) -> None:
        self._begun: dict[str, _Handshake] = {}
        self._names: dict[str, asyncio.Future[str]] = {}
        """Session ids that servers gave now, by the recorded ones."""

    def played(self, request: Any, body: bytes | None, response: Any) -> None:
        """A recorded ``response`` answers; it may begin a session."""
        name = response.headers.get(NAME)
        if name and name not in self._begun and _method_of(body) == "initialize":
            self._begun[name] = _Handshake(request, body or b"")

    async def renew(self, transport: Any, request: Any, make: Any) -> str:
        """Before ``request`` goes out, make it name a session that its server knows.

        ``make`` makes a request of the library. Returns the recorded session id; empty if nothing was
        done.
        """
        recorded = request.headers.get(NAME, "")
        if recorded not in self._begun:
            return ""
        known = self._names.get(recorded)
        if known is None:
            known = self._names[recorded] = asyncio.get_running_loop().create_future()
            try:
                known.set_result(await self._begin(transport, self._begun[recorded], request, make))
            except BaseException:
                del self._names[recorded]
                known.set_result(recorded)
                raise
        request.headers[NAME] = await asyncio.shield(known)
        return recorded

    async def _begin(self, transport: Any, begun: _Handshake, request: Any, make: Any) -> str:
        answer = await self._ask(transport, begun.request, begun.body, make, {})
        name = answer.headers.get(NAME)
        if not name:
            return request.headers[NAME]
        await self._ask(transport, request, INITIALIZED, make, {NAME: name})
        return name

    @staticmethod
    async def _ask(transport: Any, like: Any, body: bytes, make: Any, more: dict[str, str]) -> Any:
        headers = [(name, value) for name, value in like.headers.items() if name.lower() not in OF_BODY]
        made = make("POST", like.url, headers=[*headers, *more.items()], content=body)
        made.headers["content-type"] = "application/json"
        made.extensions = dict(like.extensions)
        answer = await transport.handle_async_request(made)
        try:
            await answer.aread()
        finally:
            await answer.aclose()
        return answer


SESSIONS = Sessions()


def _method_of(body: bytes | None) -> str:
    try:
        said = json.loads(body or b"")
    except ValueError:
        return ""
    return str(cast("dict[str, Any]", said).get("method", "")) if isinstance(said, dict) else ""
