"""Answers of tools in a semantic replay: of marked functions, and of servers of MCP.

A tool is answered by the span that has its name and its arguments. The server of MCP itself is made up:
it offers the tools that the spans know.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, cast

import msgspec

from playhead_core.errors import TapeError
from playhead_core.facts import RETURNS, Ask, Content, End, Exchange, ExchangeId, Fidelity, Part
from playhead_core.rerun.open_connections import STDIO
from playhead_core.tape.indexed_tapes import IndexedTape
from playhead_genai.rebuilding.tools import RebuildableTool, RebuildableTools
from playhead_instrumentation.recorder.decision import Played
from playhead_semconv import attributes as a


class AnsweredTools:
    """The tools of a run. Safe from any thread."""

    def __init__(self, tape: IndexedTape, recorded: Sequence[Exchange]) -> None:
        self._instance: Final = tape.instance
        self._recorded: Final = recorded
        self._tools: Final = [RebuildableTool.decoded(tape.read(one.ask.body)) for one in recorded]
        self._unused: Final = RebuildableTools(self._tools)
        self._started_ns: Final = recorded[0].time_ns if recorded else 0
        self._servers: Final[set[str]] = set()
        """Addresses of servers of MCP over HTTP."""

    def marked(self, ask: Ask, body: bytes) -> Played | None:
        """Return the answer to a call of a marked function; None: it runs."""
        if ask.details.get(a.PLAYHEAD_TOOL_FORM) != "call":  # a span does not have what is yielded
            return None
        returns = str(ask.details.get(RETURNS, ""))
        number = self._unused.take(ask.key, _parsed(body), returns)
        kept = None if number is None else self._tools[number].returned(returns)
        if number is None or kept is None:
            return None
        return self._played(self._recorded[number], b'{"return":%s}' % kept)

    def of_server(self, id: ExchangeId, ask: Ask, body: bytes) -> Played | None:
        """Return the answer of a server of MCP on stdio; None: no span has it."""
        if not self._recorded:
            return None
        made_up = self._made_up(id, ask)
        if ask.key.startswith(STDIO):  # the connection, which stays open
            return self._played(made_up, ends=False)
        if a.JSONRPC_REQUEST_ID not in ask.details:
            return self._played(made_up)
        asked = _object(_parsed(body))
        answered = self._answered(str(ask.details.get(a.MCP_METHOD_NAME)), asked, made_up)
        if answered is None:
            return None
        exchange, result = answered
        return self._played(exchange, {"jsonrpc": "2.0", "result": result})

    def of_http(self, id: ExchangeId, ask: Ask, body: bytes) -> Played | None:
        """Return the answer of a server of MCP over HTTP; None: it is none, or no span has it."""
        method, _, url = ask.key.partition(" ")
        made_up = self._made_up(id, ask)
        if method != "POST":  # it offers no stream of events, and sessions need no end
            return self._played(made_up, status=405) if url in self._servers else None
        asked = _object(_parsed(body))
        if asked.get("jsonrpc") != "2.0" or not any(one.is_mcp for one in self._tools):
            return None
        self._servers.add(url)
        if "id" not in asked:
            return self._played(made_up, status=202)
        answered = self._answered(str(asked.get("method")), asked, made_up)
        if answered is None:
            return None
        exchange, result = answered
        return self._played(
            exchange, {"jsonrpc": "2.0", "id": asked["id"], "result": result}, status=200
        )

    def _answered(
        self, method: str, asked: dict[str, Any], made_up: Exchange
    ) -> tuple[Exchange, dict[str, Any]] | None:
        """Return the result of a request, and the recording that has it or ``made_up``."""
        parameters = _object(asked.get("params"))
        if method == "tools/call":
            name, arguments = str(parameters.get("name", "")), _object(parameters.get("arguments"))
            number = self._unused.take(name, arguments, None)
            return None if number is None else (self._recorded[number], self._tools[number].as_mcp())
        if method == "initialize":
            server = {"name": str(asked.get("server", "")), "version": ""}
            version, able = parameters.get("protocolVersion"), dict[str, Any](tools={})
            return made_up, {"protocolVersion": version, "capabilities": able, "serverInfo": server}
        if method == "tools/list":
            return made_up, {"tools": self._offered()}
        return (made_up, {}) if method == "ping" else None

    def _made_up(self, id: ExchangeId, ask: Ask) -> Exchange:
        return Exchange(id, ask, self._started_ns)

    def _offered(self) -> list[dict[str, Any]]:
        """The tools that a server has executed, else all."""
        of_servers = [one for one in self._tools if one.is_mcp] or self._tools
        found = {one.name: one for one in of_servers}
        return [
            {
                "name": one.name,
                "description": one.description,
                "inputSchema": one.parameters or {"type": "object"},
            }
            for one in found.values()
        ]

    def _played(
        self, exchange: Exchange, answer: Any = None, *, status: int = 0, ends: bool = True
    ) -> Played:
        """``answer``: bytes, or what is sent as JSON; None: nothing. ``status``: of HTTP."""
        data = answer if isinstance(answer, bytes | None) else msgspec.json.encode(answer)
        parts = [] if data is None else [Part(Content.chunk(data), exchange.time_ns, None)]
        head: dict[str, Any] = {}
        if status:
            headers = ["content-type", "application/json"] if data is not None else []
            head = {a.HTTP_RESPONSE_STATUS_CODE: status, a.PLAYHEAD_HTTP_HEADERS: headers}
        end = End("complete") if ends else None
        made = msgspec.structs.replace(exchange, head=head, parts=parts, end=end)
        return Played(
            made,
            self._instance,
            read_inline,
            fidelity=Fidelity.SEMANTIC,
            elsewhere=False,
            made=True,
        )


def read_inline(content: Content) -> bytes:
    """Return the bytes of an answer that was made up."""
    if content.inline is None:
        raise TapeError("a rebuilt answer has no other content")
    return content.inline


def _object(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None
